"""Inline projections: in step with every append, made from the log where another version wrote them, and
seen when they are damaged.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, LiteralString

import anyio
import pytest

from omegad.daemon import VOCABULARY
from omegad.log import event_log, inline
from omegad.log.decision import Decision, Proposal
from omegad.log.event import Event, RecordedEvent
from omegad.log.event_log import EventLog
from omegad.log.inline import Inline, ProjectionFailed
from omegad.log.projection import Projection, Statement
from omegad.memory.events import MemoryStored
from omegad.runtime.errors import ShuttingDown, Unavailable
from omegad.storage.database import open_writer
from omegad.storage.driver import Connection
from tests.builders import (
    PATIENCE_S,
    FakeClock,
    Written,
    append,
    everything,
    proof,
    proposal,
    queried,
    rows,
    running_log,
    stored,
    until,
)

SEEDS = count()


@dataclass
class Named:
    """A projection of one table: which memories were stored where. `at` is called with each position
    before it is shown.
    """

    NAME: str = "named"
    VERSION: int = 1
    SCHEMA: LiteralString = (
        "CREATE TABLE state_named (memory_id TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT;\n"
    )
    EVENTS: tuple[type[Event], ...] = (MemoryStored,)
    CANONICAL: tuple[LiteralString, ...] = ("SELECT * FROM state_named ORDER BY memory_id",)
    at: Callable[[int], None] = lambda _position: None

    def project(self, recorded: RecordedEvent) -> Iterator[Statement]:
        assert isinstance(recorded.event, MemoryStored)
        self.at(recorded.position)
        yield Statement(
            "INSERT INTO state_named VALUES (?, ?)", (recorded.event.memory_id, recorded.position)
        )


@asynccontextmanager
async def running(path: Path, *projections: Projection, wait_s: float = PATIENCE_S) -> Any:
    vocabulary = replace(VOCABULARY, inline=Inline(projections), state=lambda connection: connection)
    async with (
        event_log.opened(path, FakeClock(seed=next(SEEDS)), vocabulary, catch_up_wait_s=wait_s) as log,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(log.run)
        yield log
        await log.drain()


async def named(log: EventLog) -> list[tuple[Any, ...]]:
    """Return the table as a decision sees it."""
    seen: list[tuple[Any, ...]] = []

    def decide(connection: Connection, _now_us: int) -> Decision:
        seen.extend(rows(connection, "SELECT * FROM state_named ORDER BY position"))
        return Decision(answer=Written())

    await log.append(Proposal(decide=decide))
    return seen


async def fill(
    path: Path, memories: int = 9, projections: Sequence[Projection] = (Named(),)
) -> list[tuple[Any, ...]]:
    """Write a log of memories, every other event about something else; return what the projection must say
    of it.
    """
    async with running(path, *projections) as log:
        for number in range(memories):
            await append(log, stored(f"mem-{number}", str(number)), queried())
    return [(f"mem-{number}", 2 * number + 1) for number in range(memories)]


CHANGED = (
    "CREATE TABLE state_named (memory_id TEXT NOT NULL, position INTEGER PRIMARY KEY, more TEXT) STRICT;\n"
)


@pytest.mark.parametrize(
    "before",
    [
        Named(VERSION=2),
        Named(SCHEMA=CHANGED.replace(", more TEXT", "")),
        Named("other", SCHEMA=Named.SCHEMA + "CREATE TABLE x (a);\n"),
    ],
    ids=["version", "shape", "other name"],
)
async def test_what_another_version_wrote_is_made_anew_from_the_log(
    tmp_path: Path, before: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "CATCH_UP_EVENTS", 4)
    expected = await fill(tmp_path / "log.db", projections=[before])
    shown: list[int] = []
    async with running(tmp_path / "log.db", Named(at=shown.append)) as log:
        assert await named(log) == expected
        assert log.state_position == log.head == 18
        tables = await log._writer.run(
            lambda connection: rows(connection, "SELECT name FROM sqlite_schema WHERE type = 'table'")
        )
        assert [name for (name,) in tables if name in {"state_named", "x"}] == ["state_named"]
    assert shown == [position for _, position in expected]
    async with running(tmp_path / "log.db", Named(at=shown.append)) as log:
        assert await named(log) == expected
        await append(log, stored("new"))
    assert shown[len(expected) :] == [19]


async def test_a_version_that_knows_a_projection_not_at_all_leaves_nothing_of_it_behind(
    tmp_path: Path,
) -> None:
    await fill(tmp_path / "log.db", 2)
    async with running(tmp_path / "log.db") as log:
        await append(log, stored("unseen"))
    async with running(tmp_path / "log.db", Named()) as log:
        assert await named(log) == [("mem-0", 1), ("mem-1", 3), ("unseen", 5)]


async def test_what_a_release_without_inline_projections_appended_is_not_left_out(tmp_path: Path) -> None:
    await fill(tmp_path / "log.db", 2)
    async with running(tmp_path / "log.db") as log:
        await log._writer.run(lambda connection: connection.execute("CREATE TABLE named_guards (a)"))
    connection = open_writer(tmp_path / "log.db", durable=False)
    connection.execute("PRAGMA user_version=5")
    connection.close()

    class Replacing(Named):
        REPLACES = ("named_guards",)

    async with running(tmp_path / "log.db", Replacing()) as log:
        assert await named(log) == [("mem-0", 1), ("mem-1", 3)]
        assert (
            await log._writer.run(
                lambda connection: rows(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'named_guards'")
            )
            == []
        )


@dataclass
class Gate:
    """Holds a projection up at a position until it is opened."""

    position: int

    def __post_init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, position: int) -> None:
        if position == self.position:
            self.reached.set()
            assert self.open.wait(PATIENCE_S)


async def test_reads_go_on_and_appends_wait_while_a_projection_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "CATCH_UP_EVENTS", 4)
    expected = await fill(tmp_path / "log.db")
    gate = Gate(9)
    async with running(tmp_path / "log.db", Named(VERSION=2, at=gate), wait_s=0.05) as log:
        await until(gate.reached.is_set)
        assert len(await everything(log)) == 18
        assert (log.state_position, log.head, log.trouble) == (8, 18, None)
        with pytest.raises(Unavailable, match=r"shows 8 of 18 events, about \d+ s are left"):
            await append(log, queried())
        log.append_later(proposal(queried()))
        gate.open.set()
        await until(lambda: log.state_position == log.head)
        assert await named(log) == expected
        await until(lambda: log.head == 19)


async def test_the_making_of_a_projection_that_is_broken_off_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "CATCH_UP_EVENTS", 4)
    expected = await fill(tmp_path / "log.db")
    gate = Gate(9)
    async with running(tmp_path / "log.db", Named(VERSION=2, at=gate)) as log:
        await until(gate.reached.is_set)
        waiting = asyncio.create_task(append(log, queried()))
        await asyncio.sleep(0)
        closing = asyncio.create_task(log.drain())
        await asyncio.sleep(0)
        gate.open.set()
        await closing
        with pytest.raises(ShuttingDown):
            await waiting
    shown: list[int] = []
    async with running(tmp_path / "log.db", Named(VERSION=2, at=shown.append)) as log:
        assert await named(log) == expected
    assert shown == [13, 15, 17]


def failing_at(position: int) -> Callable[[int], None]:
    def fail(at: int) -> None:
        if at == position:
            raise RuntimeError("out of luck")

    return fail


async def test_a_projection_that_cannot_be_made_is_told_and_keeps_nobody_from_reading(tmp_path: Path) -> None:
    expected = await fill(tmp_path / "log.db")
    told = r"'named' fails at position 5: RuntimeError: out of luck"
    async with running(tmp_path / "log.db", Named(VERSION=2, at=failing_at(5))) as log:
        with pytest.raises(ProjectionFailed, match=told):
            await append(log, queried())
        with pytest.raises(ProjectionFailed, match=told):
            log.append_later(proposal(queried()))
        with pytest.raises(ProjectionFailed, match=told):
            await log.refold()
        assert "out of luck" in (log.trouble or "")
        assert len(await everything(log)) == 18
    async with running(tmp_path / "log.db", Named(VERSION=2)) as log:
        assert await named(log) == expected
        assert log.trouble is None


async def test_a_projection_that_fails_on_an_append_fails_that_proposal_alone(tmp_path: Path) -> None:
    async with running(tmp_path / "log.db", Named(at=failing_at(3))) as log:
        work = append(log, stored("a")), append(log, queried(), stored("bad")), append(log, queried())
        before, broken, after = await asyncio.gather(*work, return_exceptions=True)
        assert isinstance(broken, RuntimeError)
        assert [getattr(before, "position", before), getattr(after, "position", after)] == [1, 2]
        assert await named(log) == [("a", 1)]


async def test_what_was_taken_out_of_a_table_is_seen_and_made_again(tmp_path: Path) -> None:
    expected = await fill(tmp_path / "log.db")
    async with running(tmp_path / "log.db", Named()) as log:
        assert proof(log).ok
        await log._writer.run(
            lambda connection: connection.execute("DELETE FROM state_named WHERE position > 3").fetchall()
        )
        report = proof(log)
        assert (report.ok, report.first_bad, report.events) == (False, None, 18)
        assert report.problems == (
            "the inline projection 'named' is not what the 18 events say: it has 2 rows, a replay 9",
        )
        await log.refold()
        assert await named(log) == expected
        assert proof(log).ok


async def test_appends_go_on_while_the_log_is_verified(tmp_path: Path) -> None:
    await fill(tmp_path / "log.db")
    async with running(tmp_path / "log.db", Named()) as log, anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(append, log, stored(f"new-{number}"))
        reports = [proof(log) for _ in range(3)]
        assert [report.problems for report in reports] == [(), (), ()]


@pytest.mark.parametrize("what", ["state_memories", "state_memories_by_content"])
async def test_a_damaged_page_of_a_table_or_an_index_is_seen(tmp_path: Path, what: str) -> None:
    path = tmp_path / "log.db"
    async with running_log(path) as log:
        await append(log, *(stored(f"mem-{number}", str(number)) for number in range(200)))
    connection = open_writer(path, durable=False)
    root, size = rows(
        connection,
        "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = ?",
        what,
    )[0]
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * size + 200)
        file.write(b"\x07" * (size - 200))
    async with running_log(path) as log:
        report = proof(log)
        assert not report.ok
        assert report.problems
        assert len(await everything(log)) == 200
