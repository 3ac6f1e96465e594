"""What answers are worth, as pure functions: recall, reciprocal rank, abstention, and whether the newest fact
comes first.

Shares are 0 to 1 and None where no question asks for them. With *golds* the ids of the memories that answer a
question, and the results in order: recall@k is |golds ∩ first k| / |golds|; the reciprocal rank is 1 / the
place of the first gold, 0 where there is none.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from tests.retrieval.dataset import KINDS, Question

LIMIT = 10  # results asked for
IDENTIFIER_PLACES = 5

FLOORS: Mapping[str, float] = MappingProxyType(
    {"recall_5": 91.0, "identifiers": 100.0, "newest_above_stale": 60.0, "unanswerable_abstained": 50.0}
)
"""The least that each share may be, in percent, by the name of `Scorecard`'s field."""

CEILINGS: Mapping[str, float] = MappingProxyType({"answerable_abstained": 5.0})
"""The most that each share may be, in percent."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A memory returned, with its score and the keys of all memories of the set that it holds."""

    memory_id: str
    score: float
    keys: tuple[str, ...] = ()


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A question and what came back. `golds` are the ids that answer it; `newest` and `stale` those of an
    update.
    """

    question: Question
    hits: tuple[Hit, ...]
    abstained: bool
    took_ms: float
    golds: frozenset[str] = frozenset()
    newest: str | None = None
    stale: str | None = None

    def ids(self, places: int = LIMIT) -> tuple[str, ...]:
        """Return the ids of the first results."""
        return tuple(hit.memory_id for hit in self.hits[:places])

    def recall(self, places: int) -> float:
        """Return recall@*places*, of a question that has an answer."""
        return len(self.golds & {*self.ids(places)}) / len(self.golds)

    def reciprocal_rank(self) -> float:
        """Return 1 / the place of the first gold among the results, 0 where there is none."""
        return next((1 / place for place, found in enumerate(self.ids(), 1) if found in self.golds), 0.0)

    def is_newest_above(self) -> bool:
        """Say whether an update's newest fact was found, apart from the stale one and before it."""
        ids = self.ids()
        if self.newest not in ids:
            return False
        return self.stale not in ids or ids.index(self.newest) < ids.index(self.stale)

    def is_miss(self) -> bool:
        """Say whether the answer falls short in anything that is scored but the order of golds within the
        first five.
        """
        if not self.golds:
            return not self.abstained
        return (
            self.abstained
            or self.recall(IDENTIFIER_PLACES) < 1
            or (self.newest is not None and not self.is_newest_above())
        )


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """How well the answers of some questions were found."""

    questions: int
    recall_5: float
    recall_10: float
    mrr: float


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """The whole result. `identifiers` is the share of identifier questions with all golds in the first
    five.
    """

    overall: Recall
    kinds: dict[str, Recall]
    identifiers: float | None
    unanswerable_abstained: float | None
    answerable_abstained: float | None
    newest_above_stale: float | None
    query_p50_ms: float

    @property
    def recall_5(self) -> float:
        """Recall@5 of all questions that have an answer."""
        return self.overall.recall_5


def scored(answers: Sequence[Answered]) -> Scorecard:
    """Score the answers; at least one must be of a question that has an answer."""
    answerable = [one for one in answers if one.golds]
    kinds = {kind: [one for one in answerable if one.question.kind == kind] for kind in KINDS}
    updates = [one for one in answerable if one.newest is not None]
    return Scorecard(
        overall=_recall(answerable),
        kinds={kind: _recall(found) for kind, found in kinds.items() if found},
        identifiers=_share(kinds["identifier"], lambda one: one.recall(IDENTIFIER_PLACES) == 1),
        unanswerable_abstained=_share([one for one in answers if not one.golds], lambda one: one.abstained),
        answerable_abstained=_share(answerable, lambda one: one.abstained),
        newest_above_stale=_share(updates, Answered.is_newest_above),
        query_p50_ms=statistics.median(one.took_ms for one in answers),
    )


def shortfalls(
    card: Scorecard, floors: Mapping[str, float] = FLOORS, ceilings: Mapping[str, float] = CEILINGS
) -> list[str]:
    """Return, in words, what is below its floor or above its ceiling."""
    low = [
        f"{name} is {100 * value:.1f} %, the floor is {floors[name]:g} %"
        for name, value in _values(card, floors)
        if 100 * value < floors[name]
    ]
    high = [
        f"{name} is {100 * value:.1f} %, the ceiling is {ceilings[name]:g} %"
        for name, value in _values(card, ceilings)
        if 100 * value > ceilings[name]
    ]
    return low + high


def _values(card: Scorecard, names: Iterable[str]) -> list[tuple[str, float]]:
    values = ((name, getattr(card, name)) for name in names)
    return [(name, value) for name, value in values if value is not None]


def _recall(answers: Sequence[Answered]) -> Recall:
    return Recall(
        questions=len(answers),
        recall_5=statistics.fmean(one.recall(5) for one in answers),
        recall_10=statistics.fmean(one.recall(10) for one in answers),
        mrr=statistics.fmean(one.reciprocal_rank() for one in answers),
    )


def _share(answers: Sequence[Answered], is_so: Callable[[Answered], bool]) -> float | None:
    return sum(map(is_so, answers)) / len(answers) if answers else None
