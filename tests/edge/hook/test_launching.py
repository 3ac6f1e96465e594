"""That a session which begins where no daemon runs has one started for the hooks after it."""

import json
import os
import sys
from collections.abc import Iterator

import pytest

from omegad.edge.cli.doctor import SESSION
from omegad.rpc import endpoint
from tests.acceptance.conftest import PATIENCE_S, Home, home, homes, until
from tests.edge.hook.conftest import HURRIED, begin, fire, payload, spooled

__all__ = ["home", "homes"]


@pytest.fixture
def booted(home: Home) -> Iterator[Home]:
    """A home that knows something, and whose daemon does not run; whichever then does is ended."""
    home.start().call("memory.store", content="no network in tests", event_type="constraint", project="shop")
    home.stop()
    yield home
    if pid := endpoint.holder(home.paths.lock):
        home.call("system.shutdown")
        until(lambda: endpoint.holder(home.paths.lock) != pid)


def start(home: Home, session_id: str, **environ: str) -> None:
    """Begin a session as a host does."""
    process = begin(home, "SessionStart", HURRIED, OMEGAD_MODEL="none", **environ)
    said = json.dumps(payload("SessionStart", session_id, source="startup")).encode()
    assert process.communicate(said, timeout=PATIENCE_S) == (b"", b"")
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_sessions_that_begin_have_one_daemon_started_and_are_briefed_by_it(booted: Home) -> None:
    for session_id in ("s-1", "s-2", "s-3"):
        start(booted, session_id)
    until(lambda: booted.socket.exists() and not spooled(booted))
    pid = booted.call("system.ping")["pid"]
    assert (pid, os.getsid(pid)) == (endpoint.holder(booted.paths.lock), pid)
    told = [fire(booted, "UserPromptSubmit", f"s-{number}", prompt="go on") for number in (1, 2, 3, 3)]
    assert ["no network in tests" in one for one in told] == [True, True, True, False]


def test_none_is_started_where_the_command_line_says_so(home: Home) -> None:
    said = json.dumps(payload("SessionStart", source="startup"))
    done = home.verb("--no-spawn", "hook", "SessionStart", said=said)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(spooled(home)) == 1
    asked = b"".join(line + b"\n" for line in SESSION).decode()
    assert "none may be started" in home.verb("--no-spawn", "mcp", said=asked).stdout
    assert not (home.path / "starting.lock").exists()


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop"])
def test_none_is_started_for_a_session_that_is_paused_nor_at_other_hooks(home: Home, event: str) -> None:
    paused = {"OMEGAD_PAUSED": "1"} if event == "SessionStart" else {}
    process = begin(home, event, HURRIED, **paused)
    process.communicate(json.dumps(payload(event)).encode(), timeout=PATIENCE_S)
    assert len(spooled(home)) == (0 if paused else 1)
    assert not (home.path / "starting.lock").exists()
