"""The vectors of a home as one index, whichever of its models made them.

What is English has vectors of one model, and what is not of another, for all languages. In a home where
other languages are met, what is English gets those as well, after a while: they are compared with questions
in other languages. Cosines of different models have different scales, and are brought to one.
"""

import threading
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from omegad.index.columns import Selected, Selection, TextTraits
from omegad.index.resident_words import ResidentWords
from omegad.index.vector_index import VectorIndex, nearest_passages
from omegad.storage.driver import Connection

Vectors = Mapping[str, bytes]
"""The vectors of a question by embedder id; of a memory counts the first of these that it has a vector of."""


class VectorIndexes:
    """The indexes of one file of views, the usual model's first. Safe to use from several reading threads."""

    def __init__(self, *indexes: VectorIndex, words: ResidentWords | None = None) -> None:
        """Put them together, of which there is at least one, with the *words* of the same file."""
        self.words = words
        self._indexes = {index.embedder_id: index for index in indexes}
        self._lock = threading.Lock()
        self._seen: tuple[int, int | None] | None = None  # by the usual one, when the others were synced

    @property
    def embedder_ids(self) -> tuple[str, ...]:
        """The models whose vectors are searched, the usual one first."""
        return tuple(self._indexes)

    def __len__(self) -> int:
        """How many vectors they hold."""
        return sum(map(len, self._indexes.values()))

    @property
    def meets_languages(self) -> bool:
        """Whether anything has a vector of another model than the usual one, and so other languages than
        English have been met.
        """
        _, *others = self._indexes.values()
        return any(map(len, others))

    @property
    def size_bytes(self) -> int:
        """How much memory they take."""
        words = self.words.size_bytes if self.words else 0
        return words + sum(index.size_bytes for index in self._indexes.values())

    def of(self, embedder_id: str) -> VectorIndex | None:
        """Return the index of one model, None where its vectors are not searched."""
        return self._indexes.get(embedder_id)

    def is_multilingual(self, vectors: Vectors) -> bool:
        """Say whether a question is compared by the model for all languages first."""
        return next((index.is_multilingual for index in self._asked(vectors)), False)

    def nearest_passages(
        self, connection: Connection, vectors: Vectors, memory_rows: Sequence[int], within: int
    ) -> dict[int, int]:
        """Return, by memory row, which of its first passages is nearest by the model for all languages; rows
        without vectors of it are left out.
        """
        index = next((index for index in self._asked(vectors) if index.is_multilingual), None)
        if index is None or not memory_rows:
            return {}
        return nearest_passages(
            connection, vectors[index.embedder_id], index.embedder_id, memory_rows, within
        )

    def sync(self, connection: Connection) -> None:
        """Bring all up to the connection's moment; the others' tables are asked only where the usual one's
        have told of something new.
        """
        usual, *others = self._indexes.values()
        with self._lock:
            usual.sync(connection)
            if usual.seen != self._seen or any(other.has_early for other in others):
                for other in others:
                    other.sync(connection)
                self._seen = usual.seen

    def selected(self, wanted: Selection) -> Selected:
        """Return which memory rows are selected; rows without vectors are not."""
        usual, *others = self._indexes.values()
        found = usual.selected(wanted)
        for other in filter(len, others):
            found = found.beside(other.selected(wanted))
        return found

    def without(self, memory_rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return those of the memory rows that none holds a vector of."""
        for index in filter(len, self._indexes.values()):
            memory_rows = index.without(memory_rows)
        return memory_rows

    def text_traits(self, memory_rows: npt.NDArray[np.int64], names: Collection[str]) -> TextTraits:
        """Return the traits of the texts of some memory rows, known of those that any index holds vectors of;
        `is_by_them` is of the authors that have one of the *names*.
        """
        usual, *others = self._indexes.values()
        found = usual.text_traits(memory_rows, names)
        for other in filter(len, others):
            if found.is_known.all():
                break
            left = ~found.is_known
            for array, values in zip(found, other.text_traits(memory_rows[left], names), strict=True):
                array[left] = values
        return found

    def nearest(
        self, connection: Connection, vectors: Vectors, wanted: Selection, limit: int
    ) -> list[tuple[int, float]]:
        """Return (memory row, cosine) of those selected, nearest first, equals by row: up to *limit* of
        each model.
        """
        if (only := self._only(vectors)) is not None:
            return only.nearest(connection, vectors[only.embedder_id], wanted, limit)
        found = dict[int, float]()
        earlier = list[VectorIndex]()
        for index in self._asked(vectors):
            near = index.nearest(connection, vectors[index.embedder_id], wanted, limit)
            rows = np.array([row for row, _ in near], np.int64)
            for before in earlier:
                rows = before.without(rows)
            own = set(rows.tolist())
            found |= {row: index.scaled(cosine) for row, cosine in near if row in own}
            earlier.append(index)
        return (
            sorted(found.items(), key=lambda one: (-one[1], one[0]))
            if len(earlier) > 1
            else list(found.items())
        )

    def cosines_of(
        self, connection: Connection, vectors: Vectors, memory_rows: Sequence[int]
    ) -> dict[int, float]:
        """Return, by memory row, the cosine of its nearest passage; rows without vectors are left out."""
        if (only := self._only(vectors)) is not None:
            return only.cosines_of(connection, vectors[only.embedder_id], memory_rows)
        found = dict[int, float]()
        for index in self._asked(vectors):
            left = [row for row in memory_rows if row not in found]
            cosines = index.cosines_of(connection, vectors[index.embedder_id], left)
            found |= {row: index.scaled(cosine) for row, cosine in cosines.items()}
        return found

    def likeness(
        self, connection: Connection, vectors: Vectors, memory_rows: Sequence[int]
    ) -> npt.NDArray[np.float64]:
        """Return the cosine of each of the memory rows with each, by their first passages: shape (rows,
        rows), 0 where no model has vectors of both.
        """
        if (only := self._only(vectors)) is not None:
            return only.likeness(connection, memory_rows)[0]
        alike = np.zeros((len(memory_rows), len(memory_rows)))
        for index in self._asked(vectors):
            products, has = index.likeness(connection, memory_rows)
            alike = np.where((alike == 0) & has[:, None] & has[None, :], products, alike)
        return alike

    def _only(self, vectors: Vectors) -> VectorIndex | None:
        """Return the index of the usual model where a question is compared by no other, as in English."""
        asked = self._asked(vectors)
        return asked[0] if len(asked) == 1 and not asked[0].is_multilingual else None

    def _asked(self, vectors: Vectors) -> list[VectorIndex]:
        return [self._indexes[embedder_id] for embedder_id in vectors if embedder_id in self._indexes]
