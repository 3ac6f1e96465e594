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
    age: float = -0.05
    linked: float = 0.60


SUBSTANCE_CHARACTERS = 400  # beyond which a memory does not say more by being longer
RATING_MAX = 4  # either way, beyond which another rating changes nothing
BLAME = 2  # how many times more a bad rating counts than a good one
NEGLECTED_DAYS = 180
COMPARED = 20  # of the best, each with each, for one that makes another outdated
SAME_MATTER = (0.3, 0.6)  # cosines between which two memories come to be about the same matter
COMPARABLE = 0.75  # share of the older one's own relevance that the newer one must have
OUTDATED_DAYS = 60  # after which a memory is half outdated by a newer one
EPSILON = 1e-4


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """The memories that may answer: arrays of one length, in ascending order of `ids`.

    `cosine` is that of the nearest passage, 0 without vectors; `bm25` is 0 where no term is in it. `near_cosine` is the better cosine of
    the neighbours in the session, `near_bm25` the sum of their scores. `session` numbers the sessions; what is in none has a number
    of its own.
    """

    ids: npt.NDArray[np.int64]
    cosine: npt.NDArray[np.float64]
    bm25: npt.NDArray[np.float64]
    near_cosine: npt.NDArray[np.float64]
    near_bm25: npt.NDArray[np.float64]
    session: npt.NDArray[np.intp]

    def cosine_of(self, row: int) -> float:
        """Return the cosine of a row, 0 for one that is no candidate."""
        place = self._place(row)
        return 0.0 if place is None else float(self.cosine[place])

    def bm25_of(self, row: int) -> float:
        """Return the BM25 score of a row, 0 for one that is no candidate."""
        place = self._place(row)
        return 0.0 if place is None else float(self.bm25[place])

    def relevance_of(self, row: int) -> float:
        """Return how well a row matches by itself, whatever stands beside it, 0 to 1."""
        by_meaning = self.cosine_of(row) / (self.cosine.max(initial=0.0) or 1.0)
        by_words = self.bm25_of(row) / (self.bm25.max(initial=0.0) or 1.0)
        return float(0.5 * max(0.0, by_meaning) + 0.5 * by_words)

    def _place(self, row: int) -> int | None:
        place = int(np.searchsorted(self.ids, row))
        return place if place < len(self.ids) and self.ids[place] == row else None


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a candidate beside how well it matches, as the stages ask for it. Times are in microseconds since 1970.

    `is_author_named`, `identifiers`, `overlap` and `is_in_period` are about the question: whether it names who speaks, which share of
    its identifiers the memory holds, which share of its words the memory's tags and project are, and whether the memory is of the
    time it names. `uses` are those that somebody told of, by saying it again or rating it helpful; to be found is none, so that the same
    question is answered the same. Ages are in whole days. `denied_by` is the row of the newer memory that denies it, for a question
    about how things are.
    """

    is_author_named: bool = False
    is_question: bool = False
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

    What does not match at all is left out if it must; it need not where something else may speak for it.
    """
    own = {
        "meaning": weights.meaning * _scaled(known.cosine),
        "near_meaning": weights.near_meaning * _scaled(known.near_cosine),
        "words": weights.words * _scaled(known.bm25),
        "near_words": weights.near_words * _scaled(known.near_bm25),
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
    order = np.lexsort((known.ids, -np.round(scores, 9)))[:count]
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
    return _ordered(found)


def succeeded(ranked: Sequence[Ranked], details: Mapping[int, Details]) -> list[Ranked]:
    """Let a memory that denies an older one stand where that one would without it, whether or not it was found by itself.

    *details* has those of the denying memories too; the older are dealt with first, so that the last of several stands for all. What
    holds a thing that the question names exactly keeps its place before one that does not.
    """
    by_id = {one.id: one for one in ranked}
    for row in sorted(details, key=lambda row: (details[row].dated_us, row)):
        older, newer = by_id.get(row), details[row].denied_by
        if older is None or newer is None or newer not in details or details[newer].identifiers < details[row].identifiers:
            continue
        place = older.score - older.stages.get("contradicted", 0.0) + EPSILON * ("succeeds" in older.stages)
        one = by_id.get(newer, Ranked(id=newer, score=0.0, stages={}))
        by_id[newer] = _with(one, "succeeds", max(0.0, place - one.score))
    return _ordered(by_id.values())


def widened(ranked: Sequence[Ranked], links: Iterable[tuple[int, int, float]], weights: Weights) -> list[Ranked]:
    """Add what edges lead to from what was found: (from, to, weight of the edge, 0 to 1), each for a share of the score it comes from.

    What was found by itself keeps its own score where that is better.
    """
    by_id = {one.id: one for one in ranked}
    given = {one.id: one.score for one in ranked}
    for origin, row, weight in links:
        share = weights.linked * weight * given[origin]
        one = by_id.get(row, Ranked(id=row, score=0.0, stages={}))
        by_id[row] = _with(one, "linked", max(0.0, share - one.score))
    return _ordered(by_id.values())


def renewed(
    ranked: Sequence[Ranked],
    details: Mapping[int, Details],
    relevance: npt.NDArray[np.float64],
    likeness: npt.NDArray[np.float64],
    weights: Weights,
) -> list[Ranked]:
    """Let the newest of those that speak of the same matter stand above the older ones, for a question about how things are.

    *likeness* holds the cosines of the first `COMPARED` with each other, in their order; *relevance* how well each of them matches by
    itself.
    An older one loses by how alike, how much older, and how comparable the two are, and more where the newer one announces a change;
    but never more than it takes to stand just below it, so that nothing falls out of the answer.
    """
    first = list(ranked[:COMPARED])
    if not first:
        return []
    scale = first[0].score
    dated = np.array([details[one.id].dated_us for one in first], dtype=np.float64) / DAY_US
    scores = np.array([one.score for one in first]) + weights.age * scale * _saturated(dated.max() - dated, 2 * OUTDATED_DAYS)
    gap = np.maximum(0.0, dated[None, :] - dated[:, None])
    announced = np.array([details[one.id].announces_change for one in first], dtype=np.float64)
    alike = np.clip((likeness - SAME_MATTER[0]) / (SAME_MATTER[1] - SAME_MATTER[0]), 0.0, 1.0)
    loss = alike * _saturated(gap, OUTDATED_DAYS) * -(weights.outdated + weights.announced * announced[None, :]) * scale
    loss[relevance[None, :] < COMPARABLE * relevance[:, None]] = 0.0
    named = np.array([details[one.id].identifiers for one in first])
    loss[named[None, :] < named[:, None]] = 0.0
    after = scores.copy()
    for i in np.argsort(-dated, kind="stable"):
        newer = np.flatnonzero(loss[i] > 0)
        if len(newer):
            below = np.minimum(scores[i], after[newer] - EPSILON * scale)
            after[i] = min(after[i], float(np.maximum(scores[i] - loss[i, newer], below).min()))
    found = [_with(one, "newer", float(score) - one.score) for one, score in zip(first, after, strict=True)]
    return _ordered([*found, *ranked[COMPARED:]])


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


def _with(one: Ranked, stage: str, contribution: float) -> Ranked:
    if contribution == 0:
        return one
    stages = {**one.stages, stage: one.stages.get(stage, 0.0) + contribution}
    return Ranked(id=one.id, score=one.score + contribution, stages=stages)


def _ordered(ranked: Iterable[Ranked]) -> list[Ranked]:
    return sorted(ranked, key=lambda one: (-round(one.score, 9), one.id))


def _scaled(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    best = values.max(initial=0.0)
    scaled: npt.NDArray[np.float64] = np.maximum(0.0, values) / (best or 1.0)
    return scaled


def _saturated(days: npt.NDArray[np.float64], half: float) -> npt.NDArray[np.float64]:
    saturated: npt.NDArray[np.float64] = days / (days + half)
    return saturated
