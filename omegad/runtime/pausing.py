"""Where omegad keeps off: nothing is kept of what agents' hosts tell, and nothing is told their agents.

A file in the home pauses it all, `paused_folders` in its config.toml or a `.omegad.toml` that says
`paused = true` pauses a folder and what is in it, and the variable OMEGAD_PAUSED pauses a session. Who reads
it asks nobody else, so that it holds at once and without a daemon. Of the standard library alone, and little
of it: hooks ask before they leave anything in the spool.
"""

import posix
import time

TYPE_CHECKING = False  # typing would be most of what importing costs
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FILE = "paused"
"""Of the home: when the pause ends, or ended, in seconds since 1970; nothing where somebody is to end it."""
MARKER = ".omegad.toml"
VARIABLE = "OMEGAD_PAUSED"
SETTING = "paused_folders"
CONFIGURATION = "config.toml"
LEVELS_MAX = 64
KIND, FOLDER, FILE_KIND = 0o170000, 0o040000, 0o100000
"""Of a file's mode: what kind it is, and that of folders and of files."""
BYTES_MAX = 1 << 20
NAMED_MAX, VALUES_MAX = 256, 10_000
PATH_CHARACTERS = 4_096
ABOUT = frozenset({"command", "cmd", "path", "file_path", "notebook_path"})
"""Under which hosts say what a tool is about: a path, or a command whose words may be some."""
NO_WORD = str.maketrans(dict.fromkeys("\"'`;|&<>()=,", " "))


def until(home: str) -> float | None:
    """Return when the pause of a home ends, in seconds since 1970, infinity where somebody is to end it;
    None where there is none.
    """
    try:
        ends = float(_read(f"{home}/{FILE}"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return float("inf")
    return ends if ends > time.time() else None


def ended(home: str) -> float:
    """Return when the last pause of a home ended, in seconds since 1970; 0 where that is not known, or it
    goes on.
    """
    try:
        ends = float(_read(f"{home}/{FILE}"))
    except (OSError, ValueError):
        return 0.0
    return ends if ends <= time.time() else 0.0


def of_home(home: str) -> str | None:
    """Say why all is paused; None where it is not."""
    ends = until(home)
    if ends is None:
        return None
    if ends == float("inf"):
        return "it is paused until `omegad resume`"
    return time.strftime("it is paused until %Y-%m-%d %H:%M UTC, or `omegad resume`", time.gmtime(ends))


def of_folders(home: str, folders: "Iterable[str]") -> str | None:
    """Say which file pauses one of these folders, or a folder that they are in; None where none does. Links
    are followed.
    """
    configured = _configured(home)
    if isinstance(configured, str):
        return configured
    names, seen = set[str](), set[tuple[int, int]]()
    for folder in folders:
        for one in _above(folder):
            if one in names:
                continue
            names.add(one)
            try:
                found = posix.stat(one)
            except (OSError, ValueError):
                continue
            place = (found.st_dev, found.st_ino)
            if place in seen:
                continue
            seen.add(place)
            if place in configured:
                return f"{SETTING} in {home}/{CONFIGURATION} names {configured[place]}"
            if _is_marked(one):
                return f"{one}/{MARKER} says so"
    return None


def named(said: object) -> list[str]:
    """Return the folders and files that a hook is about, by what its host says of it: what begins as a whole
    path does, of many in one folder the first, and the words of commands and of paths that begin where the
    session works.
    """
    work = said.get("cwd") if isinstance(said, dict) else None
    found, values, count = dict[str, str](), [("", said)], 0
    while values and len(found) < NAMED_MAX and count < VALUES_MAX:
        name, value = values.pop(0)
        count += 1
        if isinstance(value, str):
            if value.startswith("/"):
                path = value[:PATH_CHARACTERS]
                found.setdefault(path.rpartition("/")[0], path)
            if name in ABOUT:
                for word in value[:PATH_CHARACTERS].translate(NO_WORD).split():
                    path = _from(work, word.strip("-"))
                    found.setdefault(path, path)
        elif isinstance(value, dict):
            values += value.items()
        elif isinstance(value, list):
            values += [(name, one) for one in value]
    return list(found.values())[:NAMED_MAX]


def named_in(payload: bytes) -> list[str]:
    """Return what `named` does, for JSON that nobody has read; of what is none, its strings that begin as a
    whole path.
    """
    from json import loads  # noqa: PLC0415  hooks ask this where there is no daemon alone

    try:
        return named(loads(payload))
    except (ValueError, RecursionError):
        return named([part.partition('"')[0] for part in payload.decode("utf-8", "replace").split('"')])


def _from(work: object, word: str) -> str:
    """Return the path that a word names for who works in a folder."""
    if word.startswith("~/"):
        return _user_home() + word[1:]
    return word if word.startswith("/") or not isinstance(work, str) else f"{work}/{word}"


def _above(path: str) -> "Iterator[str]":
    """Yield a path, and the folders that it is in: by its name, then as the disk has it."""
    if "\0" in path:
        return
    steps = [step for step in path.split("/") if step not in {"", "."}][: 4 * LEVELS_MAX]
    for depth in range(len(steps), max(-1, len(steps) - LEVELS_MAX), -1):
        yield "/" + "/".join(steps[:depth])
    while steps and not _is_folder("/" + "/".join(steps)):
        steps.pop()
    for depth in range(1, min(len(steps), LEVELS_MAX)):
        yield "/" + "/".join(steps) + "/.." * depth


def _is_folder(path: str) -> bool:
    try:
        return posix.stat(path).st_mode & KIND == FOLDER
    except (OSError, ValueError):
        return False


def _is_marked(folder: str) -> bool:
    """Return whether a folder's own file pauses it. What cannot be read may say so, as a link to nothing."""
    try:
        posix.lstat(f"{folder}/{MARKER}")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    try:
        said = _read(f"{folder}/{MARKER}")
    except OSError:
        return True
    values = _toml(said)
    return values is None or bool(values.get("paused"))


def _configured(home: str) -> "dict[tuple[int, int], str] | str":
    """Return the folders that the configuration names, by their place on the disk; or why all is paused,
    where it names some and cannot be read.
    """
    try:
        said = _read(f"{home}/{CONFIGURATION}")
    except OSError:
        return {}
    if SETTING.encode() not in said:
        return {}  # reading it costs more than looking
    values = _toml(said)
    folders = [] if values is None else values.get(SETTING, [])
    if values is None or not isinstance(folders, list):
        return f"{home}/{CONFIGURATION} says {SETTING}, and cannot be read"
    found = {}
    for folder in map(str, folders):
        try:
            there = posix.stat(_user_home() + folder[1:] if folder.startswith("~/") else folder)
        except (OSError, ValueError):
            continue  # nothing can happen in it
        found[there.st_dev, there.st_ino] = folder
    return found


def _user_home() -> str:
    if home := posix.environ.get(b"HOME"):
        return home.decode("utf-8", "surrogateescape").rstrip("/")
    from pwd import getpwuid  # noqa: PLC0415  as good as never

    return getpwuid(posix.getuid()).pw_dir


def _toml(said: bytes) -> "dict[str, object] | None":
    """Return what TOML says, None where it is none."""
    import tomllib  # noqa: PLC0415  few homes and folders have anything to say

    try:
        return tomllib.loads(said.decode())
    except ValueError:
        return None


def _read(path: str) -> bytes:
    """Return what a file says. Raises `OSError`, for what is no file or too large as well."""
    file = posix.open(path, posix.O_RDONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)
    try:
        found = posix.fstat(file)
        if found.st_mode & KIND != FILE_KIND or found.st_size > BYTES_MAX:
            raise OSError(f"{path} is no file, or too large")
        return posix.read(file, BYTES_MAX)
    finally:
        posix.close(file)
