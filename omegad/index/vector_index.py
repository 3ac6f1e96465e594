"""Nearest neighbours from memory: 48 bytes of sign bits for each vector, then the exact cosines of those that
remain.

Of the first few thousand the vectors themselves are kept as well, so that a small store is searched without
reading any. Wherever a vector is, its cosine is computed in the same way, and is the same.

The index is a cache of the vectors view, which `sync` brings up to the reader's moment before each search. It
answers within a millisecond where the index in the file needs tens.
"""

import threading
from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.index.columns import SOURCE, TRAITS, Columns, Selected, Selection, TextTraits, extended
from omegad.storage.driver import Connection

DIMENSIONS = 384
WORDS = DIMENSIONS // 64
RESCORED = 256  # neighbours by sign bits whose exact cosine is computed
# Vectors that are compared at once: the memory for more is given by the system, page by page, and taken back,
# each time, which takes longer than the comparing
AT_ONCE = 32
# Vectors that are also kept whole, 24 MiB; those beyond are read from the file when they are rescored
EXACT_MAX = 16_384
# Vectors beyond which none is kept whole: of those that a question is compared with, three in four would be
# read all the same
EXACT_OF = 65_536
CHUNK = 1_024  # vectors read at once, 3 MiB that is let go of again
SIGNS_CHUNK = 8_192  # of which the signs alone are read, 2 MiB
VECTOR_BYTES = 4 * DIMENSIONS
# Between a question and its answer, and texts that have nothing to do with each other, the cosines of the
# model for all languages are .37 and .10 where that for English has .59 and .02.
SLOPE, OFFSET = 1.8, 0.21
# The same between two memories: of one matter they are from .75 on, and entirely from .95 on, where by the
# model for English that is .5 and .8.
ALIKE_SLOPE, ALIKE_OFFSET = 1.5, 0.625
SIGNS_AT_ONCE = 8_192

# As one text: the driver lets other threads in, and so waits for them, at each row that it reads.
_ROWS = f"""
SELECT '[' || coalesce(group_concat(said), '') || ']' FROM (
  SELECT json_array(v.id, hex({{form}}), {SOURCE}) AS said
  FROM memory_vectors AS v LEFT JOIN memories AS m ON m.node_id = v.memory_id
  WHERE {{condition}} ORDER BY v.id LIMIT +?)
"""
_NEW = "v.id > ? AND v.embedder_id = ? AND v.vector IS NOT NULL"
_THESE = "v.id IN (SELECT value FROM json_each(?)) AND m.id IS NOT NULL"
_WHOLE, _SIGNS = "v.vector", "vec_quantize_binary(v.vector)"
_CHANGED = f"""
SELECT m.changed_position, m.id, m.node_id, m.status = 'active', m.created_us, m.expires_us, {TRAITS}
FROM memories AS m WHERE m.changed_position > ? AND m.changed_position != m.id ORDER BY 1
"""
_COUNT = "SELECT count(*) FROM memory_vectors WHERE embedder_id = ?"
_CURRENT = (
    "SELECT id FROM memory_vectors WHERE memory_id IN (SELECT value FROM json_each(?)) AND vector IS NOT NULL"
)


class VectorIndex:
    """The sign bits of the vectors of one embedder in one file of views. Safe to use from several reading
    threads.
    """

    def __init__(self, embedder_id: str, *, is_whole: bool = True, is_multilingual: bool = False) -> None:
        """Start empty; the first `sync` fills it. Where it is not to be whole it takes a twentieth: no
        vectors but those in the file. The cosines of the model for all languages have a scale of their own.
        """
        self.embedder_id = embedder_id
        self.is_multilingual = is_multilingual
        self._exact_max = EXACT_MAX if is_whole else 0
        self._lock = threading.Lock()
        self._last_vector = 0
        self._early: set[int] = set()  # vectors that a lagging view does not show the memory of yet
        self._last_change: int | None = None
        self._columns = Columns()
        # One array for each word of all vectors: a pass over one of them is many times faster than one over
        # rows of six.
        self._bits: list[npt.NDArray[np.uint64]] = [np.empty(0, np.uint64) for _ in range(WORDS)]
        self._exact: npt.NDArray[np.float32] = np.empty((0, DIMENSIONS), np.float32)
        self._squares: npt.NDArray[np.float64] = np.empty(0)  # of the lengths of those that are kept whole
        self._ids: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def __len__(self) -> int:
        """How many vectors it holds."""
        return self._columns.count

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return (
            sum(word.nbytes for word in self._bits)
            + self._exact.nbytes
            + self._squares.nbytes
            + self._ids.nbytes
            + self._columns.size_bytes
        )

    @property
    def seen(self) -> tuple[int, int | None]:
        """The last vector, of any model, and the last change of a memory that it knows of."""
        return self._last_vector, self._last_change

    @property
    def has_early(self) -> bool:
        """Whether it waits for memories that a lagging view does not show yet."""
        return bool(self._early)

    def scaled(self, cosine: float) -> float:
        """Return what a cosine would be by the model for English."""
        return min(1.0, SLOPE * cosine - OFFSET) if self.is_multilingual else cosine

    def likeness(
        self, connection: Connection, memory_rows: Sequence[int]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Return the cosine of each of the memory rows with each, by their first passages, on the scale of
        the model for English; and which of them have vectors.
        """
        vectors = self.vectors_of(connection, memory_rows)
        products: npt.NDArray[np.float64] = vectors @ vectors.T
        scaled = ALIKE_SLOPE * products - ALIKE_OFFSET if self.is_multilingual else products
        return scaled, np.asarray(vectors.any(axis=1))

    def nearest(
        self, connection: Connection, vector: bytes, wanted: Selection, limit: int
    ) -> list[tuple[int, float]]:
        """Return up to *limit* (memory row, cosine) of those selected, nearest first, equals by row.

        A memory of several passages is there once, with its nearest.
        """
        with self._lock:
            chosen = self._columns.chosen(wanted)
            if len(chosen) > RESCORED:
                chosen = chosen[np.argpartition(self._differing(vector, chosen), RESCORED)[:RESCORED]]
            rows, found = self._rescored(connection, vector, chosen)
        order, best = np.lexsort((rows, -found)), dict[int, float]()
        for row, cosine in zip(rows[order].tolist(), found[order].tolist(), strict=True):
            best.setdefault(row, cosine)
            if len(best) == limit:
                break
        return list(best.items())

    def sync(self, connection: Connection) -> None:
        """Bring it up to the connection's moment."""
        with self._lock:
            if self._last_change is None:
                # What changed before the first vectors are read is read with them.
                latest = "SELECT coalesce(max(changed_position), 0) FROM memories"
                self._last_change = connection.execute(latest).fetchone()[0]
                if connection.execute(_COUNT, (self.embedder_id,)).fetchone()[0] > EXACT_OF:
                    self._exact_max = 0
            while self._early and self._read(connection, _THESE, str(sorted(self._early))) is not None:
                pass
            last: int = connection.execute("SELECT coalesce(max(id), 0) FROM memory_vectors").fetchone()[0]
            is_more = last > self._last_vector
            while is_more:
                up_to = self._read(connection, _NEW, self._last_vector, self.embedder_id)
                is_more = up_to is not None
                # What is behind the last is another model's, and is not gone through again.
                self._last_vector = last if up_to is None else up_to
            if changed := connection.execute(_CHANGED, (self._last_change,)).fetchall():
                ids = msgspec.json.encode([row[2] for row in changed]).decode()
                current = np.isin(
                    self._ids[: self._columns.count], [row[0] for row in connection.execute(_CURRENT, (ids,))]
                )
                for _, row, _, is_active, created_us, expires_us, *traits in changed:
                    self._columns.change(
                        row,
                        current,
                        is_active=bool(is_active),
                        created_us=created_us,
                        expires_us=expires_us,
                        traits=tuple(traits),
                    )
                self._last_change = changed[-1][0]

    def selected(self, wanted: Selection) -> Selected:
        """Return which memory rows are selected; rows without vectors are not."""
        with self._lock:
            return self._columns.selected(wanted)

    def text_traits(self, memory_rows: npt.NDArray[np.int64], names: Collection[str]) -> TextTraits:
        """Return the traits of the texts of some memory rows, known of those that it holds vectors of."""
        with self._lock:
            return self._columns.text_traits(memory_rows, names)

    def without(self, memory_rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return those of the memory rows that it holds no vector of."""
        with self._lock:
            return np.delete(memory_rows, self._columns.of_rows(memory_rows)[1])

    def cosines_of(
        self, connection: Connection, vector: bytes, memory_rows: Sequence[int]
    ) -> dict[int, float]:
        """Return, by memory row, the cosine of its nearest passage; rows without vectors are left out."""
        if not memory_rows:
            return {}
        with self._lock:
            indices, _ = self._columns.of_rows(np.array(memory_rows, np.int64))
            rows, found = self._rescored(connection, vector, indices[self._columns.active[indices]])
        order = found.argsort(kind="stable")
        best = dict(
            zip(rows[order].tolist(), found[order].tolist(), strict=True)
        )  # the last of a memory is its nearest
        return (
            cosines_of_memories(
                connection, vector, self.embedder_id, [row for row in memory_rows if row not in best]
            )
            | best
        )

    def vectors_of(self, connection: Connection, memory_rows: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return the vector of the first passage of each memory row, in the order given: shape (rows,
        384), zeros where there is none that has a direction.
        """
        found = np.zeros((len(memory_rows), DIMENSIONS))
        with self._lock:
            indices, which = self._columns.of_rows(np.array(memory_rows, np.int64))
            is_active = self._columns.active[indices]
            which, indices = which[is_active], indices[is_active]
            is_first = np.ones(len(which), np.bool_)
            is_first[1:] = which[1:] != which[:-1]  # they ascend: no `np.unique`, which loads more
            places, indices = which[is_first], indices[is_first]
            is_kept = indices < self._exact_max
            found[places[is_kept]] = self._exact[indices[is_kept]]
            read = dict(zip(self._ids[indices[~is_kept]].tolist(), places[~is_kept].tolist(), strict=True))
        sql = (
            "SELECT id, vector FROM memory_vectors WHERE id IN (SELECT value FROM json_each(?)) AND vector IS"
            " NOT NULL"
        )
        for vector_id, blob in connection.execute(sql, (str(list(read)),)) if read else ():
            found[read[vector_id]] = np.frombuffer(blob, "<f4")
        found[~np.isfinite(found).all(axis=1)] = 0.0
        return found

    def _differing(self, vector: bytes, chosen: npt.NDArray[np.intp]) -> npt.NDArray[np.uint16]:
        """Return in how many of their 384 signs the chosen vectors differ from one."""
        count, is_all = len(chosen), len(chosen) == self._columns.count
        differing, signs = np.zeros(count, np.uint16), _sign_bits(np.frombuffer(vector, "<f4"))
        for part in (slice(start, start + SIGNS_AT_ONCE) for start in range(0, count, SIGNS_AT_ONCE)):
            for words, asked in zip(self._bits, signs, strict=True):
                # To pick all of them one by one would copy them.
                differing[part] += np.bitwise_count(
                    (words[:count][part] if is_all else words[chosen[part]]) ^ asked
                )
        return differing

    def _rescored(
        self, connection: Connection, vector: bytes, chosen: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the memory row and the exact cosine of each of the chosen vectors."""
        kept, read = chosen[chosen < self._exact_max], chosen[chosen >= self._exact_max]
        found = _compared_of(self._exact, kept, self._squares[kept], vector)
        if len(read):
            known = cosines(connection, vector, ids := self._ids[read].tolist())
            if len(known) < len(ids):  # another reader has brought the index further than this one sees
                read = read[[vector_id in known for vector_id in ids]]
            found = np.append(found, [known[vector_id] for vector_id in ids if vector_id in known])
        return self._columns.memory[np.append(kept, read)], found

    def _read(self, connection: Connection, condition: str, *asked: object) -> int | None:
        """Take in the vectors of which a condition holds, a chunk at most: return the last one where there
        may be more.
        """
        is_whole = self._columns.count < self._exact_max
        chunk = CHUNK if is_whole else SIGNS_CHUNK
        sql = _ROWS.format(form=_WHOLE if is_whole else _SIGNS, condition=condition)
        (said,) = connection.execute(sql, (*asked, chunk)).fetchone()
        read: list[list[Any]] = msgspec.json.decode(said)
        self._early.update(row[0] for row in read if row[2] is None)
        if rows := [row for row in read if row[2] is not None]:
            self._extend(rows, np.frombuffer(bytes.fromhex("".join([row[1] for row in rows])), np.uint8))
        return read[-1][0] if len(read) == chunk else None

    def _extend(self, rows: list[list[Any]], held: npt.NDArray[np.uint8]) -> None:
        """Add vectors of which rows tell the number and the memory, and which are *held* as they are, or as
        their signs.
        """
        start, held = self._columns.count, held.reshape(len(rows), -1)
        is_whole = held.shape[1] == VECTOR_BYTES
        for place, words in enumerate((_sign_bits(held.view("<f4")) if is_whole else held.view(np.uint64)).T):
            self._bits[place] = extended(self._bits[place], start, words)
        if is_whole:
            kept = held.view("<f4")[: self._exact_max - start]
            self._exact = extended(self._exact, start, kept)[: self._exact_max]
            self._squares = extended(self._squares, start, _squares(kept.astype(np.float64)))
        self._ids = extended(self._ids, start, [row[0] for row in rows])
        self._columns.extend([row[2:] for row in rows])
        self._early.difference_update(row[0] for row in rows)


def cosines(connection: Connection, vector: bytes, vector_ids: Sequence[int]) -> dict[int, float]:
    """Return the exact cosine of each of *vector_ids* by its id."""
    sql = (
        "SELECT id, vector FROM memory_vectors WHERE id IN (SELECT value FROM json_each(?)) AND vector IS NOT"
        " NULL"
    )
    return dict(_compared(connection.execute(sql, (str(list(vector_ids)),)).fetchall(), vector))


def cosines_of_memories(
    connection: Connection, vector: bytes, embedder_id: str, memory_rows: Sequence[int]
) -> dict[int, float]:
    """Return, by memory row, the cosine of its nearest passage; rows without vectors of this embedder are
    left out.
    """
    if not memory_rows:
        return {}
    sql = """
    SELECT m.id, v.vector FROM memories AS m CROSS JOIN memory_vectors AS v ON v.memory_id = m.node_id
      AND v.embedder_id = ?
    WHERE m.id IN (SELECT value FROM json_each(?)) AND v.vector IS NOT NULL
    """
    found = connection.execute(sql, (embedder_id, str(list(memory_rows)))).fetchall()
    return dict(sorted(_compared(found, vector)))  # the last of a memory is its nearest


def nearest_passages(
    connection: Connection, vector: bytes, embedder_id: str, memory_rows: Sequence[int], within: int
) -> dict[int, int]:
    """Return, by memory row, which of its first so many passages is nearest to a vector, the first being 0;
    rows without vectors of this embedder are left out.
    """
    sql = """
    SELECT m.id, v.chunk, v.vector FROM memories AS m CROSS JOIN memory_vectors AS v
      ON v.memory_id = m.node_id AND v.embedder_id = ?
    WHERE m.id IN (SELECT value FROM json_each(?)) AND v.chunk < ? AND v.vector IS NOT NULL ORDER BY 1, 2 DESC
    """
    found = connection.execute(sql, (embedder_id, str(list(memory_rows)), within)).fetchall()
    cosines = _compared([(place, row[2]) for place, row in enumerate(found)], vector)
    # The nearest of a memory is the last, and the earliest of those that are as near.
    return {found[place][0]: found[place][1] for place, _ in sorted(cosines, key=lambda one: one[1])}


def _compared(rows: Sequence[tuple[int, bytes]], vector: bytes) -> list[tuple[int, float]]:
    """Return the number that each row begins with, and the cosine of the vector beside it."""
    products, squares, asked = np.empty(len(rows)), np.empty(len(rows)), _widened(vector)
    for part in (slice(start, start + AT_ONCE) for start in range(0, len(rows), AT_ONCE)):
        vectors = _widened(b"".join([row[1] for row in rows[part]])).reshape(-1, DIMENSIONS)
        np.einsum("ij,j->i", vectors, asked, out=products[part])
        squares[part] = _squares(vectors)
    return list(zip([row[0] for row in rows], _cosines(products, squares, asked).tolist(), strict=True))


def _compared_of(
    vectors: npt.NDArray[np.float32],
    chosen: npt.NDArray[np.intp],
    squares: npt.NDArray[np.float64],
    vector: bytes,
) -> npt.NDArray[np.float64]:
    """Return the cosine of each of the chosen vectors, the squares of whose lengths are given, with one."""
    asked, products = _widened(vector), np.empty(len(chosen))
    for part in (slice(start, start + AT_ONCE) for start in range(0, len(chosen), AT_ONCE)):
        np.einsum("ij,j->i", vectors[chosen[part]].astype(np.float64), asked, out=products[part])
    return _cosines(products, squares, asked)


def _cosines(
    products: npt.NDArray[np.float64], squares: npt.NDArray[np.float64], asked: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the cosines of some vectors with one, of their products and the squares of their lengths;
    nothing is near to what has no direction.

    Products are not made by a library of matrices: there the last digits of each depend on which others it
    stands beside.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found: npt.NDArray[np.float64] = products / np.sqrt(squares * np.einsum("i,i", asked, asked))
    found[~np.isfinite(found)] = 0.0
    return found


def _widened(vectors: bytes) -> npt.NDArray[np.float64]:
    return np.frombuffer(vectors, "<f4").astype(np.float64)


def _squares(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the square of the length of each of some vectors."""
    found: npt.NDArray[np.float64] = np.einsum("ij,ij->i", vectors, vectors)
    return found


def _sign_bits(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
    return np.packbits(vectors > 0, axis=-1, bitorder="little").view(np.uint64)  # as sqlite-vec has them
