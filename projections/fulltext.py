"""The words of every memory that can be found, for BM25: its content, and what is known about it."""

from collections.abc import Iterator

from omegad.events.fact import Recorded
from omegad.events.memory import MemoryDeleted, MemoryStored, MemorySuperseded
from omegad.times import day
from omegad.views.contract import Statement

NAME = "fulltext"
VERSION = 1
EVENTS = (MemoryStored, MemorySuperseded, MemoryDeleted)

SCHEMA = """
CREATE VIRTUAL TABLE memories_fts USING fts5(
    content,
    context, -- project, type, tags, and the day it speaks of, in words
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE fulltext_rows (
    memory_id TEXT PRIMARY KEY,
    id        INTEGER NOT NULL -- the rowid in memories_fts: position of memory.stored
) STRICT, WITHOUT ROWID;
"""

CANONICAL = (
    "SELECT rowid, content, context FROM memories_fts ORDER BY rowid",
    "SELECT memory_id, id FROM fulltext_rows ORDER BY memory_id",
)
INTEGRITY = ("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)",)


def project(recorded: Recorded) -> Iterator[Statement]:
    match recorded.event:
        case MemoryStored() as stored:
            yield Statement("INSERT INTO fulltext_rows VALUES (?, ?)", (stored.memory_id, recorded.position))
            values = (recorded.position, stored.content, _context(recorded, stored))
            yield Statement("INSERT INTO memories_fts (rowid, content, context) VALUES (?, ?, ?)", values)
        case MemorySuperseded(memory_id=memory_id) | MemoryDeleted(memory_id=memory_id):
            yield Statement("DELETE FROM memories_fts WHERE rowid = (SELECT id FROM fulltext_rows WHERE memory_id = ?)", (memory_id,))
        case _:
            pass


def _context(recorded: Recorded, stored: MemoryStored) -> str:
    spoken_of = None if stored.referenced_at is None else day(stored.referenced_at)
    return " ".join(part for part in (recorded.project, stored.entity_id, stored.event_type, *stored.tags, spoken_of) if part)
