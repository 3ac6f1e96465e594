"""Vectors that were computed before, by embedder id and text: embeddings.db.

Only a cache: whatever is wrong with the file, its loss costs computing time, so it is set aside rather than mended.
"""

import hashlib
import unicodedata
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec
import structlog

from omegad.embedding.catalogue import VECTOR_BYTES
from omegad.errors import StorageCorrupt, StorageFailed, Unavailable
from omegad.storage.checkpointer import Checkpointer, checkpoint_quietly
from omegad.storage.database import Database, Work
from omegad.storage.driver import Connection
from omegad.storage.transaction import writing

T = TypeVar("T")

SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    embedder_id TEXT NOT NULL,
    text_hash   TEXT NOT NULL,
    vector      BLOB NOT NULL,
    PRIMARY KEY (text_hash, embedder_id)
) STRICT
"""
GET = "SELECT text_hash, vector FROM vectors WHERE embedder_id = ? AND text_hash IN (SELECT value FROM json_each(?))"
PUT = "INSERT OR REPLACE INTO vectors (embedder_id, text_hash, vector) VALUES (?, ?, ?)"
FORGET = "DELETE FROM vectors WHERE text_hash IN (SELECT value FROM json_each(?))"

UNWRITTEN_MAX = 4_096  # vectors that are kept in memory where they cannot be written, 6 MiB
CHECKPOINT_CHANGES = 250  # rows, each of which takes three pages of the write-ahead log: 3 MiB

Key = tuple[str, str]
"""An embedder id and a text hash."""

log = structlog.get_logger(__name__)


def canonical(text: str) -> str:
    """Return the one form in which a text is hashed and embedded: NFC, without halves of surrogate pairs, which no encoding can carry."""
    return unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode("utf-8")


def text_hash(text: str) -> str:
    """Return the sha256, in hexadecimal, of the text's canonical form."""
    return hashlib.sha256(canonical(text).encode("utf-8")).hexdigest()


class VectorCache:
    """Get and put vectors, `VECTOR_BYTES` of little-endian float32 each. Use `opened`, which opens and closes it.

    Storage that fails is logged and behaves like an empty cache, since there is always the model to ask. A file that is damaged is set aside,
    and one that was moved away is left to whoever moved it; a fresh one then takes its place.
    """

    def __init__(self, path: Path, database: Database) -> None:
        """Serve the cache at *path*, which *database* is the writer of."""
        self.path = path
        self.unwritten: dict[Key, bytes] = {}
        """The vectors that are on their way to the file, or could not be written to it."""
        self._use(database)
        self._replacing = anyio.Lock()

    def _use(self, database: Database) -> None:
        self._database = database
        self._file = identity(self.path)
        self._damage: StorageCorrupt | None = None
        self._checkpointer = Checkpointer(self.path, CHECKPOINT_CHANGES)

    async def get_many(self, embedder_id: str, hashes: Iterable[str]) -> dict[str, bytes]:
        """Return, by text hash, those vectors that are there."""
        asked = list(hashes)
        wanted = msgspec.json.encode(asked).decode()
        known = {digest: self.unwritten[embedder_id, digest] for digest in asked if (embedder_id, digest) in self.unwritten}

        def read(connection: Connection) -> dict[str, bytes]:
            rows = connection.execute(GET, (embedder_id, wanted)).fetchall()
            return {digest: vector for digest, vector in rows if len(vector) == VECTOR_BYTES}

        try:
            return await self._run(read) | known
        except Unavailable as error:
            log.warning("embedding.cache_unreadable", error=str(error))
            return known

    async def put_many(self, embedder_id: str, vectors: Mapping[str, bytes]) -> None:
        """Keep vectors, given by text hash; in memory where storage fails, `UNWRITTEN_MAX` at most, until it does not."""
        assert all(len(vector) == VECTOR_BYTES for vector in vectors.values())
        self.unwritten |= {(embedder_id, digest): vector for digest, vector in vectors.items()}
        rows = dict(self.unwritten)

        def write(connection: Connection) -> None:
            with writing(connection):
                connection.executemany(PUT, [(*key, vector) for key, vector in rows.items()])
            checkpoint_quietly(self._checkpointer, connection)

        try:
            await self._run(write)
        except Unavailable as error:
            log.warning("embedding.cache_unwritable", error=str(error), vectors=len(self.unwritten))
            rows = dict(list(self.unwritten.items())[:-UNWRITTEN_MAX])
        for key in rows:
            self.unwritten.pop(key, None)

    async def forget(self, hashes: Iterable[str]) -> None:
        """Wipe every embedder's vectors of these texts from the disk.

        A vector tells much of its text, so, unlike the other two, this raises where storage fails.
        """
        texts = set(hashes)
        unwanted = msgspec.json.encode(list(texts)).decode()
        for key in [key for key in self.unwritten if key[1] in texts]:
            del self.unwritten[key]

        def wipe(connection: Connection) -> None:
            with writing(connection):
                connection.execute(FORGET, (unwanted,))
            self._checkpointer.truncate(connection)

        await self._run(wipe)
        for path in _files(_aside(self.path)):
            path.unlink(missing_ok=True)

    def report(self, file: tuple[int, int], damage: StorageCorrupt) -> None:
        """Note that another reader found *file* damaged, of which this connection may know nothing; it is replaced before it is used again."""
        if file == self._file:
            self._damage = damage

    async def close(self) -> None:
        """Fold the write-ahead log into the file and close it."""
        with suppress(Unavailable):
            await self._database.run(self._checkpointer.truncate)
        await self._database.close()

    async def _run(self, work: Work[T]) -> T:
        """Do *work*; where the file turns out to be damaged or gone, on a fresh one."""
        database = self._database
        if self._damage or identity(self.path) != self._file:
            await self._replace(database, self._damage)
        try:
            return await self._database.run(work)
        except StorageCorrupt as error:
            await self._replace(database, error)
            return await self._database.run(work)

    async def _replace(self, database: Database, error: StorageCorrupt | None) -> None:
        with anyio.CancelScope(shield=True):
            async with self._replacing:
                if self._database is not database:
                    return  # somebody else has noticed and replaced it meanwhile
                await self._database.close()
                if error is not None:
                    _set_aside(self.path, error)
                self._use(await _open(self.path))


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[VectorCache]:
    """Open the cache at *path*, a fresh one where there is none or it cannot be read; close it at the end of the block."""
    try:
        database = await _open(path)
    except (StorageCorrupt, StorageFailed) as error:
        _set_aside(path, error)
        database = await _open(path)
    cache = VectorCache(path, database)
    try:
        yield cache
    finally:
        with anyio.CancelScope(shield=True):
            await cache.close()


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another that takes its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


async def _open(path: Path) -> Database:
    database = await Database.writer(path, durable=False)
    try:
        await database.run(_prepare)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await database.close()
        raise
    return database


def _prepare(connection: Connection) -> None:
    with writing(connection):
        connection.execute(SCHEMA)


def _set_aside(path: Path, error: Unavailable) -> None:
    """Move the database and its WAL out of the way; the one set aside before goes."""
    log.warning("embedding.cache_set_aside", path=str(path), error=str(error))
    try:
        for damaged, aside in zip(_files(path), _files(_aside(path)), strict=True):
            aside.unlink(missing_ok=True)
            if damaged.exists():
                damaged.rename(aside)
    except OSError as failure:
        raise StorageFailed(f"{path.name} can neither be read nor moved away: {failure}") from failure


def _aside(path: Path) -> Path:
    return path.with_name(path.name + ".damaged")


def _files(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]
