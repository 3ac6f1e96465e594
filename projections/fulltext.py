"""The words of every memory that can be found, for BM25: its content, what is known about it, and the
parts of its names.
"""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement, to_json, united
from omegad.memory.events import (
    MemoryDeleted,
    MemoryEdited,
    MemoryErased,
    MemoryEvolved,
    MemoryExpired,
    MemoryRepeated,
    MemoryRestored,
    MemoryStored,
    MemorySuperseded,
)
from omegad.runtime.times import day
from omegad.text.tokenizer import lexemes

NAME = "fulltext"
VERSION = 5
EVENTS = (
    MemoryStored,
    MemoryRepeated,
    MemoryEvolved,
    MemoryEdited,
    MemorySuperseded,
    MemoryDeleted,
    MemoryExpired,
    MemoryRestored,
    MemoryErased,
)

SCHEMA = """
CREATE VIRTUAL TABLE memories_fts USING fts5(
    content,
    context, -- project, entity and type
    tags,    -- those given and those found by rule, and the day it speaks of, in words
    lexemes, -- parts of CamelCase names, words in another guise, and bigrams of scripts without spaces
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE fulltext_rows (
    memory_id TEXT PRIMARY KEY,
    id        INTEGER NOT NULL, -- the rowid in memories_fts: position of memory.stored
    tags      TEXT NOT NULL,    -- JSON array
    auto_tags TEXT NOT NULL,    -- JSON array of tags found by rule
    day       TEXT,             -- that it speaks of
    content   TEXT,             -- these three only while it is hidden, and so not in memories_fts
    context   TEXT,
    lexemes   TEXT
) STRICT, WITHOUT ROWID;
"""

CANONICAL = (
    "SELECT rowid, content, context, tags, lexemes FROM memories_fts ORDER BY rowid",
    "SELECT * FROM fulltext_rows ORDER BY memory_id",
)
ERASED_BY = (MemoryErased,)
WIPES = ("INSERT INTO memories_fts (memories_fts) VALUES ('optimize')",)
INTEGRITY = (
    "SELECT integrity_check FROM pragma_integrity_check('memories_fts') WHERE integrity_check <> 'ok'",
)

_ROW = "(SELECT id FROM fulltext_rows WHERE memory_id = ?1)"
_HIDE = f"""
UPDATE fulltext_rows SET (content, context, lexemes) = (SELECT f.content, f.context, f.lexemes
  FROM memories_fts AS f WHERE f.rowid = {_ROW})
WHERE memory_id = ?1 AND content IS NULL
"""
_REMOVE = f"DELETE FROM memories_fts WHERE rowid = {_ROW}"
_WORDS = """(
    SELECT group_concat(value, ' ') FROM (
        SELECT value FROM json_each(r.tags) UNION ALL SELECT value FROM json_each(r.auto_tags) UNION ALL
        SELECT r.day WHERE r.day IS NOT NULL
    )
)"""
_SHOW = f"""
INSERT INTO memories_fts (rowid, content, context, tags, lexemes)
SELECT r.id, r.content, r.context, {_WORDS}, r.lexemes FROM fulltext_rows AS r WHERE r.memory_id = ?1
  AND r.content IS NOT NULL
"""
_FORGET = "UPDATE fulltext_rows SET content = NULL, context = NULL, lexemes = NULL WHERE memory_id = ?"
_REWORD = f"UPDATE memories_fts SET content = ?2, lexemes = ?3 WHERE rowid = {_ROW}"
_REWORD_HIDDEN = (
    "UPDATE fulltext_rows SET content = ?2, lexemes = ?3 WHERE memory_id = ?1 AND content IS NOT NULL"
)
_MERGE = f"""
UPDATE fulltext_rows SET tags = {united("tags", "?2")}, auto_tags = {united("auto_tags", "?3")}
  WHERE memory_id = ?1
"""
_GIVE = (
    "UPDATE fulltext_rows SET auto_tags = ?2, tags = coalesce(?3, tags), day = coalesce(?4, day) WHERE"
    " memory_id = ?1"
)
_RETAG = (
    f"UPDATE memories_fts SET tags = (SELECT {_WORDS} FROM fulltext_rows AS r WHERE r.memory_id = ?1) WHERE"
    f" rowid = {_ROW}"
)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryStored() as stored:
            yield from _stored(recorded, stored)
        case MemoryRepeated(memory_id=memory_id, tags=tags) if tags:
            yield Statement(_MERGE, (memory_id, to_json(tags), "[]"))
            yield Statement(_RETAG, (memory_id,))
        case MemoryEvolved() | MemoryEdited() as new:
            yield Statement(_REWORD, (new.memory_id, new.content, lexemes(new.content)))
            yield Statement(_REWORD_HIDDEN, (new.memory_id, new.content, lexemes(new.content)))
            if isinstance(new, MemoryEdited) and new.is_whole:
                yield Statement("UPDATE fulltext_rows SET day = NULL WHERE memory_id = ?", (new.memory_id,))
            yield _known_by(new)
            yield Statement(_RETAG, (new.memory_id,))
        case (
            MemorySuperseded(memory_id=memory_id)
            | MemoryDeleted(memory_id=memory_id)
            | MemoryExpired(memory_id=memory_id)
        ):
            yield Statement(_HIDE, (memory_id,))
            yield Statement(_REMOVE, (memory_id,))
        case MemoryErased(memory_id=memory_id):
            yield Statement(_REMOVE, (memory_id,))
            yield Statement("DELETE FROM fulltext_rows WHERE memory_id = ?", (memory_id,))
        case MemoryRestored(memory_id=memory_id):
            yield Statement(_SHOW, (memory_id,))
            yield Statement(_FORGET, (memory_id,))


def _stored(recorded: RecordedEvent, stored: MemoryStored) -> Iterator[Statement]:
    spoken_of = None if stored.referenced_at is None else day(stored.referenced_at)
    row = (stored.memory_id, recorded.position, to_json(stored.tags), to_json(stored.auto_tags), spoken_of)
    yield Statement(
        "INSERT INTO fulltext_rows (memory_id, id, tags, auto_tags, day) VALUES (?, ?, ?, ?, ?)", row
    )
    context = " ".join(part for part in (recorded.project, stored.entity_id, stored.event_type) if part)
    known_by = " ".join((*stored.tags, *stored.auto_tags, *([spoken_of] if spoken_of else [])))
    values = (recorded.position, stored.content, context, known_by or None, lexemes(stored.content))
    yield Statement(
        "INSERT INTO memories_fts (rowid, content, context, tags, lexemes) VALUES (?, ?, ?, ?, ?)", values
    )


def _known_by(new: MemoryEvolved | MemoryEdited) -> Statement:
    if isinstance(new, MemoryEvolved):
        return Statement(_MERGE, (new.memory_id, to_json(new.tags), to_json(new.auto_tags)))
    spoken_of = None if new.referenced_at is None else day(new.referenced_at)
    return Statement(
        _GIVE,
        (new.memory_id, to_json(new.auto_tags), None if new.tags is None else to_json(new.tags), spoken_of),
    )
