"""Agents' hosts: the names they have for the same things, and the answers they understand."""

import re
import unicodedata
from collections.abc import Mapping
from posixpath import join
from typing import Literal

import msgspec

from omegad.agents.push_guard import host_of, verdict, words
from omegad.agents.push_guard.commands import taken_away
from omegad.session import tool_inputs
from omegad.session.events import ToolStatus
from omegad.text.redaction import redact_name

Kind = Literal[
    "session_start",
    "prompt",
    "subagent_start",
    "before_tool",
    "after_tool",
    "turn_end",
    "subagent_end",
    "compaction",
    "session_end",
    "push",
    "other",
]

NAME_MAX = 256
ABOUT_CHARACTERS = 200

KINDS: dict[str, Kind] = {
    "sessionstart": "session_start",
    "userpromptsubmit": "prompt",
    "beforesubmitprompt": "prompt",  # Cursor
    "userpromptsubmitted": "prompt",  # Copilot
    "beforeagent": "prompt",  # Gemini
    "pretooluse": "before_tool",
    "beforetool": "before_tool",
    "posttooluse": "after_tool",
    "posttoolusefailure": "after_tool",
    "aftertool": "after_tool",
    "stop": "turn_end",
    "agentstop": "turn_end",
    "afteragent": "turn_end",
    "subagentstart": "subagent_start",
    "subagentstop": "subagent_end",
    "precompact": "compaction",
    "sessionend": "session_end",
    "prepush": "push",  # git's own
}
"""What each event is, by the host's name for it in lower case. Of others it is noted that they came."""

WORKING: dict[Kind, Kind] = {"prompt": "subagent_start", "turn_end": "subagent_end", "compaction": "other"}
"""What these are where an agent tells of them that works for the session's own."""

ADDS_CONTEXT: dict[str, frozenset[Kind]] = {
    "cursor": frozenset({"session_start", "prompt", "before_tool", "after_tool"}),
    "gemini": frozenset({"session_start", "prompt", "after_tool"}),
    "copilot": frozenset({"session_start"}),
    "git": frozenset({"push"}),
    "": frozenset({"session_start", "prompt", "subagent_start", "before_tool", "after_tool"}),
}
"""At which events a host takes words for its agent; "" stands for those that have Claude Code's form."""

_ENDED_WITH = re.compile(r"(?:exited with code|[Ee]xit code:?) ([0-9]{1,3})\b")
_LOOKS_FAILED = re.compile(
    r"(?:[\w.]{1,80}(?:Error|Exception): |(?:ba|z|da)?sh: .{0,200}: (?:command )?not found|fatal: |npm ERR!"
    r" |error(?:\[\w{1,9}\])?: )"
)
"""How the last line begins that a command prints which has failed, for hosts that do not say how it ended."""
_LINE_MAX = 1_000
SHELLS = ("Bash", "shell", "exec_command")
SHELL_TOOLS = ("bash", "shell", "exec_command", "run_shell_command")
"""The tools that run a line of shell, in lower case."""
USED_MAX = 8
_COMMAND_CHARACTERS = 4_000
_NAMED = re.compile(r"(?<![\w./~@+-])[\w./~@+-]{0,512}\w\.[A-Za-z]\w{0,15}(?![\w/])")
"""What has the form of a file's name in a command."""
_EXIT_CHARACTERS = 400  # of an output's beginning, where a host says how a command ended


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One hook in the words that all hosts share. Of the fields those are set that its kind has."""

    kind: Kind
    fired: str
    """The host's own name of the event."""
    host: str
    session_id: str
    """Empty where git tells of a push that no agent made."""
    folder: str | None = None
    source: str | None = None
    model: str | None = None
    reason: str | None = None
    text: str | None = None
    """What was asked for, also of an agent that works for the session's own, or said last."""
    turn: str | None = None
    trigger: str | None = None
    agent_id: str | None = None
    """Which of the agents that work for the session's own it is."""
    agent_type: str | None = None
    tool_name: str = ""
    tool_use_id: str | None = None
    tool_input: object = None
    files: tuple[str, ...] = ()
    """Those that a tool is to change, as it says them."""
    away: tuple[str, ...] = ()
    """Paths, and patterns of them, that a shell command is to move or remove."""
    result: object = None
    status: ToolStatus = "ok"
    duration_ms: float | None = None

    @property
    def said(self) -> tuple[object, ...]:
        """What makes it the same as another of its session."""
        return (
            self.kind,
            self.source,
            self.reason,
            self.trigger,
            self.agent_id,
            self.text,
            self.turn,
            self.tool_name,
            self.tool_input,
            self.result,
            self.tool_use_id if self.kind == "before_tool" else None,
        )

    @property
    def agent(self) -> tuple[str, str | None]:
        """Whose context it is: the session's, or that of an agent which works for its own."""
        return self.session_id, self.agent_id

    @property
    def file(self) -> str | None:
        """The first file that a tool is to change, within its folder; None where it changes none."""
        return next((join(self.folder or "", one) for one in self.files), None)

    @property
    def used(self) -> tuple[str, ...]:
        """The files that a tool is to change, or that one which passed has changed, read, or named in its
        command, each within its folder.
        """
        if self.kind != "before_tool" and (self.kind != "after_tool" or self.status != "ok"):
            return ()
        found = self.files
        if not found and self.kind == "after_tool":
            command = (
                _first(self.tool_input, "command", "cmd") if isinstance(self.tool_input, Mapping) else None
            )
            text = " ".join(_strings(command)) if isinstance(command, list) else command
            if self.tool_name.lower() not in SHELL_TOOLS:
                found = tool_inputs.read(self.tool_name, self.tool_input)
            elif isinstance(text, str):
                found = tuple(_NAMED.findall(text[:_COMMAND_CHARACTERS]))
        return tuple(dict.fromkeys(join(self.folder or "", one) for one in found))[:USED_MAX]


def understood(event: str, payload: Mapping[str, object], host: str) -> Hook | None:
    """Return what a host tells; None for what is of no session."""
    fired = _text(payload, "hook_event_name") or event
    kind = KINDS.get("".join(filter(str.isalnum, fired)).lower(), "other")
    session_id = _text(payload, "session_id", "conversation_id")
    if session_id is None and kind != "push":
        return None
    agent_id = None if (agent := _text(payload, "agent_id", "subagent_id")) is None else name(agent)
    if agent_id is not None:  # what its session says and has in its context is as it was
        kind = WORKING.get(kind, kind)
    host_name = host_of(fired, payload, name(host)) or "claude-code"
    result = _first(payload, "tool_response", "tool_output", "tool_result", "result")
    tool_name, tool_input = (
        _text(payload, "tool_name") or "unknown",
        _first(payload, "tool_input", "tool_args"),
    )
    return Hook(
        kind=kind,
        fired=fired[:NAME_MAX],
        host=host_name,
        session_id=name(session_id or ""),
        folder=_text(payload, "cwd")
        or next(iter(_strings(_first(payload, "workspace_roots", "workspace_paths"))), None),
        source=_text(payload, "source", most=NAME_MAX),
        model=_text(payload, "model", most=NAME_MAX),
        reason=_text(payload, "reason", most=NAME_MAX),
        text=(
            _text(payload, "prompt")
            if kind in {"prompt", "subagent_start"}
            else _text(payload, "message", most=ABOUT_CHARACTERS)
            if kind == "other"
            else _text(payload, "last_assistant_message", "prompt_response", "response")
        ),
        turn=_text(payload, "prompt_id", "turn_id", "generation_id", most=NAME_MAX),
        trigger=_text(payload, "trigger", most=NAME_MAX),
        agent_id=agent_id,
        agent_type=_text(payload, "agent_type", "subagent_type", most=NAME_MAX),
        tool_name=name(tool_name),
        tool_use_id=None if (use := _text(payload, "tool_use_id", "tool_call_id")) is None else name(use),
        tool_input=tool_input,
        files=(
            tool_inputs.changed(tool_name[:NAME_MAX], tool_input)
            if kind in {"before_tool", "after_tool"}
            else ()
        ),
        away=_away(tool_name, tool_input, payload) if kind == "before_tool" else (),
        result=_plain(result if (error := payload.get("error")) is None else error),
        status=_status(fired, payload, result, tool_name if host_name == "codex" else ""),
        duration_ms=(
            None
            if not isinstance(took := _first(payload, "duration_ms", "duration"), int | float) or took < 0
            else float(took)
        ),
    )


def _away(tool_name: str, tool_input: object, payload: Mapping[str, object]) -> tuple[str, ...]:
    """Return what a shell command is to move or remove."""
    command = _first(tool_input, "command", "cmd") if isinstance(tool_input, Mapping) else None
    folder = _text(payload, "cwd")
    if tool_name.lower() not in SHELL_TOOLS or folder is None or not isinstance(command, str | list):
        return ()
    return tuple(
        taken_away(command if isinstance(command, str) else list(map(str, command)), folder)[
            : tool_inputs.FILES_MAX
        ]
    )


def answer(hook: Hook, text: str) -> str:
    """Return what a host reads as words for its agent; nothing where it takes none."""
    if not text or hook.kind not in ADDS_CONTEXT.get(hook.host, ADDS_CONTEXT[""]):
        return ""
    if hook.host == "git":
        return f"{text}\n"
    return msgspec.json.encode(words(hook.host, hook.fired, text)).decode()


def judged(hook: Hook, mode: str, text: str) -> str:
    """Return what a host reads as the verdict `deny`, `ask` or `warn` on what its agent is about to do."""
    return msgspec.json.encode(verdict(hook.host, hook.fired, mode, text)).decode()


def name(value: str) -> str:
    """Return a name as requests have it: composed, without credentials, and of a length that a name may
    have.
    """
    return redact_name(unicodedata.normalize("NFC", value[:NAME_MAX]))


def _status(fired: str, payload: Mapping[str, object], result: object, guessed: str) -> ToolStatus:
    """Say how a tool ended; *guessed* is a tool whose host does not say, which is a shell's last line to
    tell.
    """
    if fired.lower() == "posttoolusefailure" or payload.get("error") is not None:
        return "denied" if payload.get("is_interrupt") is True else "error"
    match result:
        case Mapping():
            code = _first(result, "exit_code", "return_code")
            has_failed = (
                _first(result, "is_error", "error")
                or result.get("success") is False
                or _text(result, "result_type") in {"failure", "denied"}
                or (isinstance(code, int) and code != 0)
            )
        case str():
            found = _ENDED_WITH.search(result, 0, _EXIT_CHARACTERS)
            last_line = result[-_LINE_MAX:].rstrip().rpartition("\n")[2]
            has_failed = (found is not None and int(found.group(1)) != 0) or (
                guessed in SHELLS and _LOOKS_FAILED.match(last_line)
            )
        case _:
            has_failed = False
    return "error" if has_failed else "ok"


def _plain(result: object) -> object:
    """Return the output of a command as a person sees it, and any other result as it is."""
    if isinstance(result, Mapping) and isinstance(result.get("stdout"), str):
        parts = (part for key in ("stdout", "stderr") if isinstance(part := result.get(key), str) and part)
        return "\n".join(parts)
    return result


def _first(payload: Mapping[str, object], *keys: str) -> object:
    """Return the first of these that there is, under its name or the one that has humps."""
    for key in keys:
        head, *rest = key.split("_")
        for spelled in (key, head + "".join(map(str.capitalize, rest))):
            if payload.get(spelled) is not None:
                return payload[spelled]
    return None


def _text(payload: Mapping[str, object], *keys: str, most: int | None = None) -> str | None:
    found = _first(payload, *keys)
    return found[:most] if isinstance(found, str) and found else None


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
