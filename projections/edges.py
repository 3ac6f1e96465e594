"""How memories relate: the relations decided when they were stored, or after, and those that somebody
drew.
"""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement, to_json
from omegad.memory.events import (
    MemoryContradicted,
    MemoryErased,
    MemoryLinked,
    MemoryRelated,
    MemoryRestored,
    MemoryStored,
    MemorySuperseded,
    MemoryUnlinked,
)
from omegad.runtime.times import rfc3339

NAME = "edges"
VERSION = 2
EVENTS = (
    MemoryStored,
    MemoryRelated,
    MemoryContradicted,
    MemorySuperseded,
    MemoryRestored,
    MemoryLinked,
    MemoryUnlinked,
    MemoryErased,
)

SCHEMA = """
CREATE TABLE edges (
    id         INTEGER PRIMARY KEY, -- position of the event * 1024 + its place in the event
    source_id  TEXT NOT NULL,
    target_id  TEXT NOT NULL,
    edge_type  TEXT NOT NULL,
    weight     REAL NOT NULL,       -- 0 to 1
    metadata   TEXT,                -- JSON object: the reason of a contradiction
    created_at TEXT NOT NULL,
    UNIQUE (source_id, target_id, edge_type)
) STRICT;
"""
INDEXES = """
CREATE INDEX edges_by_target ON edges (target_id);
"""

CANONICAL = ("SELECT * FROM edges ORDER BY id",)

_INSERT = """
INSERT INTO edges (id, source_id, target_id, edge_type, weight, metadata, created_at)
  VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, target_id, edge_type) DO UPDATE
  SET weight = excluded.weight, metadata = excluded.metadata
"""


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case (
            MemoryStored(memory_id=source, related=related) | MemoryRelated(memory_id=source, related=related)
        ):
            for place, edge in enumerate(related):
                yield _edge(recorded, (source, edge.memory_id), edge.edge_type, edge.similarity, place=place)
        case MemoryContradicted(memory_id=target, contradicted_by=source, strength=strength, reason=reason):
            yield _edge(recorded, (source, target), "contradicts", strength, reason=reason)
        case MemorySuperseded(memory_id=source, superseded_by=target):
            yield _edge(recorded, (source, target), "superseded_by", 1.0)
        case MemoryErased(memory_id=memory_id):
            yield Statement("DELETE FROM edges WHERE source_id = ?1 OR target_id = ?1", (memory_id,))
        case MemoryRestored(memory_id=source):
            yield Statement(
                "DELETE FROM edges WHERE source_id = ? AND edge_type = 'superseded_by'", (source,)
            )
        case MemoryLinked(memory_id=source, target_id=target, edge_type=edge_type, weight=weight):
            yield _edge(recorded, (source, target), edge_type, weight)
        case MemoryUnlinked(memory_id=source, target_id=target, edge_types=edge_types):
            for edge_type in edge_types:
                yield Statement(
                    "DELETE FROM edges WHERE source_id = ? AND target_id = ? AND edge_type = ?",
                    (source, target, edge_type),
                )


def _edge(
    recorded: RecordedEvent,
    ends: tuple[str, str],
    edge_type: str,
    weight: float,
    *,
    place: int = 0,
    reason: str | None = None,
) -> Statement:
    metadata = None if reason is None else to_json({"reason": reason})
    created_at = rfc3339(recorded.occurred_at)
    bounded = min(1.0, max(0.0, weight))
    return Statement(
        _INSERT, (recorded.position * 1024 + place, *ends, edge_type, bounded, metadata, created_at)
    )
