"""How much of a database's file each of its tables and indexes takes, told from the inner pages of trees
alone: one page in a hundred is read.

It is the file that is read, beside whoever writes it, as the last checkpoint left it. Closing it lets go of
all locks that this process has on it, so that a process that writes it does not read it so.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from omegad.storage import sealing
from omegad.storage.driver import Connection
from omegad.storage.sealed_pages import Pages

INNER = frozenset({2, 5})
HEADER_BYTES = 100
INNER_MAX = 1_000_000
"""So many inner pages are read at most: more has no database that is whole."""

_PARTS = (
    "SELECT type, name, rootpage FROM sqlite_schema WHERE rootpage > 0"
    " UNION ALL SELECT 'table', 'sqlite_schema', 1"
)


class Part(NamedTuple):
    """A table, or an index of one, and how many bytes its pages are. What does not fit into a page of its
    row's own is among the rest.
    """

    kind: str
    name: str
    bytes: int


class FileParts(NamedTuple):
    """The parts of a file; what the ends of long rows take, which belong to none here; and what is free."""

    parts: tuple[Part, ...]
    overflow_bytes: int
    free_bytes: int


def parts(connection: Connection, path: Path) -> FileParts:
    """Measure the file at *path*, of which *connection* tells what is in it."""
    size = int(connection.execute("PRAGMA page_size").fetchone()[0])
    found = connection.execute(_PARTS).fetchall()
    with path.open("rb") as file:
        there = Pages(file, size, sealing.held())
        header = there.read(1)
        pages, free = (int.from_bytes(header[at : at + 4], "big") for at in (28, 36))
        measured = tuple(
            Part(kind, name, size * _pages(there, size, pages, root)) for kind, name, root in found
        )
    taken = sum(one.bytes for one in measured)
    return FileParts(measured, max(0, size * (pages - free) - taken), size * free)


def _pages(file: Pages, size: int, pages: int, root: int) -> int:
    """Return how many pages a tree has, from its root on; as many as are known of one that is changed
    meanwhile.
    """
    count, level, read = 1, [root], 0
    while level:
        below = list[int]()
        for page in level:
            read += 1
            kind, children = _children(file, size, page)
            if kind not in INNER or read > INNER_MAX:
                return count
            below += [child for child in children if 0 < child <= pages]
        count += len(below)
        level = below if below and _children(file, size, below[0])[0] in INNER else []
    return count


def _children(file: Pages, size: int, page: int) -> tuple[int, list[int]]:
    """Return the kind of a page, and the pages right below it."""
    data = file.read(page)
    start = HEADER_BYTES if page == 1 else 0
    if len(data) < size or data[start] not in INNER:
        return (data[start] if len(data) == size else 0), []
    return data[start], [*_below(data, start)]


def _below(data: bytes, start: int) -> Iterator[int]:
    cells = int.from_bytes(data[start + 3 : start + 5], "big")
    for place in range(cells):
        at = int.from_bytes(data[start + 12 + 2 * place : start + 14 + 2 * place], "big")
        yield int.from_bytes(data[at : at + 4], "big")
    yield int.from_bytes(data[start + 8 : start + 12], "big")
