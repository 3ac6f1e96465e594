"""What waits in the spool is taken in behind a daemon that answers, each once and in its order; what
cannot be kept is counted.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import PATIENCE_S, Home, daemon, home, homes, until
from tests.edge.hook.conftest import CLIENT, PATIENT, begin, fire, payload, spooled, written

__all__ = ["daemon", "home", "homes"]

MANY = 1_500
INODES = 60

as_root = pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux", reason="only root of a Linux machine can mount a small disk"
)


def leave(home: Home, count: int) -> None:
    """Leave as many tool calls of one session in the spool as if they had just happened."""
    folder = home.path / "spool"
    folder.mkdir(mode=0o700, exist_ok=True)
    began_us = time.time_ns() // 1_000 - 60_000_000
    for number in range(count):
        at_us = began_us + number
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_us // 1_000_000))
        said = payload(
            "PostToolUse",
            "s-left",
            tool_name="Read",
            tool_input={"number": number},
            tool_response="x",
            tool_use_id=f"t-{number}",
        )
        left = {
            "event": "PostToolUse",
            "delivery_id": f"{number:032x}",
            "occurred_at": f"{seconds}.{at_us % 1_000_000:06}Z",
            "host": "",
            "payload": said,
        }
        (folder / f"{at_us:020}-{number:032x}.json").write_text(json.dumps(left))


def edited(home: Home, folder: Path, session_id: str, number: int) -> str | None:
    """Return what becomes of an edit that a session is about to make."""
    given = {"file_path": str(folder / "a.py"), "old_string": "x", "new_string": "y"}
    with written(
        payload(
            "PreToolUse", session_id, tool_name="Edit", tool_input=given, tool_use_id=f"{session_id}-{number}"
        )
        | {"cwd": str(folder)}
    ) as said:
        process = begin(home, "PreToolUse", PATIENT, said)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, b"")
    return str(json.loads(out)["hookSpecificOutput"]["permissionDecision"]) if out else None


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The work tree of a repository, with a file."""
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "a.py").write_text("x")
    return folder


def test_a_daemon_answers_while_the_spool_is_emptied_and_says_how_far_that_is(home: Home, shop: Path) -> None:
    leave(home, MANY)
    home.start()
    told = dict[str, Any]()

    def says_how_far() -> bool:
        told.update(home.call("system.status"))
        return any(f"of {MANY:,}" in trouble and "being taken in" in trouble for trouble in told["degraded"])

    until(says_how_far)
    assert 0 < told["spool"]["waiting"] <= MANY
    home.call("memory.store", content="no network in tests", event_type="constraint", project="shop")
    assert edited(home, shop, "s-first", 0) is None
    assert edited(home, shop, "s-second", 0) == "deny"
    assert "no network in tests" in fire(home, "SessionStart", "s-new", source="startup")
    until(lambda: not spooled(home))
    until(lambda: "being taken in" not in str(home.call("system.status")["degraded"]))
    until(lambda: "session.started@1" in [event["tag"] for event in home.events()])
    events = home.events()
    made = [
        event
        for event in events
        if event["tag"] == "tool.called@1" and event["data"]["status"] != "denied"  # as the second edit was
    ]
    calls = [event["data"] for event in made]
    assert [json.loads(call["tool_input"]["head"])["number"] for call in calls] == list(range(MANY))
    assert [call["call_index"] for call in calls] == list(range(1, MANY + 1))
    (started,) = (event for event in events if event["tag"] == "session.started@1")
    assert started["position"] > max(event["position"] for event in made), "it goes behind"
    assert [event["tag"] for event in events].count("memory.surfaced@1") >= 1
    assert "spool.taking_in" in home.printed()
    home.check()


BUSY = """
import sys
from pathlib import Path
from omegad.client import Client
with Client(Path(sys.argv[1]), timeout_s=60) as client:
    for number in range(1_000_000):
        client.call("memory.store", content=f"fact {number} of {sys.argv[2]}", project="busy")
        client.call("memory.query", text=f"fact {number}", project="busy")
"""


@pytest.fixture
def busy(daemon: Home) -> Iterator[Home]:
    """A daemon with four clients that ask as fast as they can."""
    clients = [
        subprocess.Popen([sys.executable, "-c", BUSY, str(daemon.socket), str(place)]) for place in range(4)
    ]
    try:
        until(lambda: daemon.call("system.status")["log"]["head"] > 40)
        yield daemon
        assert [client.poll() for client in clients] == [None] * 4
    finally:
        for client in clients:
            client.kill()
            client.wait(PATIENCE_S)


def test_of_twenty_edits_of_a_file_that_another_holds_none_goes_by_whatever_else_is_asked_and_waits(
    busy: Home, shop: Path
) -> None:
    assert edited(busy, shop, "s-holder", 0) is None
    leave(busy, MANY)
    found = [edited(busy, shop, "s-other", number) for number in range(20)]
    assert found == ["deny"] * 20


def test_what_goes_behind_is_answered_and_recorded_once(daemon: Home) -> None:
    daemon.call("memory.store", content="no network in tests", event_type="constraint", project="shop")
    until(daemon.caught_up)
    daemon.process.send_signal(19)
    leave(daemon, 1)
    said = payload("SessionStart", "s-1", source="startup")
    with written(said) as file:
        process = begin(daemon, "SessionStart", PATIENT, file)
        daemon.process.send_signal(18)
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert b"no network in tests" in out
    until(lambda: not spooled(daemon))
    until(lambda: [event["tag"] for event in daemon.events()].count("session.started@1") == 1)
    daemon.check()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk that has room for so many files and no more."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"nr_inodes={INODES},mode=0700", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr!r}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@as_root
def test_what_no_file_can_be_made_for_is_counted(homes: Callable[..., Home], small: Path) -> None:
    """In the file that the daemon has ready for it."""
    (small / "home").mkdir(mode=0o700)
    home = homes(small / "home").start()
    counted = home.path / "spool" / "lost"
    until(counted.exists)
    home.kill()
    fill(small)
    for _ in range(3):
        fire(home, "Stop")
    assert spooled(home) == []
    assert counted.stat().st_size == 3
    for path in small.glob("f*"):
        path.unlink()
    assert home.start().call("system.status")["spool"]["lost"] == 3


def fill(place: Path) -> None:
    """Make files until there is no room for another."""
    number = 0
    while True:
        try:
            (place / f"f{number}").touch()
        except OSError:
            return
        number += 1


def parts(home: Home, count: int) -> list[Path]:
    """Leave what hooks had written when they were killed an hour ago, and what is being written now."""
    folder = home.path / "spool"
    folder.mkdir(mode=0o700, exist_ok=True)
    made = [folder / f".{number:020}-{number:032x}.json" for number in range(count)]
    for path in made:
        path.write_text('{"event":')
    for path in made[1:]:
        os.utime(path, (time.time() - 3_600,) * 2)
    (folder / ".keep").touch()
    os.utime(folder / ".keep", (0, 0))
    return made


def left(home: Home) -> list[str]:
    return sorted(path.name for path in (home.path / "spool").iterdir() if path.name.startswith("."))


def test_what_killed_hooks_left_is_removed_and_counted_by_the_next_hook(home: Home) -> None:
    made = parts(home, 4)
    fire(home, "Stop")
    assert left(home) == sorted([made[0].name, ".keep"])
    assert (home.path / "spool" / "lost").stat().st_size == 3
    assert len(spooled(home)) == 1


def test_what_killed_hooks_left_is_removed_and_counted_by_the_daemon(home: Home) -> None:
    made = parts(home, 4)
    home.start()
    until(lambda: left(home) == sorted([made[0].name, ".keep"]))
    until(lambda: home.call("system.status")["spool"]["lost"] == 3)


def test_hooks_that_are_killed_while_they_write_do_not_fill_the_spool(home: Home) -> None:
    """Five thousand of them keep nobody from leaving something."""
    made = parts(home, 5_001)
    fire(home, "Stop")
    assert len(spooled(home)) == 1
    assert not made[-1].exists()


def test_where_nothing_can_be_written_it_is_counted_all_the_same(home: Home) -> None:
    """The count grows where the disk has no room for a byte."""
    (home.path / "spool").mkdir(mode=0o700)
    client = [
        "-c",
        f"""
import errno, posix, sys
sys.path.append({str(CLIENT.parents[1])!r})
from omegad.edge.hook import delivery as hook_delivery
def full(*_):
    raise OSError(errno.ENOSPC, "no space left on device")
posix.write = full
posix._exit(hook_delivery.main(sys.argv[1], sys.argv[2:]))
""",
    ]
    for _ in range(2):
        fire(home, "Stop", "s-1", client)
    assert (spooled(home), left(home)) == ([], [])
    assert (home.path / "spool" / "lost").stat().st_size == 2
