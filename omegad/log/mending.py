"""That the clock was ahead for a while, and is right again: which events it stamped wrong, and which times
they count for.

The log's order is its positions and its hybrid clock, which never run backwards. Its times go on from the
right one where an event says so.
"""

import msgspec

from omegad.log.event import Event, FreeText, Position
from omegad.storage.driver import Connection

_NOTE = "INSERT OR IGNORE INTO mendings VALUES (?, ?, ?, ?, ?)"


class ClockMended(Event, frozen=True, kw_only=True, tag="clock.mended@1"):
    """The clock is right again, and says `to_us`; what stands at `first` to `last` was stamped by one that
    was ahead, at last at `from_us`.

    A time after `to_us` that it stamped counts as `ahead_us` before that, but not as before `right_us`, the
    latest time that is right. All are in microseconds since 1970.
    """

    first: Position
    last: Position
    from_us: int
    to_us: int
    ahead_us: int
    right_us: int
    reason: FreeText | None = None


class Mending(msgspec.Struct, frozen=True):
    """Up to which event times were mended, from which on, and how."""

    position: Position
    first: Position
    ahead_us: int
    right_us: int
    to_us: int

    def time_of(self, stamped_us: int) -> int:
        """Return the time that an event between `first` and `position` counts for, which the clock stamped
        with *stamped_us*.
        """
        counts_us = stamped_us - self.ahead_us if stamped_us > self.to_us else stamped_us
        return min(self.to_us, max(self.right_us, counts_us))


def note(connection: Connection, position: Position, mended: ClockMended) -> None:
    """Keep which times were mended, so that moments are found by the right ones."""
    connection.execute(_NOTE, (position, mended.first, mended.ahead_us, mended.right_us, mended.to_us))


def noted(connection: Connection) -> list[Mending]:
    """Return what was mended, in order."""
    return [Mending(*row) for row in connection.execute("SELECT * FROM mendings ORDER BY position")]
