"""The vectors of every memory: a sqlite-vec index for nearest neighbours, and a plain table beside it that
gives one back quickly.

Which texts were embedded is what the events say; the bytes come from the cache of computed vectors.
"""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Embedding, Statement
from omegad.memory.events import MemoryEdited, MemoryEmbedded, MemoryErased, MemoryEvolved

NAME = "vectors"
VERSION = 2
EVENTS = (MemoryEmbedded, MemoryEvolved, MemoryEdited, MemoryErased)

SCHEMA = """
CREATE TABLE memory_vectors (
    id          INTEGER PRIMARY KEY, -- position of memory.embedded * 1024 + chunk
    memory_id   TEXT NOT NULL,
    embedder_id TEXT NOT NULL,
    chunk       INTEGER NOT NULL,
    text_hash   TEXT NOT NULL,
    vector      BLOB,                -- float32, unit length; NULL until it is at hand
    UNIQUE (memory_id, embedder_id, chunk)
) STRICT;

-- Unit vectors: the order by L2 distance is the order by cosine, and L2 is the faster of the two.
CREATE VIRTUAL TABLE memories_vec USING vec0(embedding float[384], embedder_id text);
"""

CANONICAL = ("SELECT id, memory_id, embedder_id, chunk, text_hash FROM memory_vectors ORDER BY id",)
# The table of row ids is sqlite-vec's own, and quick to ask; the index itself takes a search for each row.
INTEGRITY = (
    """SELECT id FROM memory_vectors AS v
    WHERE (vector IS NULL) = EXISTS (SELECT 1 FROM memories_vec_rowids AS r WHERE r.rowid = v.id) LIMIT 10""",
)
ERASED_BY = (MemoryErased,)
APPROXIMATE = ("SELECT id, vector FROM memory_vectors ORDER BY id",)

# vec0 has no upsert, so a row enters the index only while the table beside it does not have its vector yet.
_INDEX = """
INSERT INTO memories_vec (rowid, embedding, embedder_id)
SELECT id, ?, embedder_id FROM memory_vectors WHERE id = ? AND text_hash = ? AND vector IS NULL
"""
# vec0 would go through the whole index for a plain `rowid IN`; for the pair, SQLite asks it for one row after
# the other.
_UNINDEX = (
    "DELETE FROM memories_vec WHERE (rowid, 0) IN (SELECT id, 0 FROM memory_vectors WHERE memory_id = ?)"
)
_OVERWRITE = """
UPDATE memories_vec SET embedding = zeroblob(1536)
WHERE (rowid, 0) IN (SELECT id, 0 FROM memory_vectors WHERE memory_id = ? AND vector IS NOT NULL)
"""


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryEmbedded(memory_id=memory_id, embedder_id=embedder_id, text_hashes=text_hashes):
            for chunk, text_hash in enumerate(text_hashes):
                row_id = recorded.position * 1024 + chunk
                yield Statement(
                    "INSERT INTO memory_vectors (id, memory_id, embedder_id, chunk, text_hash) VALUES (?, ?,"
                    " ?, ?, ?)",
                    (row_id, memory_id, embedder_id, chunk, text_hash),
                )
                key = (Embedding(embedder_id, text_hash), row_id, text_hash)
                yield Statement(_INDEX, key)
                yield Statement("UPDATE memory_vectors SET vector = ? WHERE id = ? AND text_hash = ?", key)
        case MemoryEvolved(memory_id=memory_id) | MemoryEdited(memory_id=memory_id):
            # The vectors are of what it said before; those of what it says now are an event of their own.
            yield Statement(_UNINDEX, (memory_id,))
            yield Statement("DELETE FROM memory_vectors WHERE memory_id = ?", (memory_id,))
        case MemoryErased(memory_id=memory_id):
            # The index keeps the bytes of a vector that is deleted, so they are overwritten before.
            yield Statement(_OVERWRITE, (memory_id,))
            yield Statement(_UNINDEX, (memory_id,))
            yield Statement("DELETE FROM memory_vectors WHERE memory_id = ?", (memory_id,))
        case _:
            pass
