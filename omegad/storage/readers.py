"""A few read-only connections to one file, each on its own thread."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio

from omegad.errors import Unavailable
from omegad.storage.database import Database, Work
from omegad.storage.driver import Connection
from omegad.storage.transaction import snapshot

T = TypeVar("T")


class ReadersClosed(Unavailable):
    """The file was closed, or replaced by another."""

    hint = "ask again"


class Readers:
    """Hands out connections for consistent reads; waits when all are in use."""

    def __init__(self, databases: list[Database]) -> None:
        """Use `opened`, which opens and closes them."""
        self._idle = list(databases)
        self._count = len(databases)
        self._is_closed = False
        self._places = anyio.Semaphore(len(databases))

    async def read(self, work: Work[T]) -> T:
        """Do *work*, all of whose reads see one moment. A caller that is cancelled gives its connection back when the work is over."""
        if self._is_closed:
            raise ReadersClosed
        async with self._places:
            if self._is_closed:
                raise ReadersClosed
            database = self._idle.pop()
            result: list[T] = []
            try:
                # The thread cannot be interrupted safely, so the place stays taken until it is free again.
                with anyio.CancelScope(shield=True):
                    result.append(await database.run(lambda connection: _in_snapshot(connection, work)))
            finally:
                self._idle.append(database)
            return result[0]

    async def drain(self) -> None:
        """Wait until no read is under way, and let none begin: later ones raise `ReadersClosed`."""
        self._is_closed = True
        for _ in range(self._count):
            await self._places.acquire()
        for _ in range(self._count):
            self._places.release()


def _in_snapshot(connection: Connection, work: Work[T]) -> T:
    with snapshot(connection):
        return work(connection)


@asynccontextmanager
async def opened(path: Path, count: int) -> AsyncIterator[Readers]:
    """Open *count* readers of *path*; close them at the end of the block."""
    databases = [await Database.reader(path) for _ in range(count)]
    try:
        yield Readers(databases)
    finally:
        with anyio.CancelScope(shield=True):
            for database in databases:
                await database.close()
