"""What decisions know of reminders: which were told since they came due."""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement
from omegad.memory.events import MemoryEdited
from omegad.session.events import MemorySurfaced
from omegad.storage.driver import Connection

NAME = "reminders"
VERSION = 2
EVENTS = (MemorySurfaced, MemoryEdited, ClockMended)
SCHEMA = """
CREATE TABLE state_told_reminders (
    memory_id TEXT PRIMARY KEY,
    position  INTEGER NOT NULL -- of the event that told it
) STRICT, WITHOUT ROWID;
"""
CANONICAL = ("SELECT * FROM state_told_reminders ORDER BY memory_id",)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemorySurfaced(how="reminder", results=results):
            for result in results:
                yield Statement("INSERT OR IGNORE INTO state_told_reminders VALUES (?, ?)", (result.memory_id, recorded.position))
        case MemoryEdited(memory_id=memory_id, referenced_at=due) if due is not None:
            yield Statement("DELETE FROM state_told_reminders WHERE memory_id = ?", (memory_id,))
        case ClockMended(first=first, last=last):  # what was told then may not be due yet
            yield Statement("DELETE FROM state_told_reminders WHERE position BETWEEN ? AND ?", (first, last))
        case _:
            pass


class Reminders:
    """Reads the table."""

    def __init__(self, connection: Connection) -> None:
        """Read through *connection*, whatever transaction is open there."""
        self._connection = connection

    def is_told(self, memory_id: str) -> bool:
        """Say whether a reminder was told since it came due."""
        return self._connection.execute("SELECT 1 FROM state_told_reminders WHERE memory_id = ?", (memory_id,)).fetchone() is not None
