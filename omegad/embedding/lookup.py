"""Vectors from the cache for the threads that write views, without leaving those threads.

Each thread reads through a connection of its own. A cache that cannot be read is one that has nothing.
"""

import threading
from pathlib import Path

import structlog

from omegad.errors import OmegadError
from omegad.storage.database import open_reader, translated
from omegad.storage.driver import Connection

_GET = "SELECT vector FROM vectors WHERE text_hash = ? AND embedder_id = ?"

_log = structlog.get_logger(__name__)


class VectorLookup:
    """Finds cached vectors by embedder id and text hash."""

    def __init__(self, path: Path) -> None:
        """Read the cache at *path*, which need not be there yet."""
        self._path = path
        self._local = threading.local()
        self._opened: list[Connection] = []

    def find(self, embedder_id: str, text_hash: str) -> bytes | None:
        """Return a vector, None where it is not cached. The latest is remembered, since one event often asks for it twice."""
        key = (embedder_id, text_hash)
        if getattr(self._local, "key", None) == key:
            found: bytes = self._local.vector
            return found
        vector = self._read(key)
        if vector is not None:
            self._local.key, self._local.vector = key, vector
        return vector

    def _read(self, key: tuple[str, str]) -> bytes | None:
        embedder_id, text_hash = key
        try:
            with translated():
                row = self._connection().execute(_GET, (text_hash, embedder_id)).fetchone()
        except OmegadError as error:
            _log.warning("embedding.lookup_failed", error=str(error))
            self._local.connection = None
            return None
        return row[0] if row else None

    def close(self) -> None:
        """Close the connections of all threads, none of which may be using its own."""
        for connection in self._opened:
            connection.close()
        self._opened.clear()

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = open_reader(self._path)
            self._opened.append(connection)
        return connection
