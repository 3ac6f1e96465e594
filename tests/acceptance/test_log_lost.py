"""A log that was lost, shortened or exchanged is noticed, and what the views hold of it can be had again."""

import io
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from omegad.edge.cli.transfer import salvage
from tests.acceptance.conftest import PATIENCE_S, Home, homes_in, until

MEMORIES: list[dict[str, Any]] = [
    {
        "content": f"Fact {number} of the ledger",
        "event_type": "decision",
        "project": "atlas",
        "tags": [f"tag-{number}"],
        "priority": number % 5 + 1,
    }
    for number in range(20)
]


def _remove_wal(home: Home) -> None:
    (home.path / "log.db-wal").unlink()


def _empty(home: Home) -> None:
    os.truncate(home.paths.log, 0)


def _remove(home: Home) -> None:
    home.paths.log.unlink()


def _exchange(home: Home) -> None:
    """Put a log of as many events in its place, none of them the same."""
    other = Home(
        home.path.with_name("other"),
        **{name: value for name, value in home.environ.items() if name == "OMEGAD_MODEL"},
    ).start()
    for number in range(30):
        other.call("tool.record", session_id="s", tool_name=f"Tool{number}")
    assert other.stop() == 0
    _remove_wal(home)
    home.paths.log.write_bytes(other.paths.log.read_bytes())


def _contents(home: Home) -> dict[str, bytes]:
    """Return the files that may hold the last copy."""
    return {
        path.name: path.read_bytes()
        for pattern in ("views-*.db", "log.db-wal")
        for path in home.path.glob(pattern)
    }


def _rows(home: Home) -> list[tuple[Any, ...]]:
    listed = home.call("memory.list", limit=100)["memories"]
    return sorted(
        (one["content"], one["event_type"], one["project"], one["tags"], one["priority"], one["created_at"])
        for one in listed
    )


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, list[Any]]]:
    """What names a home whose daemon was killed, some of it checkpointed or nothing, and what its views
    said.
    """

    @cache
    def made(*, is_checkpointed: bool) -> tuple[Path, list[Any]]:
        with homes_in(tmp_path_factory.mktemp("killed")) as make:
            home = make()
            return home.path, _fill(home, is_checkpointed=is_checkpointed)

    return made


@pytest.fixture
def filled(home: Home, killed: Callable[..., tuple[Path, list[Any]]]) -> Callable[..., list[Any]]:
    """What makes a home a copy of such a one, and returns what its views said."""

    def fill(*, is_checkpointed: bool) -> list[Any]:
        path, before = killed(is_checkpointed=is_checkpointed)
        shutil.copytree(
            path, home.path, symlinks=True, ignore=shutil.ignore_patterns("run"), dirs_exist_ok=True
        )
        return before

    return fill


def _fill(home: Home, *, is_checkpointed: bool) -> list[Any]:
    """Store the memories, kill the daemon, and return what its views said."""
    home.start()
    for memory in MEMORIES[:10]:
        home.call("memory.store", **memory)
    if is_checkpointed:
        home.restart()
    for memory in MEMORIES[10:]:
        home.call("memory.store", **memory)
    home.call("memory.delete", memory_id=home.call("memory.store", content="Not wanted")["memory_id"])
    until(home.caught_up)
    before = _rows(home)
    home.kill()
    return before


@pytest.mark.parametrize(
    ("lose", "is_checkpointed"),
    [(_remove_wal, True), (_remove_wal, False), (_empty, False), (_remove, False), (_exchange, True)],
    ids=["shortened", "wal removed", "emptied", "removed", "exchanged"],
)
def test_a_log_that_was_lost_is_refused_and_nothing_is_removed(
    home: Home, filled: Callable[..., list[Any]], lose: Callable[[Home], None], *, is_checkpointed: bool
) -> None:
    filled(is_checkpointed=is_checkpointed)
    lose(home)
    held = _contents(home)
    for _ in range(2):
        assert home.launch().process.wait(PATIENCE_S) == 1
        assert "has seen event" in home.printed()
        assert "omegad salvage" in home.printed()
    kept = _contents(home)
    assert set(held) <= set(kept)
    assert all(kept[name] for name in held)


def test_the_memories_of_a_log_that_was_lost_are_salvaged(
    home: Home, filled: Callable[..., list[Any]], tmp_path: Path
) -> None:
    before = filled(is_checkpointed=True)
    _remove_wal(home)
    written = home.verb("salvage")
    assert len(written.stdout.splitlines()) == len(MEMORIES), written.stderr
    lines = tmp_path / "salvaged.jsonl"
    lines.write_text(written.stdout)
    accepted = home.verb("salvage", "--accept-log")
    assert accepted.returncode == 0, accepted.stderr
    aside = accepted.stdout.splitlines()
    assert len(aside) == 1
    home.start()
    assert {one["content"] for one in home.call("memory.list")["memories"]}.isdisjoint(
        memory["content"] for memory in MEMORIES[10:]
    )
    for _ in range(2):
        restored = home.verb("salvage", "--restore", str(lines))
        assert restored.returncode == 0, restored.stderr
    assert _rows(home) == before
    until(home.caught_up)
    home.check()
    home.restart()
    assert home.verb("salvage", aside[0]).stdout == written.stdout


def test_views_that_are_behind_their_log_are_no_reason_to_refuse_it(home: Home) -> None:
    home.start()
    home.call("memory.store", **MEMORIES[0])
    until(home.caught_up)
    assert home.stop() == 0
    views = {path: path.read_bytes() for path in home.path.glob("views-*.db")}
    home.start()
    home.call("memory.store", **MEMORIES[1])
    assert home.stop() == 0
    for path, content in views.items():
        path.write_bytes(content)
    home.start()
    assert len(_rows(home)) == 2
    home.check()


def test_views_of_an_earlier_version_are_salvaged_as_far_as_they_go(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "views-3.db")) as connection, connection:
        connection.execute(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY, node_id, content, event_type, status, created_at,"
            " tags)"
        )
        row = (7, "mem-1", "The port is 5432", "decision", "active", "2026-01-02T03:04:05Z", '["db"]')
        connection.execute("INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    out = io.StringIO()
    assert salvage(tmp_path / "views-3.db", out) == 1
    written = json.loads(out.getvalue())
    assert (written["method"], written["id"]) == ("memory.upsert", "mem-1")
    assert written["params"] == {
        "content": "The port is 5432",
        "event_type": "decision",
        "timestamp": "2026-01-02T03:04:05Z",
        "tags": ["db"],
        "metadata": {},
        "source": "salvage",
        "confidence": 1.0,
        "probation": False,
        "ack": "durable",
        "request_id": "salvage-mem-1",
    }


def test_nothing_is_salvaged_from_what_is_not_there(home: Home, tmp_path: Path) -> None:
    assert home.verb("salvage").returncode == 1
    assert "no file of views" in home.verb("salvage").stderr
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE other (id)")
    assert "has no memories" in home.verb("salvage", str(tmp_path / "other.db")).stderr
    lines = tmp_path / "lines"
    lines.write_text(json.dumps({"content": "no line of ours"}))
    home.start()
    refused = home.verb("salvage", "--restore", str(lines))
    assert (refused.returncode, "line 1" in refused.stderr) == (2, True)
    assert "another omegad serves this home" in home.verb("salvage", "--accept-log").stderr
