"""What agents' tools are given: which command a shell, read off the beginning of its input as the audit keeps
it; and which of them change files, and where each says which: under which keys of its input it has paths, or
that it is given a patch.

Names and keys are compared without case, spaces and punctuation, so that `apply_patch` is `applyPatch`, and a
name may have that of a server of MCP before it. The names are those that each host's own source or
documentation gives its tools; a tool that nobody knows changes what it names where its name says so. What
only reads is never among them.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from posixpath import join
from typing import NamedTuple

import msgspec

SHELLS = frozenset({"bash", "shell", "exec_command", "run_shell_command", "local_shell"})
_BEGINS = re.compile(r'"(?:command|cmd)": ?(?:("(?:[^"\\]|\\.)*+"?)|\[((?:"(?:[^"\\]|\\.)*+"?,? ?)*+\]?))')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?')
_BEFORE = re.compile(r"cd [^&;|]{1,200}&& ?")
_AFTER = re.compile(r"(?: ?2>&1)?(?: ?\| ?(?:tail|head)(?: -n)?(?: -?[0-9]{1,5})?)?$")

FILES_MAX = 1_024
DEPTH_MAX = 2
SCHEME = "file:"

_FILE = (
    "filepath",
    "path",
    "file",
    "filename",
    "targetfile",
    "absolutepath",
    "relativepath",
    "notebookpath",
    "pathinproject",
    "uri",
    "paths",
    "files",
    "filepaths",
)
_SOURCE = ("source", "sourcepath", "src", "oldpath", "from")
_DESTINATION = ("destination", "destinationpath", "dst", "newpath", "to")
_MOVED = (*_SOURCE, *_DESTINATION)
_PATCH = ("patch", "patchtext", "input", "command", "diff")
_FOLDER = ("workdir", "workingdirectory", "cwd")

TOOLS: dict[str, tuple[str, ...]] = {
    # Claude Code (code.claude.com/docs/en/tools-reference); OpenCode (packages/opencode/src/tool) and Copilot
    # CLI have some of the same names
    "edit": _FILE,
    "write": _FILE,
    "multiedit": _FILE,
    "notebookedit": _FILE,
    # Anthropic's text editor (platform.claude.com, text editor tool), which also reads, by its command
    "strreplacebasededittool": _FILE,
    "strreplaceeditor": _FILE,
    "strreplace": _FILE,
    "create": _FILE,
    "insert": _FILE,
    # the reference server of MCP for file systems (modelcontextprotocol/servers, src/filesystem), and
    # Gemini CLI's definitions/base-declarations.ts
    "writefile": _FILE,
    "editfile": _FILE,
    "movefile": _MOVED,
    "replace": _FILE,
    # Codex, in openai/codex: codex-rs/apply-patch
    "applypatch": _PATCH,
    "patch": _PATCH,
    # VS Code (microsoft/vscode-copilot-chat, tools/common/toolNames.ts), whose contributed names have
    # `copilot_` before them
    "createfile": _FILE,
    "editfiles": _FILE,
    "editnotebook": _FILE,
    "editnotebookfile": _FILE,
    "inserteditintofile": _FILE,
    "insertedit": _FILE,
    "replacestring": _FILE,
    "replacestringinfile": _FILE,
    "multireplacestring": _FILE,
    "multireplacestringinfile": _FILE,
    # Cursor
    "searchreplace": _FILE,
    "deletefile": _FILE,
    "delete": _FILE,
    "reapply": _FILE,
    # Devin Desktop, which was Windsurf
    "replacefilecontent": _FILE,
    "multireplacefilecontent": _FILE,
    "writetofile": _FILE,
    # Zed, in zed-industries/zed: crates/agent/src/tools
    "deletepath": _FILE,
    "movepath": _MOVED,
    "copypath": _DESTINATION,
    "savefile": _FILE,
    "restorefilefromdisk": _FILE,
    # Cline and Roo Code (RooCodeInc/Roo-Code, native-tools)
    "replaceinfile": _FILE,
    "applydiff": _FILE,
    "insertcontent": _FILE,
    "searchandreplace": _FILE,
}
"""The keys that hold paths, or for those that take one a patch, by the name of the tool."""

_MOVES = frozenset(("move", "rename", "relocate"))
_PATCHES = frozenset(("apply", "patch"))
_PUTS_TEXT = """
edit write overwrite rewrite create insert append prepend save add touch apply patch
"""
_PUTS = frozenset(_PUTS_TEXT.split())
_ALTERS = frozenset(
    ("replace", "update", "modify", "change", "delete", "remove", "truncate", "refactor", "format", "fix")
)
_TAKES = _MOVES | {"delete", "remove"}
"""What may be done to a folder, and is done to all that lies in it."""
_WRITES = _MOVES | _PUTS | _ALTERS
_READS_TEXT = """
read view get list search find grep show diff check preview describe fetch query
"""
_READS = frozenset(_READS_TEXT.split())
_FOLDERS = frozenset(("directory", "directories", "dir", "folder", "folders"))
_LOOKS = frozenset(("view", "read", "list"))
"""What a tool of many commands is told where it is to change nothing."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SERVER = re.compile(r"^(?:mcp__.+?__|mcp:|copilot_)", re.IGNORECASE)
_URI = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
# Spaces before a marker are taken for none, as Codex does.
_PATCHED = re.compile(
    r"^[ \t]*\*\*\* (?:(?:Update|Add|Delete) File|Move to):[ \t]*(\S[^\r\n]{0,4095})", re.MULTILINE
)
_DIFFERS = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?([^\t\r\n]{1,4096})", re.MULTILINE)
PATCH_BEGINS = "*** Begin Patch"
_APPLIES = re.compile(r"\bapply_?patch\b")


def changed(tool_name: str, tool_input: object) -> tuple[str, ...]:
    """Return the paths of the files that a call is to change, as it says them; none where it changes none."""
    given = _fields(tool_input)
    told = _joined(given.get("command", given.get("cmd")))
    # Codex itself applies a patch wherever a command does.
    if PATCH_BEGINS in told and _APPLIES.search(told[: told.index(PATCH_BEGINS)]):
        folder = next((one for key, one in given.items() if key in _FOLDER and isinstance(one, str)), "")
        return tuple(join(folder, path) for path in _patched(_text(given)))
    keys = _keys(tool_name)
    if keys is None or _joined(given.get("command")) in _LOOKS or given.get("dryrun") is True:
        return ()
    found = (
        _patched(tool_input if isinstance(tool_input, str) and not given else _text(given))
        if keys is _PATCH
        else ()
    )
    return tuple(dict.fromkeys(found or _paths(given, _FILE if keys is _PATCH else keys)))[:FILES_MAX]


def changes(tool_name: str) -> bool:
    """Say whether a tool changes files."""
    return _keys(tool_name) is not None


def read(tool_name: str, tool_input: object) -> tuple[str, ...]:
    """Return the paths of the files that a call has read, as it says them; none where it looks for some."""
    words = [word.lower() for word in _WORD.findall(_SERVER.sub("", tool_name))]
    is_read = not {"read", "view", "open"}.isdisjoint(words) and _FOLDERS.isdisjoint(words)
    return tuple(dict.fromkeys(_paths(_fields(tool_input), _FILE)))[:FILES_MAX] if is_read else ()


@lru_cache(maxsize=1024)
def _keys(tool_name: str) -> tuple[str, ...] | None:
    """Return the keys of a tool's input that name what it changes, None for one that changes nothing."""
    words = [word.lower() for word in _WORD.findall(_SERVER.sub("", tool_name))]
    for start in range(len(words)):  # a server's name may stand before it with nothing to tell them apart
        if (known := TOOLS.get("".join(words[start:]))) and (start == 0 or len(words) - start > 1):
            return known
    if (
        (_FOLDERS.intersection(words) and not _TAKES.intersection(words))
        or not _WRITES.intersection(words)
        or (words[0] in _READS and "replace" not in words)
    ):
        return None
    if _PATCHES.intersection(words):
        return _PATCH
    return (*_FILE, *_MOVED) if _MOVES.intersection(words) else _FILE


def _fields(tool_input: object) -> dict[str, object]:
    """Return the input of a tool by its keys without case and punctuation; some hosts give it as JSON in a
    text.
    """
    if isinstance(tool_input, str) and tool_input.lstrip()[:1] == "{":
        try:
            tool_input = msgspec.json.decode(tool_input)
        except (msgspec.DecodeError, RecursionError):
            return {}
    return (
        {_plain(str(key)): value for key, value in tool_input.items()}
        if isinstance(tool_input, Mapping)
        else {}
    )


def _plain(key: str) -> str:
    return "".join(filter(str.isalnum, key)).lower()


def _text(given: Mapping[str, object]) -> str:
    return next((text for key in (*_PATCH, "cmd") if (text := _joined(given.get(key)))), "")


def _joined(value: object) -> str:
    if isinstance(value, list | tuple):
        return "\n".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _patched(patch: str) -> tuple[str, ...]:
    """Return the files that a patch changes, in Codex's form or that of diff."""
    found = _PATCHED.findall(patch) or [one for one in _DIFFERS.findall(patch) if one != "/dev/null"]
    return tuple(dict.fromkeys(one.strip() for one in found))[:FILES_MAX]


def _paths(given: Mapping[str, object], keys: tuple[str, ...], depth: int = 0) -> Iterator[str]:
    """Yield what stands under these keys, also in lists and in the fields of each of a list."""
    for key, value in given.items():
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, Mapping) and depth < DEPTH_MAX and isinstance(value, list | tuple):
                yield from _paths({_plain(str(name)): inner for name, inner in one.items()}, keys, depth + 1)
            elif (
                isinstance(one, str)
                and one
                and key in keys
                and (not _URI.match(one) or one[: len(SCHEME)].lower() == SCHEME)
            ):
                yield one


class Said(NamedTuple):
    """A command without what only says where it is run and how much of it is shown; whether it is all
    there.
    """

    text: str
    is_whole: bool


def command_of(given: str) -> Said | None:
    """Return the command that a shell's input begins with; None where there is none."""
    found = _BEGINS.search(given)
    if found is None:
        return None
    parts = [found.group(1)] if found.group(1) else _STRING.findall(found.group(2))
    is_whole = bool(parts) and parts[-1][-1] == '"' and len(parts[-1]) > 1
    is_whole = is_whole and (found.group(1) is not None or found.group(2).endswith("]"))
    text = " ".join(_unquoted(parts[-1]).split()) if parts else ""
    start = _BEFORE.match(text)
    text = text[start.end() :] if start else text
    text = (_AFTER.sub("", text) if is_whole else text).strip()
    return Said(text, is_whole) if text else None


def _unquoted(written: str) -> str:
    """Return what a JSON string says that may be cut off."""
    for text in (written, f'{written}"', f'{written.rpartition(chr(92))[0]}"'):
        try:
            return msgspec.json.decode(text, type=str)
        except msgspec.DecodeError:
            continue
    return ""
