"""Bytes that were deleted, taken out of the files that held them: pages, what is free in them, and the
write-ahead log.
"""

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from omegad.runtime.errors import StorageBusy
from omegad.storage.checkpointer import truncate
from omegad.storage.database import open_reader
from omegad.storage.driver import Connection
from omegad.storage.searching import holding

ALWAYS_BYTES = 256 * 1024 * 1024
"""Files up to this size are written anew in any case, larger ones where something is left."""

UNFINISHED = ".unfinished"
"""What a file's name ends with beside it while it is being written anew."""

OVERWRITTEN_AT_ONCE = 1 << 20

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
        _write_anew(connection, path)
        is_cut = truncate(connection, BUSY_MS)
    if not is_cut:
        raise StorageBusy(
            "somebody reads what was there before the erasure",
            hint="a backup or check that is under way: erase again when it is over",
        )


def _write_anew(connection: Connection, path: Path) -> None:
    """Leave in the database what it says, and no page that is free.

    `VACUUM` keeps all of it in memory where SQLite is built with TEMP_STORE=3; by way of a file it takes no
    more than a cache of pages. Where it is killed, the next one removes the file.
    """
    anew = path.with_name(path.name + UNFINISHED)
    anew.unlink(missing_ok=True)
    try:
        connection.execute("VACUUM INTO ?", (os.fspath(anew),))
        with closing(open_reader(anew)) as source:
            source.backup(connection, progress=_wait_for_no_writer)
    finally:
        anew.unlink(missing_ok=True)


def _wait_for_no_writer(_status: int, _left: int, pages: int) -> None:
    """Raise `StorageBusy` where not even a page was written: the driver would try again without end."""
    if not pages:
        raise StorageBusy("somebody else is writing to the file", hint="erase again when that is over")


def overwrite(path: Path) -> None:
    """Remove a file that nobody has open, its bytes overwritten before; nothing where there is none.

    Where the file system, or the disk itself, writes elsewhere than over what was there, the old bytes stay
    until they are used for something else.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        left = os.fstat(descriptor).st_size
        while left > 0:
            left -= os.write(descriptor, bytes(min(left, OVERWRITTEN_AT_ONCE)))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    path.unlink()
