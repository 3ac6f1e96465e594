"""Where omegad keeps off: nothing is kept of what agents' hosts tell, and nothing is told their agents.

A file in the home pauses it all, `paused_folders` in its config.toml or a `.omegad.toml` that says
`paused = true` pauses a folder and what is in it, and the variable OMEGAD_PAUSED pauses a session. Who reads
it asks nobody else, so that it holds at once and without a daemon. Of the standard library alone, and little
of it: hooks ask before they leave anything in the spool.
"""

import posix
import re
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
LEVELS_MAX = 256
KIND, FOLDER, FILE_KIND, LINK = 0o170000, 0o040000, 0o100000, 0o120000
"""Of a file's mode: what kind it is, and that of folders, files and links."""
BYTES_MAX = 1 << 20
NAMED_MAX, VALUES_MAX, PLACES_MAX = 8_192, 10_000, 8
PATH_CHARACTERS, WORDS_CHARACTERS = 4_096, 256 << 10
PLACES = frozenset({"cwd", "workdir", "workingdirectory", "directory", "dirpath", "cd"})
"""Under which hosts say where a tool works; names are in small letters, without underscores."""
ABOUT = PLACES | {
    *("command", "cmd", "toolargs", "input", "patch", "pattern", "includepattern", "glob", "include"),
    *("path", "paths", "file", "files", "filepath", "absolutepath", "notebookpath", "targetfile"),
    *("relativeworkspacepath", "uri"),
}
"""Under which hosts say what a tool is about: paths, or a command or patch whose words may be some."""
_WORD = re.compile(r"""(?:\\.|"(?:[^"\\]|\\.)*+"|'[^']*+'|[^\s;|&<>()"'\\])++""", re.DOTALL)
_QUOTING = re.compile(r"""\\(.)|["']""", re.DOTALL)
_APART = re.compile(r"""[\s"'`;|&<>()=,:@{}\[\]]+""")
_PATCHED = re.compile(r"^\*\*\* [A-Z][A-Za-z ]*: (.+)$", re.MULTILINE)
_ENTERED = re.compile(r"""(?:\b(?:cd|pushd)|\s-C|--directory)[ =]+(?=\S)(?:--? +)*""")
_VARIABLE = re.compile(r"\$(?:\{(HOME|PWD)\}|(HOME|PWD)\b)/?")


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
        for one in _above(folder, names):
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
    path does, of many in one folder the first, and the words of paths, commands and patches, from where the
    session works and from every folder that the tool is told to work in or a command enters.
    """
    work = said.get("cwd") if isinstance(said, dict) else None
    found, about, values, count = dict[str, str](), list[tuple[str, str]](), [("", said)], 0
    while values and count < VALUES_MAX:
        name, value = values.pop(0)
        count += 1
        if isinstance(value, str):
            if value.startswith("/") and len(found) < NAMED_MAX:
                path = value[:PATH_CHARACTERS]
                found.setdefault(path.rpartition("/")[0], path)
            if (plain := name.replace("_", "").lower()) in ABOUT:
                about.append((plain, value[:WORDS_CHARACTERS]))
        elif isinstance(value, dict):
            values += value.items()
        elif isinstance(value, list):
            values += [(name, one) for one in value]
    places = _places(work if isinstance(work, str) else None, about)
    for word in dict.fromkeys(word for _, text in about for word in _words(text)):
        for place in places:
            if len(found) >= NAMED_MAX:
                return list(found.values())
            path = _from(place, word)
            found.setdefault(path, path)
    return list(found.values())


def _places(work: str | None, about: "list[tuple[str, str]]") -> "list[str | None]":
    """Return the folders from which words name files: where the session works, and what is entered."""
    places = [work]
    for name, text in about:
        entered = [text] if name in PLACES else []
        words = (_WORD.match(text, found.end()) for found in _ENTERED.finditer(text))
        entered += [_bare(word[0]) for word in words if word]
        for one in dict.fromkeys(entered):
            places = list(dict.fromkeys([*places, *(_from(place, one) for place in places)]))[:PLACES_MAX]
    return places


def _words(text: str) -> "Iterator[str]":
    """Yield what may be names of files in a path, a command or a patch."""
    if len(text) <= PATH_CHARACTERS and "\n" not in text:
        yield text
    yield from _PATCHED.findall(text)
    for word in _WORD.findall(text):
        yield _bare(word)
    for word in _APART.split(text):
        if word := word.strip("-"):
            yield word


def _bare(word: str) -> str:
    """Return a word of a shell without its quoting."""
    return _QUOTING.sub(lambda found: found[1] or "", word)


def named_in(payload: bytes) -> list[str]:
    """Return what `named` does, for JSON that nobody has read; of what is none, its strings that begin as a
    whole path.
    """
    from json import loads  # noqa: PLC0415  hooks ask this where there is no daemon alone

    try:
        return named(loads(payload))
    except (ValueError, RecursionError):
        return named([part.partition('"')[0] for part in payload.decode("utf-8", "replace").split('"')])


def _from(place: str | None, word: str) -> str:
    """Return the path that a word names for who works in a folder."""
    if variable := _VARIABLE.match(word):
        word = ("~/" if "HOME" in variable[0] else "./") + word[variable.end() :]
    if word.startswith("~/"):
        word = _user_home() + word[1:]
    return (word if word.startswith("/") or place is None else f"{place}/{word}")[:PATH_CHARACTERS]


def _above(path: str, names: set[str]) -> "Iterator[str]":
    """Yield a path, and the folders that it is in, by its name, then as the disk has it; none that is in
    *names*, to which they are added.
    """
    from posixpath import realpath  # noqa: PLC0415  hooks ask this where there is no daemon alone

    if "\0" in path:
        return
    steps = [step for step in path.split("/") if step not in {"", "."}]
    if steps and not _leads_on("/" + "/".join(steps)):
        steps.pop()
    if "/" + "/".join(steps) in names:
        return
    yield from _up(steps, names)
    try:
        real = realpath("/" + "/".join(steps))
    except (OSError, ValueError):
        return
    yield from _up(real.split("/")[1:], names)


def _up(steps: list[str], names: set[str]) -> "Iterator[str]":
    for depth in range(len(steps), max(-1, len(steps) - LEVELS_MAX), -1):
        name = "/" + "/".join(steps[:depth])
        if name not in names:
            names.add(name)
            yield name


def _leads_on(path: str) -> bool:
    """Return whether a path is that of a folder, or of a link, which may lead to another folder."""
    try:
        return posix.lstat(path).st_mode & KIND in {FOLDER, LINK}
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
