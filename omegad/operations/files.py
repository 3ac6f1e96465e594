"""Files that get their names only when they are complete, and are on the disk then."""

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from omegad.runtime import alone
from omegad.runtime.errors import Refused, StorageFailed, StorageFull
from omegad.storage import own_files

SIDE_FILES = ("-wal", "-shm", "-journal")
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """Make an empty file beside *target*, for this user alone, and yield its path; what is left of it after
    the block is removed.

    So is what was left by processes that were killed in the middle. Raises `StorageFailed` where nothing can
    be written there, and `StorageFull` where the block finds the disk full.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        remove_left(target)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        if error.errno in FULL:
            raise _full(target) from error
        raise StorageFailed(
            f"{target} cannot be written: {error.strerror}", hint="name a file elsewhere, where you may write"
        ) from error
    try:
        yield part
    except StorageFull as error:
        raise _full(target) from error
    except OSError as error:
        if error.errno in FULL:
            raise _full(target) from error
        raise
    finally:
        for suffix in ("", *SIDE_FILES):
            part.with_name(part.name + suffix).unlink(missing_ok=True)


def _full(target: Path) -> StorageFull:
    return StorageFull(
        f"{target} was not written: the disk that it is on is full",
        hint="free some space there, or name another place",
    )


def remove_left(target: Path) -> None:
    """Remove the unfinished copies of *target* whose processes are gone; each may be as large as the
    whole.
    """
    name = re.compile(rf"\.{re.escape(target.name)}\.([1-9][0-9]*)\.part({'|'.join(SIDE_FILES)})?")
    for part in own_files.named(target.parent.resolve(), name):
        if (found := name.fullmatch(part.name)) and not _runs(int(found[1])):
            part.unlink(missing_ok=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


Check = Callable[[Path], None]
"""Raises `Refused` for a file that may not be renamed, and in the end removed, to make room for a newer
one.
"""


def nothing_there(path: Path) -> None:
    """Refuse every file."""
    raise Refused(f"{path} is there already", hint="name another file, or remove that one")


def check_names(target: Path, keep: int, check: Check) -> None:
    """Raise what *check* does of one of the *keep* names that begin with *target*."""
    for path in _names(target, keep):
        if os.path.lexists(path):
            check(path)


def finish(part: Path, target: Path, keep: int = 1, check: Check = nothing_there) -> None:
    """Give *part* its name. A file that has it becomes `NAME.1`, that one `NAME.2`, and so on, so that *keep*
    of them are left.

    Whatever interrupts it, every file but the oldest is still there. Raises what *check* does of one of them,
    and changes nothing.
    """
    check_names(target, keep, check)
    alone.sync(part)
    for newer, older in reversed([*pairwise(_names(target, keep))]):
        if newer.exists():
            newer.replace(older)
    part.rename(target)
    alone.sync(target.parent)


def _names(target: Path, keep: int) -> list[Path]:
    return [target, *(target.with_name(f"{target.name}.{number}") for number in range(1, keep))]
