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
from omegad.storage.checkpointer import Checkpointer
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

log = structlog.get_logger(__name__)


def canonical(text: str) -> str:
    """Return the one form in which a text is hashed and embedded: NFC, without halves of surrogate pairs, which no encoding can carry."""
    return unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode("utf-8")


def text_hash(text: str) -> str:
    """Return the sha256, in hexadecimal, of the text's canonical form."""
    return hashlib.sha256(canonical(text).encode("utf-8")).hexdigest()


class VectorCache:
    """Get and put vectors, `VECTOR_BYTES` of little-endian float32 each. Use `opened`, which opens and closes it.

    Storage that fails is logged and behaves like an empty cache, since there is always the model to ask.
    """

    def __init__(self, path: Path, database: Database) -> None:
        """Serve the cache at *path*, which *database* is the writer of."""
        self._path = path
        self._database = database
        self._checkpointer = Checkpointer(path)
        self._replacing = anyio.Lock()

    async def get_many(self, embedder_id: str, hashes: Iterable[str]) -> dict[str, bytes]:
        """Return, by text hash, those vectors that are there."""
        wanted = msgspec.json.encode(list(hashes)).decode()

        def read(connection: Connection) -> dict[str, bytes]:
            rows = connection.execute(GET, (embedder_id, wanted)).fetchall()
            return {digest: vector for digest, vector in rows if len(vector) == VECTOR_BYTES}

        try:
            return await self._run(read)
        except Unavailable as error:
            log.warning("embedding.cache_unreadable", error=str(error))
            return {}

    async def put_many(self, embedder_id: str, vectors: Mapping[str, bytes]) -> None:
        """Keep vectors, given by text hash; all of them, or none where storage fails."""
        assert all(len(vector) == VECTOR_BYTES for vector in vectors.values())
        rows = [(embedder_id, digest, vector) for digest, vector in vectors.items()]

        def write(connection: Connection) -> None:
            with writing(connection):
                connection.executemany(PUT, rows)
            self._checkpointer.after_commit(connection)

        try:
            await self._run(write)
        except Unavailable as error:
            log.warning("embedding.cache_unwritable", error=str(error))

    async def forget(self, hashes: Iterable[str]) -> None:
        """Wipe every embedder's vectors of these texts from the disk.

        A vector tells much of its text, so, unlike the other two, this raises where storage fails.
        """
        unwanted = msgspec.json.encode(list(hashes)).decode()

        def wipe(connection: Connection) -> None:
            with writing(connection):
                connection.execute(FORGET, (unwanted,))
            self._checkpointer.truncate(connection)

        await self._run(wipe)
        for path in _files(_aside(self._path)):
            path.unlink(missing_ok=True)

    async def close(self) -> None:
        """Fold the write-ahead log into the file and close it."""
        with suppress(Unavailable):
            await self._database.run(self._checkpointer.truncate)
        await self._database.close()

    async def _run(self, work: Work[T]) -> T:
        """Do *work*; where the file turns out to be damaged, once more on a fresh one."""
        database = self._database
        try:
            return await database.run(work)
        except StorageCorrupt as error:
            with anyio.CancelScope(shield=True):
                async with self._replacing:
                    if self._database is database:  # nobody else has noticed and replaced it meanwhile
                        await self._replace(error)
            return await self._database.run(work)

    async def _replace(self, error: StorageCorrupt) -> None:
        await self._database.close()
        _set_aside(self._path, error)
        self._database = await _open(self._path)
        self._checkpointer = Checkpointer(self._path)


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
    connection.execute("PRAGMA secure_delete=ON")
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
