"""A clock that is wrong for a while, on a real daemon: it is noticed, said, and mended by a command."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Home, until
from tests.acceptance.faults import FaultyHome, fault_in

HOUR_S = 3_600
YEARS_S = 10 * 365 * 24 * HOUR_S
HELD = {"session_id": "s-2", "folder": "/src"}


class Clocked:
    """A home whose daemon has a clock that can be wrong."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "clock"
        self.home = FaultyHome(folder / "home")
        self.set(0)
        self.home.fault = fault_in(self.home, clock=str(self.path))
        self.home.start()

    def set(self, wrong_s: int, slept_s: int = 0) -> None:
        self.path.write_text(f"{wrong_s} {slept_s}")

    def start_at(self, wrong_s: int) -> None:
        assert self.home.stop() == 0
        self.set(wrong_s)
        self.home.start()

    def troubles(self) -> list[str]:
        return [one for one in self.home.call("system.status")["degraded"] if "clock" in one]


@pytest.fixture
def clocked(tmp_path: Path) -> Iterator[Clocked]:
    found = Clocked(tmp_path)
    try:
        yield found
    finally:
        found.home.kill()


def found(home: Home, text: str) -> set[str]:
    return {
        one["memory_id"] for one in home.call("memory.query", text=text, mode="keyword", limit=20)["results"]
    }


def run_verb(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    ran = [sys.executable, "-m", "omegad", *words, "--home", str(home.path), "--socket", str(home.socket)]
    return subprocess.run(
        ran, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
    )


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_after_a_start_ten_years_ahead_one_command_makes_all_as_if_it_had_not_been(clocked: Clocked) -> None:
    home = clocked.home
    began = datetime.now(UTC)
    before = home.call(
        "memory.store",
        content="Where the work on the ledger stood",
        event_type="checkpoint",
        session_id="s-1",
    )["memory_id"]
    short = home.call("memory.store", content="The ledger opens in a moment", ttl_seconds=1)["memory_id"]
    home.call(
        "reminder.set", content="Renew the ledger's licence", due=(began + timedelta(days=365)).isoformat()
    )

    clocked.start_at(YEARS_S)
    assert [
        one for one in clocked.troubles() if "after the latest event" in one and "omegad clock mend" in one
    ]
    until(
        lambda: (
            {event["data"]["memory_id"] for event in home.events() if event["tag"] == "memory.expired@1"}
            == {before, short}
        )
    )
    far = home.call("system.status")["reactions"]["expiry"]["position"]
    then = home.call(
        "memory.store",
        content="Where the other work on the ledger stood",
        event_type="checkpoint",
        session_id="s-2",
    )["memory_id"]
    home.call("task.create", title="Mend the ledger", project="house")
    home.call("claim.files", paths=["/src/ledger.py"], **HELD)
    sent = home.call(
        "message.send", text="the ledger is mine", to_project="house", session_id="s-2", ttl_minutes=60
    )["message_id"]
    home.call(
        "hook.dispatch",
        event="SessionStart",
        payload={"session_id": "s-9", "cwd": "/src"},
        host="claude-code",
    )

    clocked.start_at(0)
    (trouble,) = clocked.troubles()
    assert "10.0 years behind the log" in trouble
    assert "omegad clock mend" in trouble
    shown = home.call("clock.show")
    assert shown["events"]
    assert shown["ahead_s"] == pytest.approx(YEARS_S, abs=60)
    today = home.call("memory.store", content="The ledger is in the cellar")["memory_id"]
    until(
        lambda: datetime.now(UTC) > began + timedelta(seconds=2)
    )  # what was to last a second is over by any clock
    would = home.call("clock.mend", dry_run=True)
    assert would["restored"] == [before]
    done = home.call("clock.mend", request_id="once", reason="the battery was empty")
    assert done["restored"] == [before]
    assert home.call("clock.mend", request_id="once", reason="the battery was empty") == done

    assert clocked.troubles() == []
    assert home.call("clock.mend")["events"] == 0
    assert found(home, "ledger") >= {before, then, today}
    assert short not in found(home, "ledger")
    ends = {one: moment(home.call("memory.get", memory_id=one)["expires_at"]) for one in (before, then)}
    assert all(timedelta(days=6) < end - began < timedelta(days=8) for end in ends.values())
    assert abs(moment(home.call("memory.get", memory_id=then)["created_at"]) - began) < timedelta(hours=1)
    clocked.start_at(0)
    until(lambda: 0 < home.call("system.status")["reactions"]["expiry"]["position"] < far)
    assert home.call("message.receive", session_id="s-1", project="house")["message_ids"] == [sent]
    assert [one["session_id"] for one in home.call("claim.list")["claims"]] == ["s-2"]
    assert [one["title"] for one in home.call("task.list", project="house")["tasks"]] == ["Mend the ledger"]
    assert all(one["told_at"] is None for one in home.call("reminder.list")["reminders"])

    _is_in_order(home, done["position"], today, then, began)
    until(home.caught_up)
    home.check()
    home.call("views.rebuild")
    assert "log.refolded" not in home.printed()  # the decision state is what the log says

    clocked.start_at(14 * 24 * HOUR_S)  # two weeks go by: it lasts as long as it was to, and no longer
    assert not found(home, "where the work on the ledger stood") & {before, then}
    until(
        lambda: (
            [event["data"]["memory_id"] for event in home.events() if event["tag"] == "memory.expired@1"][-2:]
            in ([before, then], [then, before])
        )
    )


def _is_in_order(home: Home, mended: int, today: str, then: str, began: datetime) -> None:
    """Check that positions and the hybrid clock never run back, and that each moment has its place."""
    events: list[dict[str, Any]] = home.events()
    assert [event["position"] for event in events] == list(range(1, len(events) + 1))
    (at,) = (event for event in events if event["tag"] == "clock.mended@1")
    assert at["position"] < mended + 1
    assert all(
        moment(event["recorded_at"]) - began < timedelta(hours=1)
        for event in events
        if event["position"] >= at["position"]
    )
    late = home.call("memory.store", content="The ledger is in the attic now")["memory_id"]
    listed = home.call("memory.list", as_of=datetime.now(UTC).isoformat(), limit=100)
    assert {today, then, late} <= {one["memory_id"] for one in listed["memories"]}
    early = home.call("memory.list", as_of=(began - timedelta(seconds=1)).isoformat(), limit=100)
    assert early["memories"] == []
    position = next(event["position"] for event in events if event["data"].get("memory_id") == then)
    assert then in {
        one["memory_id"] for one in home.call("memory.list", as_of=str(position), limit=100)["memories"]
    }


def test_a_jump_while_serving_is_said_and_is_over_when_it_is_back_or_taken_for_right(
    clocked: Clocked,
) -> None:
    home = clocked.home
    kept = home.call("memory.store", content="The cellar is dry", ttl_seconds=2 * HOUR_S)["memory_id"]
    assert clocked.troubles() == []
    clocked.set(0, slept_s=3 * HOUR_S)  # a laptop that slept
    assert clocked.troubles() == []
    clocked.set(3 * HOUR_S, slept_s=3 * HOUR_S)
    (trouble,) = clocked.troubles()
    assert "jumped 3.0 h ahead" in trouble
    assert "omegad clock mend" in trouble
    clocked.set(0)
    assert kept in found(home, "cellar")
    # What was asked is logged behind its answer: with the clock of that moment, once it is waited for.
    until(lambda: any(event["tag"].startswith("memory.queried@") for event in home.events()))
    clocked.set(3 * HOUR_S)
    then = home.call("memory.store", content="The cellar is cold", ttl_seconds=HOUR_S)["memory_id"]
    clocked.set(0)
    (ahead,) = (event["position"] for event in home.events() if event["data"].get("memory_id") == then)
    (trouble,) = clocked.troubles()
    assert "3.0 h behind the log" in trouble
    asked = run_verb(home, "clock", "mend")
    assert (
        asked.returncode,
        f"events from position {ahead} on" in asked.stdout,
        "run it with --yes" in asked.stderr,
    ) == (1, True, True)
    assert clocked.troubles() == [trouble]
    done = run_verb(home, "clock", "mend", "--yes", "--request-id", "once", "--json")
    assert json.loads(done.stdout)["ahead_s"] == pytest.approx(3 * HOUR_S, abs=60)
    assert clocked.troubles() == []
    end = moment(home.call("memory.get", memory_id=then)["expires_at"])
    assert abs(end - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=10)
    clocked.set(-3 * HOUR_S)
    home.call("memory.store", content="The cellar is far")
    (trouble,) = clocked.troubles()
    assert "3.0 h behind the log" in trouble
    clocked.set(0)
    assert clocked.troubles() == []
    clocked.set(5 * HOUR_S)
    assert "jumped" in clocked.troubles()[0]
    assert home.call("clock.mend")["events"] == 0
    assert clocked.troubles() == []
    assert "clock.jumped" in home.printed()
    until(home.caught_up)
    home.check()
