"""Finds `git push` in a line of shell: in which folder, of which repository, with which arguments; and what a
line moves or removes.

What cannot be known before the line runs, as what a variable holds, is None, and is left to the hook that git
itself runs.
"""

import re
from collections.abc import Iterator
from os.path import basename, expanduser, join
from typing import NamedTuple

COMMAND_CHARACTERS_MAX = 64 * 1024
DEPTH_MAX = 3  # of shells that are given a line to run

Word = str | None

_PIECE = re.compile(
    r"""
      (?P<space>(?:[ \t\r]|\\\n)+)
    | (?P<end>\n|;|&&?(?!>)|\|\|?)
    | (?P<open>\()
    | (?P<close>\))
    | (?P<tick>`)
    | (?P<joined>[0-9]*[<>]&[0-9-]+)       # 2>&1, which has no word after it
    | (?P<redirect>&>>?|[0-9]*(?:>>|<<<|<<-?|<>|>\||[<>]))
    | '(?P<single>[^']*)'
    | "(?P<double>(?:[^"\\]|\\.)*)"
    | \\(?P<escaped>.)
    | (?P<plain>[^\s;&|()<>'"`\\]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_DOCUMENT = re.compile(r"""(?<!<)<<-?(?!<)[ \t]*(['"]?)(\w{1,64})\1""")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_LETTER = re.compile(r"-[A-Za-z]")
_INNER = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
"""Commands whose output is put into what stands in quotes."""
_AMOUNT = re.compile(r"[0-9.]+[smhd]?")

_BEFORE_TEXT = """
! { if then elif else while until do time command builtin exec coproc nohup env sudo doas nice ionice setsid
stdbuf timeout xargs
"""
BEFORE = frozenset(_BEFORE_TEXT.split())
"""What may stand before the command of a line, each with options and amounts of its own."""
SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh"))
TAKING = frozenset(("mv", "rm", "rmdir", "unlink", "trash"))
"""What moves or removes the files that it names."""
COMMANDS = SHELLS | TAKING | {"git", "cd", "pushd", "eval"}
"""What is looked into."""
_KEEPS_TEXT = """
add commit diff fetch grep log ls-files notes push rev-parse shortlog show status tag version
"""
KEEPS = frozenset(_KEEPS_TEXT.split())
"""What of git leaves the branches where they are, or takes the current one further."""
WITH_VALUE = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix")
)
PLACES = {"GIT_DIR": "--git-dir", "GIT_WORK_TREE": "--work-tree"}
SETTINGS = ("branch.", "push.", "remote.", "url.")
"""What of git's configuration says where a push goes, and what it pushes."""


WORDS = ("single", "double", "escaped", "plain")
"""The pieces that words consist of."""


class Push(NamedTuple):
    """A `git push`: the folder it runs in, git's own options that say which repository it is about, and
    what comes after `push`.
    """

    folder: Word
    where: tuple[Word, ...]
    arguments: tuple[Word, ...]
    is_moved: bool = False
    """Whether something before it in the line may change what is pushed."""


class _State:
    """Where a line has come to."""

    def __init__(self, folder: Word, depth: int) -> None:
        self.folder = folder
        self.outside: list[Word] = []  # the folder before each parenthesis that is open
        self.is_moved = False
        self.depth = depth
        self.away = list[str]()  # what is moved or removed


def pushes(command: str | list[str], folder: str) -> list[Push]:
    """Return the pushes that a line of shell, or a command that is given as its words, runs in *folder*, as
    far as they can be seen in it; of a line that is too long, none.
    """
    return _seen(command, _State(folder, 0))


def taken_away(command: str | list[str], folder: str) -> list[str]:
    """Return the paths of the files and folders that a command moves or removes, as far as they can be
    seen in it; some may be patterns.
    """
    state = _State(folder, 0)
    _seen(command, state)
    return state.away


def _seen(command: str | list[str], state: _State) -> list[Push]:
    """Return the pushes of a command, which is a line or the list of its words."""
    if isinstance(command, list):
        return list(_in_command(list(command), state))
    return list(_in_line(command, state)) if len(command) <= COMMAND_CHARACTERS_MAX else []


def _in_line(command: str, state: _State) -> Iterator[Push]:
    words, word = list[Word](), list[Word]()
    skips, is_within = False, False  # the word after a redirection; backticks
    for kind, text in _pieces(_without_documents(command)):
        if kind in WORDS:
            word.append(_text(kind, text))
            for inner in _INNER.finditer(text) if kind == "double" else ():
                yield from _within(inner[1] or inner[2] or "", state)
            continue
        if kind == "tick":
            is_within = not is_within
            word += [None] if is_within and (words or word) else []  # the word of a command around it
        if word:
            words += [] if skips else [None if None in word else "".join(map(str, word))]
            word, skips = [], False
        if kind in ("redirect", "joined"):
            skips = kind == "redirect"
        elif kind != "space":
            yield from _in_command(words, state)
            words = []
            # A folder that is changed within a parenthesis stays there.
            if kind == "open":
                state.outside.append(state.folder)
            elif kind == "close" and state.outside:
                state.folder = state.outside.pop()


def _pieces(command: str) -> Iterator[tuple[str, str]]:
    """Yield what a line consists of, and its end; nothing more from a quotation on that does not end."""
    place, kind = 0, ""
    while place < len(command):
        if command[place] == "#" and kind not in WORDS:
            place = min(
                command.find("\n", place) % (len(command) + 1), len(command)
            )  # the end where there is no other line
            continue
        piece = _PIECE.match(command, place)
        if piece is None:
            return
        place, kind = piece.end(), str(piece.lastgroup)
        yield kind, piece[kind]
    yield "end", ""


def _text(kind: str, text: str) -> Word:
    """Return what a piece stands for; None where the shell puts something else in its place."""
    if kind in ("single", "escaped"):
        return text
    if "$" in text or "`" in text:
        return None
    return re.sub(r'\\([\\"$`\n])', r"\1", text) if kind == "double" else text


def _without_documents(command: str) -> str:
    """Return a line without the documents that it holds for its commands to read."""
    if "<<" not in command:
        return command
    lines, ends = list[str](), list[str]()
    for line in command.split("\n"):
        if ends:
            if line.strip() == ends[0]:
                ends.pop(0)
            continue
        lines.append(line)
        ends += [found[2] for found in _DOCUMENT.finditer(line)]
    return "\n".join(lines)


def _in_command(words: list[Word], state: _State) -> Iterator[Push]:
    """Return the pushes of one command, and note what it changes for those after it."""
    place, where = 0, list[Word]()
    while place < len(words):
        word = words[place]
        if word is not None and (assigned := _ASSIGNMENT.fullmatch(word)):
            if assigned[1] in PLACES:
                where += [PLACES[assigned[1]], assigned[2]]
        elif word is None or not (word in BEFORE or (place and _is_option(word, words[place - 1]))):
            break
        place += 1
    name, rest = (basename(words[place] or ""), words[place + 1 :]) if place < len(words) else ("", [])
    if name in ("cd", "pushd"):
        state.folder = _entered(state.folder, rest)
    elif name in SHELLS:
        yield from _in_shell(rest, state)
    elif name in TAKING:
        _take(name, rest, state.folder, state)
    elif name == "eval" and None not in rest:
        yield from _within(" ".join(map(str, rest)), state)
    elif name == "git":
        yield from _in_git(rest, where, state)


def _take(name: str, words: list[Word], folder: Word, state: _State) -> None:
    """Note what a command moves or removes: for `mv` all but the last of its names."""
    end = words.index("--") if "--" in words else len(words)
    is_into = name == "mv" and any(
        word and (word == "-t" or word.startswith("--target-directory")) for word in words[:end]
    )
    skipped = words.index("-t") + 1 if "-t" in words[:end] and is_into else -1
    names = [
        word
        for place, word in enumerate(words)
        if place > end or (place != skipped and not (word or "").startswith("-"))
    ]
    if name == "mv" and not is_into:
        names = names[:-1]
    state.away += [join(folder, expanduser(word)) for word in names if word and folder is not None]


def _is_option(word: str, before: Word) -> bool:
    """Say whether a word belongs to what stands before the command of a line: an option, an amount, or
    what an option of one letter is given.
    """
    if word.startswith("-") or _AMOUNT.fullmatch(word):
        return True
    return before is not None and _LETTER.fullmatch(before) is not None and basename(word) not in COMMANDS


def _within(line: str, state: _State) -> Iterator[Push]:
    """Return the pushes of a line within a line."""
    if state.depth < DEPTH_MAX:
        inner = _State(state.folder, state.depth + 1)
        inner.is_moved, inner.away = state.is_moved, state.away
        yield from _in_line(line, inner)


def _entered(folder: Word, words: list[Word]) -> Word:
    target = next((word for word in words if word is None or not word.startswith("-")), "~")
    return None if folder is None or target is None else join(folder, expanduser(target))


def _in_shell(words: list[Word], state: _State) -> Iterator[Push]:
    """Return the pushes of a line that is given to another shell."""
    for place, word in enumerate(words[:-1]):
        line = words[place + 1]
        if word and re.fullmatch(r"-[a-z]*c", word) and line:
            yield from _within(line, state)
            return


def _in_git(words: list[Word], where: list[Word], state: _State) -> Iterator[Push]:
    place = 0
    while place < len(words) and (word := words[place]) is not None and word.startswith("-"):
        option, _, value = word.partition("=")
        if option in WITH_VALUE and not value:
            place += 1
        given = value or (words[place] if place < len(words) else None)
        if option in ("-C", "--git-dir", "--work-tree") or (
            option == "-c" and (given is None or given.lower().startswith(SETTINGS))
        ):
            where = [*where, option, given]
        place += 1
    subcommand = words[place] if place < len(words) else None
    if subcommand in ("mv", "rm") and "--cached" not in words:
        given = where[where.index("-C") + 1] if "-C" in where else "."
        _take(
            str(subcommand),
            words[place + 1 :],
            None if given is None else _entered(state.folder, [given]),
            state,
        )
    if subcommand == "push":
        yield Push(state.folder, tuple(where), tuple(words[place + 1 :]), state.is_moved)
    elif subcommand not in KEEPS or "--amend" in words:
        state.is_moved = True
