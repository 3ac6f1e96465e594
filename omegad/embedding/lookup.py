"""Vectors from the cache for the threads that write views, without leaving those threads.

They take turns at one connection: threads come and go with each file that is built. A cache that cannot be
read is one that has nothing.
"""

import threading
from pathlib import Path
from typing import Self

import structlog

from omegad.embedding.cache import Key, VectorCache, identity
from omegad.runtime.errors import OmegadError, StorageCorrupt
from omegad.storage.database import open_reader, translated
from omegad.storage.driver import Connection, sqlite

_GET = "SELECT vector FROM vectors WHERE text_hash = ? AND embedder_id = ?"

_UNREADABLE = (OmegadError, sqlite.Error)
"""What may be raised where a file is damaged, cannot be opened, or is so fresh that it has no table yet."""

_log = structlog.get_logger(__name__)


class FileLookup:
    """Finds cached vectors in the file of a cache that another process keeps, within a `with`."""

    def __init__(self, path: Path) -> None:
        """Read what is in *path*, which need not be there, nor be a cache."""
        self._connection: Connection | None = None
        try:
            with translated(path.name):
                self._connection = open_reader(path) if path.exists() else None
        except _UNREADABLE as error:
            _log.warning("embedding.lookup_failed", error=str(error))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        if self._connection:
            self._connection.close()

    def find(self, embedder_id: str, text_hash: str) -> bytes | None:
        """Return a vector, None where it is not cached, or the cache cannot be read."""
        try:
            with translated():
                row = (
                    self._connection.execute(_GET, (text_hash, embedder_id)).fetchone()
                    if self._connection
                    else None
                )
        except _UNREADABLE as error:
            _log.warning("embedding.lookup_failed", error=str(error))
            self.__exit__()
            self._connection = None
            return None
        return row[0] if row else None


class VectorLookup:
    """Finds cached vectors by embedder id and text hash."""

    def __init__(self, cache: VectorCache) -> None:
        """Read what *cache* has written, and what it has not written yet."""
        self._cache = cache
        self._turn = threading.Lock()
        self._known: tuple[Connection, tuple[int, int]] | None = None
        self._latest: tuple[Key, bytes] | None = None

    def find(self, embedder_id: str, text_hash: str) -> bytes | None:
        """Return a vector, None where it is not cached. The latest is remembered, since one event often
        asks for it twice.
        """
        key = (embedder_id, text_hash)
        if (latest := self._latest) and latest[0] == key:
            return latest[1]
        vector = self._cache.unwritten.get(key) or self._read(key)
        if vector is not None:
            self._latest = key, vector
        return vector

    def _read(self, key: Key) -> bytes | None:
        embedder_id, text_hash = key
        file = identity(self._cache.path)
        if file is None:
            return None
        with self._turn:
            try:
                with translated():
                    row = self._connection(file).execute(_GET, (text_hash, embedder_id)).fetchone()
            except _UNREADABLE as error:
                _log.warning("embedding.lookup_failed", error=str(error))
                self.close()
                if isinstance(error, StorageCorrupt):
                    self._cache.report(file, error)
                return None
        return row[0] if row else None

    def close(self) -> None:
        """Close the connection, which no thread may be using."""
        if self._known is not None:
            self._known[0].close()
            self._known = None

    def _connection(self, file: tuple[int, int]) -> Connection:
        """Return the connection, a new one where another file has taken the name."""
        if self._known is None or self._known[1] != file:
            self.close()
            self._known = open_reader(self._cache.path), file
        return self._known[0]
