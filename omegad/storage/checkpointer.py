"""Keeps a write-ahead log short: the writer moves its pages into the database between two commits.

A checkpoint belongs to the thread that commits, so that none ever races a commit.
"""

from pathlib import Path

import structlog

from omegad.runtime.errors import Unavailable
from omegad.storage.database import translated
from omegad.storage.driver import Connection

CHANGES_PASSIVE = 2_000  # rows written, a few MiB of WAL: move what no reader still needs
WAL_BYTES_TRUNCATE = 64 * 1024 * 1024  # readers have held it back: also cut the file

_log = structlog.get_logger(__name__)


class Checkpointer:
    """Counts what a file's writer changes and checkpoints when it is enough."""

    def __init__(self, path: Path, changes_passive: int = CHANGES_PASSIVE) -> None:
        """Watch the WAL that belongs to the database at *path*; checkpoint after so many changes."""
        self._changes_passive = changes_passive
        self._wal = path.with_name(path.name + "-wal")
        self._changes_seen = 0

    def after_commit(self, connection: Connection) -> None:
        """Checkpoint if enough has changed since the last one; never waits for a reader."""
        if connection.total_changes < self._changes_seen:  # a new connection, which counts from 0
            self._changes_seen = 0
        if connection.total_changes - self._changes_seen < self._changes_passive:
            return
        self._changes_seen = connection.total_changes
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        if self.wal_bytes() > WAL_BYTES_TRUNCATE:
            truncate(connection, 0)

    def truncate(self, connection: Connection) -> None:
        """Move everything and cut the file, as when the daemon stops."""
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def wal_bytes(self) -> int:
        """Size of the WAL file, 0 where there is none."""
        try:
            return self._wal.stat().st_size
        except FileNotFoundError:
            return 0


def truncate(connection: Connection, wait_ms: int) -> bool:
    """Move everything and cut the file; wait for readers no longer than that, and say whether it is done."""
    timeout_ms = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute(f"PRAGMA busy_timeout={wait_ms}")
    is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout={timeout_ms}")
    return not is_busy


def checkpoint_quietly(checkpointer: Checkpointer, connection: Connection) -> None:
    """Checkpoint after a commit; a failure is logged and no more, since what was committed is on the disk,
    and the next may succeed.
    """
    try:
        with translated():
            checkpointer.after_commit(connection)
    except Unavailable as error:
        _log.warning("storage.not_checkpointed", error=str(error))
