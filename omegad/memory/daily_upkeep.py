"""Once a day the store is put in order, when no session is at work; a day later even where one is.

Looked at every hour. A home whose first memory is of today waits for tomorrow.
"""

from collections.abc import Iterator

from omegad.memory.stale import DAY_US
from omegad.memory.upkeep import KeepUp
from omegad.reactions.contract import Reader
from omegad.storage.driver import Connection

EVERY_US = DAY_US - 1_800_000_000
"""Half an hour less than a day, since a look comes a moment early or late."""
IDLE_US = 600_000_000

_LAST = """
SELECT coalesce((SELECT max(at_us) FROM upkeeps WHERE by = 'schedule'),
  (SELECT min(created_us) FROM memories))
"""
_HEARD = "SELECT max(last_us) FROM agent_sessions"


class DailyUpkeep:
    """The schedule; there is none where it is switched off."""

    NAME = "upkeep"
    VERSION = 1
    EVERY = 3_600
    VIEWS = ("memories", "upkeeps", "conversations")

    def due(self, _slot: int, reader: Reader) -> Iterator[KeepUp]:
        """Say that it is time to."""
        if is_time(reader.connection, reader.now_us):
            yield KeepUp()


def is_time(connection: Connection, now_us: int) -> bool:
    """Say whether the last upkeep, or the first memory, was a day ago, and no session is at work, or two days
    ago.
    """
    (last_us,), (heard_us,) = connection.execute(_LAST).fetchone(), connection.execute(_HEARD).fetchone()
    if last_us is None or now_us - last_us < EVERY_US:
        return False
    is_idle = heard_us is None or now_us - heard_us >= IDLE_US
    return is_idle or now_us - last_us >= EVERY_US + DAY_US


def recurring(*, is_on: bool) -> tuple[DailyUpkeep, ...]:
    """Return the schedule, none where it is off."""
    return (DailyUpkeep(),) if is_on else ()
