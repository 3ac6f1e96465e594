"""The files of a folder that omegad made there: known by their exact names, and never reached through a link.

Whatever else lies beside them is somebody's. So is a folder that a link leads to, whoever made the link.
"""

import re
from pathlib import Path

from omegad.runtime.errors import StorageFailed


def is_own(folder: Path) -> bool:
    """Say whether *folder* is there, and is a folder itself."""
    return folder.is_dir() and not folder.is_symlink()


def check(folder: Path) -> None:
    """Raise `StorageFailed` where a link has the name of a folder of the home."""
    if folder.is_symlink():
        raise StorageFailed(
            f"{folder} is a link, and has to be a folder of the home itself", hint="move the link away"
        )


def make(folder: Path) -> None:
    """Have a folder for this user alone. Raises as `check` does, and `OSError`."""
    check(folder)
    folder.mkdir(mode=0o700, exist_ok=True)


def named(folder: Path, name: re.Pattern[str]) -> list[Path]:
    """Return what in *folder* has a name that is *name* as a whole, in order; nothing where that is no
    folder, or one of somebody else.
    """
    try:
        return (
            sorted(path for path in folder.iterdir() if name.fullmatch(path.name)) if is_own(folder) else []
        )
    except (FileNotFoundError, PermissionError):  # it went meanwhile, or is closed to this user
        return []
