"""Digests of what was said, made with a key of the home: without the key nobody finds by guessing what one is
of.

The key is a file of its own beside the log, in no backup and no export. Where it is lost, or the log was
taken to another home, digests made with it compare with nothing.
"""

import os
import secrets
import stat
from hashlib import blake2b
from pathlib import Path

from omegad.runtime import alone
from omegad.runtime.errors import StorageFailed

KEY_BYTES = 32
ID_BYTES = 4
DIGEST_BYTES = 16
UNFINISHED = ".unfinished"


class DigestKey:
    """Makes digests, each behind the short id of the key."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._id = blake2b(key, digest_size=ID_BYTES, person=b"omegad/key").digest()

    def of(self, data: bytes) -> bytes:
        """Return the digest of *data*."""
        return self._id + blake2b(data, key=self._key, digest_size=DIGEST_BYTES).digest()

    def named(self, name: str) -> str:
        """Return a name that ends with a hyphen and a digest that was made without a key, with one of that
        digest in its place, hexadecimal.
        """
        before, _, digest = name.rpartition("-")
        return f"{before}-{self.of(digest.encode()).hex()}"


def differ(one: bytes, other: bytes) -> bool:
    """Say whether two digests are of different data; False where they were made with different keys, or by
    none, and cannot be compared.
    """
    is_comparable = len(one) == len(other) == ID_BYTES + DIGEST_BYTES and one[:ID_BYTES] == other[:ID_BYTES]
    return is_comparable and one != other


def opened(path: Path) -> DigestKey:
    """Read the key at *path*; make one where there is none, or what there is cannot be one. Raises
    `StorageFailed`.
    """
    try:
        key = _read(path)
        if key is None or len(key) != KEY_BYTES:
            key = _made(path)
    except OSError as error:
        raise StorageFailed(
            f"{path}: {error.strerror or error}",
            hint=f"make {path} a file of yours alone, or remove it: another is made",
        ) from error
    return DigestKey(key)


def _read(path: Path) -> bytes | None:
    """Return what a file holds, which is this user's alone from then on; None where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
            os.fchmod(descriptor, 0o600)
        return file.read(KEY_BYTES + 1)


def _made(path: Path) -> bytes:
    """Write a new key, which has its name only once it is on the disk."""
    key, part = secrets.token_bytes(KEY_BYTES), path.with_name(path.name + UNFINISHED)
    part.unlink(missing_ok=True)
    alone.write(part, key)
    part.replace(path)
    alone.sync(path.parent)
    return key
