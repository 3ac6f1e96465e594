"""Faults of every kind, each tried on a real daemon.

What a user sees of them, and that nothing acknowledged is lost.

A sample of the steps at which things can go wrong; `python -m tests.acceptance.faults` tries all of them.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from omegad.client import AsyncClient
from omegad.edge.transfer import log_file
from omegad.runtime.errors import OmegadError
from tests.acceptance.conftest import PATIENCE_S, Home, refusal, until
from tests.acceptance.failing import KILLED, How
from tests.acceptance.faults import FaultyHome, Outcome, fault_in, lived, steps
from tests.forking import ROOT, Forked
from tests.seeds import SEED

TRIES = int(os.environ.get("FAULTS", "1"))  # of each way to fail
HOUR_S = 3_600
EVENTS = 320  # more than are verified at each start
PAGE = 4_096
LEAF = 13  # what a page of a table's rows begins with


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[FaultyHome]:
    """A home whose daemon is not started."""
    home = FaultyHome(tmp_path / "home")
    yield home
    home.kill()
    assert "Traceback" not in home.printed(), home.printed()


# ---- the n-th step


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, list[str]]:
    """What a day leaves on which nothing fails, and its steps."""
    return steps(tmp_path_factory.mktemp("calm"))


@pytest.mark.long
@pytest.mark.parametrize("how", get_args(How))
def test_a_crash_or_a_failure_at_any_step_makes_no_difference(
    tmp_path: Path, calm: tuple[Outcome, list[str]], how: How
) -> None:
    outcome, names = calm
    kinds = sorted({name.split()[0] for name in names})
    chance = random.Random(f"{SEED} {how}")  # noqa: S311  a sample
    for _ in range(TRIES):
        kind = chance.choice(kinds)
        at = chance.choice([number for number, name in enumerate(names, 1) if name.startswith(kind)])
        home = FaultyHome(tmp_path / f"{how}-{at}")
        try:
            left, _ = lived(home, how=how, at=at)
            assert left == outcome, f"{how} at {at} ({names[at - 1]})"
            assert "Traceback" not in home.printed(), home.printed()
        finally:
            home.kill()


def test_a_disk_that_fails_for_good_refuses_writes_and_answers_reads(
    faulty: FaultyHome, tmp_path: Path
) -> None:
    switch = tmp_path / "switch"
    faulty.environ["OMEGAD_FRESH_WAIT_MS"] = "250"
    faulty.fault = fault_in(faulty, how="eio", switch=str(switch), only="write")
    faulty.start()
    stored = [
        faulty.call("memory.store", content=f"Stored before the disk failed, {number}")["memory_id"]
        for number in range(3)
    ]
    until(faulty.caught_up)
    switch.touch()
    for number in range(5):
        text = f"Not stored, {number}"
        error = refusal(partial(faulty.call, "memory.store", content=text, request_id=f"r-{number}"))
        assert (error.kind, "disk" in error.hint) == ("unavailable", True), error
    assert [faulty.call("memory.get", memory_id=one)["memory_id"] for one in stored] == stored
    assert any(
        trouble.startswith("the log cannot be written")
        for trouble in faulty.call("system.status")["degraded"]
    )
    switch.unlink()
    until(lambda: _is_taken(faulty))
    faulty.check()
    faulty.kill()
    faulty.start()
    contents = [
        event["data"]["content"] for event in faulty.events() if event["tag"].startswith("memory.stored")
    ]
    assert contents == [*(f"Stored before the disk failed, {number}" for number in range(3)), "Not stored, 0"]
    faulty.check()


def _is_taken(home: Home) -> bool:
    try:
        return bool(home.call("memory.store", content="Not stored, 0", request_id="r-0"))
    except OmegadError:
        return False


@pytest.mark.parametrize(("step", "status"), [("move omegad.sock", 1), ("delete omegad.sock", 0)])
def test_a_socket_that_can_be_neither_named_nor_removed_is_explained(
    faulty: FaultyHome, step: str, status: int
) -> None:
    faulty.fault = fault_in(faulty, how="eio", at=1, only=step)
    if faulty.serves():
        assert faulty.stop() == status
    else:
        assert faulty.process.returncode == status
        assert "cannot be made a socket" in faulty.printed()
        assert "hint: set OMEGAD_SOCKET" in faulty.printed()
    faulty.fault = None
    assert faulty.start().call("system.ping")["ok"]


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root of a Linux machine can mount"
)
def test_a_home_that_can_only_be_read_is_refused_with_what_to_do_and_left_as_it_is(
    faulty: FaultyHome,
) -> None:
    faulty.path.rmdir()
    faulty.path.mkdir(mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "mode=0700", "tmpfs", str(faulty.path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        stored = faulty.start().call("memory.store", content="Stored while it could be written")
        assert faulty.stop() == 0
        subprocess.run(["mount", "-o", "remount,ro", str(faulty.path)], check=True)
        faulty.launch()
        assert faulty.process.wait(PATIENCE_S) == 1
        assert "the home must be writable; OMEGAD_HOME names another" in faulty.printed()
        subprocess.run(["mount", "-o", "remount,rw", str(faulty.path)], check=True)
        assert (
            faulty.start().call("memory.get", memory_id=stored["memory_id"])["memory_id"]
            == stored["memory_id"]
        )
        faulty.check()
        faulty.kill()
    finally:
        subprocess.run(["umount", "--lazy", str(faulty.path)], check=True)


# ---- the clock


def test_a_clock_that_goes_backwards_changes_neither_order_nor_what_is_found(
    faulty: FaultyHome, tmp_path: Path
) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    faulty.fault = fault_in(faulty, clock=str(clock))
    faulty.start()
    stored = []
    for number, wrong_s in enumerate((0, -3 * HOUR_S, -3 * HOUR_S, 2 * HOUR_S, -30 * 24 * HOUR_S)):
        clock.write_text(str(wrong_s))
        if number in {2, 4}:  # also while nobody serves
            faulty.kill()
            faulty.start()
        stored.append(
            faulty.call(
                "memory.store",
                content=f"Fact {number} of the ledger, told at its own hour",
                ttl_seconds=365 * 24 * HOUR_S,
            )
        )
        faulty.call("claim.files", session_id="s-1", paths=[f"/src/part_{number}.py"])
        faulty.call("task.create", title=f"Task {number}")
    events = faulty.events()
    assert [event["position"] for event in events] == list(range(1, len(events) + 1))
    recorded = [event["recorded_at"] for event in events]
    assert recorded == sorted(recorded)
    found = faulty.call("memory.query", text="fact of the ledger", mode="keyword", limit=20)["results"]
    assert {one["memory_id"] for one in found} == {one["memory_id"] for one in stored}
    assert len(faulty.call("claim.list")["claims"]) == len(stored)
    middle = stored[2]["position"]
    then = faulty.call(
        "memory.query", text="fact of the ledger", mode="keyword", limit=20, as_of=str(middle)
    )["results"]
    assert {one["memory_id"] for one in then} == {one["memory_id"] for one in stored[:3]}
    until(faulty.caught_up)
    faulty.check()


def test_a_clock_that_was_wrong_loses_no_message_and_stops_no_schedule(
    faulty: FaultyHome, tmp_path: Path
) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    faulty.fault = fault_in(faulty, clock=str(clock))
    faulty.start()
    faulty.call("memory.store", content="The cellar is dry")
    clock.write_text(str(-3 * HOUR_S))
    message = {"to_project": "house", "session_id": "s-1", "ttl_minutes": 60}
    sent = [
        faulty.call("message.send", text=text, **message)["message_id"]
        for text in ("the first", "the second")
    ]
    late = faulty.call("memory.store", content="The attic is not")["memory_id"]
    now = datetime.now(UTC) - timedelta(hours=3)
    assert late in {one["memory_id"] for one in faulty.call("memory.list", as_of=now.isoformat())["memories"]}
    assert any("behind the log" in one for one in faulty.call("system.status")["degraded"])
    assert faulty.call("message.receive", session_id="s-2", project="house")["message_ids"] == sent
    brief = faulty.call("memory.store", content="Where the work stood", ttl_seconds=7 * 24 * HOUR_S)[
        "memory_id"
    ]
    clock.write_text(str(10 * 365 * 24 * HOUR_S))
    faulty.kill()
    faulty.start()
    until(lambda: faulty.call("system.status")["reactions"]["expiry"]["position"] > 0)
    until(lambda: any(event["tag"] == "memory.expired@1" for event in faulty.events()))
    ahead = faulty.call("system.status")["reactions"]["expiry"]["position"]
    clock.write_text("0")
    faulty.kill()
    faulty.start()
    until(lambda: faulty.call("system.status")["reactions"]["expiry"]["position"] > ahead)
    faulty.call("memory.restore", memory_id=brief)
    assert brief in {
        one["memory_id"]
        for one in faulty.call("memory.query", text="where the work stood", mode="keyword")["results"]
    }
    until(faulty.caught_up)
    faulty.check()


# ---- damaged files


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose daemon was killed when most was in its files, and the rest in write-ahead logs."""
    folder = tmp_path_factory.mktemp("whole")
    home = FaultyHome(folder / "home").start()
    with home.client() as client:
        for number in range(EVENTS):
            client.call(
                "tool.record",
                session_id="s",
                tool_name="Bash",
                tool_input=f"make target-{number} " + "x" * 500,
            )
        for number in range(20):
            client.call("memory.store", content=f"Fact {number} of the ledger")
    until(home.caught_up)
    assert home.stop() == 0
    home.start()
    with home.client() as client:
        for number in range(20, 40):
            client.call("memory.store", content=f"Fact {number} of the ledger")
    until(home.caught_up)
    home.kill()
    for name in ("spool/00000000000000000001-torn.json", "self-check.json"):
        path = home.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"event": "PostToolUse", "payl')
    return home.path


def _copy(whole: Path, path: Path) -> FaultyHome:
    shutil.copytree(whole, path, symlinks=True, ignore=shutil.ignore_patterns("run", "*.sock"))
    return FaultyHome(path)


def _scribble(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek(page * PAGE)
        file.write(os.urandom(PAGE))


def _memories(home: Home) -> set[str]:
    return {one["content"] for one in home.call("memory.list", limit=100)["memories"]}


FACTS = {f"Fact {number} of the ledger" for number in range(40)}


@pytest.mark.parametrize("name", ["views-1.db", "views-1.db-wal", "embeddings.db"])
def test_a_damaged_page_of_what_can_be_made_again_costs_nothing(
    whole: Path, tmp_path: Path, name: str
) -> None:
    home = _copy(whole, tmp_path / "home")
    pages = (home.path / name).stat().st_size // PAGE
    try:
        for page in {
            0,
            random.Random(f"{SEED} {name}").randrange(max(1, pages)),  # noqa: S311
        }:
            if pages:
                _scribble(home.path / name, page)
        home.start()
        until(lambda: _memories_at_last(home) == FACTS, home.printed)
        until(home.caught_up)
        if not _is_proved(home):  # a page that no query reads: whoever verifies is told to rebuild
            home.call("views.rebuild")
        home.check()
    finally:
        home.kill()


def _memories_at_last(home: Home) -> set[str] | None:
    try:
        return _memories(home)
    except OmegadError:
        return None


def _is_proved(home: Home) -> bool:
    try:
        return bool(home.call("views.verify")["ok"])
    except OmegadError:
        return False


@pytest.mark.parametrize(
    ("wanted", "is_served"), [(b"make target-9 ", True), (b"make target-310 ", False)], ids=["early", "late"]
)
def test_a_damaged_page_of_the_log_is_told_of_and_nothing_is_made_up_for_it(
    whole: Path, tmp_path: Path, wanted: bytes, *, is_served: bool
) -> None:
    """The end of the chain is verified at each start, all of it by `omegad verify` and once a week.

    What the views show stays.
    """
    home = _copy(whole, tmp_path / "home")
    _scribble(home.paths.log, _page_of_rows(home.paths.log, wanted))
    try:
        assert home.serves() == is_served, home.printed()
        if not is_served:
            assert "(log.db: database disk image is malformed)" in home.printed()
            assert "a damaged log.db is restored from a backup" in home.printed()
            return
        assert _memories(home) == FACTS
        report = home.call("log.verify")
        assert not report["ok"], report
        refusal(lambda: home.call("views.rebuild"))
        assert _memories(home) == FACTS
    finally:
        home.kill()


def _page_of_rows(log: Path, wanted: bytes) -> int:
    """Return the number, from 0, of the first page of a table's rows that holds what is *wanted*."""
    data = log.read_bytes()
    pages = [data[start : start + PAGE] for start in range(0, len(data), PAGE)]
    return next(number for number, page in enumerate(pages) if page[0] == LEAF and wanted in page)


@pytest.mark.parametrize("harm", ["cut", "flipped"])
def test_a_write_ahead_log_that_lost_what_was_acknowledged_is_noticed(
    whole: Path, tmp_path: Path, harm: str
) -> None:
    """No disk that keeps its word tears what was synced.

    One that does not is found out by the views, which saw it.
    """
    for number in range(2):
        home = _copy(whole, tmp_path / f"home-{number}")
        wal = home.path / "log.db-wal"
        offset = random.Random(f"{SEED} {harm} {number}").randrange(32, wal.stat().st_size - PAGE)  # noqa: S311
        data = bytearray(wal.read_bytes())
        data[offset] ^= 0xFF
        wal.write_bytes(data if harm == "flipped" else data[:offset])
        try:
            assert not home.serves(), f"{harm} at {offset}: it serves {len(home.events())} events"
            assert home.process.returncode == 1
            assert "has seen event" in home.printed()
            assert "omegad salvage" in home.printed()
        finally:
            home.kill()


# ---- those who do not read


def test_a_follower_that_is_stopped_keeps_nobody_waiting_and_reads_on_when_it_goes_on(
    faulty: FaultyHome,
) -> None:
    faulty.start()
    command = [sys.executable, "-m", "omegad", "log", "--follow", "--json"]
    printed = faulty.path.with_name("followed")
    with (
        printed.open("wb") as out,
        subprocess.Popen(command, cwd=ROOT, env=faulty.environ, stdout=out) as follower,
    ):
        try:
            until(lambda: faulty.call("system.status")["connections"] == 2)
            with faulty.client() as client:
                first = client.call("tool.record", session_id="s", tool_name="Read")["position"]
                until(lambda: printed.stat().st_size > 0)
                before = client.call("system.status")["rss_bytes"]
                follower.send_signal(signal.SIGSTOP)
                asyncio.run(_write_much(faulty))
                assert client.call("system.status")["rss_bytes"] - before < 40_000_000
                follower.send_signal(signal.SIGCONT)
                last = client.call("tool.record", session_id="s", tool_name="Last")["position"]
            until(lambda: b'"Last"' in printed.read_bytes()[-5_000:])
            assert printed.read_bytes().count(b"\n") == last - first + 1
        finally:
            follower.send_signal(signal.SIGCONT)
            follower.terminate()


async def _write_much(home: Home) -> None:
    """Append more than any buffer holds, and be kept waiting by nobody."""
    async with AsyncClient(home.socket, timeout_s=PATIENCE_S) as client:
        for number in range(20):
            params = {"session_id": "s", "tool_name": "Read", "tool_input": f"{number} " + "y" * 3_500}
            await asyncio.gather(*(client.call("tool.record", **params) for _ in range(50)))


def test_what_was_left_by_those_that_were_killed_is_gone_after_a_start(faulty: FaultyHome) -> None:
    """Copies of what was said must not outlive its erasure."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(PATIENCE_S)
    left = [
        faulty.path / f".log.db.{gone.pid}.part",
        faulty.path / f".log.db.{gone.pid}.part-wal",
        faulty.path / "views-verify.tmp",
    ]
    for path in left:
        path.write_bytes(b"a secret of mine")
    faulty.start()
    assert [path for path in left if path.exists()] == []


# ---- the verbs that replace files


def _quiet(_done: int, _total: int, _what: str) -> None:
    pass


def _run(home: FaultyHome, arguments: list[str], **fault: Any) -> tuple[int, str, list[str]]:
    """Run a verb to its end; return its status, what it printed, and its steps."""
    printed = home.path.with_name("verb.printed")
    printed.unlink(missing_ok=True)
    wanted = fault_in(home, **fault)
    if arguments[0] == "backup":
        wanted = replace(wanted, within=f"{Path(arguments[1]).parent}/")
    Path(wanted.trace).unlink(missing_ok=True)
    status = Forked(arguments, home.environ, printed, wanted).wait()
    return status, printed.read_text(), Path(wanted.trace).read_text().splitlines()


@pytest.fixture(scope="module")
def backed_up(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a backup `b.db` and an export `e.jsonl` of the whole home, and a `home` that went on
    since.
    """
    folder = tmp_path_factory.mktemp("backed-up")
    home = _copy(whole, folder / "home").start()
    assert home.stop() == 0
    for arguments in (["backup", str(folder / "b.db")], ["export", str(folder / "e.jsonl")]):
        assert _run(home, arguments)[0] == 0
    home.start().call("memory.store", content="Stored after the backup")
    until(home.caught_up)
    assert home.stop() == 0
    return folder


@pytest.mark.long
@pytest.mark.parametrize("how", ["kill", "eio"])
@pytest.mark.parametrize("verb", ["backup", "restore", "import"])
def test_a_verb_that_fails_at_any_step_leaves_a_whole_log_and_is_run_again(
    backed_up: Path, tmp_path: Path, verb: str, how: How
) -> None:
    def fresh(name: str) -> tuple[FaultyHome, list[str]]:
        if verb == "import":
            return FaultyHome(tmp_path / name), ["import", str(backed_up / "e.jsonl")]
        (tmp_path / name).mkdir()
        home = _copy(backed_up / "home", tmp_path / name / "home")
        if verb == "restore":
            return home, ["restore", str(backed_up / "b.db"), "--replace"]
        (copies := home.path.with_name("copies")).mkdir()
        arguments = ["backup", str(copies / "x.db"), "--keep", "3"]
        for _ in range(2):
            assert _run(home, arguments)[0] == 0
        return home, arguments

    status, printed, names = _run(*fresh("calm"))
    assert status == 0, printed
    late = [number for number, name in enumerate(names, 1) if name.startswith(("move", "sync a"))]
    headers = [number for number, name in enumerate(names, 1) if name.endswith(".part-journal")]
    chance = random.Random(f"{SEED} {verb} {how}")  # noqa: S311  a sample
    for at in {chance.randint(1, len(names)), chance.choice(late), *headers[:-1]}:
        home, arguments = fresh(f"{how}-{at}")
        status, printed, _ = _run(home, arguments, how=how, at=at)
        assert (status, "Traceback" in printed) in {(KILLED if how == "kill" else 1, False), (0, False)}, (
            at,
            names[at - 1],
            printed,
        )
        _is_whole(home, verb, len(names) and f"{how} at {at} ({names[at - 1]})")
        again, printed, _ = _run(home, arguments)
        assert again == 0 or (verb == "import" and "has events already" in printed), printed
        if verb != "backup":
            home.start()
            assert _memories(home) == FACTS
            home.check()
            home.kill()
        assert list(tmp_path.rglob(".*.part*")) == []


def _is_whole(home: FaultyHome, verb: str, told: object) -> None:
    """See that each copy is whole, and that a daemon serves a whole log or says what to do."""
    for path in home.path.with_name("copies").glob("x.db*"):
        assert log_file.verify(path, _quiet).ok, (told, path)
    if verb == "restore":
        if home.serves():
            assert _memories(home) in (FACTS, FACTS | {"Stored after the backup"}), told
            home.kill()
        else:
            assert "omegad salvage" in home.printed(), told
        assert sorted(home.path.glob("log.db*"))
