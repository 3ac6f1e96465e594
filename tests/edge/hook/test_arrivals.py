"""Whoever asks is told when a host's hooks stopped arriving, by the host's own transcripts and the calls of
tools; the next agent is, once a day.
"""

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from omegad.agents import hook_arrivals
from omegad.edge import cli
from tests.acceptance.conftest import Home, homes, until
from tests.edge.hook.conftest import fire

__all__ = ["homes"]

CODEX = {"transcript_path": "/nowhere/.codex/sessions/2026/01/01/rollout.jsonl"}


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The folder of a person who uses Claude Code."""
    (tmp_path / "user" / ".claude" / "projects" / "-src-shop").mkdir(parents=True)
    return tmp_path / "user"


@pytest.fixture
def home(homes: Callable[..., Home], user: Path) -> Home:
    """A home whose daemon may look, and has heard of that host."""
    home = homes(HOME=str(user), OMEGAD_HOST_TRANSCRIPTS="true").start()
    heard(home)
    return home


def heard(home: Home) -> None:
    """Let hooks of Claude Code arrive."""
    fire(home, "UserPromptSubmit", str(uuid4()), prompt="Please mend the door.")
    until(home.caught_up)


def said(folder: str, role: str, content: object, at_s: float, **more: object) -> dict[str, object]:
    """Return a line of a transcript as Claude Code writes it."""
    return {
        "type": role,
        "message": {"role": role, "content": content},
        "timestamp": datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z"),
        "cwd": folder,
    } | more


def work(user: Path, session_id: str = "", folder: str = "/src/shop") -> str:
    """Leave the transcript of a session in which something was asked and answered; return its id."""
    session_id = session_id or str(uuid4())
    file = user / ".claude" / "projects" / "-src-shop" / f"{session_id}.jsonl"
    at_s = time.time()
    lines = [said(folder, "user", "Mend it", at_s), said(folder, "assistant", [], at_s)]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    os.utime(file, (at_s, at_s))  # which disks round
    return session_id


def troubles(home: Home) -> str:
    """Return what the status says of hooks."""
    return "\n".join(one for one in home.call("system.status")["degraded"] if one.startswith("hooks"))


def test_the_status_and_today_say_so_until_hooks_arrive_again(home: Home, user: Path) -> None:
    assert troubles(home) == ""
    session_id = work(user)
    until(lambda: f"hooks of Claude Code stopped arriving: its session {session_id}" in troubles(home))
    assert "omegad setup" in troubles(home)
    until(
        lambda: any(session_id in one["text"] for one in home.call("upkeep.today")["waiting"]),
    )
    home.restart()
    until(lambda: session_id in troubles(home))
    heard(home)
    assert troubles(home) == ""


def test_the_next_agent_is_told_and_no_other_on_that_day(home: Home, user: Path) -> None:
    work(user)
    told = list[str]()

    def is_told() -> bool:
        told.append(fire(home, "SessionStart", str(uuid4()), source="startup", **CODEX))
        return "hooks of Claude Code stopped arriving" in told[-1]

    until(is_told)
    assert "omegad setup" in told[-1]
    home.restart()
    until(home.caught_up)
    assert not any(is_told() for _ in range(3))
    welcome = home.call("tools.call", name="omega_welcome", arguments={})
    assert "stopped arriving" not in welcome["content"][0]["text"]


def test_an_agent_without_hooks_is_told_by_the_tool_that_welcomes_it(home: Home, user: Path) -> None:
    work(user)

    def is_told() -> bool:
        until(home.caught_up)
        told = home.call("tools.call", name="omega_welcome", arguments={})["content"][0]["text"]
        return "hooks of Claude Code stopped arriving" in told

    until(is_told)
    until(lambda: any(one["data"].get("how") == "warning" for one in home.events()))  # said behind the answer
    assert not any(is_told() for _ in range(3))


def test_a_session_that_calls_tools_and_tells_nothing_is_one(home: Home) -> None:
    session_id = str(uuid4())
    home.call("tools.call", name="omega_query", arguments={"query": "door"}, session_id=session_id)
    until(lambda: session_id in troubles(home))


def test_hooks_that_stop_in_the_midst_of_a_session_are_missed(home: Home, user: Path) -> None:
    session_id = str(uuid4())
    before = datetime.fromtimestamp(time.time() - 300, UTC).isoformat().replace("+00:00", "Z")
    payload = {"session_id": session_id, "hook_event_name": "UserPromptSubmit", "prompt": "Mend the door"}
    home.call("hook.dispatch", event="UserPromptSubmit", payload=payload, occurred_at=before)
    until(home.caught_up)
    work(user, session_id)
    until(lambda: session_id in troubles(home))


def test_of_what_is_paused_nothing_is_missed(
    home: Home, user: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / ".omegad.toml").write_text("paused = true\n")
    work(user, folder=str(hidden / "deep"))
    assert troubles(home) == ""
    asked = ["--home", str(home.path)]
    assert cli.main([*asked, "pause"]) == 0
    work(user)
    assert troubles(home) == ""
    assert cli.main([*asked, "resume"]) == 0
    assert "goes on" in capsys.readouterr().out
    assert troubles(home) == ""
    session_id = str(uuid4())
    payload = {"session_id": session_id, "hook_event_name": "UserPromptSubmit", "prompt": "Mend the door"}
    home.call("hook.dispatch", event="UserPromptSubmit", payload=payload, is_paused=True)
    work(user, session_id)
    assert troubles(home) == ""
    session_id = work(user)
    until(lambda: session_id in troubles(home))  # it does look


def test_it_looks_nowhere_where_the_setting_says_so(homes: Callable[..., Home], user: Path) -> None:
    home = homes(HOME=str(user), OMEGAD_HOST_TRANSCRIPTS="false").start()
    heard(home)
    work(user)
    assert troubles(home) == ""


def test_transcripts_lie_where_hooks_say(homes: Callable[..., Home], user: Path, tmp_path: Path) -> None:
    home = homes(HOME=str(tmp_path), OMEGAD_HOST_TRANSCRIPTS="true").start()
    where = str(user / ".claude" / "projects" / "-src-shop" / "a.jsonl")
    fire(home, "UserPromptSubmit", str(uuid4()), prompt="Please mend the door.", transcript_path=where)
    until(home.caught_up)
    session_id = work(user)
    until(lambda: session_id in troubles(home))


def line(role: str, content: object, **more: Any) -> dict[str, object]:
    return said("/src/shop", role, content, 1_000.0, **more)


def item(role: str, text: str) -> dict[str, object]:
    """Return a line of a transcript as Codex writes it."""
    message = {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
    return {"timestamp": "1970-01-01T00:16:40Z", "type": "response_item", "payload": message}


ANSWER = line("assistant", [{"type": "text", "text": "Done."}])


@pytest.mark.parametrize(
    ("lines", "is_missed"),
    [
        ([line("user", "Mend it"), ANSWER], True),
        ([line("user", [{"type": "text", "text": "Mend it"}]), ANSWER, line("user", "More")], True),
        ([item("user", "Mend it"), item("assistant", "Done.")], True),
        ([item("user", "<environment_context>"), item("assistant", "Done.")], False),
        ([line("user", "Mend it")], False),
        ([ANSWER], False),
        ([line("user", [{"type": "tool_result", "content": "ok"}]), ANSWER], False),
        ([line("user", "Mend it", isSidechain=True), ANSWER], False),
        ([line("user", "Caveat: …", isMeta=True), ANSWER], False),
        ([line("user", "<command-name>/clear</command-name>"), ANSWER], False),
        ([line("user", "Mend it", entrypoint="sdk-py"), ANSWER], False),
        ([line("user", "Mend it", timestamp="soon"), ANSWER], False),
        (
            [
                {"type": "session_meta", "payload": {"source": {"subagent": "review"}}},
                item("user", "Mend it"),
                item("assistant", "Done."),
            ],
            False,
        ),
        ([{"message": [1]}, {"payload": {"role": "user", "content": {"text": 1}}}, {"message": "x"}], False),
    ],
)
def test_a_prompt_is_missed_that_a_person_typed_and_that_was_answered(
    tmp_path: Path, lines: list[dict[str, object]], *, is_missed: bool
) -> None:
    file = tmp_path / "transcript.jsonl"
    text = "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in lines)
    file.write_bytes(b"\xff\n[1]\n{\n" + text.encode())
    found = hook_arrivals._last_prompt(str(tmp_path), str(file))
    assert found == (1_000_000_000 if is_missed else None)


def test_so_many_files_are_looked_at_and_the_end_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_arrivals, "FILES_MAX", 10)
    monkeypatch.setattr(hook_arrivals, "END_BYTES", 4_000)
    for _ in range(50):
        (tmp_path / f"{uuid4()}.jsonl").write_text("{}\n")
    (tmp_path / f"{uuid4()}.jsonl").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "self").symlink_to(tmp_path)
    assert len(list(hook_arrivals._written(str(tmp_path), 0))) <= 10
    pipes = tmp_path / "pipes"
    pipes.mkdir()
    os.mkfifo(pipes / f"{uuid4()}.jsonl")
    assert list(hook_arrivals._written(str(pipes), 0)) == []
    file = tmp_path / "long.jsonl"
    text = json.dumps(line("user", "Mend it")) + "\n" + json.dumps(ANSWER) + "\n"
    file.write_text(json.dumps({"pad": "x" * 9_000}) + "\n" + text)
    assert hook_arrivals._last_prompt(str(tmp_path), str(file)) == 1_000_000_000
    file.write_text(text + json.dumps({"pad": "x" * 9_000}) + "\n")
    assert hook_arrivals._last_prompt(str(tmp_path), str(file)) is None
    assert hook_arrivals._last_prompt(str(tmp_path), str(tmp_path)) is None
    assert list(hook_arrivals._written(str(tmp_path / "nowhere"), 0)) == []
