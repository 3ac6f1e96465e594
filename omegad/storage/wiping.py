"""Bytes that were deleted, taken out of the files that held them: pages, what is free in them, and the
write-ahead log.
"""

from collections.abc import Sequence
from pathlib import Path

from omegad.runtime.errors import StorageBusy
from omegad.storage.checkpointer import truncate
from omegad.storage.driver import Connection
from omegad.storage.searching import holding

ALWAYS_BYTES = 256 * 1024 * 1024
"""Files up to this size are written anew in any case, larger ones where something is left."""

BUSY_MS = 200
"""How long to wait for readers: whoever commits waits as well."""


def wipe(connection: Connection, path: Path, pieces: Sequence[bytes]) -> None:
    """Leave no bytes of what was deleted in the database at *path*, of which *connection* is the writer, nor
    in its write-ahead log.

    *pieces* are looked for in a large file to see whether it has to be written anew; without any it has.
    Raises `StorageBusy` where somebody goes on reading what was there before, and storage errors.
    """
    is_cut = truncate(connection, BUSY_MS)
    if is_cut and (not pieces or path.stat().st_size <= ALWAYS_BYTES or holding([path], pieces)):
        connection.execute("VACUUM")
        is_cut = truncate(connection, BUSY_MS)
    if not is_cut:
        raise StorageBusy(
            "somebody reads what was there before the erasure",
            hint="a backup or check that is under way: erase again when it is over",
        )
