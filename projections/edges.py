"""How memories relate: the relations decided when they were stored, or after."""

from collections.abc import Iterator

from omegad.events.fact import Recorded
from omegad.events.memory import MemoryRelated, MemoryStored, MemorySuperseded
from omegad.times import rfc3339
from omegad.views.contract import Statement

NAME = "edges"
VERSION = 1
EVENTS = (MemoryStored, MemoryRelated, MemorySuperseded)

SCHEMA = """
CREATE TABLE edges (
    id         INTEGER PRIMARY KEY, -- position of the event * 1024 + its place in the event
    source_id  TEXT NOT NULL,
    target_id  TEXT NOT NULL,
    edge_type  TEXT NOT NULL,
    weight     REAL NOT NULL,
    metadata   TEXT,
    created_at TEXT NOT NULL,
    UNIQUE (source_id, target_id, edge_type)
) STRICT;

CREATE INDEX edges_by_target ON edges (target_id);
"""

CANONICAL = ("SELECT * FROM edges ORDER BY id",)

_INSERT = """
INSERT INTO edges (id, source_id, target_id, edge_type, weight, created_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, target_id, edge_type) DO UPDATE SET weight = excluded.weight
"""


def project(recorded: Recorded) -> Iterator[Statement]:
    created_at = rfc3339(recorded.occurred_at)
    match recorded.event:
        case MemoryStored(memory_id=source, related=related) | MemoryRelated(memory_id=source, related=related):
            for place, edge in enumerate(related):
                weight = min(1.0, max(0.0, edge.similarity))
                yield Statement(_INSERT, (recorded.position * 1024 + place, source, edge.memory_id, edge.edge_type, weight, created_at))
        case MemorySuperseded(memory_id=source, superseded_by=target):
            yield Statement(_INSERT, (recorded.position * 1024, source, target, "superseded_by", 1.0, created_at))
        case _:
            pass
