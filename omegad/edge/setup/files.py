"""Other people's files: read with suspicion, written all at once or not at all, and kept as they first
were.
"""

import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from omegad.operations.files import unfinished
from omegad.runtime import alone
from omegad.runtime.errors import Conflict, Invalid, Refused

BYTES_MAX = 32 * 1024 * 1024
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
SHARED_FILE = 0o644
ABSENT = ".absent"


def read(path: Path) -> str | None:
    """Return a file's text with its line ends and byte order mark; None where there is none.

    Raises `Refused` for what is no plain file or too large, and `Invalid` for what is not UTF-8.
    """
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(status.st_mode):
        raise Refused(
            f"{path} is a symbolic link, and was skipped",
            hint=f"give {path.resolve()} what `omegad setup` shows by hand, or make the file a plain one",
        )
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{path} is not a file", hint="move it out of the way")
    if status.st_size > BYTES_MAX:
        raise Refused(f"{path} is larger than {BYTES_MAX:,} bytes", hint="see what fills it")
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise Invalid(
            f"{path} is not UTF-8", hint="mend the file by hand, then run it again; nothing was changed in it"
        ) from error


def write(path: Path, before: str | None, after: str | None, *, mode: int = PRIVATE_FILE) -> None:
    """Replace a file at once, keeping its mode; a new one gets *mode*, and None removes it.

    Raises `Conflict` where the file is not *before* any more.
    """
    if read(path) != before:
        raise Conflict(f"{path} was changed by someone else meanwhile", hint="run it again")
    if after is None:
        path.unlink(missing_ok=True)
        return
    if before is not None:
        mode = stat.S_IMODE(path.stat().st_mode)
    path.parent.mkdir(parents=True, exist_ok=True)
    with unfinished(path) as part:
        part.write_bytes(after.encode())
        part.chmod(mode)
        alone.sync(part)
        part.replace(path)


class Original(NamedTuple):
    """How a file was before setup first changed it: its text or None, and the folders that there were none
    of.
    """

    text: str | None
    folders: tuple[str, ...] = ()


class Originals:
    """The first backup of every changed file, in a folder that mirrors where they are. One of a file that
    was not there ends in .absent.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, path: Path) -> Original | None:
        """Return how a file was; None where setup has not changed it."""
        kept, absent = self._copies(path)
        if absent.exists():
            return Original(None, tuple(absent.read_text(encoding="utf-8").splitlines()))
        text = read(kept)
        return None if text is None else Original(text)

    def keep(self, path: Path, text: str | None) -> None:
        """Keep how a file is, unless it is kept already."""
        if self.of(path) is not None:
            return
        kept, absent = self._copies(path)
        self.folder.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        kept.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        if text is None:
            write(absent, None, "".join(f"{folder}\n" for folder in path.parents if not folder.exists()))
        else:
            write(kept, None, text)

    def forget(self, path: Path) -> None:
        """Drop the backup of a file that is again as it was, and the folders made for it, as far as they
        are empty.
        """
        original = self.of(path)
        for place in self._copies(path):
            place.unlink(missing_ok=True)
        kept, _ = self._copies(path)
        mirrors = [folder for folder in kept.parents if folder.is_relative_to(self.folder)]
        made = map(Path, original.folders if original else ())
        for folder in (*made, *mirrors):
            with suppress(OSError):  # something else is in it
                folder.rmdir()

    def _copies(self, path: Path) -> tuple[Path, Path]:
        kept = self.folder / path.relative_to(path.anchor)
        return kept, kept.with_name(kept.name + ABSENT)
