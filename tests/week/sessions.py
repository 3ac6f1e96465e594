"""The sessions of a week: those of the script beside this file, or of transcripts of Claude Code in a folder
of one's own.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

SCRIPT = Path(__file__).with_name("script.toml")
STEPS_MAX, TEXT_CHARACTERS = 40, 4_000
EDITS = ("Edit", "Write", "MultiEdit", "NotebookEdit")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What happens in a session: a prompt, a tool call, an answer, or a call of one of omegad's tools."""

    kind: Literal["prompt", "tool", "answer", "own"]
    text: str = ""
    tool: str = ""
    given: dict[str, Any] = {}
    is_failed: bool = False


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One session: where, and what happens."""

    folder: str
    steps: tuple[Step, ...]


def scripted() -> list[Session]:
    """Return the sessions of the script."""
    told = tomllib.loads(SCRIPT.read_text(encoding="utf-8"))["session"]
    return [Session(folder=f"/src/{one['project']}", steps=tuple(_steps(one))) for one in told]


def _steps(told: dict[str, Any]) -> Iterator[Step]:
    yield Step(kind="prompt", text=told["asks"])
    for line in told["does"]:
        word, _, rest = line.partition(" ")
        match word:
            case "edit" | "read":
                given = {"file_path": f"/src/{told['project']}/{rest}", "old_string": "a", "new_string": "b"}
                yield Step(kind="tool", tool="Edit" if word == "edit" else "Read", given=given, text="done")
            case "run":
                yield Step(kind="tool", tool="Bash", given={"command": rest}, text="ok")
            case "fail":
                command, _, output = rest.partition(" | ")
                yield Step(kind="tool", tool="Bash", given={"command": command}, text=output, is_failed=True)
            case "remember":
                event_type, _, content = rest.partition(" ")
                given = {"content": content, "event_type": event_type}
                yield Step(kind="own", tool="omega_store", given=given)
            case "believe":
                given = {"action": "state", "statement": rest}
                yield Step(kind="own", tool="omega_thesis", given=given)
            case "look":
                yield Step(kind="own", tool="omega_query", given={"query": rest.removeprefix("up ")})
            case _:
                raise ValueError(line)
    yield Step(kind="answer", text=told["says"])


def transcribed(folder: Path) -> list[Session]:
    """Return the sessions of the transcripts in a folder, of which each asks what is known of its first
    prompt, as the protocol teaches agents.
    """
    found = [_session(path) for path in sorted(folder.rglob("*.jsonl"))]
    return [one for one in found if len(one.steps) > 2]


def _session(path: Path) -> Session:
    folder, steps, called = "/src/unknown", list[Step](), dict[str, tuple[str, dict[str, Any]]]()
    for line in path.read_bytes().splitlines():
        try:
            told = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        if not isinstance(told, dict) or told.get("isMeta") or told.get("isSidechain"):
            continue
        folder = told.get("cwd") or folder
        content = (told.get("message") or {}).get("content")
        parts: list[dict[str, Any]] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        )
        for part in parts:
            text = str(part.get("text") or "").strip()
            match told.get("type"), part.get("type"):
                case "user", "text" if text and not text.startswith("<"):
                    is_first = not steps
                    steps.append(Step(kind="prompt", text=text[:TEXT_CHARACTERS]))
                    if is_first:
                        steps.append(Step(kind="own", tool="omega_query", given={"query": text[:500]}))
                case "assistant", "text" if text:
                    steps.append(Step(kind="answer", text=text[:TEXT_CHARACTERS]))
                case "assistant", "tool_use":
                    called[part["id"]] = part["name"], part["input"]
                case "user", "tool_result" if part.get("tool_use_id") in called:
                    tool, given = called.pop(part["tool_use_id"])
                    result = part.get("content")
                    said = result if isinstance(result, str) else msgspec.json.encode(result).decode()
                    steps.append(
                        Step(
                            kind="tool",
                            tool=tool,
                            given=given,
                            text=said[:TEXT_CHARACTERS],
                            is_failed=part.get("is_error") is True,
                        )
                    )
                case _:
                    pass
    return Session(folder=folder, steps=tuple(steps[:STEPS_MAX]))
