"""One row for every memory ever stored, with what has become of it."""

from collections.abc import Iterator

from omegad.events.fact import Recorded
from omegad.events.memory import MemoryDeleted, MemoryRelated, MemoryRepeated, MemoryStored, MemorySuperseded
from omegad.events.retrieval import MemoryQueried
from omegad.times import rfc3339
from omegad.views.contract import Statement, to_json

NAME = "memories"
VERSION = 1
EVENTS = (MemoryStored, MemoryRepeated, MemoryRelated, MemorySuperseded, MemoryDeleted, MemoryQueried)

# What filters ask stands before the content, which may be long: SQLite reads a row from its beginning.
SCHEMA = """
CREATE TABLE memories (
    id               INTEGER PRIMARY KEY, -- position of memory.stored
    node_id          TEXT UNIQUE NOT NULL,
    status           TEXT NOT NULL,       -- active, superseded or deleted
    event_type       TEXT NOT NULL,
    project          TEXT,
    session_id       TEXT,
    entity_id        TEXT,
    ttl_seconds      INTEGER,
    created_us       INTEGER NOT NULL,    -- created_at in microseconds since 1970
    changed_position INTEGER NOT NULL,    -- of the latest event that changed whether, or as what, it is found
    priority         INTEGER NOT NULL,
    tags             TEXT NOT NULL,       -- JSON array
    created_at       TEXT NOT NULL,
    referenced_date  TEXT,
    last_accessed    TEXT,
    access_count     INTEGER NOT NULL DEFAULT 0,
    repeated         INTEGER NOT NULL DEFAULT 0,
    superseded_by    TEXT,
    pending          INTEGER NOT NULL,    -- 1 until its relations are decided
    source           TEXT,
    confidence       REAL,
    content_hash     TEXT NOT NULL,
    redacted         TEXT NOT NULL,       -- JSON array of what was taken out
    content          TEXT NOT NULL,
    metadata         TEXT NOT NULL        -- JSON object
) STRICT;

CREATE INDEX memories_by_project ON memories (project, status, ttl_seconds, created_us);
CREATE INDEX memories_by_session ON memories (session_id);
CREATE INDEX memories_by_change ON memories (changed_position);
"""

CANONICAL = ("SELECT * FROM memories ORDER BY id",)

_INSERT = """
INSERT INTO memories (id, node_id, content, metadata, created_at, ttl_seconds, session_id, event_type, project, content_hash, priority,
                      referenced_date, entity_id, tags, source, confidence, status, pending, redacted, created_us, changed_position)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'active', ?, ?, ?, ?)
"""


def project(recorded: Recorded) -> Iterator[Statement]:
    match recorded.event:
        case MemoryStored() as stored:
            yield _insert(recorded, stored)
        case MemoryRepeated(memory_id=memory_id):
            yield Statement("UPDATE memories SET repeated = repeated + 1 WHERE node_id = ?", (memory_id,))
        case MemoryRelated(memory_id=memory_id):
            yield Statement("UPDATE memories SET pending = 0 WHERE node_id = ?", (memory_id,))
        case MemorySuperseded(memory_id=memory_id, superseded_by=by):
            sql = "UPDATE memories SET status = 'superseded', superseded_by = ?, changed_position = ? WHERE node_id = ?"
            yield Statement(sql, (by, recorded.position, memory_id))
        case MemoryDeleted(memory_id=memory_id):
            sql = "UPDATE memories SET status = 'deleted', changed_position = ? WHERE node_id = ?"
            yield Statement(sql, (recorded.position, memory_id))
        case MemoryQueried(results=results, at=at):
            sql = "UPDATE memories SET access_count = access_count + 1, last_accessed = ? WHERE node_id = ?"
            for result in results:
                yield Statement(sql, (rfc3339(at), result.memory_id))
        case _:
            pass


def _insert(recorded: Recorded, stored: MemoryStored) -> Statement:
    return Statement(
        _INSERT,
        (
            recorded.position,
            stored.memory_id,
            stored.content,
            to_json(stored.metadata),
            rfc3339(recorded.occurred_at),
            stored.ttl_seconds,
            recorded.session_id,
            stored.event_type,
            recorded.project,
            stored.content_key,
            stored.priority,
            None if stored.referenced_at is None else rfc3339(stored.referenced_at),
            stored.entity_id,
            to_json(stored.tags),
            stored.source,
            stored.confidence,
            stored.pending,
            to_json(stored.redacted),
            recorded.occurred_at,
            recorded.position,
        ),
    )
