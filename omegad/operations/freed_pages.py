"""How much of the log's file is free once payloads in it shrink. That is more than the bytes that go where
long rows left pages half empty, and less where rows that stay keep their pages: it is measured on rows of the
same lengths, in memory.
"""

from array import array
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import closing
from itertools import chain

from anyio import to_thread

from omegad.log import aging
from omegad.log.event import Position
from omegad.log.reading import LogReader
from omegad.operations.aged_batches import Batch
from omegad.storage.database import open_in_memory
from omegad.storage.transaction import writing

POSITIONS_AT_ONCE = 5_000
PAGE_BYTES = 4_096
LONG_BYTES, FOLLOWING_BYTES = 2 * PAGE_BYTES, PAGE_BYTES - 4
"""Rows that are longer fill whole pages that follow, each with so much (sqlite.org/fileformat2.html)."""
GONE = -1
"""Stands for the length of a row that is not there."""

INSERT = "INSERT INTO rows VALUES (?, zeroblob(?))"

Row = tuple[Position, int]
"""A row, and how long it is."""


class _Changes:
    """Rows of a part of the log, by their places in it, and how long each will be."""

    def __init__(self) -> None:
        self.places, self.lengths = array("H"), array("i")


class FreedPages:
    """Sums up what goes of which kind. Of millions of rows each takes 6 bytes."""

    def __init__(self) -> None:
        self._parts: dict[int, dict[str, _Changes]] = defaultdict(lambda: defaultdict(_Changes))
        self._said_bytes = 0

    async def noted(self, kind: str, batches: AsyncIterator[Batch]) -> AsyncIterator[Batch]:
        """Yield the batches of a kind, in the order in which they would go."""
        async for batch in batches:
            for one in batch.left:
                part, place = divmod(one.position, POSITIONS_AT_ONCE)
                changes = self._parts[part][kind]
                changes.places.append(place)
                changes.lengths.append(GONE if one.body is None else len(one.salt) + len(one.body))
            if batch.left:
                steps, hashes = aging.written(batch.after, batch.left)
                self._said_bytes += len(hashes) + sum(len(f"{step},") for step in steps)
            yield batch

    async def bytes(self, log: LogReader) -> int:
        """Return how much would be free, about, less what the events take that say so."""
        pages = 0
        for part in sorted(self._parts):
            first = part * POSITIONS_AT_ONCE
            rows = await log.lengths(first - 1, first + POSITIONS_AT_ONCE - 1)
            changes = [
                [(first + place, length) for place, length in zip(one.places, one.lengths, strict=True)]
                for one in self._parts[part].values()
            ]
            pages += await to_thread.run_sync(freed, rows, changes)
        return max(0, pages * PAGE_BYTES - self._said_bytes)


def freed(rows: Sequence[Row], changes: Iterable[Sequence[Row]]) -> int:
    """Return how many pages are free once rows have other lengths, or are `GONE`, one change after the
    other; nothing changes a row that is not there.
    """
    before = dict(rows)
    with closing(open_in_memory()) as connection, writing(connection):
        connection.execute("CREATE TABLE rows (position INTEGER PRIMARY KEY, row BLOB NOT NULL)")
        connection.executemany(INSERT, ((position, _in_memory(length)) for position, length in rows))
        following = 0
        for position, length in chain.from_iterable(changes):
            if (was := before.get(position)) is None:  # it was erased meanwhile
                continue
            following += _following(was) - _following(length)
            connection.execute("DELETE FROM rows WHERE position = ?", (position,))
            if length != GONE:
                connection.execute(INSERT, (position, _in_memory(length)))
        return int(connection.execute("PRAGMA freelist_count").fetchone()[0]) + following


def _following(length: int) -> int:
    return max(0, length - LONG_BYTES) // FOLLOWING_BYTES


def _in_memory(length: int) -> int:
    return length - _following(length) * FOLLOWING_BYTES
