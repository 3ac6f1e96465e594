"""Files that get their names only when they are complete, and are on the disk then."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from omegad.errors import Refused

SIDE_FILES = ("-wal", "-shm", "-journal")


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """Make an empty file beside *target*, for this user alone, and yield its path; what is left of it after the block is removed.

    So is what was left by processes that were killed in the middle.
    """
    remove_left(target)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600))
        yield part
    finally:
        for suffix in ("", *SIDE_FILES):
            part.with_name(part.name + suffix).unlink(missing_ok=True)


def remove_left(target: Path) -> None:
    """Remove the unfinished copies of *target* whose processes are gone; each may be as large as the whole."""
    for part in target.parent.glob(f".{escape(target.name)}.*.part*"):
        number = part.name.removeprefix(f".{target.name}.").partition(".")[0]
        if number.isdigit() and not _runs(int(number)):
            part.unlink(missing_ok=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def check_name(target: Path, keep: int) -> None:
    """Raise `Refused` where *target* is there and is not to be kept beside a newer one."""
    if keep == 1 and target.exists():
        raise Refused(f"{target} is there already", hint="name another file, or remove that one")


def finish(part: Path, target: Path, keep: int = 1) -> None:
    """Give *part* its name. A file that has it becomes `NAME.1`, that one `NAME.2`, and so on, so that *keep* of them are left.

    Whatever interrupts it, every file but the oldest is still there.
    """
    check_name(target, keep)
    sync(part)
    for number in range(keep - 1, 0, -1):
        newer = target if number == 1 else target.with_name(f"{target.name}.{number - 1}")
        if newer.exists():
            newer.replace(target.with_name(f"{target.name}.{number}"))
    part.rename(target)
    sync(target.parent)


def sync(path: Path) -> None:
    """Return when a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
