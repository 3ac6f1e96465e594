"""A folder on a disk that does not answer: what looks at it hangs, and nothing else."""

import os
import threading
from pathlib import Path

import pytest

from omegad.runtime import reaching
from omegad.runtime.errors import OmegadError
from tests.acceptance.conftest import Home, refusal, until

HOOKS = 45
"""More than the threads that the event loop's library has for everything."""


def edit(home: Home, folder: Path, session: str) -> None:
    payload = {
        "session_id": session,
        "cwd": str(folder),
        "tool_name": "Edit",
        "tool_input": {"file_path": str(folder / "a.py")},
        "tool_use_id": session,
    }
    home.call("hook.dispatch", event="PreToolUse", payload=payload, host="claude-code")


def test_a_folder_that_does_not_answer_holds_up_nothing_else(daemon: Home, tmp_path: Path) -> None:
    hung, other = tmp_path / "hung", tmp_path / "other"
    for folder in (hung, other):
        folder.mkdir()
    (hung / ".git").write_text("gitdir: git\n")
    (hung / "git").mkdir()
    os.mkfifo(hung / "git" / "commondir")  # to open it is to wait for whoever writes
    (other / ".git").mkdir()
    answered: list[int] = []

    def ask(number: int) -> None:
        edit(daemon, hung, f"s-{number}")
        answered.append(number)

    asking = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(HOOKS)]
    for one in asking:
        one.start()
    edit(daemon, other, "s-other")
    stored = daemon.call("memory.store", content="the billing runs on PostgreSQL 16")
    until(lambda: len(answered) == HOOKS, lambda: f"{len(answered)} of {HOOKS} hooks were answered")
    assert [claim["name"] for claim in daemon.call("claim.list")["claims"]] == ["a.py"]
    assert str(hung) in " ".join(daemon.call("system.status")["degraded"])
    refused = refusal(lambda: daemon.call("claim.files", session_id="s-1", paths=["a.py"], folder=str(hung)))
    assert isinstance(refused, OmegadError)
    assert refused.kind == "unavailable"
    assert "omegad status" in refused.hint
    daemon.call("memory.erase", memory_id=stored["memory_id"])
    assert daemon.stop() == 0  # though its threads hang still


def test_only_what_hangs_is_left_out_from_wherever_it_is_named(daemon: Home, tmp_path: Path) -> None:
    hung, other = tmp_path / "hung", tmp_path / "other"
    (hung / "git").mkdir(parents=True)
    (hung / ".git").write_text("gitdir: git\n")
    os.mkfifo(hung / "git" / "commondir")
    (other / ".git").mkdir(parents=True)
    for folder in ("/", str(tmp_path), str(other)):
        payload = {
            "session_id": "s-1",
            "cwd": folder,
            "tool_name": "Edit",
            "tool_input": {"file_path": str(hung / "a.py")},
            "tool_use_id": folder,
        }
        daemon.call("hook.dispatch", event="PreToolUse", payload=payload, host="claude-code")
    edit(daemon, other, "s-2")
    assert [claim["name"] for claim in daemon.call("claim.list")["claims"]] == ["a.py"]
    (trouble,) = daemon.call("system.status")["degraded"]
    assert trouble.startswith(f"{hung}: ")


def test_another_disk_answers_or_hangs_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text(
        "22 1 8:1 / / rw - d a rw\n36 22 0:9 / /mnt/far\\040away rw - nfs b rw\n37 22 0:8 / /home rw - d c"
        " rw\n"
    )
    monkeypatch.setattr(reaching, "MOUNTS", tmp_path / "mountinfo")
    it = reaching.Reaching(Path("/home/ann/.omegad"))
    found = {
        path: it.disk(path)
        for path in (
            "/mnt/far away/x/y",
            "/mnt/far away",
            "/mnt/far awayness",
            "/home/ann/src",
            "/",
            "/srv/x",
        )
    }
    assert found == dict.fromkeys(found, "") | {
        "/mnt/far away/x/y": "/mnt/far away",
        "/mnt/far away": "/mnt/far away",
    }


def test_a_folder_that_answers_again_is_looked_at_again(daemon: Home, tmp_path: Path) -> None:
    (tmp_path / "git").mkdir()
    (tmp_path / ".git").write_text("gitdir: git\n")
    os.mkfifo(tmp_path / "git" / "commondir")
    edit(daemon, tmp_path, "s-1")
    assert daemon.call("system.status")["degraded"] != []
    with (tmp_path / "git" / "commondir").open("w") as line:
        line.write(".\n")
    (tmp_path / "git" / "commondir").unlink()
    until(lambda: str(tmp_path) not in " ".join(daemon.call("system.status")["degraded"]))
    edit(daemon, tmp_path, "s-1")
    assert [claim["name"] for claim in daemon.call("claim.list")["claims"]] == ["a.py"]
