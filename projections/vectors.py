"""The vectors of every memory, in a plain table, which gives one back quickly. sqlite-vec compares them.

Which texts were embedded is what the events say; the bytes come from the cache of computed vectors.
"""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Embedding, Statement
from omegad.memory.events import MemoryEdited, MemoryEmbedded, MemoryErased, MemoryEvolved

NAME = "vectors"
VERSION = 3
EVENTS = (MemoryEmbedded, MemoryEvolved, MemoryEdited, MemoryErased)

SCHEMA = """
CREATE TABLE memory_vectors (
    id          INTEGER PRIMARY KEY, -- position of memory.embedded * 1024 + chunk
    memory_id   TEXT NOT NULL,
    embedder_id TEXT NOT NULL,
    chunk       INTEGER NOT NULL,
    text_hash   TEXT NOT NULL,
    vector      BLOB CHECK (length(vector) = 1536), -- float32, unit length; NULL until it is at hand
    UNIQUE (memory_id, embedder_id, chunk)
) STRICT;
"""

# By the names and row ids that others know; a memory has a row for each passage, and for each embedder.
SQL_VIEWS = """
DROP VIEW IF EXISTS memories_vec;
CREATE VIEW memories_vec AS
SELECT m.id AS rowid, v.vector AS embedding, v.memory_id, v.embedder_id, v.chunk
FROM memory_vectors AS v JOIN memories AS m ON m.node_id = v.memory_id WHERE v.vector IS NOT NULL;
"""

CANONICAL = ("SELECT id, memory_id, embedder_id, chunk, text_hash FROM memory_vectors ORDER BY id",)
ERASED_BY = (MemoryErased,)
# Of version 2, which has an index of sqlite-vec besides.
READABLE = frozenset({"d66a7689bd618c72"})
APPROXIMATE = ("SELECT id, vector, id / 1024 FROM memory_vectors ORDER BY id",)


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
                yield Statement("UPDATE memory_vectors SET vector = ? WHERE id = ? AND text_hash = ?", key)
        case (
            MemoryEvolved(memory_id=memory_id)
            | MemoryEdited(memory_id=memory_id)
            | MemoryErased(memory_id=memory_id)
        ):
            # Where it says something else now, the vectors of that are an event of their own.
            yield Statement("DELETE FROM memory_vectors WHERE memory_id = ?", (memory_id,))
