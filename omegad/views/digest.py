"""What a view says, as one hash: of its canonical rows, in their order."""

from hashlib import blake2b

import msgspec

from omegad.storage.driver import Connection
from omegad.views.contract import Projection

ROWS_AT_ONCE = 500
_encode = msgspec.msgpack.Encoder().encode


class Digest(msgspec.Struct, frozen=True):
    """How many canonical rows a view has, and their hash (hex)."""

    rows: int
    digest: str


def digest(connection: Connection, projection: Projection) -> Digest:
    """Hash the canonical rows of *projection*."""
    rows, running = 0, blake2b(digest_size=16)
    for select in projection.CANONICAL:
        running.update(b"select")
        found = connection.execute(select)
        while part := found.fetchmany(ROWS_AT_ONCE):
            running.update(b"".join(map(_encode, part)))
            rows += len(part)
    return Digest(rows, running.hexdigest())
