"""Which SQLite library to use, chosen once when it is imported.

Two libraries must never open one database in one process: closing a file descriptor of the one drops the
locks of the other.
"""

import importlib
import sqlite3 as _standard
from types import ModuleType

from omegad.runtime.errors import DriverMissing

SAFE_VERSION = (
    3,
    51,
    3,
)  # older releases can lose commits when a checkpoint races a write to a WAL (sqlite.org/wal.html)


def _choose() -> ModuleType:
    for name in ("pysqlite3.dbapi2", "sqlite3"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if hasattr(module.Connection, "enable_load_extension") and module.sqlite_version_info >= SAFE_VERSION:
            return module
    raise DriverMissing(
        f"the sqlite3 of this Python is {_standard.sqlite_version}, without extensions or too old, and"
        " pysqlite3 is not there"
    )


sqlite = _choose()
"""The DB-API module in use; its exceptions are the ones that connections raise."""

Connection = _standard.Connection
"""What a connection is to a type checker; the one in use has the same interface."""
