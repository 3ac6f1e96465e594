"""Nearest neighbours from memory: 48 bytes of sign bits for each vector, then the exact cosines of the few that remain.

The mirror is a cache of the vectors view, brought up to the reader's moment before each search. It answers within a millisecond where
the index in the file needs tens.
"""

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from omegad.storage.driver import Connection

DIMENSIONS = 384
WORDS = DIMENSIONS // 64
RESCORED = 400  # neighbours by sign bits whose exact cosine is computed
CHUNK = 4_096

_NEW_VECTORS = """
SELECT v.id, m.id, v.vector FROM memory_vectors AS v JOIN memories AS m ON m.node_id = v.memory_id
WHERE v.id > ? AND v.embedder_id = ? AND v.vector IS NOT NULL ORDER BY v.id LIMIT ?
"""


class Mirror:
    """The sign bits of the vectors of one embedder in one file of views. Safe to use from several reading threads."""

    def __init__(self, embedder_id: str) -> None:
        """Start empty; the first search fills it."""
        self.embedder_id = embedder_id
        self._lock = threading.Lock()
        self._last = 0
        self._count = 0
        self._bits: npt.NDArray[np.uint64] = np.empty((0, WORDS), np.uint64)
        self._vector_ids: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._memory_ids: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def __len__(self) -> int:
        """How many vectors it holds."""
        return self._count

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return self._bits.nbytes + self._vector_ids.nbytes + self._memory_ids.nbytes

    def nearest(self, connection: Connection, vector: bytes, allowed: npt.NDArray[np.int64] | None, limit: int) -> list[tuple[int, float]]:
        """Return up to *limit* (memory row, cosine), nearest first, equals by row; each memory once, with its nearest passage.

        *allowed* restricts the search to these memory rows (sorted); None is all of them.
        """
        with self._lock:
            self._sync(connection)
            bits, vector_ids, memory_ids = self._bits[: self._count], self._vector_ids[: self._count], self._memory_ids[: self._count]
        if allowed is not None:
            chosen = np.isin(memory_ids, allowed)
            bits, vector_ids = bits[chosen], vector_ids[chosen]
        if len(bits) > RESCORED:
            distance = np.bitwise_count(bits ^ _signs(np.frombuffer(vector, "<f4"))).sum(axis=1, dtype=np.uint16)
            vector_ids = vector_ids[np.argpartition(distance, RESCORED)[:RESCORED]]
        scored = cosines(connection, vector, vector_ids.tolist())
        return sorted(scored.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]

    def _sync(self, connection: Connection) -> None:
        while rows := connection.execute(_NEW_VECTORS, (self._last, self.embedder_id, CHUNK)).fetchall():
            self._reserve(self._count + len(rows))
            end = self._count + len(rows)
            vectors = np.frombuffer(b"".join(row[2] for row in rows), "<f4").reshape(len(rows), DIMENSIONS)
            self._bits[self._count : end] = _signs(vectors)
            self._vector_ids[self._count : end] = [row[0] for row in rows]
            self._memory_ids[self._count : end] = [row[1] for row in rows]
            self._count, self._last = end, rows[-1][0]

    def _reserve(self, count: int) -> None:
        if count <= len(self._bits):
            return
        capacity = max(count, len(self._bits) * 3 // 2, 1_024)
        self._bits = np.concatenate([self._bits[: self._count], np.empty((capacity - self._count, WORDS), np.uint64)])
        self._vector_ids = np.concatenate([self._vector_ids[: self._count], np.empty(capacity - self._count, np.int64)])
        self._memory_ids = np.concatenate([self._memory_ids[: self._count], np.empty(capacity - self._count, np.int64)])


def cosines(connection: Connection, vector: bytes, vector_ids: Sequence[int]) -> dict[int, float]:
    """Return, by memory row, the cosine of its nearest passage among *vector_ids*."""
    if not vector_ids:
        return {}
    sql = """
    SELECT m.id, v.vector FROM memory_vectors AS v CROSS JOIN memories AS m ON m.node_id = v.memory_id
    WHERE v.id IN (SELECT value FROM json_each(?)) AND v.vector IS NOT NULL
    """
    return _best(connection.execute(sql, (str(list(vector_ids)),)).fetchall(), vector)


def cosines_of_memories(connection: Connection, vector: bytes, embedder_id: str, memory_rows: Sequence[int]) -> dict[int, float]:
    """Return, by memory row, the cosine of its nearest passage; rows without vectors of this embedder are left out."""
    if not memory_rows:
        return {}
    sql = """
    SELECT m.id, v.vector FROM memories AS m CROSS JOIN memory_vectors AS v ON v.memory_id = m.node_id AND v.embedder_id = ?
    WHERE m.id IN (SELECT value FROM json_each(?)) AND v.vector IS NOT NULL
    """
    return _best(connection.execute(sql, (embedder_id, str(list(memory_rows)))).fetchall(), vector)


def _best(rows: list[tuple[int, bytes]], vector: bytes) -> dict[int, float]:
    if not rows:
        return {}
    matrix = np.frombuffer(b"".join(row[1] for row in rows), "<f4").reshape(len(rows), DIMENSIONS)
    # One row at a time in float64, so that a cosine does not depend on which others are computed with it.
    products = np.einsum("ij,j->i", matrix.astype(np.float64), np.frombuffer(vector, "<f4").astype(np.float64), optimize=False)
    best: dict[int, float] = {}
    for (memory_row, _), product in zip(rows, products.tolist(), strict=True):
        best[memory_row] = max(product, best.get(memory_row, -1.0))
    return best


def _signs(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
    return np.packbits(vectors > 0, axis=-1).view(np.uint64)
