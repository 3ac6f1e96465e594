"""Which SQLite library to use: chosen once, when something is first asked of it.

Two libraries must never open one database in one process: closing a file descriptor of the one drops the
locks of the other. A process that serves a sealed home uses the one that can seal for everything.
"""

import importlib
import sqlite3 as _standard
from types import ModuleType
from typing import Any

from omegad.runtime.errors import DriverMissing, SealerMissing

SAFE_VERSION = (
    3,
    51,
    3,
)  # older releases can lose commits when a checkpoint races a write to a WAL (sqlite.org/wal.html)

PLAIN = ("pysqlite3.dbapi2", "sqlite3")
SEALING = "sqlcipher3.dbapi2"


def _is_fit(module: ModuleType) -> bool:
    return hasattr(module.Connection, "enable_load_extension") and module.sqlite_version_info >= SAFE_VERSION


def _plain() -> ModuleType:
    for name in PLAIN:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if _is_fit(module):
            return module
    raise DriverMissing(
        f"the sqlite3 of this Python is {_standard.sqlite_version}, without extensions or too old, and"
        " pysqlite3 is not there"
    )


def sealing() -> ModuleType:
    """Return the library that seals. Raises `SealerMissing`."""
    try:
        module = importlib.import_module(SEALING)
    except ImportError:
        raise SealerMissing(
            "the package sqlcipher3 is not there, without which nothing is sealed, or unsealed"
        ) from None
    if not _is_fit(module):
        raise SealerMissing(f"the SQLite of the package sqlcipher3 is {module.sqlite_version}: too old")
    return module


class Library:
    """A DB-API module, whose names are this object's; its exceptions are the ones that connections raise."""

    def __init__(self) -> None:
        self._module: ModuleType | None = None

    def seal(self) -> None:
        """Choose the library that seals, for as long as the process lives. Raises `SealerMissing`, and
        `AssertionError` where another has been used.
        """
        chosen = sealing()
        assert self._module in {None, chosen}, "a database was opened by another library"
        self._module = chosen

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  whatever the module has
        if self._module is None:
            self._module = _plain()
        value = getattr(self._module, name)
        setattr(self, name, value)  # which is found at once the next time
        return value


sqlite = Library()

Connection = _standard.Connection
"""What a connection is to a type checker; the one in use has the same interface."""
