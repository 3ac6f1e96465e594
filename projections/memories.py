"""One row for every memory ever stored, with what has become of it."""

from collections.abc import Iterator

import msgspec

from omegad.log.event import Event, RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, to_json, united, written
from omegad.memory.events import (
    MemoryContradicted,
    MemoryCountsCarried,
    MemoryDeleted,
    MemoryDemoted,
    MemoryEdited,
    MemoryErased,
    MemoryEvolved,
    MemoryExpired,
    MemoryPromoted,
    MemoryRated,
    MemoryRelated,
    MemoryRepeated,
    MemoryRestored,
    MemoryStored,
    MemorySuperseded,
    MemoryUnlinked,
)
from omegad.runtime.times import rfc3339
from omegad.search.events import MemoryQueried, QueryAged
from omegad.session.events import TO_JUDGE, MemorySurfaced, SurfacingAged
from omegad.text.authorship import authorship

NAME = "memories"
VERSION = 6
EVENTS = (
    MemoryStored,
    MemoryRepeated,
    MemoryEvolved,
    MemoryEdited,
    MemoryRelated,
    MemoryContradicted,
    MemorySuperseded,
    MemoryDeleted,
    MemoryDemoted,
    MemoryExpired,
    MemoryRestored,
    MemoryRated,
    MemoryPromoted,
    MemoryUnlinked,
    MemoryQueried,
    MemorySurfaced,
    QueryAged,
    SurfacingAged,
    MemoryCountsCarried,
    MemoryErased,
    ClockMended,
)

# What filters and ranking ask stands before the content, which may be long: SQLite reads a row from its
# beginning.
SCHEMA = """
CREATE TABLE memories (
    id               INTEGER PRIMARY KEY, -- position of memory.stored
    node_id          TEXT UNIQUE NOT NULL,
    status           TEXT NOT NULL,       -- active, superseded, deleted or expired
    event_type       TEXT NOT NULL,
    project          TEXT,
    session_id       TEXT,
    entity_id        TEXT,
    ttl_seconds      INTEGER,
    expires_us       INTEGER,             -- microseconds since 1970; NULL where it is permanent
    created_us       INTEGER NOT NULL,    -- created_at in microseconds since 1970
    said_us          INTEGER NOT NULL,    -- when it was last stored, said again or edited
    used_us          INTEGER NOT NULL,    -- when it was last said, edited, found or shown
    referenced_us    INTEGER,             -- referenced_date in microseconds since 1970
    changed_position INTEGER NOT NULL,    -- of the latest event that changed how it is found
    on_probation     INTEGER NOT NULL,    -- 1 for what was captured unasked, until it is promoted
    contradicted_by  TEXT,                -- the latest memory that denies it and is not hidden
    rating           INTEGER NOT NULL DEFAULT 0,
    priority         INTEGER NOT NULL,
    characters       INTEGER NOT NULL,    -- of the content, which these two are read off
    author           TEXT,                -- who speaks in it, in lower case
    is_question      INTEGER NOT NULL,
    tags             TEXT NOT NULL,       -- JSON array
    auto_tags        TEXT NOT NULL,       -- JSON array of tags found by rule
    created_at       TEXT NOT NULL,
    edited_at        TEXT,
    referenced_date  TEXT,
    last_accessed    TEXT,
    access_count     INTEGER NOT NULL DEFAULT 0, -- how often it was found, or shown unasked
    surfaced         INTEGER NOT NULL DEFAULT 0, -- how often of these it was shown unasked
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

CREATE TABLE memory_denials (
    memory_id TEXT NOT NULL,
    denied_by TEXT NOT NULL,    -- the memory that denies it, hidden or not
    position  INTEGER NOT NULL, -- where it did so last
    PRIMARY KEY (memory_id, denied_by)
) STRICT, WITHOUT ROWID;
"""
INDEXES = """
CREATE INDEX memory_denials_by_memory ON memory_denials (denied_by);
CREATE INDEX memories_by_project ON memories (project, status, expires_us, created_us);
CREATE INDEX memories_by_day ON memories (coalesce(referenced_us, created_us));
CREATE INDEX memories_by_session ON memories (session_id);
CREATE INDEX memories_by_change ON memories (changed_position);
CREATE INDEX memories_by_expiry ON memories (expires_us) WHERE expires_us IS NOT NULL AND status = 'active';
"""

# Which of others' schemas these names and columns are, the latest first.
SQL_VIEWS = """
DROP VIEW IF EXISTS schema_version;
CREATE VIEW schema_version AS
SELECT 3 AS version, 'entity_id' AS description
UNION ALL SELECT 2, 'priority and referenced_date' UNION ALL SELECT 1, 'memories, edges, full text, vectors';
"""

CANONICAL = (
    "SELECT * FROM memories ORDER BY id",
    "SELECT * FROM memory_denials ORDER BY memory_id, denied_by",
)
ERASED_BY = (MemoryErased,)

_INSERT = """
INSERT INTO memories (id, node_id, status, event_type, project, session_id, entity_id, ttl_seconds,
  expires_us, created_us, said_us, used_us,
                      referenced_us, changed_position, on_probation, priority, characters, author,
                      is_question,
                      tags, auto_tags, created_at, referenced_date, pending, source, confidence, content_hash,
                      redacted, content, metadata)
VALUES (?, ?, 'active', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SAID = (
    "said_us = max(said_us, ?1), used_us = max(used_us, ?1), expires_us = max(expires_us, ?1 + ttl_seconds *"
    " 1000000), changed_position = ?2, contradicted_by = NULL"
)
_REPEAT = f"UPDATE memories SET repeated = repeated + 1, {_SAID} WHERE node_id = ?3"
_REWORD = f"""
UPDATE memories SET {_SAID}, content = ?4, content_hash = ?5, edited_at = ?6,
                    (characters, author, is_question) = (?7, ?8, ?9) WHERE node_id = ?3
"""
_TAG = (
    f"UPDATE memories SET tags = {united('tags', '?1')}, auto_tags = {united('auto_tags', '?2')} WHERE"
    " node_id = ?3"
)
_GIVE = """
UPDATE memories SET auto_tags = ?, redacted = ?, tags = coalesce(?, tags), priority = coalesce(?, priority),
  metadata = coalesce(?, metadata),
                    referenced_us = coalesce(?, referenced_us), referenced_date = coalesce(?,
                    referenced_date),
                    source = coalesce(?, source), confidence = coalesce(?, confidence) WHERE node_id = ?
"""
_TAKE = (
    "UPDATE memories SET referenced_us = NULL, referenced_date = NULL, source = NULL, confidence = NULL"
    " WHERE node_id = ?"
)
_USE = """
UPDATE memories SET access_count = access_count + 1, surfaced = surfaced + ?4, last_accessed = ?2,
  used_us = max(used_us, ?3) WHERE node_id IN (SELECT value FROM json_each(?1))
"""
_USED = """
UPDATE memories SET access_count = access_count + ?2, surfaced = surfaced + ?3, last_accessed = ?4,
  used_us = max(used_us, ?5) WHERE node_id = ?1
"""
_CARRY_OVER = """
UPDATE memories SET access_count = access_count + ?2,
                    last_accessed = coalesce(max(last_accessed, ?3), last_accessed, ?3),
                    used_us = max(used_us, coalesce(?4, used_us)) WHERE node_id = ?1
"""
_LAST = """
UPDATE memories SET ttl_seconds = iif(?1, NULL, max(ttl_seconds, coalesce(?2, 0))), expires_us = iif(?1, NULL,
  expires_us) WHERE node_id = ?3
"""
_RESTORE = """
UPDATE memories SET status = 'active', superseded_by = NULL, contradicted_by = NULL, changed_position = ?1,
                    ttl_seconds = iif(?2, NULL, ttl_seconds), expires_us = iif(?2, NULL, expires_us)
                    WHERE node_id = ?3
"""

_ADMIT = "DELETE FROM memory_denials WHERE memory_id = ?1 AND (?2 IS NULL OR denied_by = ?2)"
_DENIED = """
UPDATE memories SET contradicted_by = (
    SELECT d.denied_by FROM memory_denials AS d JOIN memories AS m ON m.node_id = d.denied_by
    WHERE d.memory_id = memories.node_id AND m.status = 'active' ORDER BY d.position DESC, 1 LIMIT 1
) WHERE node_id IN (SELECT memory_id FROM memory_denials WHERE denied_by = ?1) OR node_id = ?2
"""

_SET_RIGHT = f"""
UPDATE memories SET said_us = max(?1, said_us - ?2), expires_us = max(?1,
  said_us - ?2) + ttl_seconds * 1000000,
                    created_us = iif(created_us > ?3, max(?1, created_us - ?2), created_us),
                    created_at = iif(created_us > ?3, {written("max(?1, created_us - ?2)")}, created_at),
                    edited_at = min(edited_at, ?4), changed_position = ?5 WHERE said_us > ?3
"""
_SET_RIGHT_USE = (
    "UPDATE memories SET last_accessed = min(last_accessed, ?1), used_us = min(used_us, ?2) WHERE"
    " last_accessed > ?1 OR used_us > ?2"
)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryStored() as stored:
            yield _insert(recorded, stored)
        case MemoryRepeated(memory_id=memory_id) as again:
            yield from _lasting(again)
            yield Statement(_REPEAT, (recorded.occurred_at, recorded.position, memory_id))
            yield Statement(_ADMIT, (memory_id, None))
            if again.tags:
                yield Statement(_TAG, (to_json(again.tags), "[]", memory_id))
        case MemoryEvolved() | MemoryEdited() as new:
            if isinstance(new, MemoryEvolved):
                yield from _lasting(new)
            values = (
                recorded.occurred_at,
                recorded.position,
                new.memory_id,
                new.content,
                new.content_key,
                rfc3339(recorded.occurred_at),
            )
            yield Statement(_REWORD, (*values, *_read_off(new.content)))
            yield Statement(_ADMIT, (new.memory_id, None))
            if isinstance(new, MemoryEdited) and new.is_whole:
                yield Statement(_TAKE, (new.memory_id,))
            yield _known_by(new)
        case MemoryQueried() | MemorySurfaced() as shown:
            yield from _used(shown)
        case MemoryErased(memory_id=memory_id):
            yield Statement("DELETE FROM memories WHERE node_id = ?", (memory_id,))
            yield Statement(_DENIED, (memory_id, None))
            yield Statement("DELETE FROM memory_denials WHERE memory_id = ?1 OR denied_by = ?1", (memory_id,))
        case Event() as event:
            yield from _state(recorded, event)


def _used(shown: MemoryQueried | MemorySurfaced) -> Iterator[Statement]:
    how = shown.how if isinstance(shown, MemorySurfaced) else None
    if isinstance(shown, QueryAged | SurfacingAged):
        for memory_id, times, unasked, last_at, latest_at in map(msgspec.structs.astuple, shown.uses):
            yield Statement(_USED, (memory_id, times, unasked, rfc3339(last_at), latest_at))
    elif how not in TO_JUDGE:
        named = to_json([result.memory_id for result in shown.results])
        yield Statement(_USE, (named, rfc3339(shown.at), shown.at, how is not None))


def _lasting(said: MemoryRepeated | MemoryEvolved) -> Iterator[Statement]:
    if said.is_permanent or said.ttl_seconds is not None:
        yield Statement(_LAST, (said.is_permanent, said.ttl_seconds, said.memory_id))


def _known_by(new: MemoryEvolved | MemoryEdited) -> Statement:
    if isinstance(new, MemoryEvolved):
        return Statement(_TAG, (to_json(new.tags), to_json(new.auto_tags), new.memory_id))
    given = (
        None if new.tags is None else to_json(new.tags),
        new.priority,
        None if new.metadata is None else to_json(new.metadata),
        new.referenced_at,
        None if new.referenced_at is None else rfc3339(new.referenced_at),
        new.source,
        new.confidence,
    )
    return Statement(_GIVE, (to_json(new.auto_tags), to_json(new.redacted), *given, new.memory_id))


def _standing(recorded: RecordedEvent, event: Event) -> Iterator[Statement]:
    match event:
        case MemoryRelated(memory_id=memory_id):
            yield Statement("UPDATE memories SET pending = 0 WHERE node_id = ?", (memory_id,))
        case MemoryRated(memory_id=memory_id, points=points):
            yield Statement("UPDATE memories SET rating = rating + ? WHERE node_id = ?", (points, memory_id))
        case MemoryCountsCarried(memory_id=memory_id, last_retrieved_at=last) as before:
            last_at = None if last is None else rfc3339(last)
            yield Statement(_CARRY_OVER, (memory_id, before.retrievals, last_at, last))
        case MemoryPromoted(memory_id=memory_id) | MemoryDemoted(memory_id=memory_id):
            on_probation = isinstance(event, MemoryDemoted)
            yield Statement(
                "UPDATE memories SET on_probation = ? WHERE node_id = ?", (on_probation, memory_id)
            )
        case MemoryContradicted(memory_id=memory_id, contradicted_by=by):
            yield Statement(
                "REPLACE INTO memory_denials VALUES (?, ?, ?)", (memory_id, by, recorded.position)
            )
            yield Statement(_DENIED, (None, memory_id))
        case MemoryUnlinked(memory_id=by, target_id=memory_id, edge_types=edge_types) if (
            "contradicts" in edge_types
        ):
            yield Statement(_ADMIT, (memory_id, by))
            yield Statement(_DENIED, (None, memory_id))


def _state(recorded: RecordedEvent, event: Event) -> Iterator[Statement]:
    change = "UPDATE memories SET status = ?, superseded_by = ?, changed_position = ? WHERE node_id = ?"
    match event:
        case MemorySuperseded(memory_id=memory_id, superseded_by=by):
            yield Statement(change, ("superseded", by, recorded.position, memory_id))
            yield Statement(_DENIED, (memory_id, None))
        case MemoryDeleted(memory_id=memory_id):
            yield Statement(
                "UPDATE memories SET status = 'deleted', changed_position = ? WHERE node_id = ?",
                (recorded.position, memory_id),
            )
            yield Statement(_DENIED, (memory_id, None))
        case MemoryExpired(memory_id=memory_id):
            yield Statement(change, ("expired", None, recorded.position, memory_id))
            yield Statement(_DENIED, (memory_id, None))
        case MemoryRestored(memory_id=memory_id, is_permanent=is_permanent):
            yield Statement(_RESTORE, (recorded.position, is_permanent, memory_id))
            yield Statement(_ADMIT, (memory_id, None))
            yield Statement(_DENIED, (memory_id, None))
        case ClockMended(to_us=to_us) as mended:
            yield Statement(
                _SET_RIGHT, (mended.right_us, mended.ahead_us, to_us, rfc3339(to_us), recorded.position)
            )
            yield Statement(_SET_RIGHT_USE, (rfc3339(to_us), to_us))
        case _:
            yield from _standing(recorded, event)


def _insert(recorded: RecordedEvent, stored: MemoryStored) -> Statement:
    said_us = recorded.occurred_at
    return Statement(
        _INSERT,
        (
            recorded.position,
            stored.memory_id,
            stored.event_type,
            recorded.project,
            recorded.session_id,
            stored.entity_id,
            stored.ttl_seconds,
            None if stored.ttl_seconds is None else said_us + stored.ttl_seconds * 1_000_000,
            said_us,
            said_us,
            said_us,
            stored.referenced_at,
            recorded.position,
            stored.on_probation,
            stored.priority,
            *_read_off(stored.content),
            to_json(stored.tags),
            to_json(stored.auto_tags),
            rfc3339(said_us),
            None if stored.referenced_at is None else rfc3339(stored.referenced_at),
            stored.pending,
            stored.source,
            stored.confidence,
            stored.content_key,
            to_json(stored.redacted),
            stored.content,
            to_json(stored.metadata),
        ),
    )


def _read_off(content: str) -> tuple[int, str | None, bool]:
    found = authorship(content)
    return len(content), found.author, found.is_question
