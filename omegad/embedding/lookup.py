"""Vectors from the cache for the threads that write views, without leaving those threads.

Each thread reads through a connection of its own. A cache that cannot be read is one that has nothing.
"""

import threading

import structlog

from omegad.embedding.cache import Key, VectorCache, identity
from omegad.errors import OmegadError, StorageCorrupt
from omegad.storage.database import open_reader, translated
from omegad.storage.driver import Connection

_GET = "SELECT vector FROM vectors WHERE text_hash = ? AND embedder_id = ?"

_log = structlog.get_logger(__name__)


class VectorLookup:
    """Finds cached vectors by embedder id and text hash."""

    def __init__(self, cache: VectorCache) -> None:
        """Read what *cache* has written, and what it has not written yet."""
        self._cache = cache
        self._local = threading.local()
        self._opened: list[Connection] = []

    def find(self, embedder_id: str, text_hash: str) -> bytes | None:
        """Return a vector, None where it is not cached. The latest is remembered, since one event often asks for it twice."""
        key = (embedder_id, text_hash)
        if getattr(self._local, "key", None) == key:
            found: bytes = self._local.vector
            return found
        vector = self._cache.unwritten.get(key) or self._read(key)
        if vector is not None:
            self._local.key, self._local.vector = key, vector
        return vector

    def _read(self, key: Key) -> bytes | None:
        embedder_id, text_hash = key
        file = identity(self._cache.path)
        if file is None:
            return None
        try:
            with translated():
                row = self._connection(file).execute(_GET, (text_hash, embedder_id)).fetchone()
        except OmegadError as error:
            _log.warning("embedding.lookup_failed", error=str(error))
            self._forget()
            if isinstance(error, StorageCorrupt):
                self._cache.report(file, error)
            return None
        return row[0] if row else None

    def close(self) -> None:
        """Close the connections of all threads, none of which may be using its own."""
        for connection in self._opened:
            connection.close()
        self._opened.clear()

    def _connection(self, file: tuple[int, int]) -> Connection:
        """Return this thread's connection, a new one where another file has taken the name."""
        known: tuple[Connection, tuple[int, int]] | None = getattr(self._local, "known", None)
        if known is not None and known[1] == file:
            return known[0]
        self._forget()
        connection = open_reader(self._cache.path)
        self._opened.append(connection)
        self._local.known = connection, file
        return connection

    def _forget(self) -> None:
        """Close this thread's connection, if it has one."""
        known = getattr(self._local, "known", None)
        if known is not None:
            self._local.known = None
            self._opened.remove(known[0])
            known[0].close()
