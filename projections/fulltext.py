"""The words of every memory that can be found, for BM25: its content, what is known about it, and the parts of its names."""

from collections.abc import Iterator

from omegad.events.fact import Recorded
from omegad.events.memory import (
    MemoryDeleted,
    MemoryEdited,
    MemoryEvolved,
    MemoryExpired,
    MemoryRestored,
    MemoryStored,
    MemorySuperseded,
)
from omegad.lexemes import lexemes
from omegad.times import day
from omegad.views.contract import Statement

NAME = "fulltext"
VERSION = 2
EVENTS = (MemoryStored, MemoryEvolved, MemoryEdited, MemorySuperseded, MemoryDeleted, MemoryExpired, MemoryRestored)

SCHEMA = """
CREATE VIRTUAL TABLE memories_fts USING fts5(
    content,
    context, -- project, type, tags, and the day it speaks of, in words
    lexemes, -- parts of CamelCase names, and bigrams of scripts without spaces
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE fulltext_rows (
    memory_id TEXT PRIMARY KEY,
    id        INTEGER NOT NULL, -- the rowid in memories_fts: position of memory.stored
    content   TEXT,             -- these three only while it is hidden, and so not in memories_fts
    context   TEXT,
    lexemes   TEXT
) STRICT, WITHOUT ROWID;
"""

CANONICAL = (
    "SELECT rowid, content, context, lexemes FROM memories_fts ORDER BY rowid",
    "SELECT * FROM fulltext_rows ORDER BY memory_id",
)
INTEGRITY = ("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)",)

_ROW = "(SELECT id FROM fulltext_rows WHERE memory_id = ?1)"
_HIDE = f"""
UPDATE fulltext_rows SET (content, context, lexemes) = (SELECT f.content, f.context, f.lexemes FROM memories_fts AS f WHERE f.rowid = {_ROW})
WHERE memory_id = ?1 AND content IS NULL
"""
_REMOVE = f"DELETE FROM memories_fts WHERE rowid = {_ROW}"
_SHOW = """
INSERT INTO memories_fts (rowid, content, context, lexemes)
SELECT id, content, context, lexemes FROM fulltext_rows WHERE memory_id = ? AND content IS NOT NULL
"""
_FORGET = "UPDATE fulltext_rows SET content = NULL, context = NULL, lexemes = NULL WHERE memory_id = ?"
_REWORD = f"UPDATE memories_fts SET content = ?2, lexemes = ?3 WHERE rowid = {_ROW}"


def project(recorded: Recorded) -> Iterator[Statement]:
    match recorded.event:
        case MemoryStored() as stored:
            yield Statement("INSERT INTO fulltext_rows (memory_id, id) VALUES (?, ?)", (stored.memory_id, recorded.position))
            values = (recorded.position, stored.content, _context(recorded, stored), lexemes(stored.content))
            yield Statement("INSERT INTO memories_fts (rowid, content, context, lexemes) VALUES (?, ?, ?, ?)", values)
        case MemoryEvolved() | MemoryEdited() as new:
            yield Statement(_REWORD, (new.memory_id, new.content, lexemes(new.content)))
        case MemorySuperseded(memory_id=memory_id) | MemoryDeleted(memory_id=memory_id) | MemoryExpired(memory_id=memory_id):
            yield Statement(_HIDE, (memory_id,))
            yield Statement(_REMOVE, (memory_id,))
        case MemoryRestored(memory_id=memory_id):
            yield Statement(_SHOW, (memory_id,))
            yield Statement(_FORGET, (memory_id,))
        case _:
            pass


def _context(recorded: Recorded, stored: MemoryStored) -> str:
    spoken_of = None if stored.referenced_at is None else day(stored.referenced_at)
    known = (recorded.project, stored.entity_id, stored.event_type, *stored.tags, *stored.auto_tags, spoken_of)
    return " ".join(part for part in known if part)
