"""Files that are their owner's alone: read only where that is so, written so, and on the disk then."""

import os
import stat
from pathlib import Path

from omegad.runtime.errors import Unavailable

BYTES_MAX = 65_536
OTHERS = 0o177
"""Of a file's mode, what it may not have: anything for others, and that it is run."""


def read(path: Path, place: str) -> bytes:
    """Return what a file holds that is its owner's alone, its first 64 KiB. Raises `FileNotFoundError`, and
    `Unavailable` where it is otherwise, or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unavailable(
            f"{place} cannot be read: {error.strerror}",
            hint="it has to be a file of yours alone, and no link",
        ) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & OTHERS:
            raise Unavailable(
                f"{place} is not a file of yours alone (mode {stat.S_IMODE(found.st_mode):04o})",
                hint=f"chmod 600 {place}; where others could read the secret in it, have another made",
            )
        return os.read(descriptor, BYTES_MAX)
    finally:
        os.close(descriptor)


def write(path: Path, data: bytes) -> None:
    """Write a new file, for its owner alone whatever the umask says, and return when it is on the disk; its
    name may not be yet. Raises `OSError`, also where there is one already, and leaves nothing then.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def sync(path: Path) -> None:
    """Return when a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
