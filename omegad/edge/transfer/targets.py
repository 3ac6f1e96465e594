"""Where a copy of a log may go: never into a home, and in the place of nothing but an older copy."""

import os
import stat
from pathlib import Path

from omegad.edge.transfer import log_file
from omegad.runtime.errors import OmegadError, Refused

ELSEWHERE = "name a file outside the home"
MAGIC = b"SQLite format 3\0"
WITHOUT_WAL = b"\x01\x01"
"""What the header of a backup says where that of a log that is in use says that it has a write-ahead log."""


def check_outside(target: Path, home: Path) -> None:
    """Raise `Refused` where *target* lies in a home, by whichever name, or is one of the files of *home*.

    *home* is known by what it is, not by how it is spelled; another one by the lock that each home has.
    """
    for place in {Path(os.path.realpath(target.parent)), Path(os.path.realpath(target)).parent}:
        for folder in (place, *place.parents):
            if _is_same(folder, home) or (folder / "omegad.lock").is_file():
                raise Refused(f"{target} lies in the home {folder}", hint=ELSEWHERE)
    if target.exists() and home.is_dir() and any(_is_same(target, own) for own in home.iterdir()):
        raise Refused(f"{target} is a file of the home {home}", hint=ELSEWHERE)


def check_backup(path: Path) -> None:
    """Raise `Refused` unless *path* is what `omegad backup` made: a whole file with a log that is not in
    use. Its name does not count.
    """
    hint = "name another file, or move it away: only older backups are rotated"
    if not stat.S_ISREG(path.lstat().st_mode):
        raise Refused(f"{path} is no file, or a link", hint=hint)
    try:
        with path.open("rb") as file:
            header = file.read(20)
        if header[:16] != MAGIC or header[18:] != WITHOUT_WAL:
            raise Refused(f"{path} is no backup that omegad made", hint=hint)
        log_file.open_log(path).close()
    except (OSError, OmegadError) as error:
        raise Refused(
            f"{path} is no backup that omegad made, or cannot be read: {error}", hint=hint
        ) from error


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False
