"""The latest events, kept in memory for those who follow closely."""

from collections import deque
from collections.abc import Iterable
from itertools import islice

from omegad.log.event import Position, RecordedEvent

EVENTS_MAX = 1_024
BYTES_MAX = 4 * 1024 * 1024  # of payloads as stored, all events together


class Tail:
    """A run of events without gaps that ends at the head, or nothing."""

    def __init__(self) -> None:
        self._events: deque[tuple[RecordedEvent, int]] = deque()
        self._size = 0

    def extend(self, events: Iterable[tuple[RecordedEvent, int]]) -> None:
        """Add the events of a commit, each with the bytes of its payload, and let go of the oldest beyond
        the bounds.
        """
        for recorded, size in events:
            self._events.append((recorded, size))
            self._size += size
        while self._events and (len(self._events) > EVENTS_MAX or self._size > BYTES_MAX):
            self._size -= self._events.popleft()[1]

    def after(self, position: Position, limit: int) -> list[RecordedEvent]:
        """Return up to *limit* events after a position, or nothing where the next one is not kept here."""
        if not self._events or self._events[0][0].position > position + 1:
            return []
        skip = position + 1 - self._events[0][0].position
        return [recorded for recorded, _ in islice(self._events, skip, skip + limit)]

    def clear(self) -> None:
        """Forget everything."""
        self._events.clear()
        self._size = 0
