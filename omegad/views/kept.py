"""What is computed of the views and kept in their file, so that the next start need not compute it again.

It says nothing that the views do not say: no digest counts it, no rebuild takes it along, and an erasure
deletes it with the rest. Its parts are written one by one, so that no other write waits long; the first,
which is written last, tells that all are there.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import structlog

from omegad.storage.driver import Connection
from omegad.storage.readers import check
from omegad.storage.transaction import writing

PART_BYTES = 1 << 20
DIGEST_BYTES = 16

_log = structlog.get_logger(__name__)

_BEGUN = b""
_IS_THERE = "SELECT 1 FROM sqlite_master WHERE name = 'kept'"
_HEAD = "SELECT bytes FROM kept WHERE name = ? AND part = 0"
_BYTES = "SELECT coalesce(sum(length(bytes)), 0) FROM kept WHERE name = ? AND part > 0"
_PARTS = "SELECT bytes FROM kept WHERE name = ? AND part > 0 ORDER BY part"


def begin(connection: Connection, name: str) -> None:
    """Let go of what is kept under a name, and say that something is to take its place."""
    with writing(connection):
        connection.execute("DELETE FROM kept WHERE name = ?", (name,))
        connection.execute("INSERT INTO kept VALUES (?, 0, ?)", (name, _BEGUN))


def add(connection: Connection, name: str, part: int, value: bytes | memoryview) -> None:
    """Write one part, from 1 on."""
    with writing(connection):
        connection.execute("INSERT INTO kept VALUES (?, ?, ?)", (name, part, value))


def finish(connection: Connection, name: str, head: bytes, digest: bytes) -> None:
    """Say that all parts are there, what they are, and their digest."""
    with writing(connection):
        connection.execute("UPDATE kept SET bytes = ? WHERE name = ? AND part = 0", (digest + head, name))


def forget(connection: Connection) -> None:
    """Let go of all that is kept, in the transaction that is open."""
    connection.execute("DELETE FROM kept")


def read(connection: Connection, name: str) -> tuple[bytes, bytearray] | None:
    """Return the head of what is kept under a name, and all of its bytes; None where they are not all there,
    or not as they were written.
    """
    if not connection.execute(_IS_THERE).fetchone():
        return None
    told = connection.execute(_HEAD, (name,)).fetchone()
    if told is None or told[0] == _BEGUN:
        return None
    digest, head = told[0][:DIGEST_BYTES], told[0][DIGEST_BYTES:]
    found, filled = bytearray(connection.execute(_BYTES, (name,)).fetchone()[0]), 0
    for (value,) in connection.execute(_PARTS, (name,)):
        check()
        found[filled : filled + len(value)] = value
        filled += len(value)
    if digest != digest_of(head, [found]):
        _log.warning("views.kept_damaged", kept=name, remedy="it is computed anew")
        return None
    return head, found


def digest_of(head: bytes, arrays: Sequence[bytearray | memoryview]) -> bytes:
    """Return the digest of a head and of the bytes of some arrays."""
    digest = blake2b(head, digest_size=DIGEST_BYTES)
    for array in arrays:
        digest.update(array)
    return digest.digest()


def cut(arrays: Sequence[memoryview]) -> Iterator[memoryview]:
    """Yield the bytes of some arrays in parts."""
    for array in arrays:
        for start in range(0, len(array), PART_BYTES):
            yield array[start : start + PART_BYTES]
