"""What a filter asks of a memory, as arrays beside the index's bits: a condition on 100,000 memories is
one pass over integers.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.index.filters import Filters
from omegad.runtime.times import parse_time

ItemT = TypeVar("ItemT", bound=np.generic)

NEVER = int(np.iinfo(np.int64).max)
NAMED = ("project", "event_type", "entity_id", "session_id")

# The columns that `Columns.write` takes, of `memories AS m`.
SOURCE = (
    "m.id, m.created_us, m.expires_us, m.status = 'active', m.project, m.event_type, m.entity_id,"
    " m.session_id"
)


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories to look among. A named column that is not in `named` may have any value; None in its set
    means "has none".

    `among` restricts to these memory rows; times are in microseconds since 1970.
    """

    named: dict[str, frozenset[str | None]]
    now_us: int
    since_us: int | None = None
    until_us: int | None = None
    among: frozenset[int] | None = None


def selection(filters: Filters, now_us: int, among: frozenset[int] | None) -> Selection:
    """Return what *filters* select; *among* are the rows that pass them, None where these need not be looked
    at.
    """
    named: dict[str, frozenset[str | None]] = {}
    for name in ("project", "entity_id", "session_id"):
        if (value := getattr(filters, name)) is not None:
            named[name] = frozenset([value])
    if filters.event_types:
        named["event_type"] = frozenset(filters.event_types)
    since_us = None if filters.since is None else parse_time(filters.since, "since")
    until_us = None if filters.until is None else parse_time(filters.until, "until")
    return Selection(named=named, now_us=now_us, since_us=since_us, until_us=until_us, among=among)


class Columns:
    """One row for each vector, growing: the memory that it is of, and what filters ask of it."""

    def __init__(self) -> None:
        self.count = 0
        self._memory = np.empty(0, np.int64)
        self._created = np.empty(0, np.int64)
        self._expires = np.empty(0, np.int64)
        self._active = np.empty(0, np.bool_)
        self._named = {name: np.empty(0, np.int32) for name in NAMED}
        self._codes: dict[str, dict[str | None, int]] = {name: {} for name in NAMED}
        self._ascending: tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]] | None = (
            None  # the indices in order of their memories, and these
        )

    @property
    def memory(self) -> npt.NDArray[np.int64]:
        """The memory row of each vector."""
        return self._memory[: self.count]

    @property
    def active(self) -> npt.NDArray[np.bool_]:
        """Whether each vector stands for what an active memory says now."""
        return self._active[: self.count]

    @property
    def size_bytes(self) -> int:
        """How much memory the arrays take."""
        own = (self._memory, self._created, self._expires, self._active, *self._named.values())
        return sum(array.nbytes for array in (*own, *(self._ascending or ())))

    def extend(self, rows: list[tuple[object, ...]]) -> None:
        """Add rows of the columns of `SOURCE`."""
        memory, created, expires, active, *named = zip(*rows, strict=True)
        self._memory = extended(self._memory, self.count, memory)
        self._created = extended(self._created, self.count, created)
        self._expires = extended(
            self._expires, self.count, [NEVER if one is None else one for one in expires]
        )
        self._active = extended(self._active, self.count, active)
        for name, values in zip(NAMED, named, strict=True):
            codes = self._codes[name]
            coded = [codes.setdefault(value, len(codes)) for value in values]
            self._named[name] = extended(self._named[name], self.count, coded)
        self.count, self._ascending = self.count + len(rows), None

    def change(
        self,
        row: int,
        current: npt.NDArray[np.bool_],
        *,
        is_active: bool,
        created_us: int,
        expires_us: int | None,
    ) -> None:
        """Note whether, and from and until when, a memory row is active; of its vectors only the *current*
        ones still stand for it.
        """
        of_row = self.memory == row
        self._created[: self.count][of_row] = created_us
        self.active[of_row] = current[of_row] if is_active else False
        self._expires[: self.count][of_row] = NEVER if expires_us is None else expires_us

    def of_rows(self, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the indices of the vectors of some memory rows, and where in *rows* each one's memory
        stands; in order of both.
        """
        order, memories = self._sorted()
        start = np.searchsorted(memories, rows, "left")
        counts = np.searchsorted(memories, rows, "right") - start
        which = np.repeat(np.arange(len(rows)), counts)
        return order[np.arange(len(which)) + np.repeat(start - counts.cumsum() + counts, counts)], which

    def memories(self, wanted: Selection) -> npt.NDArray[np.int64]:
        """Return the memory rows that are selected, active and not expired, in ascending order."""
        order, memories = self._sorted()
        found = memories[self._mask(wanted)[order]]
        return found[np.diff(found, prepend=-1) > 0]

    def chosen(self, wanted: Selection) -> npt.NDArray[np.intp]:
        """Return the indices of the vectors whose memories are selected, active and not expired."""
        return np.flatnonzero(self._mask(wanted))

    def _sorted(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
        if self._ascending is None:
            order = np.argsort(self.memory, kind="stable")
            self._ascending = order, self.memory[order]
        return self._ascending

    def _mask(self, wanted: Selection) -> npt.NDArray[np.bool_]:
        part = slice(0, self.count)
        mask = self.active & (self._expires[part] > wanted.now_us)
        for name, values in wanted.named.items():
            codes = [code for value in values if (code := self._codes[name].get(value)) is not None]
            array = self._named[name][part]
            mask &= (array == codes[0]) if len(codes) == 1 else np.isin(array, codes)
        if wanted.since_us is not None:
            mask &= self._created[part] >= wanted.since_us
        if wanted.until_us is not None:
            mask &= self._created[part] <= wanted.until_us
        if wanted.among is not None:
            mask &= np.isin(self.memory, list(wanted.among))
        return mask


def extended(
    array: npt.NDArray[ItemT], count: int, values: Sequence[Any] | npt.NDArray[ItemT]
) -> npt.NDArray[ItemT]:
    """Return *array* with *values* in its rows from *count* on; one that has no room for them grows by half
    as much again at a time.
    """
    end = count + len(values)
    if end > len(array):
        larger = np.empty((max(end, len(array) * 3 // 2, 1_024), *array.shape[1:]), array.dtype)
        larger[: len(array)] = array
        array = larger
    array[count:end] = values
    return array
