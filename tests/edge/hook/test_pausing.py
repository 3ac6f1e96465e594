"""Of what is paused nothing is kept and nothing told, with the daemon and without, and guards go on."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from omegad.edge import cli
from omegad.runtime import pausing
from tests.acceptance.conftest import Home, daemon, home, homes, until
from tests.edge.hook.conftest import PATIENT, begin, fire, payload, spooled
from tests.edge.hook.test_private import holding

__all__ = ["daemon", "home", "homes"]

HIDDEN = "periwinkle"


def tell_all(home: Home, session: str, folder: Path) -> str:
    """Let a host tell of a session in a folder, and return what its agent is told."""
    where = {"cwd": str(folder)}
    given = {"command": f"echo {HIDDEN}"}
    told = fire(home, "SessionStart", session, source="startup", **where)
    told += fire(home, "UserPromptSubmit", session, prompt=f"From now on use the {HIDDEN} account.", **where)
    call: dict[str, Any] = {"tool_name": "Bash", "tool_input": given, "tool_use_id": f"t-{session}"}
    told += fire(home, "PreToolUse", session, **call, **where)
    told += fire(home, "PostToolUse", session, **call, tool_response={"stdout": HIDDEN}, **where)
    told += fire(home, "Stop", session, last_assistant_message=f"The {HIDDEN} account it is.", **where)
    return told + fire(home, "SessionEnd", session, reason=HIDDEN, **where)


def say(home: Home, *words: str) -> None:
    """Run a verb of the command line for a home."""
    assert cli.main(["--home", str(home.path), *words]) == 0


def test_a_pause_holds_for_hooks_the_spool_and_tools_until_it_ends(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say(home, "pause", "--for", "2h")
    assert tell_all(home, "before", tmp_path) == ""
    assert spooled(home) == []
    home.start()
    home.call("memory.store", content="The marigold door is never open.", event_type="decision")
    until(home.caught_up)
    assert tell_all(home, "after", tmp_path) == ""
    asked = {"name": "omega_store", "arguments": {"content": f"The {HIDDEN} door is open."}}
    refused = home.call("tools.call", **asked)
    assert refused["is_error"]
    assert "paused until" in refused["content"][0]["text"]
    assert "paused until" in home.call("system.status")["paused"]
    capsys.readouterr()
    say(home, "--no-spawn", "status")
    assert "paused until" in capsys.readouterr().out
    assert holding(home, HIDDEN) == []
    say(home, "resume")
    assert home.call("system.status")["paused"] is None
    assert fire(home, "SessionStart", "resumed", source="startup")
    fire(home, "UserPromptSubmit", "resumed", prompt="Use the marigold account.")
    until(home.caught_up)
    home.stop()
    assert holding(home, HIDDEN) == []


def mark(marker: Path, how: str) -> None:
    """Make the file that pauses a folder, or one that may, as nobody can tell."""
    match how:
        case "pipe":
            os.mkfifo(marker)
        case "dangling":
            marker.symlink_to(marker.with_name("nowhere"))
        case _:
            said = {"broken": "paused = tru", "large": "#" * (pausing.BYTES_MAX + 1)}
            marker.write_text(said.get(how, "paused = true\n"))


@pytest.mark.parametrize(
    "how", ["marker", "broken", "large", "pipe", "dangling", "setting", "link", "session"]
)
def test_a_folder_or_a_session_is_paused_and_another_is_not(
    home: Home, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden, other = tmp_path / "hidden", tmp_path / "other"
    (hidden / "deep").mkdir(parents=True)
    other.mkdir()
    folder = hidden / "deep"
    if how == "session":
        monkeypatch.setattr("tests.edge.hook.conftest.begin", in_paused_session)
    elif how in {"setting", "link"}:
        home.paths.config.write_text(f"paused_folders = ['{hidden}']\n")
    else:
        mark(hidden / pausing.MARKER, how)
    if how == "link":
        folder = tmp_path / "link"
        folder.symlink_to(hidden / "deep")
    for session in ("down", "up"):
        assert tell_all(home, session, folder) == ""
        assert spooled(home) == []
        if how != "session":
            read = {"tool_name": "Read", "tool_input": {"file_path": str(folder / "notes.md")}}
            fire(home, "PostToolUse", f"{session}-2", **read, tool_response=HIDDEN, cwd=str(other))
            for command in ("cat ../hidden/a.md", f"grep -r x --dir={hidden}", "cd ../hidden; make"):
                ran = {"tool_name": "Bash", "tool_input": {"command": command}}
                fire(home, "PostToolUse", f"{session}-2", **ran, tool_response=HIDDEN, cwd=str(other))
            looked = {"tool_name": "Grep", "tool_input": {"pattern": "x", "path": "../hidden"}}
            fire(home, "PostToolUse", f"{session}-2", **looked, tool_response=HIDDEN, cwd=str(other))
            assert spooled(home) == []
        if session == "down":
            home.start()
    monkeypatch.undo()
    assert holding(home, HIDDEN) == []
    fire(home, "UserPromptSubmit", "free", prompt="Use the marigold account.", cwd=str(other))
    assert {one["session_id"] for one in home.events() if one.get("session_id")} == {"free"}


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("Bash", {"command": "cd clients && cat 'the shop'/a.md"}),
    ("Bash", {"command": "cd clients; cd the\\ shop; cat a.md"}),
    ("Bash", {"command": f"echo {'.' * 5_000}; git -C 'clients/the shop' log"}),
    ("Bash", {"command": " ".join(["echo", *map(str, range(400)), '; cat "$PWD/clients/the shop/a.md"'])}),
    ("Bash", {"command": "docker run -v ./bare:/src build"}),
    ("Bash", {"command": "curl -d @bare/a.md localhost"}),
    ("Bash", {"command": "cat {bare/a.md,b.md}"}),
    ("Bash", {"command": "cat leads/a.md"}),
    ("Read", {"file_path": "leads/a.md"}),
    ("Read", {"path": "clients/the shop/a.md"}),
    ("exec_command", {"cmd": "cat 'the shop/a.md'", "workdir": "clients"}),
    ("exec_command", {"cmd": "cat a.md", "workdir": "bare"}),
    ("apply_patch", {"input": "*** Begin Patch\n*** Update File: clients/the shop/a.md\n+a\n*** End Patch"}),
    ("edit_file", {"target_file": "bare/a.md"}),
    ("read_many_files", {"paths": ["b.md", "bare/a.md"]}),
    ("Glob", {"pattern": "bare/**/*.md"}),
]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder that a session works in, with folders in it that are paused."""
    for folder in ("bare", "clients/the shop"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.md").write_text(HIDDEN)
        (tmp_path / folder / pausing.MARKER).write_text("paused = true\n")
    (tmp_path / "leads").mkdir()
    (tmp_path / "leads" / "a.md").symlink_to(tmp_path / "bare" / "a.md")
    return tmp_path


@pytest.mark.parametrize("call", CALLS)
def test_a_file_of_a_paused_folder_is_found_however_a_tool_names_it(
    served: Home, work: Path, call: tuple[str, dict[str, Any]]
) -> None:
    before = len(served.events())
    ran: dict[str, Any] = {"tool_name": call[0], "tool_input": call[1], "tool_response": HIDDEN}
    said = payload("PostToolUse", **ran, cwd=str(work))
    served.call("hook.dispatch", event="PostToolUse", payload=said)
    kept = served.events()[before:]
    assert [one["tag"] for one in kept if one["tag"] != "files.claimed@1"] == []
    assert HIDDEN not in json.dumps(kept)


def test_without_a_daemon_it_is_found_likewise(home: Home, work: Path) -> None:
    deep = work / "bare" / "/".join("d" * 100)
    deep.mkdir(parents=True)
    for name, given in (CALLS[0], CALLS[7], CALLS[10], ("Write", {"file_path": f"{deep}/a.md"})):
        fire(home, "PostToolUse", tool_name=name, tool_input=given, tool_response=HIDDEN, cwd=str(work))
        assert spooled(home) == []


def in_paused_session(home: Home, event: str, client: Any = PATIENT, stdin: Any = -1, /) -> Any:
    return begin(home, event, client, stdin, OMEGAD_PAUSED="1")


def test_claims_guard_files_of_a_paused_folder_and_say_nothing_of_what_is_in_them(
    daemon: Home, tmp_path: Path
) -> None:
    (tmp_path / pausing.MARKER).write_text("paused = true\n")
    edit = {"file_path": str(tmp_path / "app.py"), "old_string": HIDDEN, "new_string": f"{HIDDEN}2"}
    call: dict[str, Any] = {"tool_name": "Edit", "tool_input": edit, "cwd": str(tmp_path)}
    assert fire(daemon, "PreToolUse", "one", **call, tool_use_id="1") == ""
    fire(daemon, "PostToolUse", "one", **call, tool_use_id="1", tool_response={"filePath": HIDDEN})
    said = payload("PreToolUse", "two", **call, tool_use_id="2")
    stopped = json.loads(daemon.call("hook.dispatch", event="PreToolUse", payload=said)["stdout"])
    told = stopped["hookSpecificOutput"]
    assert told["permissionDecision"] == "deny"
    assert "app.py is held by session one" in told["permissionDecisionReason"]
    fire(daemon, "SessionEnd", "one", cwd=str(tmp_path), reason="exit")
    until(lambda: not daemon.call("claim.list")["claims"])
    assert fire(daemon, "PreToolUse", "two", **call, tool_use_id="3") == ""
    assert holding(daemon, HIDDEN) == []


def test_a_pause_ends_by_itself_and_what_is_no_span_is_refused(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    (home.path / pausing.FILE).write_text("1700000000\n")
    assert pausing.of_home(str(home.path)) is None
    for span in ("soon", "0h", "2h later", "-1h"):
        assert cli.main(["--home", str(home.path), "pause", f"--for={span}"]) == 2
    capsys.readouterr()
    say(home, "--json", "pause")
    assert "until `omegad resume`" in json.loads(capsys.readouterr().out)["paused"]
