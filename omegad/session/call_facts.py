"""What is read off a tool call: the file that its input names, those that it was to change, and the memories
that its input and its result name.
"""

import re
from typing import NamedTuple

from omegad.log.event import Excerpt
from omegad.session import tool_inputs
from omegad.session.events import ToolCallAged, ToolCalled

MENTIONS_MAX = 64
EDITED_MAX = 64

_FILE = re.compile(
    r'"(?i:(?:(?:file|notebook|absolute|relative)_?)?path|target_?file)":"((?:[^"\\]|\\.){1,1024})"'
    r'|\*\*\* (?:Update|Add) File: ([^\n"\\]{1,1024})'
)
_PATCHED = re.compile(r"\*\*\* (?:Update|Add|Delete) File: ([^\n\"\\]{1,1024})")
MEMORY_ID = re.compile(r"mem-(?<!\wmem-)[0-9a-f]{8,32}\b")  # 40 times as fast as what begins with \b


class CallFacts(NamedTuple):
    """That, of one call: at most 64 of each."""

    file: str | None
    edited: tuple[str, ...]
    given: tuple[str, ...]
    returned: tuple[str, ...]


def facts(call: ToolCalled) -> CallFacts:
    """Read it off a call; of one whose time is over it is said."""
    if isinstance(call, ToolCallAged):
        return CallFacts(call.file, call.edited, call.given, call.returned)
    given, result = call.tool_input, call.result
    return CallFacts(_file(given), _edited(call), _mentioned(given), _mentioned(result))


def _file(part: Excerpt | None) -> str | None:
    if part is None:
        return None
    head = part.head
    # Most inputs name no file, and are told apart by a plain search in a tenth of the time.
    found = _FILE.search(head) if 'ath":"' in head or 'ile":"' in head or "*** " in head else None
    return (
        None
        if found is None
        else (found.group(1) or found.group(2)).replace("\\/", "/").replace('\\"', '"').replace("\\\\", "\\")
    )


def _edited(call: ToolCalled) -> tuple[str, ...]:
    """Return the files that a call was to change; of an input that is cut, those that its beginning names."""
    part = call.tool_input
    if part is None or not (tool_inputs.changes(call.tool_name) or tool_inputs.PATCH_BEGINS in part.head):
        return ()
    if not part.tail:
        return tool_inputs.changed(call.tool_name, part.head)[:EDITED_MAX]
    patched = tuple(dict.fromkeys(_PATCHED.findall(part.head)))[:EDITED_MAX]
    named = _file(part) if tool_inputs.changes(call.tool_name) else None
    return patched or ((named,) if named else ())


def _mentioned(part: Excerpt | None) -> tuple[str, ...]:
    if part is None or not ("mem-" in part.head or "mem-" in part.tail):
        return ()
    return tuple(dict.fromkeys(MEMORY_ID.findall(f"{part.head}\n{part.tail}")))[:MENTIONS_MAX]
