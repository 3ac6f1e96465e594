"""When each reminder is due, and whether it was told; what it says, and whether it still stands, is its
memory's to say.
"""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, to_json
from omegad.memory.events import MemoryEdited, MemoryErased, MemoryStored
from omegad.runtime.times import rfc3339
from omegad.session.events import MemorySurfaced

NAME = "reminders"
VERSION = 2
EVENTS = (MemoryStored, MemoryEdited, MemorySurfaced, MemoryErased, ClockMended)

SCHEMA = """
CREATE TABLE reminders (
    id        INTEGER PRIMARY KEY, -- position of memory.stored
    memory_id TEXT UNIQUE NOT NULL,
    due_us    INTEGER NOT NULL,    -- microseconds since 1970
    told_at   TEXT                 -- NULL until it was told after it came due
) STRICT;
"""
INDEXES = """
CREATE INDEX reminders_untold ON reminders (due_us) WHERE told_at IS NULL;
"""

CANONICAL = ("SELECT * FROM reminders ORDER BY id",)

_TOLD = (
    "UPDATE reminders SET told_at = ?2 WHERE told_at IS NULL AND memory_id IN (SELECT value FROM"
    " json_each(?1))"
)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryStored(event_type="reminder", memory_id=memory_id, referenced_at=due_us) if (
            due_us is not None
        ):
            yield Statement(
                "INSERT INTO reminders VALUES (?, ?, ?, NULL)", (recorded.position, memory_id, due_us)
            )
        case MemoryEdited(memory_id=memory_id, referenced_at=due_us) if due_us is not None:
            yield Statement(
                "UPDATE reminders SET due_us = ?, told_at = NULL WHERE memory_id = ?", (due_us, memory_id)
            )
        case MemorySurfaced(how="reminder", results=results, at=at):
            yield Statement(_TOLD, (to_json([result.memory_id for result in results]), rfc3339(at)))
        case MemoryErased(memory_id=memory_id):
            yield Statement("DELETE FROM reminders WHERE memory_id = ?", (memory_id,))
        case ClockMended(to_us=to_us):  # what was told then may not be due yet
            yield Statement("UPDATE reminders SET told_at = NULL WHERE told_at > ?", (rfc3339(to_us),))
