"""Where each session stood, and when: the checkpoints and handoffs that it stored or that were written at
its end, and its ends.
"""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement
from omegad.memory.events import MemoryErased, MemoryStored
from omegad.runtime.times import rfc3339
from omegad.session.events import SessionEnded

NAME = "coord_snapshots"
VERSION = 1
EVENTS = (MemoryStored, SessionEnded, MemoryErased)
STATES = ("checkpoint", "handoff")
"""The types of memories that say where a session stands."""

SCHEMA = """
CREATE TABLE coord_snapshots (
    id         INTEGER PRIMARY KEY, -- position of the event
    session_id TEXT NOT NULL,
    project    TEXT,
    kind       TEXT NOT NULL,       -- checkpoint, handoff or end
    memory_id  TEXT,                -- that says where it stood, NULL at an end
    reason     TEXT,                -- of an end
    created_at TEXT NOT NULL
) STRICT;
"""
INDEXES = """
CREATE INDEX coord_snapshots_by_session ON coord_snapshots (session_id, id);
"""
CANONICAL = ("SELECT * FROM coord_snapshots ORDER BY id",)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryStored(memory_id=memory_id, event_type=kind) if kind in STATES and recorded.session_id:
            yield _row(recorded, kind, memory_id, None)
        case SessionEnded(reason=reason):
            yield _row(recorded, "end", None, reason)
        case MemoryErased(memory_id=memory_id):
            yield Statement("DELETE FROM coord_snapshots WHERE memory_id = ?", (memory_id,))


def _row(recorded: RecordedEvent, kind: str, memory_id: str | None, reason: str | None) -> Statement:
    at = rfc3339(recorded.occurred_at)
    return Statement(
        "INSERT INTO coord_snapshots VALUES (?, ?, ?, ?, ?, ?, ?)",
        (recorded.position, recorded.session_id or "", recorded.project, kind, memory_id, reason, at),
    )
