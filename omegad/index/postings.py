"""The words of memories as full text holds them, as arrays: which memories hold a phrase, how often, and what
BM25 makes of that.

A token is told by its hash. Where it stands is one number: the row of the memory, the column, and the place
in that, so that the tokens of a phrase stand at numbers that follow each other. What was read at once is a
segment, whose arrays never change; what a memory says otherwise later is in a segment after it.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ROW_SHIFT, COLUMN_SHIFT = 31, 29
WEIGHTS = (1.0, 0.5, 0.5, 0.5)
"""What a word counts in each column of full text."""
K1, B = 1.2, 0.75  # as FTS5 has them
IDF_LEAST = 1e-6

MERGED_MAX = 1 << 18
"""Places at most of a segment that another one is merged into, which takes some 30 ms."""
FEW_OF = 8  # times as many places, from which on memories are looked up in them one by one
NEARLY = 8  # times as many places, up to which a segment is merged with the one after it

_WEIGHTS = np.array(WEIGHTS)
_COLUMN = (1 << ROW_SHIFT - COLUMN_SHIFT) - 1
_NOWHERE = np.empty(0, np.int64)


class Segment(NamedTuple):
    """The words of some memories, each with all that full text has of it.

    Of each token, in ascending order of their hashes, the places stand in ascending order from `begins` to
    `ends`, and `holders` says how many memories have it. `rows` are the memories, in ascending order,
    `lengths` how many tokens each has, and `gone` those that are not of this segment any more.
    """

    tokens: Integers
    begins: Integers
    ends: Integers
    holders: Integers
    places: Integers
    rows: Integers
    lengths: Integers
    gone: Integers

    @property
    def size_bytes(self) -> int:
        """How much memory the arrays take."""
        return sum(array.nbytes for array in self)

    def standing(self, token: int) -> "Standing":
        """Return where a token stands, also in memories that are gone."""
        which = self.tokens.searchsorted(token)
        if which == len(self.tokens) or self.tokens[which] != token:
            return Standing(_NOWHERE, 0)
        return Standing(self.places[self.begins[which] : self.ends[which]], int(self.holders[which]))

    def without(self, rows: Integers) -> "Segment":
        """Return the segment without some memories."""
        gone = self.rows[are_among(self.rows, rows)]
        return self._replace(gone=distinct(np.append(self.gone, gone))) if len(gone) else self

    def left(self) -> npt.NDArray[np.bool_]:
        """Say of each of the rows whether it is of this segment still."""
        return ~are_among(self.rows, self.gone)


class Standing(NamedTuple):
    """Where something stands in a segment, in ascending order, and in how many memories that is."""

    places: Integers
    memories: int


class Holding:
    """The memories that hold a phrase, and what it counts in each by its columns.

    Only what is asked for is read of a common word, which a fourth of 100,000 memories may hold.
    """

    def __init__(self, found: Sequence[Standing]) -> None:
        """Take where it stands in each segment; no memory is in two."""
        self.parts = [places for places, _ in found]
        self.count = sum(memories for _, memories in found)
        """How many memories there are."""

    def latest(self, most: int) -> Integers:
        """Return the memories, the latest first and at most so many."""
        return _ordered([_last_rows(one, most) for one in self.parts])[::-1][:most]

    def within(self, rows: Integers) -> Integers:
        """Return where it stands, at least as far as that is in some rows, which are in ascending order."""
        parts = self.parts
        if len(parts) > 1 and len(rows):  # what is later than all of the rows, or before them, is left alone
            least, most = rows[0] << ROW_SHIFT, rows[-1] + 1 << ROW_SHIFT
            parts = [one for one in parts if one[0] < most and one[-1] >= least]
        found = [_places_in(places, rows) if len(rows) * FEW_OF < len(places) else places for places in parts]
        return found[0] if len(found) == 1 else np.concatenate([_NOWHERE, *found])


class Postings:
    """The words of one state of full text. It never changes, and is safe to use from several threads."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = tuple(segments)

    @cached_property
    def count(self) -> int:
        """How many memories there are."""
        return sum(len(one.rows) - len(one.gone) for one in self.segments)

    @cached_property
    def tokens(self) -> int:
        """How many tokens they have in all."""
        return sum(int(one.lengths[one.left()].sum()) for one in self.segments)

    def holding(self, phrase: Sequence[int]) -> Holding:
        """Return the memories with some tokens in a row, in one column."""
        found = [_standing(one, phrase) for one in self.segments if phrase]
        return Holding([one for one in found if len(one.places)])

    def scores(self, held: Sequence[Holding], rows: Integers) -> Floats:
        """Return the BM25 scores (greater is better) of some rows, in ascending order and all of which there
        are, for phrases together: what FTS5 computes.
        """
        spread = K1 * (1 - B + B * self._lengths_of(rows) / (self.tokens / (self.count or 1)))
        counts = counted(held, rows)
        rarity = np.array(
            [max(IDF_LEAST, math.log((self.count - one.count + 0.5) / (one.count + 0.5))) for one in held]
        )[:, None]
        found: Floats = (rarity * ((counts * (K1 + 1.0)) / (counts + spread))).sum(axis=0)
        return found

    def changed(self, rows: Integers, new: Segment) -> "Postings":
        """Return the words after some rows changed to what a segment says of them."""
        segments = [one.without(rows) for one in self.segments]
        while segments and len(segments[-1].places) <= MERGED_MAX and _are_near(segments[-1], new):
            new = _merged(segments.pop(), new)
        return Postings([*segments, new])

    def _lengths_of(self, rows: Integers) -> Integers:
        found = np.zeros(len(rows), np.int64)
        for one in self.segments:
            if len(one.rows):
                which = np.minimum(one.rows.searchsorted(rows), len(one.rows) - 1)
                is_there = one.rows[which] == rows
                if len(one.gone):
                    is_there &= ~are_among(rows, one.gone)
                found[is_there] = one.lengths[which[is_there]]
        return found


def counted(held: Sequence[Holding], rows: Integers) -> Floats:
    """Return what each phrase counts in each of some rows, which are in ascending order: shape (phrases,
    rows), 0 where it is not.
    """
    if not len(rows) or not held:
        return np.zeros((len(held), len(rows)))
    standing = [one.within(rows) for one in held]
    places, starts = np.concatenate(standing), np.arange(len(held)) * len(rows)
    there = places >> ROW_SHIFT
    at = np.minimum(rows.searchsorted(there), len(rows) - 1)
    weights = _weights(places) * (rows[at] == there)
    at += starts.repeat([len(one) for one in standing])
    found: Floats = np.bincount(at, weights, len(held) * len(rows)).astype(np.float64, copy=False)
    return found.reshape(len(held), len(rows))


def segment(tokens: Integers, begins: Integers, ends: Integers, places: Integers) -> Segment:
    """Return a segment of tokens in any order."""
    order, rows = tokens.argsort(), places >> ROW_SHIFT
    is_first = np.ones(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=is_first[1:])
    is_first[begins] = True
    holders = np.add.reduceat(is_first, begins, dtype=np.int64) if len(begins) else _NOWHERE
    rows.sort()
    first = _firsts(rows)
    lengths = np.diff(first, append=len(rows))
    tokens, begins, ends, holders = (each[order] for each in (tokens, begins, ends, holders))
    return Segment(tokens, begins, ends, holders, places, rows[first], lengths, _NOWHERE)


def sorted_segment(tokens: Integers, places: Integers) -> Segment:
    """Return a segment of tokens, in any order and each as often as it stands somewhere, and where each
    stands.
    """
    order = np.lexsort((places, tokens))
    tokens, places = tokens[order], places[order]
    begins = _firsts(tokens)
    return segment(tokens[begins], begins, np.append(begins[1:], len(tokens))[: len(begins)], places)


def distinct(values: Integers) -> Integers:
    """Return what of some values is distinct, in ascending order; `np.unique` loads more than that."""
    ordered = np.sort(values)
    return ordered[_firsts(ordered)]


def _firsts(ordered: Integers) -> npt.NDArray[np.intp]:
    """Return where in ordered values each stands first."""
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first.nonzero()[0]


def _standing(one: Segment, phrase: Sequence[int]) -> Standing:
    """Return where in a segment the first of a phrase's tokens stands with the others in a row."""
    found = [one.standing(token) for token in phrase]
    rarest = min(range(len(found)), key=lambda place: len(found[place].places))
    (places, memories), is_part = found[rarest], len(found) > 1
    if rarest:
        places = places - rarest
    for place, others in enumerate(found):
        if place != rarest and len(places):
            places = places[are_among(places + place, others.places)]
    if len(one.gone):
        begins, ends = (places.searchsorted(rows << ROW_SHIFT) for rows in (one.gone, one.gone + 1))
        if (begins < ends).any():
            places, is_part = places[~are_among(places >> ROW_SHIFT, one.gone)], True
    return Standing(places, len(_firsts(places >> ROW_SHIFT)) if is_part else memories)


def _places_in(places: Integers, rows: Integers) -> Integers:
    """Return those of some places that are in some rows."""
    begins = places.searchsorted(rows << ROW_SHIFT)
    counts = places.searchsorted(rows + 1 << ROW_SHIFT) - begins
    found: Integers = places[np.arange(counts.sum()) + (begins - counts.cumsum() + counts).repeat(counts)]
    return found


def _weights(places: Integers) -> Floats:
    """Return what a word counts at each of some places."""
    found: Floats = _WEIGHTS[places >> COLUMN_SHIFT & _COLUMN]
    return found


def _last_rows(places: Integers, most: int) -> Integers:
    """Return the last memories of ascending places, in ascending order and at most so many."""
    count = most
    while True:
        count *= 2
        rows = places[-count:] >> ROW_SHIFT
        rows = rows[_firsts(rows)]
        if len(rows) >= most or count >= len(places):
            return rows[-most:]


def _ordered(parts: Sequence[Integers]) -> Integers:
    """Return what is in some parts, each in ascending order, as one in ascending order."""
    return parts[0] if len(parts) == 1 else np.sort(np.concatenate([_NOWHERE, *parts]))


def are_among(values: Integers, ordered: Integers) -> npt.NDArray[np.bool_]:
    """Say of each value whether it is among others, which are in ascending order."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    are_among: npt.NDArray[np.bool_] = (
        ordered[np.minimum(ordered.searchsorted(values), len(ordered) - 1)] == values
    )
    return are_among


def _are_near(one: Segment, other: Segment) -> bool:
    return len(one.places) <= NEARLY * len(other.places)


def _merged(*segments: Segment) -> Segment:
    """Return what is left of some segments as one."""
    tokens, places = list[Integers](), list[Integers]()
    for one in segments:
        order = one.begins.argsort()
        each = np.repeat(one.tokens[order], (one.ends - one.begins)[order])
        is_left = ~are_among(one.places >> ROW_SHIFT, one.gone)
        tokens.append(each[is_left])
        places.append(one.places[is_left])
    return sorted_segment(np.concatenate(tokens), np.concatenate(places))
