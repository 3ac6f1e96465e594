"""Databases whose pages are encrypted: the key that this process has for them, and files that are sealed or
opened as a whole.

A process that holds a key seals every file that it opens, so that nothing of a sealed home is ever written
plain. Pages are encrypted by AES-256 in CBC mode, with an initial vector of its own from a random source for
each writing of one, and have an HMAC-SHA-256 over what is encrypted and their place (SQLCipher 4); each file
has a salt of its own, so that no page of one passes for another's.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from omegad.storage.driver import Connection, sqlite

KEY_BYTES = 32
PLAIN = b"SQLite format 3\0"
"""What a database begins with that is not sealed."""

SETTINGS = (
    "cipher_log_level = NONE",  # what is wrong is raised, and would be said on standard error as well
    "cipher_default_hmac_algorithm = HMAC_SHA256",  # which most processors compute by themselves
)
"""What is said to every connection before its key."""

_held: bytes | None = None


def new_key() -> bytes:
    """Return a key of the system's random source."""
    return secrets.token_bytes(KEY_BYTES)


def hold(key: bytes) -> None:
    """Have this process seal, and read sealed, whatever it opens. Raises `SealerMissing`."""
    global _held  # noqa: PLW0603  as the library is, which is chosen once for the process
    sqlite.seal()
    _held = key


def held() -> bytes | None:
    """Return the key that this process holds, None where it holds none."""
    return _held


def handed() -> bytes:
    """Return what a process beside this one reads first, with `receive`."""
    return (_held or b"").hex().encode() + b"\n"


def receive(descriptor: int) -> None:
    """Hold the key that the process has which started this one, if it has any."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(descriptor, 1)):
        line += byte
    if line.strip():
        hold(bytes.fromhex(line.decode()))


def unlock(connection: Connection) -> None:
    """Say the key to a connection on which nothing was done yet; nothing where this process has none."""
    for pragma in pragmas():
        connection.execute(f"PRAGMA {pragma}")


def pragmas() -> list[str]:
    """Return what a connection is told before all else, nothing where this process has no key."""
    return [] if _held is None else [*SETTINGS, f'key = "{_said(_held)}"']


def is_plain(path: Path) -> bool:
    """Say whether a file is a database that is not sealed. Only for files that this process has not open:
    closing one lets go of the locks that it has on it.
    """
    with path.open("rb") as file:
        return file.read(len(PLAIN)) == PLAIN


@contextmanager
def as_is(path: Path) -> Iterator[None]:
    """Within the block, have a file that is plain be opened so by `storage.database`, whatever key is held.

    For one file at a time, and no other thread.
    """
    global _held  # noqa: PLW0603
    key = _held
    try:
        _held = None if key is None or is_plain(path) else key
        yield
    finally:
        _held = key


def convert(source: Path, target: Path, *, to_sealed: bool) -> None:
    """Write what the database at *source* says into *target*, an empty file, sealed or plain by the key that
    is held; *source* is the other of these two. Nobody else may write it meanwhile.
    """
    assert _held is not None
    before, after = ("", _said(_held)) if to_sealed else (_said(_held), "")
    with closing(sqlite.connect(str(source), isolation_level=None)) as connection:
        for pragma in SETTINGS:
            connection.execute(f"PRAGMA {pragma}")
        if before:
            connection.execute(f'PRAGMA key = "{before}"')
        connection.execute("ATTACH ? AS other KEY ?", (os.fspath(target), after))
        connection.execute("PRAGMA other.journal_mode = MEMORY")
        connection.execute("PRAGMA other.synchronous = OFF")  # who converts syncs what is whole
        connection.execute("SELECT sqlcipher_export('other')").fetchall()
        for name in ("user_version", "application_id"):
            value = connection.execute(f"PRAGMA main.{name}").fetchone()[0]
            connection.execute(f"PRAGMA other.{name} = {value}")
        connection.execute("DETACH other")


def _said(key: bytes) -> str:
    return f"x'{key.hex()}'"
