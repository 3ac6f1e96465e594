"""What tables say, as one hash: of the rows of some SELECTs, in their order."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol

import msgspec

from omegad.storage.driver import Connection

ROWS_AT_ONCE = 500
_encode = msgspec.msgpack.Encoder().encode


class Canonical(Protocol):
    """Names the SELECTs, each with its ORDER BY, whose rows are what its tables say."""

    @property
    def CANONICAL(self) -> Sequence[str]: ...  # noqa: N802, D102  a constant of a module


class Digest(msgspec.Struct, frozen=True):
    """How many canonical rows there are, and their hash (hex)."""

    rows: int
    digest: str


def digest(connection: Connection, tables: Canonical) -> Digest:
    """Hash the canonical rows of *tables*."""
    rows, running = 0, blake2b(digest_size=16)
    for select in tables.CANONICAL:
        running.update(b"select")
        found = connection.execute(select)
        while part := found.fetchmany(ROWS_AT_ONCE):
            running.update(b"".join(map(_encode, part)))
            rows += len(part)
    return Digest(rows, running.hexdigest())
