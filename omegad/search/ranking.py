"""From what each candidate shows to its place. Pure: no SQL, no clock.

A score is the sum of what explains it: the weight of each feature times the feature, and what lifts a memory
beyond that.
"""

import math
import statistics
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.search.model import Array, Newness
from omegad.text.languages import language_of

RANKING_VERSION = 17
LINKED = 0.6  # what an edge of weight 1 hands on of a score
EPSILON = 1e-4  # by which one stands above another
NEAR_MIN = 0.65  # of how near to the question the one is in whose place a newer of the same matter stands
# What the median cosine of few candidates is mixed with: so many pairs of memories that have little to do
# with each other
USUAL_COSINE, USUAL_PAIRS = 0.25, 2
MANY = 6  # candidates, of which some are of another matter than the others
VERSIONS = 3  # of one matter; where more are as alike, they say one thing each of many: "X is in Y"
LEAD_MAX = 6.0  # of the best, beyond which it says no more of being right
ALONE = 2.0  # what the lead of a sole candidate counts
BEST_MIN = 1.0  # what the best has at least, so that the others can be told in proportion to it


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with its score, which is the sum of the contributions of the stages that had something
    to say.
    """

    id: int
    score: float
    names: Sequence[str] = ()
    weighed: Sequence[float] = ()
    """What each of `names` contributes."""
    lifted: Mapping[str, float] = {}
    """What contributes beside these."""

    @property
    def stages(self) -> dict[str, float]:
        """The contribution of each stage."""
        return {**dict(zip(self.names, self.weighed, strict=True)), **self.lifted}


class Statements(msgspec.Struct, frozen=True, kw_only=True):
    """The first candidates as they are to each other, in their order: when each was said, as a rank, and the
    cosine of each with each.

    `may_follow[i, j]` says that i may tell what has become of j: neither is a turn of a conversation, they
    are not of one session, and i holds as much of what the question names exactly, or nothing of it and
    names nothing else; `denies[i, j]` that i denies j, by a rule or as somebody said. `near` is how near each
    is to the question, and `texts` are what they say.
    """

    said: Array
    cosine: Array
    near: Array
    may_follow: npt.NDArray[np.bool_]
    denies: npt.NDArray[np.bool_]
    texts: Sequence[str]

    @property
    def is_english(self) -> bool:
        """Whether most of them are in English."""
        return 2 * sum(language_of(text).is_english for text in self.texts) > len(self.texts)


def ranked(ids: Sequence[int], contributions: Array, names: Sequence[str]) -> list[Ranked]:
    """Return candidates best first, equals in order of their ids; *contributions* has the shape
    (candidates, names).
    """
    return ordered(
        Ranked(id=row, score=score, names=names, weighed=parts)
        for row, score, parts in zip(
            ids, contributions.sum(axis=1).tolist(), contributions.tolist(), strict=True
        )
    )


def renewed(found: Sequence[Ranked], statements: Statements, newness: Newness) -> list[Ranked]:
    """Let the newest of the first candidates that speak of the same matter stand above the older ones.

    A newer one is lifted to just above the best of those that it may follow and that are ahead of it by at
    most `reach`, times how much the two are the same matter: how much more alike than the candidates are
    among themselves, and than each is to so many others; unless it is far from the question beside the one
    in whose place it would stand, which is that one, or another that was lifted above. What denies is lifted
    however far it is. Nothing is lowered, so that what is wrongly taken for outdated stays one place below.
    """
    count = len(statements.said)
    first, pairs = found[:count], statements.cosine[_each_pair(count)].tolist()
    median = statistics.median(pairs) if pairs else 0.0
    is_blind = count >= MANY and median >= newness.blind and not statements.is_english
    usual = (len(pairs) * median + USUAL_PAIRS * USUAL_COSINE) / (len(pairs) + USUAL_PAIRS)
    nearest = np.sort(statements.cosine - 2 * np.eye(count), axis=1)[:, ::-1]
    crowd = nearest[:, VERSIONS - 1] if count > VERSIONS else np.zeros(count)
    others = np.minimum(usual + newness.same[1] * (1 - usual), np.minimum(crowd[:, None], crowd[None, :]))
    low, high = (1 - (1 - np.maximum(usual, others)) * (1 - share) for share in newness.same)
    alike = np.clip((statements.cosine - low) / (high - low), 0.0, 1.0)
    alike = np.where(is_blind, 0.0, alike)
    reach = newness.reach * alike * statements.may_follow
    reach[statements.denies & statements.may_follow] = math.inf
    reach[statements.said[:, None] <= statements.said[None, :]] = 0.0
    lifted, near = [one.score for one in first], statements.near.tolist()
    needed = [min(value, NEAR_MIN * value) for value in near]
    # A dozen at most, for which loops cost less than arrays.
    for newer in np.argsort(statements.said, kind="stable").tolist():
        reached = [
            (score, least)
            for score, least, far in zip(lifted, needed, reach[newer].tolist(), strict=True)
            if far > 0 and score - first[newer].score <= far and (near[newer] >= least or far == math.inf)
        ]
        if reached and max(reached)[0] > lifted[newer]:
            score, needed[newer] = max(reached)
            lifted[newer] = score + EPSILON
    stood = (with_stage(one, "newer", score - one.score) for one, score in zip(first, lifted, strict=True))
    return ordered([*stood, *found[len(first) :]])


@cache
def _each_pair(count: int) -> npt.NDArray[np.bool_]:
    """Return where in a square of so many each pair is for the first time."""
    return np.triu(np.ones((count, count), np.bool_), 1)


def widened(found: Sequence[Ranked], links: Iterable[tuple[int, int, float]]) -> list[Ranked]:
    """Add what edges lead to from what was found: (from, to, weight of the edge, 0 to 1), each for a share of
    the score it comes from.

    What was found by itself keeps its own score where that is better.
    """
    by_id = {one.id: one for one in found}
    given = {one.id: one.score for one in found}
    for origin, row, weight in links:
        if given[origin] <= 0:
            continue
        one = by_id.get(row, Ranked(id=row, score=0.0))
        by_id[row] = with_stage(one, "linked", max(0.0, LINKED * weight * given[origin] - one.score))
    return ordered(by_id.values())


def lead(found: Sequence[Ranked]) -> float:
    """Return by how much the best of some candidates is ahead of the next by what they show themselves, 0 to
    `LEAD_MAX`; `ALONE` where there is no other.
    """
    shown = sorted((sum(one.weighed) for one in found), reverse=True)
    return min(LEAD_MAX, shown[0] - shown[1]) if len(shown) > 1 else ALONE


def beside(found: Sequence[Ranked], most: float, belonging: Container[int]) -> list[Ranked]:
    """Return those that are at most so much behind the first, what an edge leads to, and the rows that belong
    to the first.
    """
    return [
        one
        for one in found
        if found[0].score - one.score <= most or "linked" in one.lifted or one.id in belonging
    ]


def raised(found: Sequence[Ranked]) -> list[Ranked]:
    """Return the same candidates, all raised by as much as the best one lacks of `BEST_MIN`: weights below
    0 may leave it less than nothing.
    """
    lacking = max(0.0, BEST_MIN - found[0].score) if found else 0.0
    return [with_stage(one, "floor", lacking) for one in found]


def with_stage(one: Ranked, stage: str, contribution: float) -> Ranked:
    """Return a candidate to whose score a stage contributes so much more."""
    if contribution == 0:
        return one
    lifted = {**one.lifted, stage: one.lifted.get(stage, 0.0) + contribution}
    return msgspec.structs.replace(one, score=one.score + contribution, lifted=lifted)


def ordered(found: Iterable[Ranked]) -> list[Ranked]:
    """Return candidates best first, equals in order of their ids."""
    return sorted(found, key=lambda one: (-round(one.score, 9), one.id))
