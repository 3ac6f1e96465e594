"""Open one SQLite file: its pragmas, its extension, its errors, and a thread to use it on.

A `Database` runs whole pieces of work on its own thread, one hop each, because awaiting every statement costs
a hop per statement.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

import aiosqlite
import anyio
import sqlite_vec
from anyio import to_thread

from omegad.runtime import errors
from omegad.storage import sealing
from omegad.storage.driver import Connection, sqlite

T = TypeVar("T")
Work = Callable[[Connection], T]

BUSY_TIMEOUT_MS = 5_000
STATEMENTS_CACHED = 128  # of each connection, 10 kB each
READER_CACHE_KIB = 2_048  # of pages: the inner ones of 100,000 vectors are 500 kB, and are looked at for each

_RESULT_CODES: dict[int, type[errors.OmegadError]] = {
    5: errors.StorageBusy,  # SQLITE_BUSY
    6: errors.StorageBusy,  # SQLITE_LOCKED
    8: errors.StorageFailed,  # SQLITE_READONLY
    10: errors.StorageFailed,  # SQLITE_IOERR
    11: errors.StorageCorrupt,  # SQLITE_CORRUPT
    13: errors.StorageFull,  # SQLITE_FULL
    14: errors.StorageFailed,  # SQLITE_CANTOPEN
    26: errors.StorageCorrupt,  # SQLITE_NOTADB
}

_UNCODED = {"disk I/O error": 10, "database or disk is full": 13}
"""What the driver says without a code where a copy fails, and with that of any error where sealing does."""


@contextmanager
def translated(file: str = "") -> Iterator[None]:
    """Turn SQLite's environmental failures into errors of the catalogue, which name the *file*; a mistake
    in our SQL stays what it is.
    """
    try:
        yield
    except sqlite.Error as error:
        code = getattr(error, "sqlite_errorcode", None) or 0
        if (failure := storage_failure(code, str(error), file)) is None:
            raise
        raise failure from error


def storage_failure(code: int, message: str, file: str = "") -> errors.OmegadError | None:
    """Return the error of the catalogue that SQLite's *code* and *message* stand for, None where the
    storage is not at fault.
    """
    kind = _RESULT_CODES.get(_UNCODED.get(message, code) & 0xFF)
    return (
        None
        if kind is None
        else kind(f"{(kind.__doc__ or '').strip()} ({f'{file}: ' if file else ''}{message})")
    )


def open_writer(path: Path, *, durable: bool) -> Connection:
    """Open *path* for its one writer; *durable* waits for the disk at every commit.

    Checkpoints are left to the writer (`wal_autocheckpoint=0`), since one that races a commit is where SQLite
    has lost data.
    """
    pragmas = [
        "journal_mode=WAL",
        "synchronous=FULL" if durable else "synchronous=NORMAL",
        "journal_size_limit=67108864",
        "secure_delete=ON",
        "foreign_keys=ON",
    ]
    if sys.platform == "darwin" and durable:
        pragmas += ["fullfsync=ON", "checkpoint_fullfsync=ON"]
    return _open(path, *pragmas)


def open_reader(path: Path) -> Connection:
    """Open *path* for reading alone."""
    connection = _open(path, "query_only=ON")
    with suppress(sqlite.DatabaseError):  # what is no database is told where it is read
        connection.execute(f"PRAGMA {_reader_cache()}")
    return connection


def open_untouched(path: Path) -> Connection:
    """Open *path* to read what others write, and leave its files as they are, also where nobody else has it
    open: the last to close a file folds a write-ahead log that it may write.
    """
    log = path.with_name(f"{path.name}-wal")
    if not (log.exists() and log.stat().st_size):
        return open_reader(path)
    return _open(f"{path.absolute().as_uri()}?mode=ro", _reader_cache())


def open_unfinished(path: Path) -> Connection:
    """Open *path* alone, to fill it: it has no files beside it, and is of no use where that is broken off."""
    return _open(path, "locking_mode=EXCLUSIVE", "journal_mode=MEMORY", "secure_delete=ON", "foreign_keys=ON")


def _reader_cache() -> str:
    return f"cache_size=-{READER_CACHE_KIB}"


def leave_wal(connection: Connection) -> None:
    """Make the database one file, which can be read where nothing can be written.

    Raises `StorageFailed` where the disk refuses it: SQLite answers with the mode that stays, not with an
    error.
    """
    mode = connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0]
    if mode != "delete":
        raise errors.StorageFailed(f"the write-ahead log cannot be left: the journal mode stays {mode!r}")


def open_in_memory() -> Connection:
    """Open a private database in memory."""
    return _open(":memory:")


def open_scratch() -> Connection:
    """Open a private database, which grows onto the disk where it is large and is gone when it is closed.

    One of no name would stay in memory where SQLite is built with TEMP_STORE=3.
    """
    with tempfile.TemporaryDirectory(prefix="omegad-") as folder:
        return _open(
            Path(folder) / "scratch.db", "locking_mode=EXCLUSIVE", "journal_mode=MEMORY", "synchronous=OFF"
        )


_PRAGMAS = (
    f"busy_timeout={BUSY_TIMEOUT_MS}",
    "wal_autocheckpoint=0",
    "trusted_schema=OFF",
    "recursive_triggers=ON",  # or REPLACE would delete rows past the triggers that forbid it
)


def _open(path: Path | str, *pragmas: str) -> Connection:
    """Return a connection that these are said to; no file stays open where one of them fails."""
    connection: Connection = sqlite.connect(
        str(path),
        isolation_level=None,
        check_same_thread=False,
        cached_statements=STATEMENTS_CACHED,
        uri=str(path).startswith("file:"),
    )
    try:
        sealing.unlock(connection)
        for pragma in (*_PRAGMAS, *pragmas):
            connection.execute(f"PRAGMA {pragma}")
        connection.enable_load_extension(True)  # noqa: FBT003  the DB-API's signature
        sqlite_vec.load(connection)
        connection.enable_load_extension(False)  # noqa: FBT003
    except BaseException:
        connection.close()
        raise
    return connection


_databases: WeakSet["Database"] = WeakSet()


class Database(aiosqlite.Connection):
    """A connection on a thread of its own, to which whole pieces of work are handed."""

    def __init__(self, connector: Callable[[], Connection], file: str = "") -> None:
        """Take the function that opens the connection, which runs on the thread, and the name by which
        errors tell of the *file*.
        """
        super().__init__(connector, iter_chunk_size=64)
        _databases.add(self)
        self._thread.daemon = True
        self._file = file

    @classmethod
    async def writer(cls, path: Path, *, durable: bool) -> "Database":
        """Open the one connection that may write to *path*."""
        return await cls._opened(partial(open_writer, path, durable=durable), path.name)

    @classmethod
    async def reader(cls, path: Path) -> "Database":
        """Open a connection that can only read *path*."""
        return await cls._opened(partial(open_reader, path), path.name)

    @classmethod
    async def _opened(cls, connector: Callable[[], Connection], file: str) -> "Database":
        database = cls(connector, file)
        try:
            with translated(file):
                await database
        except BaseException:
            # The thread still has a last word for the event loop, which must be there to hear it.
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(database._thread.join)
            raise
        return database

    async def run(self, work: Work[T]) -> T:
        """Do *work* on the connection's thread. A caller that is cancelled stops waiting; the work goes on
        to its end.
        """
        if not self._running or self._connection is None:
            raise errors.Unavailable("the database is closed")
        with translated(self._file):
            result: T = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]
            return result

    def afterwards(self, do: Callable[[], object]) -> None:
        """Call *do* on the event loop when the thread is done with all that it was given."""
        done = asyncio.get_running_loop().create_future()
        done.add_done_callback(lambda _: do())
        if self._running:
            self._tx.put_nowait((done, lambda: None))
        else:
            done.set_result(None)

    def interrupt_now(self) -> None:
        """Interrupt the statement that the connection's thread is at, from any other; without one nothing
        happens.
        """
        if self._connection is not None:
            with suppress(sqlite.ProgrammingError):  # its thread has closed it, and the loop is yet to hear
                self._connection.interrupt()


async def let_go_of_pages() -> None:
    """Have every open connection free the pages that it keeps at hand, which the system has as well."""
    for database in tuple(_databases):
        with suppress(errors.OmegadError):  # it has been closed, or its file fails: who reads it is told
            await database.run(lambda connection: connection.execute("PRAGMA shrink_memory").close())
