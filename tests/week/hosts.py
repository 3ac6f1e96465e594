"""What three hosts tell at their hooks of the same thing, each in its own words."""

from collections.abc import Iterator
from typing import Any

from tests.week.sessions import Step

HOSTS = ("claude-code", "codex", "gemini")
GEMINI_TOOLS = {"Edit": "replace", "Write": "write_file", "Bash": "run_shell_command", "Read": "read_file"}

Told = tuple[str, dict[str, Any]]
"""A hook's event, and its payload."""


def begins(host: str) -> Told:
    """Return what a host tells as a session begins."""
    return "SessionStart", {"source": "startup", "transcript_path": f"/transcripts/{host}.jsonl"}


def ends(host: str) -> Told | None:
    """Return what a host tells as a session ends; Codex tells nothing."""
    return None if host == "codex" else ("SessionEnd", {"reason": "other"})


def told(host: str, step: Step, number: int) -> Iterator[Told]:
    """Yield what a host tells of a step of a session."""
    turn = {"turn_id": f"turn-{number}"} if host == "codex" else {}
    match step.kind, host:
        case "prompt", "gemini":
            yield "BeforeAgent", {"prompt": step.text}
        case "prompt", _:
            yield "UserPromptSubmit", {"prompt": step.text} | turn
        case "answer", "gemini":
            yield "AfterAgent", {"prompt_response": step.text}
        case "answer", _:
            yield "Stop", {"last_assistant_message": step.text} | turn
        case "tool", "gemini":
            named = {"tool_name": GEMINI_TOOLS.get(step.tool, step.tool), "tool_input": step.given}
            yield "BeforeTool", named
            failed = {"error": step.text} if step.is_failed else {"llmContent": step.text}
            yield "AfterTool", named | {"tool_response": failed}
        case "tool", _:
            named = {"tool_name": step.tool, "tool_input": step.given, "tool_use_id": f"use-{number}"} | turn
            yield "PreToolUse", named
            if step.is_failed and host == "claude-code":
                yield "PostToolUseFailure", named | {"error": step.text}
            else:
                code = {"exit_code": 1} if step.is_failed else {}
                yield "PostToolUse", named | {"tool_response": {"stdout": step.text, "stderr": ""} | code}
        case _:
            pass
