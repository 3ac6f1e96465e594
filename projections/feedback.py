"""What was said of how useful memories were, one row each time."""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement
from omegad.memory.events import MemoryRated
from omegad.runtime.times import rfc3339

NAME = "feedback"
VERSION = 1
EVENTS = (MemoryRated,)

SCHEMA = """
CREATE TABLE memory_feedback (
    id        INTEGER PRIMARY KEY, -- position of the event
    memory_id TEXT NOT NULL,
    rating    TEXT NOT NULL,       -- helpful, unhelpful or outdated
    points    INTEGER NOT NULL,    -- what that added to the memory's rating
    reason    TEXT,
    client    TEXT,
    at        TEXT NOT NULL
) STRICT;
"""
INDEXES = """
CREATE INDEX memory_feedback_by_memory ON memory_feedback (memory_id, id);
"""

CANONICAL = ("SELECT * FROM memory_feedback ORDER BY id",)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryRated() as rated:
            row = (
                recorded.position,
                rated.memory_id,
                rated.rating,
                rated.points,
                rated.reason,
                recorded.client,
                rfc3339(recorded.occurred_at),
            )
            yield Statement("INSERT INTO memory_feedback VALUES (?, ?, ?, ?, ?, ?, ?)", row)
