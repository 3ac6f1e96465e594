"""Stops a `git push` that would leave out, or discard, what others have pushed: before an agent runs one, and
as a hook of git itself.

Boundary: runs in the process of a hook, on the standard library alone, and asks git; it changes nothing in a
repository, not even what is known there of a remote. What it finds is told to the daemon by whoever asked.
"""

import json
import os
import sys
import time
from os.path import join
from typing import TYPE_CHECKING, Any, NamedTuple

from omegad.agents.push_guard.commands import Push, pushes
from omegad.runtime.json_text import flattened, mended

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omegad.agents.push_guard.checking import Checked
    from omegad.agents.push_guard.repository import Repository

MODES = {"deny": "denied", "ask": "asked", "warn": "warned"}
"""What is done about a push that is to be stopped, and what is said to have been done; anything else is
nothing.
"""
BEFORE_TOOL = frozenset(("pretooluse", "beforetool", "beforeshellexecution"))
PUSHES_MAX = 8
HEAD = "omegad's push guard stopped this push."
WARNING = "omegad's push guard would not push this."
CANNOT_ASK = ("codex",)
PRE_PUSH = "pre-push"
"""The event of git's own hook."""


class Guarded(NamedTuple):
    """What became of a hook: the payload for the daemon, if it is to hear of it, what was found of each
    push, both as JSON, and what is printed.
    """

    payload: bytes | None
    pushes: bytes = b""
    stdout: bytes = b""
    status: int = 0


def mode_of(home: str, name: str = "push_guard") -> str:
    """Return what is to be done about a push that is to be stopped, or by another setting of its kind: of
    the environment, else of the home's configuration, else `deny`.
    """
    if mode := os.environ.get(f"OMEGAD_{name.upper()}"):
        return mode
    try:
        with open(join(home, "config.toml"), "rb") as file:
            import tomllib

            return str(tomllib.load(file).get(name, "deny"))
    except (OSError, ValueError):
        return "deny"


def before_tool(payload: bytes, host: str, home: str) -> Guarded:
    """Look at the pushes of a command that an agent is about to run, and say what its host is to be told."""
    said = _read(payload)
    fired = _first(said, "hook_event_name", "hookEventName") or ""
    tool_input = _first(said, "tool_input", "toolInput", "tool_args", "toolArgs") or said
    if isinstance(tool_input, str):
        tool_input = _read(tool_input.encode())
    mode = mode_of(home)
    folder = str(_first(said, "cwd") or next(iter(said.get("workspace_roots") or ()), "/"))  # of the session
    is_looked_at = mode in MODES or mode_of(home, "claims") != "off"  # a branch may be another session's
    found = (
        _pushes(said, tool_input, folder)
        if is_looked_at and fired.lower() in BEFORE_TOOL and isinstance(tool_input, dict)
        else []
    )
    if not found:
        return Guarded(payload)
    from omegad.agents.push_guard.checking import check, foresee
    from omegad.agents.push_guard.repository import LIMIT_S

    deadline = time.monotonic() + LIMIT_S
    look = check if mode in MODES else foresee
    checked = [one for push in found if (one := look(push, deadline - time.monotonic(), folder))]
    stopped = [one for one in checked if one.is_stopped]
    stdout = b""
    if stopped:
        text = "\n".join([WARNING if mode == "warn" else HEAD, *(one.reason for one in stopped)])
        stdout = _json(verdict(host_of(fired, said, host), fired, mode, text))
    return Guarded(payload, _verdicts(checked, mode), stdout)


def pre_push(arguments: list[str], home: str) -> Guarded:
    """Look at what git is about to push, which it says on standard input, and print why it is stopped; see
    githooks(5).
    """
    from omegad.agents.push_guard.checking import (
        GONE,
        NOTHING,
        Checked,
        Pushed,
        judged,
        missing,
        unasked,
        whole,
    )
    from omegad.agents.push_guard.repository import HEADS, Repository

    remote = (arguments or ["origin"])[0]
    payload: dict[str, object] = {
        "hook_event_name": PRE_PUSH,
        "cwd": os.getcwd(),
        "session_id": os.environ.get("CLAUDE_CODE_SESSION_ID") or None,
    }
    mode = mode_of(home)
    lines = [line.split() for line in sys.stdin.read().splitlines()]
    if mode not in MODES:
        if not lines or mode_of(home, "claims") == "off":
            return Guarded(None)
        checked = Checked(
            remote,
            tuple(unasked(Pushed(ref, name, sha)) for name, sha, ref, _ in lines if ref.startswith(HEADS)),
        )
        return Guarded(_json(payload), _verdicts([checked], mode))
    repository = Repository(str(payload["cwd"]))
    options = {whole(word) for word in _parent()}
    is_mirror = "--mirror" in options or repository.is_set(f"remote.{remote}.mirror")
    # What is deleted by name is left to git; what is only because it is not here is looked at. Of a mirror
    # git does not say what it deletes.
    pushed = [
        (Pushed(ref, name.removeprefix(HEADS), sha) if set(sha) - NOTHING else Pushed(ref, "", GONE), there)
        for name, sha, ref, there in lines
        if ref.startswith(HEADS) and (set(sha) - NOTHING or "--prune" in options)
    ]
    pushed += missing(repository, remote) if is_mirror else []
    if not pushed:
        _say(_diverged(repository, remote) if not lines else "")
        return Guarded(None)
    # git has refused by itself what is neither forced nor all that the remote has, as far as that is known
    # here.
    checked = judged(repository, remote, pushed, is_forced=True)
    if "--force-with-lease" in options and checked.is_stopped:
        checked = Checked(remote, (), "git itself checks what --force-with-lease expects")
    if checked.is_stopped:
        _say(f"{WARNING if mode == 'warn' else HEAD}\n{checked.reason}")
    payload["tool_input"] = checked.as_json("")["refs"]
    stopping = mode if mode == "warn" else "deny"
    return Guarded(
        _json(payload), _verdicts([checked], stopping), b"", int(checked.is_stopped and stopping == "deny")
    )


def verdict(host: str, fired: str, mode: str, text: str) -> dict[str, object]:
    """Return what a host takes for the verdict `deny`, `ask` or `warn` on what its agent is about to do, in
    its own words; one that cannot ask denies.
    """
    if mode == "ask" and host in CANNOT_ASK:
        mode = "deny"
    if mode == "warn":
        return {"systemMessage": text} if host == "gemini" else words(host, fired, text)
    match host:
        case "cursor":
            return {"permission": mode, "user_message": text, "agent_message": text}
        case "gemini":
            return {"decision": mode, "reason": text, "systemMessage": text}
        case "copilot":
            return {"permissionDecision": mode, "permissionDecisionReason": text}
        case _:
            return {
                "hookSpecificOutput": {
                    "hookEventName": fired,
                    "permissionDecision": mode,
                    "permissionDecisionReason": text,
                }
            }


def host_of(fired: str, said: "Mapping[str, object]", told: str) -> str:
    """Return which host it is, by what it tells before what its environment shows (*told*): some run the
    hooks of others.
    """
    if "cursor_version" in said or told == "cursor":
        # It runs Claude Code's hooks in their own form.
        return "cursor" if fired[:1].islower() else "claude-code"
    if told == "gemini" or fired in {"BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool"}:
        return "gemini"
    if fired == PRE_PUSH:
        return "git"
    if fired[:1].islower():
        return "copilot"
    transcript = str(said.get("transcript_path") or said.get("transcriptPath"))
    return "codex" if "turn_id" in said or "/.codex/" in transcript else told


def words(host: str, fired: str, text: str) -> dict[str, object]:
    """Return what a host takes for words for its agent."""
    match host:
        case "cursor":
            return {"additional_context": text}
        case "copilot":
            return {"additionalContext": text}
        case _:
            return {"hookSpecificOutput": {"hookEventName": fired, "additionalContext": text}}


def _read(payload: bytes) -> Any:  # noqa: ANN401  any JSON
    try:
        return json.loads(
            mended(payload), parse_int=float
        )  # an integer may have more digits than Python reads
    except RecursionError:
        return json.loads(flattened(mended(payload)), parse_int=float)


def _pushes(said: dict[str, Any], tool_input: dict[str, object], folder: str) -> list[Push]:
    inner = _first(tool_input, "workdir", "working_directory", "cwd", "directory", "dir_path")
    folder = join(folder, inner) if isinstance(inner, str) else folder
    command = _first(tool_input, "command", "cmd")
    if _first(said, "tool_name", "toolName") == "apply_patch" or not isinstance(command, str | list):
        return []
    return pushes(command if isinstance(command, str) else list(map(str, command)), folder)[:PUSHES_MAX]


def _verdicts(checked: "list[Checked]", mode: str) -> bytes:
    if not checked:
        return b""
    return _json([one.as_json(MODES[mode] if one.is_stopped else "allowed") for one in checked])


def _json(value: object) -> bytes:
    """Return JSON; what git names by other bytes than those of UTF-8 is replaced."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _first(values: dict[str, object], *keys: str) -> Any:  # noqa: ANN401  any JSON
    return next((values[key] for key in keys if values.get(key)), None)


def _diverged(repository: "Repository", remote: str) -> str:
    """Return what to say where git itself pushes nothing: what the branch lacks of the remote's, as far as
    is known here, which may be why.
    """
    from omegad.agents.push_guard.checking import listed
    from omegad.agents.push_guard.repository import HEADS

    branch = repository.branch
    follows = (
        repository.setting(f"branch.{branch}.merge")
        if repository.setting(f"branch.{branch}.remote") == remote
        else None
    )
    there = f"{remote}/{(follows or branch or '').removeprefix(HEADS)}"
    mine, theirs = repository.commit("HEAD"), repository.commit(f"refs/remotes/{there}")
    if not (mine and theirs) or repository.is_in(theirs, mine) or repository.is_in(mine, theirs):
        return ""
    count, commits = repository.lacking(mine, theirs)
    return f"omegad's push guard: {branch} lacks {count} of {there}'s commits:\n{listed(commits, count)}"


def _parent() -> list[str]:
    """Return the words of the command that runs the hook, which is git's."""
    import subprocess

    from omegad.agents.push_guard.repository import programs

    environ = {**os.environ, "PATH": programs()}
    shown = subprocess.run(
        ["ps", "-o", "args=", "-p", str(os.getppid())],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    return [word.partition("=")[0] for word in shown.stdout.split()]


def _say(text: str) -> None:
    if text:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
