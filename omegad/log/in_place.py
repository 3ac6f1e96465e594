"""Whether the files that the log is written to are still the ones that its name leads to.

Who renames, replaces or removes them while they are in use leaves the daemon with files that no start will
find: what goes there is lost.
"""

import os
from pathlib import Path

from omegad.log.appending import Head, load_head
from omegad.runtime.errors import LogReplaced
from omegad.storage.driver import Connection

Identity = tuple[int, int]


class InPlace:
    """What the log and its write-ahead log are known by."""

    def __init__(self, path: Path) -> None:
        """Watch the log at *path*, from `load_head` on."""
        self._path = os.fspath(path)
        self._wal = os.path.realpath(path) + "-wal"
        self._known: tuple[Identity | None, Identity | None] | None = None

    def load_head(self, connection: Connection) -> Head:
        """Read where the log ends, and take the files that it is read from for those in use."""
        head = load_head(connection)
        self._known = self._found()
        return head

    def bytes(self) -> int:
        """How large the log is, without its write-ahead log; 0 where it is gone."""
        found = Path(self._path)
        return found.stat().st_size if found.exists() else 0

    def check(self) -> None:
        """Raise `LogReplaced` where other files, or none, have the names."""
        if trouble := self.trouble():
            raise LogReplaced(trouble)

    def trouble(self) -> str | None:
        """Say what is wrong, None where nothing is."""
        if self._known is None or self._known == self._found():
            return None
        return f"{self._path} or its write-ahead log was moved, replaced or removed while it was in use"

    def _found(self) -> tuple[Identity | None, Identity | None]:
        return _identity(self._path), _identity(self._wal)


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116  twice for each commit, and the faster of the two
    except OSError:
        return None
    return found.st_dev, found.st_ino
