"""Details whose time is over: shown, and let go of after a yes; and what the files grow by."""

import fcntl
import json
import sys
import time
from pathlib import Path
from unittest import mock

import anyio
import pytest

from omegad.edge.cli import asking_first
from tests.acceptance.test_retention import MEMORIES, fill
from tests.builders import FakeClock, append, queried, running_log
from tests.edge.cli.conftest import Command

SHARED_FIRST, SHARED_BYTES = 0x4000_0002, 510  # where SQLite keeps shared locks (sqlite.org/fileformat2.html)


def test_what_is_over_is_shown_and_goes_only_after_a_yes(omegad: Command) -> None:
    omegad.home.mkdir(mode=0o700, exist_ok=True)
    anyio.run(fill, omegad.home, 40)
    assert "off: nothing goes by itself" in omegad.run("status").stdout
    would = omegad.run("retention", "--dry-run").stdout
    tools = next(line for line in would.splitlines() if line.startswith("what tools were given"))
    assert tools.split()[-3] == "40"
    said = omegad.run("retention")
    assert (said.returncode, "nothing went" in said.stderr) == (1, True)
    # Sessions end by themselves meanwhile, and what is written of that takes pages that were free
    rows, again = (
        shown.partition("What remains")[0] for shown in (would, omegad("retention", "--dry-run").stdout)
    )
    assert again == rows
    omegad.run("query", "input", "--as-of", "40")
    assert [*(omegad.home / "asof").glob("*.db")]
    assert "let go of the details of 53 events" in omegad.run("retention", "--yes").stdout
    assert not [*(omegad.home / "asof").glob("*.db")], "which showed what went"
    for words in (("query", "input"), ("sql", "SELECT 1"), ("list",)):
        warned = omegad.run(*words, "--as-of", "40").stderr
        assert (
            "details are gone since their time was over: what was asked and found, up to position" in warned
        )
    empty = json.loads(omegad.run("retention", "--dry-run", "--json").stdout)
    assert empty["freed_bytes"] == 0
    assert empty["free_bytes"]
    assert omegad.run("verify").returncode == 0
    assert "another omegad serves this home" in omegad.run("pack").stderr
    omegad.run("stop")
    (omegad.home / ".log.db.4194304.part").touch()  # of one that was killed
    packed = json.loads(omegad.run("pack", "--json").stdout)
    assert packed["bytes"] + empty["free_bytes"] <= packed["bytes_before"]
    assert packed["bytes"] == (omegad.home / "log.db").stat().st_size
    assert not [*omegad.home.glob(".log.db.*")]
    assert json.loads(omegad.run("retention", "--dry-run", "--json").stdout)["free_bytes"] == 0
    assert omegad.run("verify").returncode == 0


async def fill_with_questions(home: Path, count: int) -> None:
    at = int((time.time() - 300 * 86_400) * 1e6)
    async with running_log(home / "log.db", FakeClock(at)) as log:
        asked = [
            queried(*[(one, 0.5) for one in MEMORIES[:3]], query_id=f"q-{number}", at=at, text="is it kept?")
            for number in range(count)
        ]
        await append(log, *asked)


def test_what_packing_gives_back_is_said_of_short_rows_too_and_what_aged_is_not_called_erased(
    omegad: Command,
) -> None:
    omegad.home.mkdir(mode=0o700, exist_ok=True)
    anyio.run(fill_with_questions, omegad.home, 900)
    said = omegad("retention", "--yes").stdout
    assert f"gives about {said.split(' are ')[1].split(' less')[0]} or more back" in said
    replayed = omegad("replay")
    assert "900 cannot be asked again: what they asked was let go of" in replayed.stderr
    assert "erased" not in replayed.stderr
    report = omegad.json("replay")
    assert (report["aged"], report["unreadable"]) == (900, 0)
    omegad("stop")
    packed = omegad.json("pack")
    told = float(said.split("gives about ")[1].split(" KiB")[0]) * 1024
    assert 0.8 < (packed["bytes_before"] - packed["bytes"]) / told < 1.5


def test_it_is_said_that_nothing_is_old_enough_to_go(served: Command) -> None:
    assert "retention_tools_days = 90" in served("retention", "--help").stdout
    assert "nothing is that old yet, so that nothing goes" in served("retention").stdout


def test_the_status_says_what_the_files_grow_by(omegad: Command) -> None:
    omegad.run("store", "the mill is by the river")
    omegad.run("query", "where is the mill?")
    deadline = time.monotonic() + 60
    while "memory.queried@1" not in (shown := omegad.run("status", "--growth").stdout):
        assert time.monotonic() < deadline
    assert "memory.stored@2" in shown
    assert "the log within a day\n" in shown
    assert "these are rows alone: pages that are not full, indexes and state take more: of " in shown
    grown = json.loads(omegad.run("status", "--growth", "--json").stdout)
    assert {one["file"] for one in grown["parts"]} == {"log", "views", "embeddings"}
    names = {one["name"]: one["bytes"] for one in grown["parts"]}
    assert names["payloads"]
    assert names["write-ahead log"]
    assert names["retrievals_by_memory"]
    # The daemon's connections hold the log, so that no other process removes what was not copied into it yet
    with (omegad.home / "log.db").open("r+b") as file, pytest.raises(BlockingIOError):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, SHARED_BYTES, SHARED_FIRST)


def test_a_no_is_answered_with_what_was_not_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", mock.Mock(isatty=lambda: True, readline=lambda: "n\n"))
    assert not asking_first.is_wanted("Let go of it?", "nothing went: run it with --yes")
    assert capsys.readouterr().out.endswith("[y/N] nothing went\n")
