"""Which command a shell was given, read off the beginning of a tool's input as the audit keeps it."""

import re
from typing import NamedTuple

import msgspec

SHELLS = frozenset({"bash", "shell", "exec_command", "run_shell_command", "local_shell"})

_BEGINS = re.compile(r'"(?:command|cmd)": ?(?:("(?:[^"\\]|\\.)*+"?)|\[((?:"(?:[^"\\]|\\.)*+"?,? ?)*+\]?))')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?')
_BEFORE = re.compile(r"cd [^&;|]{1,200}&& ?")
_AFTER = re.compile(r"(?: ?2>&1)?(?: ?\| ?(?:tail|head)(?: -n)?(?: -?[0-9]{1,5})?)?$")


class Said(NamedTuple):
    """A command without what only says where it is run and how much of it is shown; whether it is all
    there.
    """

    text: str
    is_whole: bool


def said(given: str) -> Said | None:
    """Return the command that a shell's input begins with; None where there is none."""
    found = _BEGINS.search(given)
    if found is None:
        return None
    parts = [found.group(1)] if found.group(1) else _STRING.findall(found.group(2))
    is_whole = bool(parts) and parts[-1][-1] == '"' and len(parts[-1]) > 1
    is_whole = is_whole and (found.group(1) is not None or found.group(2).endswith("]"))
    text = " ".join(_plain(parts[-1]).split()) if parts else ""
    start = _BEFORE.match(text)
    text = text[start.end() :] if start else text
    text = (_AFTER.sub("", text) if is_whole else text).strip()
    return Said(text, is_whole) if text else None


def _plain(written: str) -> str:
    """Return what a JSON string says that may be cut off."""
    for text in (written, f'{written}"', f'{written.rpartition(chr(92))[0]}"'):
        try:
            return msgspec.json.decode(text, type=str)
        except msgspec.DecodeError:
            continue
    return ""
