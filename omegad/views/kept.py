"""What is computed of the views and kept in their file, so that the next start need not compute it again.

It says nothing that the views do not say: no digest counts it, no rebuild takes it along, and an erasure
deletes it with the rest. Its parts are written one by one, so that no other write waits long; the first,
which is written last, tells that all are there.
"""

from collections.abc import Iterable, Iterator, Sequence

from omegad.runtime.errors import StorageCorrupt
from omegad.storage.driver import Connection
from omegad.storage.readers import check
from omegad.storage.transaction import writing

PART_BYTES = 1 << 20

_BEGUN = b""
_IS_THERE = "SELECT 1 FROM sqlite_master WHERE name = 'kept'"
_HEAD = "SELECT bytes FROM kept WHERE name = ? AND part = 0"


def begin(connection: Connection, name: str) -> None:
    """Let go of what is kept under a name, and say that something is to take its place."""
    with writing(connection):
        connection.execute("DELETE FROM kept WHERE name = ?", (name,))
        connection.execute("INSERT INTO kept VALUES (?, 0, ?)", (name, _BEGUN))


def add(connection: Connection, name: str, part: int, value: bytes | memoryview) -> None:
    """Write one part, from 1 on."""
    with writing(connection):
        connection.execute("INSERT INTO kept VALUES (?, ?, ?)", (name, part, value))


def finish(connection: Connection, name: str, head: bytes) -> None:
    """Say that all parts are there, and what they are."""
    with writing(connection):
        connection.execute("UPDATE kept SET bytes = ? WHERE name = ? AND part = 0", (head, name))


def forget(connection: Connection) -> None:
    """Let go of all that is kept, in the transaction that is open."""
    connection.execute("DELETE FROM kept")


def head(connection: Connection, name: str) -> bytes | None:
    """Return what the parts under a name are; None where they are not all there."""
    if not connection.execute(_IS_THERE).fetchone():
        return None
    found = connection.execute(_HEAD, (name,)).fetchone()
    return found[0] if found and found[0] != _BEGUN else None


def read_into(connection: Connection, name: str, arrays: Iterable[memoryview]) -> None:
    """Fill the bytes of some arrays, one after the other, with the parts under a name. Raises
    `StorageCorrupt` where these are too few.
    """
    sql = "SELECT bytes FROM kept WHERE name = ? AND part > 0 ORDER BY part"
    parts, part = connection.execute(sql, (name,)), memoryview(b"")
    for left in arrays:
        while len(left):
            check()
            if not part:
                (value,) = next(parts, (b"",))
                part = memoryview(value)
            if not part:
                raise StorageCorrupt(f"of {name!r}, which is kept beside the views, a part is missing")
            count = min(len(part), len(left))
            left[:count] = part[:count]
            left, part = left[count:], part[count:]  # noqa: PLW2901  what is left of it


def cut(arrays: Sequence[memoryview]) -> Iterator[memoryview]:
    """Yield the bytes of some arrays in parts."""
    for array in arrays:
        for start in range(0, len(array), PART_BYTES):
            yield array[start : start + PART_BYTES]
