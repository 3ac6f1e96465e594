"""A disk that is full stops writing and nothing else, and nothing that was acknowledged is lost by it."""

import errno
import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from omegad.client import Client
from omegad.runtime.errors import NoDaemon, OmegadError
from tests.acceptance.conftest import PATIENCE_S, Home, until

MEGABYTE = 1024 * 1024
DISK_BYTES = 64 * MEGABYTE
FAILURES = 25  # in a row: then it is the disk, and not one write that was too large
WRITES_MAX = 10_000
IMPATIENT = {"OMEGAD_FRESH_WAIT_MS": "250"}  # the views wait for room as well


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root of a Linux machine can mount a small disk")
    place = tmp_path / "disk"
    place.mkdir(mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=0700", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


class Ballast:
    """A file that takes the room of a disk."""

    def __init__(self, place: Path) -> None:
        self._path = place / "ballast"

    def fill(self, leaving: int = 0) -> None:
        """Leave *leaving* bytes free, or fewer."""
        with self._path.open("ab", buffering=0) as file:
            while (room := self._room() - leaving) > 0:
                try:
                    file.write(b"\0" * min(room, MEGABYTE))
                except OSError as error:
                    assert error.errno == errno.ENOSPC  # noqa: PT017  anything else spoils the test
                    return

    def remove(self) -> None:
        self._path.unlink()

    def _room(self) -> int:
        found = os.statvfs(self._path.parent)
        return found.f_bavail * found.f_frsize


class Writer:
    """Writes, and keeps account of what was acknowledged and of what was not."""

    def __init__(self, home: Home) -> None:
        self.acknowledged: dict[int, str] = {}
        self.refused: dict[str, OmegadError] = {}
        self._home = home
        self._numbers = count(1)

    def write(self, client: Client, size: int) -> bool:
        """Store or record something new of about *size* bytes; say whether it was taken."""
        text = f"entry-{next(self._numbers)} " + "z" * size
        try:
            answer = self.send(client, text)
        except OmegadError as error:
            self.refused[text] = error
            return False
        self.acknowledged[answer["position"]] = text
        return True

    def send(self, client: Client, text: str) -> Any:
        number = text.split(maxsplit=1)[0]
        if int(number.partition("-")[2]) % 2:
            return client.call("memory.store", content=text, request_id=number)
        return client.call(
            "tool.record", session_id="s", tool_name="Write", tool_input=text, request_id=number
        )

    def write_until_refused(self, size: int) -> None:
        """Write until nothing is taken any more."""
        failures = 0
        for _ in range(WRITES_MAX):
            with self._home.client(
                name="writer"
            ) as client:  # a new one each time, whose own writes no store has to wait for
                failures = 0 if self.write(client, size) else failures + 1
            if failures == FAILURES:
                return
        raise AssertionError("the disk was never full")

    def write_again(self) -> None:
        """Wait until something is taken again."""

        def taken() -> bool:
            with self._home.client(name="writer") as client:
                return self.write(client, 100)

        until(taken, lambda: f"writing does not resume: {list(self.refused.values())[-1]}")

    def resend_refused(self) -> None:
        """Send again what was refused, as clients do, which must now be taken; each twice, which must
        change nothing.
        """
        with self._home.client(name="writer") as client:
            for text in self.refused:
                answer = self.send(client, text)
                assert self.send(client, text) == answer
                self.acknowledged[answer["position"]] = text

    def check(self) -> None:
        """See that each write is in the log, where it was said to be, once."""
        events = self._home.events()
        assert [event["position"] for event in events] == list(range(1, len(events) + 1))
        for position, text in self.acknowledged.items():
            assert _text(events[position - 1]).startswith(text[:4_000])
        entries = Counter(_text(event).split()[0] for event in events if _text(event))
        assert set(entries) == {text.split()[0] for text in self.acknowledged.values()}
        assert max(entries.values()) == 1
        self._home.check()


def _text(event: dict[str, Any]) -> str:
    match event["tag"].partition("@")[0]:
        case "memory.stored":
            return str(event["data"]["content"])
        case "tool.called":
            return str(event["data"]["tool_input"]["head"])
        case _:
            return ""


def _reading_goes_on(home: Home, writer: Writer) -> None:
    stored = [
        event["data"]["memory_id"] for event in home.events() if event["tag"].startswith("memory.stored")
    ]
    with home.client() as client:
        assert client.call("memory.get", memory_id=stored[0])["content"].startswith("entry-")
        assert client.call("memory.list")["memories"]
        assert client.call("memory.query", text="entry-1", mode="keyword")["results"]
        assert client.call("log.verify")["ok"]
        assert client.call("system.status")["log"]["head"] >= max(writer.acknowledged)


def _refusals_say_what_to_do(writer: Writer, hint: str) -> None:
    assert writer.refused
    found = {(error.code, error.kind) for error in writer.refused.values()}
    assert found == {(-32005, "unavailable")}
    assert all(hint in error.hint for error in writer.refused.values()), {
        error.hint for error in writer.refused.values()
    }


@pytest.mark.parametrize(
    "is_printing_there", [False, True], ids=["printing elsewhere", "printing to the same disk"]
)
def test_a_full_disk_refuses_writes_answers_reads_and_is_forgotten_when_there_is_room(
    homes: Callable[..., Home], disk: Path, *, is_printing_there: bool
) -> None:
    home = homes(disk / "home", **IMPATIENT)
    if not is_printing_there:
        home.output = disk.with_name("printed")
    home.start()
    writer, ballast = Writer(home), Ballast(disk)
    with home.client(name="writer") as client:
        for _ in range(50):
            assert writer.write(client, 1_000)
    ballast.fill()
    writer.write_until_refused(2_000)
    _refusals_say_what_to_do(writer, "free some space")
    _reading_goes_on(home, writer)
    assert _log_troubles(home)

    ballast.remove()
    writer.write_again()
    assert not _log_troubles(home)
    writer.resend_refused()
    writer.check()
    home.restart()
    writer.check()


def _log_troubles(home: Home) -> list[str]:
    return [
        trouble
        for trouble in home.call("system.status")["degraded"]
        if trouble.startswith("the log cannot be written")
    ]


@pytest.mark.long
def test_a_disk_that_is_full_at_any_moment_loses_nothing_and_doubles_nothing(
    homes: Callable[..., Home], disk: Path
) -> None:
    home = homes(disk / "home", **IMPATIENT)
    home.output = disk.with_name("printed")
    home.start()
    writer, ballast = Writer(home), Ballast(disk)
    for room in (700_000, 150_000, 40_000, 0):
        ballast.fill(leaving=room)
        writer.write_until_refused(300)
        ballast.remove()
        writer.write_again()
    _refusals_say_what_to_do(writer, "free some space")
    until(home.caught_up)
    home.check()
    writer.resend_refused()
    writer.check()
    home.restart()
    writer.check()


@pytest.mark.long
def test_a_checkpoint_that_finds_no_room_costs_neither_an_event_nor_a_row(
    homes: Callable[..., Home], disk: Path
) -> None:
    home = homes(disk / "home", **IMPATIENT)
    home.output = disk.with_name("printed")
    home.start()
    writer, ballast = Writer(home), Ballast(disk)
    with home.client(name="writer") as client:
        while not _was_checkpointed(home):
            assert writer.write(client, 300)
    until(home.caught_up)
    ballast.fill()
    # What is written next fits into the write-ahead logs as they are, until it has to be moved into the
    # databases.
    writer.write_until_refused(300)
    _refusals_say_what_to_do(writer, "free some space")
    ballast.remove()
    writer.write_again()
    until(home.caught_up)
    home.check()
    writer.resend_refused()
    writer.check()


@pytest.mark.long
def test_views_that_are_damaged_while_the_disk_is_full_are_built_again_when_there_is_room(
    homes: Callable[..., Home], disk: Path
) -> None:
    home = homes(disk / "home", **IMPATIENT)
    home.output = disk.with_name("printed")
    home.start()
    stored = [
        home.call("memory.store", content=f"Memory {number} " + "of the ledger " * 600)
        for number in range(100)
    ]
    home.restart()
    views = home.path / (home.path / "views.db").readlink()
    ballast = Ballast(disk)
    ballast.fill()
    with views.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * (views.stat().st_size - 4_096))

    def refusals() -> set[str]:
        """Read every memory; return the kinds of the errors."""
        return {error.kind for one in stored for error in [_outcome(home, one["memory_id"])] if error}

    until(lambda: bool(refusals()))
    for _ in range(3):
        assert refusals() == {"unavailable"}
        assert home.process.poll() is None
    ballast.remove()
    until(lambda: not refusals())
    until(home.caught_up)
    home.check()


def _outcome(home: Home, memory_id: str) -> OmegadError | None:
    try:
        home.call("memory.get", memory_id=memory_id)
    except OmegadError as error:
        return error
    return None


def _was_checkpointed(home: Home) -> bool:
    """Say whether the write-ahead log was moved into the database, which starts with its schema alone."""
    return home.paths.log.stat().st_size > 200_000


def test_a_daemon_starts_on_a_disk_that_is_full_or_says_why_not(
    homes: Callable[..., Home], disk: Path
) -> None:
    home = homes(disk / "home", **IMPATIENT)
    home.output = disk.with_name("printed")
    home.start()
    stored = home.call("memory.store", content="Stored while there was room")
    assert home.stop() == 0
    ballast = Ballast(disk)
    ballast.fill()
    home.launch()
    until(lambda: home.process.poll() is not None or home.is_heard())
    try:
        found = home.call("memory.get", memory_id=stored["memory_id"])["content"]
    except NoDaemon:  # it has ended, or does
        found = None
    if (status := home.stop()) == 0:
        assert found == "Stored while there was room"
    else:
        assert status == 1
        assert "space" in home.printed().splitlines()[-2], "it does not say that the disk is full"
    ballast.remove()
    home.start()
    assert home.call("memory.get", memory_id=stored["memory_id"])["content"] == "Stored while there was room"
    home.check()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lifts the limit of another process")
def test_files_that_may_not_grow_refuse_writes_until_they_may(home: Home) -> None:
    home.environ |= IMPATIENT
    home.limits = {resource.RLIMIT_FSIZE: 2 * MEGABYTE}
    home.start()
    writer = Writer(home)
    writer.write_until_refused(2_000)
    _refusals_say_what_to_do(writer, "disk")
    assert home.process.poll() is None
    _reading_goes_on(home, writer)

    resource.prlimit(
        home.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    writer.write_again()
    until(home.caught_up, within_s=PATIENCE_S)
    writer.resend_refused()
    writer.check()
    home.restart()
    writer.check()
