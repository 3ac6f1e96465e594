"""Vectors that were computed before, by embedder id and text: embeddings.db.

Only a cache: whatever is wrong with the file, its loss costs computing time, so it is set aside rather than
mended. A hash and a vector tell much of their text, so what is computed for a decision stays in memory until
an event names it, and only then goes into the file.

The threads that embed texts and write views look vectors up without leaving those threads, and take turns at
one connection, since threads come and go with each file that is built.
"""

import hashlib
import threading
import unicodedata
from collections.abc import AsyncIterator, Callable, Container, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self, TypeVar

import anyio
import msgspec
import structlog

from omegad.embedding.catalogue import VECTOR_BYTES
from omegad.runtime.errors import OmegadError, StorageCorrupt, StorageFailed, Unavailable
from omegad.storage.checkpointer import Checkpointer, checkpoint_quietly
from omegad.storage.database import Database, Work, open_reader, translated
from omegad.storage.driver import Connection, sqlite
from omegad.storage.transaction import writing
from omegad.storage.wiping import wipe

T = TypeVar("T")

SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    embedder_id TEXT NOT NULL,
    text_hash   TEXT NOT NULL,
    vector      BLOB NOT NULL,
    PRIMARY KEY (text_hash, embedder_id)
) STRICT
"""
PUT = "INSERT OR REPLACE INTO vectors (embedder_id, text_hash, vector) VALUES (?, ?, ?)"
FORGET = "DELETE FROM vectors WHERE text_hash IN (SELECT value FROM json_each(?))"
PAGE = "SELECT rowid, text_hash FROM vectors WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT ?"
REMOVE = "DELETE FROM vectors WHERE rowid IN (SELECT value FROM json_each(?))"
UNWRITTEN_MAX = (
    4_096  # vectors that are kept in memory, where no event names them yet or they cannot be written, 6 MiB
)
SWEPT_AT_ONCE = 2_000  # rows
CHECKPOINT_CHANGES = 250  # rows, each of which takes three pages of the write-ahead log: 3 MiB

Key = tuple[str, str]
"""An embedder id and a text hash."""

log = structlog.get_logger(__name__)


def canonical(text: str) -> str:
    """Return the one form in which a text is hashed and embedded: NFC, without halves of surrogate pairs,
    which no encoding can carry.
    """
    return unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode("utf-8")


def text_hash(text: str) -> str:
    """Return the sha256, in hexadecimal, of the text's canonical form."""
    return hashlib.sha256(canonical(text).encode("utf-8")).hexdigest()


class VectorCache:
    """Keeps vectors, `VECTOR_BYTES` of little-endian float32 each. Use `opened`, which opens and closes it.

    Storage that fails is logged and behaves like an empty cache, since there is always the model to ask. A
    file that is damaged is set aside, and one that was moved away is left to whoever moved it; a fresh one
    then takes its place.
    """

    def __init__(self, path: Path, database: Database) -> None:
        """Serve the cache at *path*, which *database* is the writer of."""
        self.path = path
        self.unwritten: dict[Key, bytes] = {}
        """The vectors that no event names yet, are on their way to the file, or could not be written to
        it; the oldest first.
        """
        self._named: set[Key] = set()
        """Those of them that an event names."""
        self.lookup = VectorLookup(self)
        self._use(database)
        self._replacing = anyio.Lock()

    def _use(self, database: Database) -> None:
        self._database = database
        self._file = identity(self.path)
        self._damage: StorageCorrupt | None = None
        self._checkpointer = Checkpointer(self.path, CHECKPOINT_CHANGES)

    def hold(self, embedder_id: str, vectors: Mapping[str, bytes]) -> None:
        """Keep vectors, given by text hash, in memory, `UNWRITTEN_MAX` at most; `keep` has them written."""
        assert all(len(vector) == VECTOR_BYTES for vector in vectors.values())
        self.unwritten |= {(embedder_id, digest): vector for digest, vector in vectors.items()}
        for key in list(self.unwritten)[: max(0, len(self.unwritten) - UNWRITTEN_MAX)]:
            del self.unwritten[key]
        self._named &= self.unwritten.keys()

    async def keep(self, keys: Iterable[Key]) -> None:
        """Write those held vectors, which an event names, to the file; they stay in memory where storage
        fails, until it does not.
        """
        self._named |= self.unwritten.keys() & set(keys)
        rows = {key: self.unwritten[key] for key in self._named}
        if not rows:
            return

        def write(connection: Connection) -> None:
            with writing(connection):
                connection.executemany(PUT, [(*key, vector) for key, vector in rows.items()])
            checkpoint_quietly(self._checkpointer, connection)

        try:
            await self._run(write)
        except Unavailable as error:
            log.warning("embedding.cache_unwritable", error=str(error), vectors=len(rows))
            return
        for key in rows:
            self.unwritten.pop(key, None)
        self._named -= rows.keys()

    async def forget(self, hashes: Iterable[str], *, is_last: bool = True) -> None:
        """Take every embedder's vectors of these texts out; the last time leave no byte of them in the file.

        A vector tells much of its text, so, unlike the others, this raises where storage fails, and
        `StorageBusy` while somebody reads.
        """
        texts = set(hashes)
        unwanted = msgspec.json.encode(list(texts)).decode()
        for key in [key for key in self.unwritten if key[1] in texts]:
            del self.unwritten[key]
        self._named &= self.unwritten.keys()

        def remove(connection: Connection) -> None:
            with writing(connection):
                connection.execute(FORGET, (unwanted,))
            if is_last:
                wipe(connection, self.path, [text.encode() for text in texts])

        await self._run(remove)
        self._remove_aside()

    async def is_swept(self, mark: int) -> bool:
        """Say whether only what an event names is in the file, of the log that has this *mark*; the file
        keeps it as its `user_version`.
        """
        return await self._run(
            lambda connection: bool(connection.execute("PRAGMA user_version").fetchone()[0] == mark)
        )

    async def last(self) -> int:
        """Return the place of the row that was written last, 0 where there is none."""
        return await self._run(
            lambda connection: int(
                connection.execute("SELECT coalesce(max(rowid), 0) FROM vectors").fetchone()[0]
            )
        )

    async def sweep(self, named: Container[str], through: int, mark: int) -> int:
        """Remove the rows up to *through* whose texts are not *named*, a few at a time, with all bytes of
        them; return how many.

        *mark* is that of the log which names. Raises as `forget` does.
        """
        removed, after = 0, 0

        def page(connection: Connection) -> tuple[int, int]:
            rows = connection.execute(PAGE, (after, through, SWEPT_AT_ONCE)).fetchall()
            unnamed = [row for row, digest in rows if digest not in named]
            if unnamed:
                with writing(connection):
                    connection.execute(REMOVE, (str(unnamed),))
            return (rows[-1][0] if rows else 0), len(unnamed)

        while True:
            reached, count = await self._run(page)
            removed += count
            if not reached:
                break
            after = reached

        def end(connection: Connection) -> None:
            if through:
                wipe(connection, self.path, ())
            connection.execute(f"PRAGMA user_version={mark}")

        await self._run(end)
        self._remove_aside()
        return removed

    def _remove_aside(self) -> None:
        for path in _files(_aside(self.path)):
            path.unlink(missing_ok=True)

    def report(self, file: tuple[int, int], damage: StorageCorrupt) -> None:
        """Note that another reader found *file* damaged, of which this connection may know nothing; it is
        replaced before it is used again.
        """
        if file == self._file:
            self._damage = damage

    async def close(self) -> None:
        """Fold the write-ahead log into the file and close it."""
        self.lookup.close()
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
    """Open the cache at *path*, a fresh one where there is none or it cannot be read; close it at the end
    of the block.
    """
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


class FileLookup:
    """Finds cached vectors in the file of a cache that another process keeps, within a `with`."""

    def __init__(self, path: Path, opened: Callable[[Path], Connection] = open_reader) -> None:
        """Read what is in *path*, which need not be there, nor be a cache."""
        self._path = path
        self._opened = opened
        self._turn = threading.Lock()
        self._known: tuple[Connection, tuple[int, int]] | None = None
        self._unreadable: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def find(self, embedder_id: str, text_hash: str) -> bytes | None:
        """Return a vector, None where it is not cached, or the cache cannot be read."""
        file = identity(self._path)
        if file is None or file == self._unreadable:
            return None
        sql = "SELECT vector FROM vectors WHERE text_hash = ? AND embedder_id = ?"
        with self._turn:
            try:
                with translated():
                    if self._known is None or self._known[1] != file:
                        self.close()
                        self._known = self._opened(self._path), file
                    row = self._known[0].execute(sql, (text_hash, embedder_id)).fetchone()
            # The file is damaged, cannot be opened, or is so fresh that it has no table yet.
            except (OmegadError, sqlite.Error) as error:
                log.warning("embedding.lookup_failed", error=str(error))
                self.close()
                self._failed(file, error)
                return None
        return row[0] if row and len(row[0]) == VECTOR_BYTES else None

    def close(self) -> None:
        """Close the connection, which no thread may be using."""
        if self._known is not None:
            self._known[0].close()
            self._known = None

    def _failed(self, file: tuple[int, int], _error: Exception) -> None:
        self._unreadable = file


class VectorLookup(FileLookup):
    """Finds cached vectors by embedder id and text hash."""

    def __init__(self, cache: VectorCache) -> None:
        """Read what *cache* has written, and what it has not written yet."""
        super().__init__(cache.path)
        self._cache = cache
        self._latest: tuple[tuple[str, str], bytes] | None = None

    def find(self, embedder_id: str, text_hash: str) -> bytes | None:
        """Return a vector, None where it is not cached. The latest is remembered, since one event often
        asks for it twice.
        """
        key = (embedder_id, text_hash)
        if (latest := self._latest) and latest[0] == key:
            return latest[1]
        vector = self._cache.unwritten.get(key) or super().find(embedder_id, text_hash)
        if vector is not None:
            self._latest = key, vector
        return vector

    def _failed(self, file: tuple[int, int], error: Exception) -> None:
        """Leave the file to the cache, which replaces one that is damaged."""
        if isinstance(error, StorageCorrupt):
            self._cache.report(file, error)
