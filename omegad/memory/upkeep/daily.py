"""Once a day the store is put in order, after ten minutes in which no session was at work; after another day
one minute is enough.

Looked at every ten minutes. A home whose first memory is of today waits for tomorrow.
"""

from collections.abc import Iterator

from omegad.memory.upkeep.consolidation import KeepUp
from omegad.memory.upkeep.review import DAY_US
from omegad.reactions.contract import Reader
from omegad.storage.driver import Connection

IDLE_US, SHORT_IDLE_US = 600_000_000, 60_000_000
EVERY_US = DAY_US - 1_800_000_000
"""Half an hour less than a day, since a look comes a moment early or late."""

_LAST = """
SELECT coalesce((SELECT at_us FROM upkeeps WHERE by = 'schedule' ORDER BY id DESC LIMIT 1),
  (SELECT min(created_us) FROM memories))
"""
_HEARD = "SELECT max(last_us) FROM agent_sessions WHERE last_us <= ?"


class DailyUpkeep:
    """The schedule; there is none where it is switched off."""

    NAME = "upkeep"
    VERSION = 1
    EVERY = IDLE_US // 1_000_000
    VIEWS = ("memories", "upkeeps", "conversations")

    def __init__(self) -> None:
        """Begin to look."""
        self._looked_us = self._since_us = 0

    def due(self, _slot: int, reader: Reader) -> Iterator[KeepUp]:
        """Say that it is time to. A daemon that has just started, or whose machine has just woken, does not
        know yet who is at work: it looks on for as long as nobody may have been.
        """
        now_us = reader.now_us
        if not 0 <= now_us - self._looked_us <= 2 * IDLE_US:
            self._since_us = now_us
        self._looked_us = now_us
        if is_time(reader.connection, now_us, now_us - self._since_us):
            yield KeepUp()


def is_time(connection: Connection, now_us: int, awake_us: int) -> bool:
    """Say whether the last upkeep, or the first memory, was a day ago, and for ten minutes of those that the
    daemon has been looking no session was at work; or two days ago, and for one minute.

    What a clock stamped that was ahead says nothing of how long ago it was: an upkeep of then is long ago.
    """
    (last_us,), (heard_us,) = (
        connection.execute(_LAST).fetchone(),
        connection.execute(_HEARD, (now_us,)).fetchone(),
    )
    if last_us is None or abs(now_us - last_us) < EVERY_US:
        return False
    idle_us = min(awake_us, now_us - (heard_us or 0))
    return idle_us >= (IDLE_US if abs(now_us - last_us) < EVERY_US + DAY_US else SHORT_IDLE_US)


def recurring(*, is_on: bool) -> tuple[DailyUpkeep, ...]:
    """Return the schedule, none where it is off."""
    return (DailyUpkeep(),) if is_on else ()
