"""Which memories stand beside each other in a session, in the order in which they were stored."""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement
from omegad.memory.events import MemoryStored

NAME = "sessions"
VERSION = 1
EVENTS = (MemoryStored,)

SCHEMA = """
CREATE TABLE session_memories (
    id          INTEGER PRIMARY KEY, -- position of memory.stored
    session_id  TEXT NOT NULL,
    memory_id   TEXT NOT NULL,
    previous_id INTEGER,             -- the memory before it in the session
    next_id     INTEGER              -- the one after it
) STRICT;

CREATE INDEX session_memories_by_session ON session_memories (session_id, id);
"""

CANONICAL = ("SELECT * FROM session_memories ORDER BY id",)

_INSERT = """
INSERT INTO session_memories (id, session_id, memory_id, previous_id)
VALUES (?1, ?2, ?3, (SELECT max(id) FROM session_memories WHERE session_id = ?2))
"""
_FOLLOW = (
    "UPDATE session_memories SET next_id = ?1 WHERE id = (SELECT previous_id FROM session_memories WHERE id"
    " = ?1)"
)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryStored(memory_id=memory_id) if recorded.session_id is not None:
            yield Statement(_INSERT, (recorded.position, recorded.session_id, memory_id))
            yield Statement(_FOLLOW, (recorded.position,))
