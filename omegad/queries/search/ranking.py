"""From what is known of each candidate to its score, in stages. Pure: no SQL, no clock.

Every stage adds its contribution, so that a score is the sum of what explains it. Both scores are known for every candidate,
whichever index found it: to give a one-sided candidate half a score ranks worse than full text alone. Each is scaled by the best of
the query, because BM25 has no scale of its own, and a cosine's depends on the model; what is so scaled says which candidate is the
best, and not whether it is any good. That is for `calibration`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

RANKING_VERSION = 2
DAY_US = 86_400 * 1_000_000


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """How much each stage counts. They were chosen on chats, code-heavy sessions and histories of repositories together."""

    meaning: float = 0.28
    near_meaning: float = 0.17
    words: float = 0.24
    near_words: float = 0.04
    session: float = 0.50
    author: float = 0.13
    question: float = -0.07
    substance: float = 0.20
    identifiers: float = 0.50
    time: float = 0.80
    reason: float = 0.10
    kind: float = 0.03
    priority: float = 0.01
    overlap: float = 0.05
    rating: float = 0.05
    strength: float = 0.02
    neglect: float = -0.10
    probation: float = -0.05
    contradicted: float = -0.15
    outdated: float = -0.15
    announced: float = -0.20
    restated: float = -0.70
    linked: float = 0.60


SUBSTANCE_CHARACTERS = 400  # beyond which a memory does not say more by being longer
RATING_MAX = 4  # either way, beyond which another rating changes nothing
BLAME = 2  # how many times more a bad rating counts than a good one
NEGLECTED_DAYS = 180
BY_ITSELF = 10  # of the best by words, and by meaning, whatever stands beside them, that are always looked at closely
SUCCEEDING = 0.15  # share of the older one's own relevance that the newer one must have
EPSILON = 1e-4


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """The memories that may answer: arrays of one length, in ascending order of `ids`.

    `cosine` is that of the nearest passage; of what is not embedded what its words let expect, and 0 without vectors. `bm25` is 0 where
    no term is in it, and `words` the same with what it holds of the rare ones. `near_cosine` is the better cosine of the neighbours in the
    session, `near_words` the sum of their scores. `session` numbers the sessions; what is in none has a number of its own.
    """

    ids: npt.NDArray[np.int64]
    cosine: npt.NDArray[np.float64]
    is_embedded: npt.NDArray[np.bool_]
    bm25: npt.NDArray[np.float64]
    words: npt.NDArray[np.float64]
    near_cosine: npt.NDArray[np.float64]
    near_words: npt.NDArray[np.float64]
    session: npt.NDArray[np.intp]

    def __contains__(self, row: int) -> bool:
        """Say whether a row is a candidate."""
        return self._place(row) is not None

    def cosine_of(self, row: int) -> float | None:
        """Return the cosine of a row, None for one without a vector, and 0 for one that is no candidate."""
        place = self._place(row)
        if place is None:
            return 0.0
        return float(self.cosine[place]) if self.is_embedded[place] else None

    def bm25_of(self, row: int) -> float:
        """Return the BM25 score of a row, 0 for one that is no candidate."""
        place = self._place(row)
        return 0.0 if place is None else float(self.bm25[place])

    def relevance_of(self, row: int) -> float:
        """Return how well a row matches by itself, whatever stands beside it, 0 to 1; 0 for one that is no candidate."""
        place = self._place(row)
        return 0.0 if place is None else self.relevance(float(self.cosine[place]), float(self.bm25[place]))

    def relevance(self, cosine: float, bm25: float) -> float:
        """Return how well what has these scores matches by itself, beside the best of these."""
        best_cosine, best_bm25 = self.cosine.max(initial=0.0), self.bm25.max(initial=0.0)
        share = 0.5 if best_cosine > 0 and best_bm25 > 0 else 1.0
        return float(share * (max(0.0, cosine) / (best_cosine or 1.0) + bm25 / (best_bm25 or 1.0)))

    def _place(self, row: int) -> int | None:
        place = int(np.searchsorted(self.ids, row))
        return place if place < len(self.ids) and self.ids[place] == row else None


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a candidate beside how well it matches, as the stages ask for it. Times are in microseconds since 1970.

    `is_author_named`, `identifiers`, `overlap` and `is_in_period` are about the question: whether it names who speaks, which share of
    its identifiers the memory holds, which share of its words the memory's tags and project are, and whether the memory is of the
    time it names. `uses` are those that somebody told of, by saying it again or rating it helpful; to be found is none, so that the same
    question is answered the same. `is_spoken` says that it is
    what somebody said, by name. Ages are in whole days. `denied_by` is the row of the newer memory that denies it, for a question
    about how things are.
    """

    is_author_named: bool = False
    is_question: bool = False
    is_spoken: bool = False
    characters: int = SUBSTANCE_CHARACTERS
    identifiers: float = 0.0
    is_in_period: bool = False
    gives_reason: bool = False
    announces_change: bool = False
    overlap: float = 0.0
    kind_weight: float = 1.0
    decays: bool = True
    is_permanent: bool = True
    priority: int = 3
    rating: int = 0
    uses: int = 0
    times_found: int = 0
    age_days: int = 0
    idle_days: int = 0
    on_probation: bool = False
    denied_by: int | None = None
    dated_us: int = 0


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with its score, which is the sum of the contributions of the stages that had something to say."""

    id: int
    score: float
    stages: Mapping[str, float]


def matched(known: Candidates, weights: Weights, count: int, *, must_match: bool = True) -> list[Ranked]:
    """Return the best by how well they and their surroundings match, best first; equals in order of their ids.

    After the best *count* also come the `BY_ITSELF` best by words and by meaning alone, which may hold what the question names exactly.
    What does not match at all is left out if it must; it need not where something else may speak for it.
    """
    own = {
        "meaning": weights.meaning * _scaled(known.cosine),
        "near_meaning": weights.near_meaning * _scaled(known.near_cosine),
        "words": weights.words * _scaled(known.words),
        "near_words": weights.near_words * _scaled(known.near_words),
    }
    # Where one of the two says nothing about any candidate, the other carries its weight as well.
    by_meaning, by_words = weights.meaning + weights.near_meaning, weights.words + weights.near_words
    said = by_meaning * bool(own["meaning"].any()) + by_words * bool(own["words"].any())
    stages = {name: (by_meaning + by_words) / (said or 1.0) * values for name, values in own.items()}
    alone = sum(stages.values(), np.zeros(len(known.ids)))
    best_of = np.zeros(int(known.session.max()) + 1)
    np.maximum.at(best_of, known.session, alone)
    stages["session"] = weights.session * best_of[known.session]
    scores = alone + stages["session"]
    order = np.lexsort((known.ids, -np.round(scores, 9)))
    kept = np.zeros(len(order), np.bool_)
    kept[order[:count]] = True
    for values in (known.words, known.cosine):
        kept[np.argpartition(-values, min(BY_ITSELF, len(values)) - 1)[:BY_ITSELF]] = True
    order = order[kept[order]]
    return [
        Ranked(id=int(known.ids[i]), score=float(scores[i]), stages={name: float(values[i]) for name, values in stages.items()})
        for i in order
        if scores[i] > 0 or not must_match
    ]


def refined(ranked: Sequence[Ranked], details: Mapping[int, Details], weights: Weights) -> list[Ranked]:
    """Return the candidates with what their details add; in the scale of the best match, which is 1 for these stages."""
    scale = (ranked[0].score if ranked else 0.0) or 1.0
    found: list[Ranked] = []
    for one in ranked:
        stages = {**one.stages, **{name: scale * value for name, value in _stages(details[one.id], weights).items() if value}}
        found.append(Ranked(id=one.id, score=sum(stages.values()), stages=stages))
    return ordered(found)


def succeeded(ranked: Sequence[Ranked], details: Mapping[int, Details], relevance: Mapping[int, float]) -> list[Ranked]:
    """Let a memory that denies an older one stand where that one would without it, whether or not it was found by itself.

    *details* has those of the denying memories too; the older are dealt with first, so that the last of several stands for all. What
    holds a thing that the question names exactly keeps its place before one that does not; and what denies it has to be about the
    question itself, by *relevance*, as `SUCCEEDING` of the older one is, for what it denies may be something else of the older one.
    """
    by_id = {one.id: one for one in ranked}
    for row in sorted(details, key=lambda row: (details[row].dated_us, row)):
        older, newer = by_id.get(row), details[row].denied_by
        if older is None or newer is None or newer not in details or details[newer].identifiers < details[row].identifiers:
            continue
        if relevance.get(newer, 0.0) < SUCCEEDING * relevance.get(row, 0.0):
            continue
        place = older.score - older.stages.get("contradicted", 0.0) + EPSILON * ("succeeds" in older.stages)
        one = by_id.get(newer, Ranked(id=newer, score=0.0, stages={}))
        by_id[newer] = with_stage(one, "succeeds", max(0.0, place - one.score))
    return ordered(by_id.values())


def widened(ranked: Sequence[Ranked], links: Iterable[tuple[int, int, float]], weights: Weights) -> list[Ranked]:
    """Add what edges lead to from what was found: (from, to, weight of the edge, 0 to 1), each for a share of the score it comes from.

    What was found by itself keeps its own score where that is better.
    """
    by_id = {one.id: one for one in ranked}
    given = {one.id: one.score for one in ranked}
    for origin, row, weight in links:
        share = weights.linked * weight * given[origin]
        one = by_id.get(row, Ranked(id=row, score=0.0, stages={}))
        by_id[row] = with_stage(one, "linked", max(0.0, share - one.score))
    return ordered(by_id.values())


def with_stage(one: Ranked, stage: str, contribution: float) -> Ranked:
    """Return a candidate to whose score a stage contributes so much more."""
    if contribution == 0:
        return one
    stages = {**one.stages, stage: one.stages.get(stage, 0.0) + contribution}
    return Ranked(id=one.id, score=one.score + contribution, stages=stages)


def ordered(ranked: Iterable[Ranked]) -> list[Ranked]:
    """Return candidates best first, equals in order of their ids."""
    return sorted(ranked, key=lambda one: (-round(one.score, 9), one.id))


def _stages(known: Details, weights: Weights) -> dict[str, float]:
    """Return what each detail contributes, where the best match is 1."""
    return {
        "author": weights.author * known.is_author_named,
        "question": weights.question * known.is_question,
        "substance": weights.substance * min(1.0, math.log1p(known.characters) / math.log1p(SUBSTANCE_CHARACTERS)),
        "identifiers": weights.identifiers * known.identifiers,
        "time": weights.time * known.is_in_period,
        "reason": weights.reason * known.gives_reason,
        "type": weights.kind * math.log2(known.kind_weight) + weights.priority * (known.priority - 3),
        "context": weights.overlap * known.overlap,
        "feedback": weights.rating * (BLAME if known.rating < 0 else 1) * max(-RATING_MAX, min(RATING_MAX, known.rating)),
        "strength": weights.strength * _strength(known) + weights.neglect * _is_neglected(known),
        "probation": weights.probation * known.on_probation,
        "contradicted": weights.contradicted * (known.denied_by is not None),
    }


def _strength(known: Details) -> float:
    """Return the activation of a memory, -1 to 1: it rises with use and falls with time; 0 for types that do not decay.

    Base-level learning of ACT-R (Anderson & Lebiere 1998) in its usual approximation, ln(n / (1 - d)) - d ln(t), with the decay
    d = 0.5, n uses and t days since the first, squashed by tanh.
    """
    if not known.decays:
        return 0.0
    return math.tanh((math.log((1 + known.uses) / 0.5) - 0.5 * math.log1p(known.age_days)) / 3)


def _is_neglected(known: Details) -> bool:
    """Say whether a memory that is not meant to stay has not been asked for in a long time."""
    return known.decays and not known.is_permanent and known.uses == known.times_found == 0 and known.idle_days > NEGLECTED_DAYS


def _scaled(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    best = values.max(initial=0.0)
    scaled: npt.NDArray[np.float64] = np.maximum(0.0, values) / (best or 1.0)
    return scaled
