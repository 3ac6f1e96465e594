"""What a filter, and the ranking of all candidates, asks of a memory, as arrays beside the index's bits: a
condition on 100,000 memories is one pass over integers, and nothing is read for 200 candidates.
"""

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.index.filters import Filters
from omegad.index.postings import distinct
from omegad.runtime.times import parse_time

ItemT = TypeVar("ItemT", bound=np.generic)

NEVER = int(np.iinfo(np.int64).max)
NAMED = ("project", "event_type", "entity_id", "session_id")

# Who speaks is told of the turns of a conversation alone: a note that begins "ARM: …" has no author.
AUTHOR = "CASE WHEN m.session_id IS NOT NULL THEN m.author END"
TRAITS = f"m.characters, m.is_question, {AUTHOR}"
"""The columns of `memories AS m` that change with a memory's text, as `Columns.change` takes them."""

# The columns that `Columns.extend` takes, of `memories AS m`.
SOURCE = (
    "m.id, m.created_us, m.expires_us, m.status = 'active', m.project, m.event_type, m.entity_id,"
    f" m.session_id, {TRAITS}"
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
    if filters.project is not None and filters.or_none:
        named["project"] = frozenset([filters.project, None])
    if filters.event_types:
        named["event_type"] = frozenset(filters.event_types)
    since_us = None if filters.since is None else parse_time(filters.since, "since")
    until_us = None if filters.until is None else parse_time(filters.until, "until")
    return Selection(named=named, now_us=now_us, since_us=since_us, until_us=until_us, among=among)


class TextTraits(NamedTuple):
    """Traits of the texts of some memories, one entry for each memory in every array: whether its traits are
    known here, how many characters it has, whether it is a turn of a conversation, ends in a question, and is
    by one of the authors that were named. Where they are not known, the rest is zero.
    """

    is_known: npt.NDArray[np.bool_]
    characters: npt.NDArray[np.int32]
    is_turn: npt.NDArray[np.bool_]
    is_question: npt.NDArray[np.bool_]
    is_by_them: npt.NDArray[np.bool_]

    @classmethod
    def nothing(cls, count: int) -> "TextTraits":
        """Return the traits of so many memories of which none are known."""
        return cls(np.zeros(count, np.bool_), np.zeros(count, np.int32), *np.zeros((3, count), np.bool_))


class Ascending(NamedTuple):
    """The indices of vectors in order of their memories; the memories, each once, and where in that order
    the vectors of each begin.
    """

    order: npt.NDArray[np.intp]
    memories: npt.NDArray[np.int64]
    begins: npt.NDArray[np.intp]

    @classmethod
    def of(cls, memory: npt.NDArray[np.int64]) -> "Ascending":
        """Bring the vectors of some memories into order."""
        order = np.argsort(memory, kind="stable")
        ordered = memory[order]
        begins = np.flatnonzero(np.diff(ordered, prepend=-1))
        return cls(order, ordered[begins], begins)

    @property
    def has_one_each(self) -> bool:
        """Whether no memory has several vectors."""
        return len(self.order) == len(self.memories)

    def are_selected(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Say of each of the memories whether any of its vectors is among those of a mask."""
        if not len(mask):
            return mask
        found: npt.NDArray[np.bool_] = np.logical_or.reduceat(mask[self.order], self.begins)
        return found

    def of_rows(self, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the indices of the vectors of some memory rows, and where in *rows* each one's memory
        stands; in order of both.
        """
        if not len(self.memories):
            return np.empty(0, np.intp), np.empty(0, np.intp)
        at = np.minimum(self.memories.searchsorted(rows), len(self.memories) - 1)
        which = np.flatnonzero(self.memories[at] == rows)
        begins = self.begins[at[which]]
        if self.has_one_each:
            return self.order[begins], which
        ends = np.append(self.begins, len(self.order))[at[which] + 1]
        counts = ends - begins
        which = which.repeat(counts)
        return self.order[np.arange(len(which)) + (begins - counts.cumsum() + counts).repeat(counts)], which


class Selected:
    """Which memories are selected, at the moment at which they were. It never changes."""

    def __init__(self, *parts: tuple[Ascending, npt.NDArray[np.bool_]]) -> None:
        """Take vectors in order of their memories, and which of them are of memories that are selected."""
        self.parts = parts

    def beside(self, other: "Selected") -> "Selected":
        """Return what is selected by either."""
        return Selected(*self.parts, *other.parts)

    def holds(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Say of each of some memory rows whether it is selected."""
        found = np.zeros(len(rows), np.bool_)
        for ascending, mask in self.parts:
            indices, which = ascending.of_rows(rows)
            found[which[mask[indices]]] = True
        return found

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """The memory rows, in ascending order."""
        found = [one.memories[one.are_selected(mask)] for one, mask in self.parts]
        return found[0] if len(found) == 1 else distinct(np.concatenate([np.empty(0, np.int64), *found]))

    @cached_property
    def count(self) -> int:
        """How many memories there are."""
        if len(self.parts) != 1:
            return len(self.rows)
        ((ascending, mask),) = self.parts
        return int(np.count_nonzero(mask if ascending.has_one_each else ascending.are_selected(mask)))


class Columns:
    """One row for each vector, growing: the memory that it is of, and what filters ask of it."""

    def __init__(self) -> None:
        self.count = 0
        self._memory = np.empty(0, np.int64)
        self._created = np.empty(0, np.int64)
        self._expires = np.empty(0, np.int64)
        self._active = np.empty(0, np.bool_)
        self._named = {name: np.empty(0, np.int32) for name in NAMED}
        self._characters = np.empty(0, np.int32)
        self._is_question = np.empty(0, np.bool_)
        self._author = np.empty(0, np.int32)
        self._codes: dict[str, dict[str | None, int]] = {name: {} for name in NAMED}
        self._authors: dict[str | None, int] = {None: 0}
        self._ascending: Ascending | None = None

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
        times = (self._created, self._expires)
        traits = (self._characters, self._is_question, self._author)
        own = (self._memory, *times, self._active, *self._named.values(), *traits)
        return sum(array.nbytes for array in (*own, *(self._ascending or ())))

    def extend(self, rows: Sequence[Sequence[object]]) -> None:
        """Add rows of the columns of `SOURCE`."""
        memory, created, expires, active, *named, characters, is_question, author = zip(*rows, strict=True)
        self._memory = extended(self._memory, self.count, memory)
        self._created = extended(self._created, self.count, created)
        self._expires = extended(
            self._expires, self.count, [NEVER if one is None else one for one in expires]
        )
        self._active = extended(self._active, self.count, active)
        for name, values in zip(NAMED, named, strict=True):
            self._named[name] = extended(self._named[name], self.count, _coded(self._codes[name], values))
        self._characters = extended(self._characters, self.count, characters)
        self._is_question = extended(self._is_question, self.count, is_question)
        self._author = extended(self._author, self.count, _coded(self._authors, author))
        self.count, self._ascending = self.count + len(rows), None

    def change(
        self,
        row: int,
        current: npt.NDArray[np.bool_],
        *,
        is_active: bool,
        created_us: int,
        expires_us: int | None,
        traits: tuple[int, int, str | None],
    ) -> None:
        """Note whether, and from and until when, a memory row is active, and the traits of its text; of its
        vectors only the *current* ones still stand for it.
        """
        of_row = self.memory == row
        characters, is_question, author = traits
        self._characters[: self.count][of_row] = characters
        self._is_question[: self.count][of_row] = is_question
        self._author[: self.count][of_row] = _coded(self._authors, [author])
        self._created[: self.count][of_row] = created_us
        self.active[of_row] = current[of_row] if is_active else False
        self._expires[: self.count][of_row] = NEVER if expires_us is None else expires_us

    def of_rows(self, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the indices of the vectors of some memory rows, and where in *rows* each one's memory
        stands; in order of both.
        """
        return self._sorted().of_rows(rows)

    def text_traits(self, rows: npt.NDArray[np.int64], names: Collection[str]) -> TextTraits:
        """Return the traits of the texts of some memory rows; `is_by_them` is of the authors that have one of
        the *names*.
        """
        found = TextTraits.nothing(len(rows))
        indices, which = self.of_rows(rows)
        author = self._author[indices]
        found.is_known[which] = True
        found.characters[which] = self._characters[indices]
        found.is_turn[which] = author != self._authors[None]
        found.is_question[which] = self._is_question[indices]
        if named := [self._authors[name] for name in names if name in self._authors]:
            found.is_by_them[which] = np.isin(author, named)
        return found

    def selected(self, wanted: Selection) -> "Selected":
        """Return which memories are selected, active and not expired."""
        return Selected((self._sorted(), self._mask(wanted)))

    def chosen(self, wanted: Selection) -> npt.NDArray[np.intp]:
        """Return the indices of the vectors whose memories are selected, active and not expired."""
        return np.flatnonzero(self._mask(wanted))

    def _sorted(self) -> "Ascending":
        if self._ascending is None:
            self._ascending = Ascending.of(self.memory)
        return self._ascending

    def _mask(self, wanted: Selection) -> npt.NDArray[np.bool_]:
        part = slice(0, self.count)
        mask = self.active & (self._expires[part] > wanted.now_us)
        for name, values in wanted.named.items():
            codes = [code for value in values if (code := self._codes[name].get(value)) is not None]
            array = self._named[name][part]
            mask &= np.logical_or.reduce([array == code for code in codes]) if codes else False
        if wanted.since_us is not None:
            mask &= self._created[part] >= wanted.since_us
        if wanted.until_us is not None:
            mask &= self._created[part] <= wanted.until_us
        if wanted.among is not None:
            mask &= np.isin(self.memory, list(wanted.among))
        return mask


def _coded(codes: dict[str | None, int], values: Sequence[str | None]) -> list[int]:
    """Return the numbers that stand for some values; new ones get the next."""
    for value in dict.fromkeys(values):
        codes.setdefault(value, len(codes))
    return [codes[value] for value in values]


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
