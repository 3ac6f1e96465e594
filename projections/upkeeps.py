"""What became of the store unasked: each time it was put in order, and each memory that was promoted,
expired, superseded or contradicted.
"""

from collections.abc import Iterator

from omegad.log.event import Event, RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, set_right, to_json
from omegad.memory.events import (
    MemoryContradicted,
    MemoryDemoted,
    MemoryExpired,
    MemoryPromoted,
    MemorySuperseded,
    UpkeepCompleted,
    UpkeepReverted,
)

NAME = "upkeeps"
VERSION = 1
EVENTS = (
    MemoryPromoted,
    MemoryDemoted,
    MemoryExpired,
    MemorySuperseded,
    MemoryContradicted,
    UpkeepCompleted,
    UpkeepReverted,
    ClockMended,
)

SCHEMA = """
CREATE TABLE upkeeps (
    id        INTEGER PRIMARY KEY, -- position of upkeep.completed
    at_us     INTEGER NOT NULL,    -- microseconds since 1970
    by        TEXT NOT NULL,       -- schedule or hand
    expired   TEXT NOT NULL,       -- JSON array of objects: memory_id, reason; so are those that follow
    promoted  TEXT NOT NULL,
    compacted TEXT NOT NULL,
    stale     TEXT NOT NULL,       -- what should be looked at again since then
    undone_at INTEGER              -- position of upkeep.reverted
) STRICT;
CREATE TABLE memory_changes (
    id        INTEGER PRIMARY KEY, -- position of the event
    at_us     INTEGER NOT NULL,    -- microseconds since 1970
    kind      TEXT NOT NULL,       -- promoted, demoted, expired, superseded or contradicted
    memory_id TEXT NOT NULL,
    other_id  TEXT,                -- the memory that superseded or contradicted it
    reason    TEXT
) STRICT;
"""
INDEXES = """
CREATE INDEX memory_changes_by_time ON memory_changes (at_us);
CREATE INDEX memory_changes_by_memory ON memory_changes (memory_id);
"""

CANONICAL = ("SELECT * FROM upkeeps ORDER BY id", "SELECT * FROM memory_changes ORDER BY id")


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case UpkeepCompleted() as done:
            lists = (done.expired, done.promoted, done.compacted, done.stale)
            values = (recorded.position, recorded.occurred_at, done.by, *map(to_json, lists))
            yield Statement("INSERT INTO upkeeps VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", values)
        case UpkeepReverted(done_at=done_at):
            yield Statement("UPDATE upkeeps SET undone_at = ? WHERE id = ?", (recorded.position, done_at))
        case ClockMended() as mended:
            for table in ("upkeeps", "memory_changes"):
                yield from set_right(mended, table, "at_us")
        case Event() as event:
            yield from _changed(recorded, event)


def _changed(recorded: RecordedEvent, event: Event) -> Iterator[Statement]:
    found: tuple[str, str, str | None, str | None] | None = None
    match event:
        case MemoryPromoted(memory_id=memory_id, evidence=evidence, reason=reason):
            found = "promoted", memory_id, None, reason or evidence
        case MemoryDemoted(memory_id=memory_id, reason=reason):
            found = "demoted", memory_id, None, reason
        case MemoryExpired(memory_id=memory_id):
            found = "expired", memory_id, None, None
        case MemorySuperseded(memory_id=memory_id, superseded_by=by, reason=reason):
            found = "superseded", memory_id, by, reason
        case MemoryContradicted(memory_id=memory_id, contradicted_by=by, reason=reason):
            found = "contradicted", memory_id, by, reason
    if found:
        sql = "INSERT INTO memory_changes VALUES (?, ?, ?, ?, ?, ?)"
        yield Statement(sql, (recorded.position, recorded.occurred_at, *found))
