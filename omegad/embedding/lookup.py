"""Vectors from the cache for the threads that write views, without leaving those threads.

They take turns at one connection: threads come and go with each file that is built. A cache that cannot be
read is one that has nothing.
"""

import threading
from pathlib import Path
from typing import Self

import structlog

from omegad.embedding.cache import VectorCache, identity
from omegad.runtime.errors import OmegadError, StorageCorrupt
from omegad.storage.database import open_reader, translated
from omegad.storage.driver import Connection, sqlite

_log = structlog.get_logger(__name__)


class FileLookup:
    """Finds cached vectors in the file of a cache that another process keeps, within a `with`."""

    def __init__(self, path: Path) -> None:
        """Read what is in *path*, which need not be there, nor be a cache."""
        self._path = path
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
                        self._known = open_reader(self._path), file
                    row = self._known[0].execute(sql, (text_hash, embedder_id)).fetchone()
            # The file is damaged, cannot be opened, or is so fresh that it has no table yet.
            except (OmegadError, sqlite.Error) as error:
                _log.warning("embedding.lookup_failed", error=str(error))
                self.close()
                self._failed(file, error)
                return None
        return row[0] if row else None

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
