"""Where in which repository a file is, and when it changed."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import unquote

from omegad.runtime.repository import GITDIR, LEVELS_MAX, first_line

FILE_URI = "file:"
PATH_CHARACTERS = 4_096
PATTERN = frozenset("*?[")
FOUND_MAX = 1_024  # of a pattern


class Location(NamedTuple):
    """Where a file is: the common folder of its repository, its work tree, and its path there; both are ""
    outside git, and the path whole.
    """

    repository: str
    worktree: str
    path: str


def name_of(folder: str | None) -> str | None:
    """Return a folder's own name, without a look at it."""
    return Path(folder or "").name or None


def by_disk(
    paths: Iterable[str], folder: str | None, disk: Callable[[str], str]
) -> list[tuple[str, list[str]]]:
    """Return paths by the disks that they lie on, since one may not answer, each with the folder of the
    first; no disk is asked for that.
    """
    found: dict[str, tuple[str, list[str]]] = {}
    for path in paths:
        near = str(Path(normpath(Path(folder or "/", _plain(path)))).parent)
        found.setdefault(disk(near), (near, []))[1].append(path)
    return list(found.values())


def locations_of(paths: Iterable[str], folder: str | None) -> list[Location | None]:
    """Return where files are, links followed, whether or not they exist; None for what cannot be a file's
    path. Relative ones are *folder*'s.

    A path may begin with the person's folder (`~/`), or be a URI (`file://`).
    """
    known: dict[Path, Location] = {}
    return [_location(Path(folder or "", _plain(path)), known) for path in paths]


def locations_matching(patterns: Iterable[str], folder: str | None) -> list[Location | None]:
    """Return where the files are that a shell would put in the place of these words, or that they name."""
    found = [(word, *(_matching(word) if PATTERN.intersection(word) else ())) for word in patterns]
    return locations_of([path for paths in found for path in paths], folder)


def _matching(pattern: str) -> list[str]:
    with suppress(OSError, ValueError, NotImplementedError):  # what is no pattern names what it says
        return [str(path) for path in islice(Path("/").glob(pattern.lstrip("/")), FOUND_MAX)]
    return []


def same_as(path: str, others: Iterable[str]) -> list[str]:
    """Return those of other whole paths that are the same file under another name: a hard link, a name in
    other case, a folder mounted twice.
    """
    found = list[str]()
    with suppress(OSError, ValueError):
        own = Path(path).lstat()
        for other in others:
            with suppress(OSError, ValueError):
                its = Path(other).lstat()
                if (its.st_ino, its.st_dev) == (own.st_ino, own.st_dev) and other != path:
                    found.append(other)
    return found


def repository_of(folder: str) -> str:
    """Return the common folder of the repository that holds *folder*, "" outside git."""
    place = _location(Path(folder, "file"), {})
    return place.repository if place else ""


def changed_us(path: str, *, has_been: bool) -> int:
    """Return when a file changed last, in microseconds since 1970; where it is gone but *has_been*, when
    the nearest folder did; else 0.
    """
    for one in (Path(path), *Path(path).parents) if has_been else (Path(path),):
        try:
            return one.lstat().st_ctime_ns // 1_000
        except (OSError, ValueError):  # a name that no file can have
            continue
    return 0


def _plain(path: str) -> str:
    """Return a path without what only stands for a part of it, or says that it is one."""
    if path[: len(FILE_URI)].lower() == FILE_URI:
        rest = path[len(FILE_URI) :]
        path = unquote(rest if not rest.startswith("//") else "/" + rest[2:].partition("/")[2])
    if path.startswith("~/"):
        with suppress(RuntimeError):  # nobody knows the person's folder
            return str(Path(path).expanduser())
    return path


def _location(path: Path, known: dict[Path, Location]) -> Location | None:
    whole = str(path)
    if not path.is_absolute() or "\0" in whole or len(whole) > PATH_CHARACTERS:
        return None
    try:
        if path.name == ".." or path.is_symlink():
            path = path.resolve()
        if path.parent not in known:
            known[path.parent] = _found(path.parent.resolve())
    except (OSError, RuntimeError):  # links that lead to each other are a RuntimeError before Python 3.13
        return None
    folder = known[path.parent]
    return folder._replace(path=str(Path(folder.path, path.name)))


def _found(folder: Path) -> Location:
    for root in (folder, *folder.parents)[:LEVELS_MAX]:
        git = root / ".git"
        if git.is_dir():
            return Location(str(git), str(root), str(folder.relative_to(root)))
        if git.is_file():
            # A work tree's, see gitrepository-layout(5), or a submodule's.
            own = root / first_line(str(git)).removeprefix(GITDIR)
            with suppress(FileNotFoundError):
                own /= first_line(str(own / "commondir"))
            return Location(str(own.resolve()), str(root), str(folder.relative_to(root)))
    return Location("", "", str(folder))
