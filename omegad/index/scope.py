"""Which memories a question is about: those that can be found at its moment and pass its filters."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from omegad.index import fulltext
from omegad.index.active import overdue
from omegad.index.columns import Selected, Selection, selection
from omegad.index.filters import Filtered, Filters, where
from omegad.index.vector_indexes import VectorIndexes
from omegad.storage.driver import Connection

COUNTED_MAX = (
    1_000  # memories are counted one by one up to here; of more it says much the same that a word is rare
)

_COUNT = "SELECT count(*) FROM (SELECT 1 FROM memories AS m WHERE {condition} LIMIT +?)"
_OVERDUE = f"SELECT EXISTS (SELECT 1 FROM memories WHERE {overdue('?')})"
_AMONG = "SELECT m.id FROM memories AS m WHERE m.id IN (SELECT value FROM json_each(?)) AND {condition}"


class Scope:
    """The memories that a question is about, at one moment of the views.

    Memories with vectors are told by arrays beside these, at no cost that grows with their contents; the
    others by a query each time.
    """

    def __init__(
        self, connection: Connection, filters: Filters, now_us: int, index: VectorIndexes | None
    ) -> None:
        """Bring *index* up to the connection's moment, and select what *filters* leave at *now_us*."""
        self._connection = connection
        self._index = index
        self.now_us = now_us
        self.filtered = Filtered(*where(filters, now_us), is_everything=not filters.named())
        """The same as a condition on `memories AS m`."""
        rows = (
            frozenset(self._rows("SELECT m.id FROM memories AS m WHERE {condition}"))
            if filters.are_of_rows and index is not None
            else None
        )
        self.selection: Selection = selection(filters, now_us, rows)
        """The same as a condition on the index."""
        self._embedded = Selected()
        if index is not None:
            index.sync(connection)
            self._embedded = index.selected(self.selection)
        self.fulltext = fulltext.opened(
            connection, None if index is None else index.words, self.holds_of_found
        )
        """Full text, of which it says which memories the question is about."""

    @cached_property
    def count(self) -> int:
        """How many memories there are; at most `COUNTED_MAX` are told apart where there are fewer vectors
        than that.
        """
        if self._embedded.count >= COUNTED_MAX:
            return self._embedded.count
        found: int = self._connection.execute(
            _COUNT.format(condition=self.filtered.condition), (*self.filtered.values, COUNTED_MAX)
        ).fetchone()[0]
        return found

    def among(self, rows: Iterable[int]) -> frozenset[int]:
        """Return those of some memory rows that the question is about."""
        asked = np.fromiter(rows, np.int64)
        return frozenset(asked[self.holds(asked)].tolist())

    def holds(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Say of each of some memory rows whether the question is about it."""
        found = self._embedded.holds(rows)
        unknown = rows[~found]
        if self._index is not None and len(unknown):
            unknown = self._index.without(unknown)
        if len(unknown):
            found |= np.isin(rows, self._rows(_AMONG, str(unknown.tolist())))
        return found

    def holds_of_found(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Say the same of rows of full text, which holds what can be found, and what is overdue."""
        return np.ones(len(rows), np.bool_) if self._has_all_found else self.holds(rows)

    @cached_property
    def _has_all_found(self) -> bool:
        return (
            self.filtered.is_everything
            and not self._connection.execute(_OVERDUE, (self.now_us,)).fetchone()[0]
        )

    def _rows(self, sql: str, *values: object) -> list[int]:
        return [
            row[0]
            for row in self._connection.execute(
                sql.format(condition=self.filtered.condition), (*values, *self.filtered.values)
            )
        ]
