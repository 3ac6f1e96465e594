"""What was asked when memories were stored: whether one denies another; and what somebody said it does."""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement
from omegad.memory.events import (
    ConflictOffered,
    ConflictSettled,
    MemoryContradicted,
    MemoryErased,
    MemorySuperseded,
)
from omegad.runtime.times import rfc3339

NAME = "conflicts"
VERSION = 2
EVENTS = (ConflictOffered, ConflictSettled, MemoryContradicted, MemorySuperseded, MemoryErased)

SCHEMA = """
CREATE TABLE conflict_offers (
    id         INTEGER PRIMARY KEY, -- position of the event
    memory_id  TEXT NOT NULL,
    target_id  TEXT NOT NULL,       -- the older memory that it may deny
    similarity REAL NOT NULL,       -- a cosine
    at         TEXT NOT NULL,
    verdict    TEXT,                -- contradicts, supersedes or compatible; NULL until somebody says it
    UNIQUE (memory_id, target_id)
) STRICT;
"""
INDEXES = """
CREATE INDEX conflict_offers_by_target ON conflict_offers (target_id);
"""

CANONICAL = ("SELECT * FROM conflict_offers ORDER BY id",)

_SETTLED = """
UPDATE conflict_offers SET verdict = ?1 WHERE (memory_id = ?2 AND target_id = ?3)
  OR (memory_id = ?3 AND target_id = ?2)
"""


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case ConflictOffered(memory_id=memory_id, target_id=target_id, similarity=similarity):
            row = (recorded.position, memory_id, target_id, similarity, rfc3339(recorded.occurred_at))
            yield Statement("INSERT OR IGNORE INTO conflict_offers VALUES (?, ?, ?, ?, ?, NULL)", row)
        case ConflictSettled(memory_id=memory_id, target_id=target_id, verdict=verdict):
            yield Statement(_SETTLED, (verdict, memory_id, target_id))
            # Of two of which nobody was asked, as where the one may take the other's place.
            said = (recorded.position, memory_id, target_id, 0.0, rfc3339(recorded.occurred_at), verdict)
            yield Statement("INSERT OR IGNORE INTO conflict_offers VALUES (?, ?, ?, ?, ?, ?)", said)
        case MemoryContradicted(memory_id=target_id, contradicted_by=memory_id):
            yield Statement(_SETTLED, ("contradicts", memory_id, target_id))
        case MemorySuperseded(memory_id=target_id, superseded_by=memory_id):
            yield Statement(_SETTLED, ("supersedes", memory_id, target_id))
        case MemoryErased(memory_id=memory_id):
            yield Statement(
                "DELETE FROM conflict_offers WHERE memory_id = ?1 OR target_id = ?1", (memory_id,)
            )
