"""What remains of queries once their time is over: that they were asked, and, of many at once, how often each
memory was found.
"""

from collections.abc import Iterable

from omegad.search.events import MemoryQueried, QueryAged, Returned, Use


def of_query(query: MemoryQueried) -> QueryAged:
    """Return what remains of a query."""
    return QueryAged(
        query_id=query.query_id,
        mode=query.mode,
        limit=query.limit,
        read_position=query.read_position,
        at=query.at,
        ranking_version=query.ranking_version,
        embedder_id=query.embedder_id,
        abstained=query.abstained,
        degraded=query.degraded,
        took_us=query.took_us,
        returned=len(query.results),
    )


class Uses:
    """Counts how often memories were found, or shown, in the order of the log."""

    def __init__(self) -> None:
        self._counted: dict[str, Use] = {}

    def add(self, results: Iterable[Returned], at: int, *, is_unasked: bool) -> None:
        """Count what one query found, or what was shown unasked once, at a moment in microseconds since
        1970.
        """
        for memory_id in dict.fromkeys(result.memory_id for result in results):
            before = self._counted.get(memory_id, Use(memory_id, 0, 0, at, at))
            self._counted[memory_id] = Use(
                memory_id, before.times + 1, before.unasked + is_unasked, at, max(before.latest_at, at)
            )

    def see(self, results: Iterable[Returned], at: int) -> None:
        """Note when memories were shown by what stays as it is, and counts itself: of those that are counted,
        it was the last time.
        """
        for result in results:
            if (before := self._counted.get(result.memory_id)) is not None:
                self._counted[result.memory_id] = Use(
                    before.memory_id, before.times, before.unasked, at, max(before.latest_at, at)
                )

    def all(self) -> tuple[Use, ...]:
        """Return what was counted."""
        return tuple(self._counted.values())
