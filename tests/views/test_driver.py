"""Keeping projections in step: all together, none held back by another, nothing half done."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import msgspec
import pytest

import projections
from omegad.daemon import VOCABULARY
from omegad.log import event_log
from omegad.log.checkpoint import Checkpoint, failed
from omegad.log.erasure import PayloadErased
from omegad.log.event import Event, RecordedEvent
from omegad.log.event_log import EventLog
from omegad.log.projection import Embedding, Projection, Statement
from omegad.memory.events import MemoryStored
from omegad.runtime.errors import StorageFull, ViewFailed
from omegad.search.events import MemoryQueried
from omegad.session.events import ToolCalled
from omegad.storage.driver import Connection
from omegad.views import driver, generation
from omegad.views.applying import Lookup
from omegad.views.current import Views
from tests.builders import (
    PATIENCE_S,
    FakeClock,
    append,
    at_most,
    embedded,
    look_up,
    opened_views,
    queried,
    rows,
    stored,
    tool_called,
    until,
)

REFUSED = "the text of an event whose row the table refuses"


def counter(
    name: str = "counter",
    *,
    poison: str = "",
    version: int = 1,
    events: tuple[type[Event], ...] = (MemoryQueried,),
    column: str = "tag",
) -> Projection:
    """A projection of one row for each event, which fails where the text of one is *poison*; its second
    *column* holds the event's tag.
    """

    def project(recorded: RecordedEvent) -> Iterator[Statement]:
        if poison and getattr(recorded.event, "text", "") == poison:
            raise ZeroDivisionError("poisoned")
        refused = getattr(recorded.event, "text", "") == REFUSED
        yield Statement(
            f"INSERT INTO {name} VALUES (?, ?)", (recorded.position, None if refused else recorded.tag)
        )

    made = SimpleNamespace(
        NAME=name,
        VERSION=version,
        SCHEMA=f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, {column} TEXT NOT NULL) STRICT;",
        EVENTS=events,
        CANONICAL=(f"SELECT * FROM {name} ORDER BY id",),
        project=project,
    )
    return cast("Projection", made)


@asynccontextmanager
async def views_of(
    home: Path, clock: FakeClock, all_of: Sequence[Projection], lookup: Lookup = look_up
) -> AsyncIterator[tuple[EventLog, Views]]:
    async with (
        event_log.opened(home / "log.db", clock, VOCABULARY) as log,
        opened_views(home, log, all_of, lookup) as views,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(log.run)
        tasks.start_soon(views.run)
        yield log, views
        await log.drain()
        tasks.cancel_scope.cancel()


async def ids(views: Views, table: str) -> list[int]:
    return [
        row[0]
        for row in await views.read(
            lambda connection: rows(connection, f"SELECT id FROM {table} ORDER BY id")
        )
    ]


def nothing(*_: object) -> None:
    pass


async def test_every_projection_shows_every_event_of_its_own(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, [counter("a"), counter("b", events=(ToolCalled,))]) as (log, views):
        for number in range(1, 8):
            await append(log, queried(), tool_called(number))
        await views.wait_for(14, ["a", "b"])
        assert await ids(views, "a") == [1, 3, 5, 7, 9, 11, 13]
        assert await ids(views, "b") == [2, 4, 6, 8, 10, 12, 14]
        assert views.driver.checkpoints["a"].chain == await log.chain_at(14)


async def test_what_nobody_waits_for_is_shown_together_and_who_waits_is_shown_it_at_once(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "STEP_S", 3_600.0)
    steps, event = list[int](), 0
    async with views_of(tmp_path, clock, [counter()]) as (log, views):
        show = views.driver._fold.show

        def counted(*arguments: Any) -> Any:
            steps.append(event)
            return show(*arguments)

        monkeypatch.setattr(views.driver._fold, "show", counted)
        for event in range(1, 5):
            await append(log, queried())
            if event in {1, 4}:
                await views.wait_for(event, ["counter"])
        assert await ids(views, "counter") == [1, 2, 3, 4]
    assert steps == [1, 4]


async def test_a_poisoned_event_stops_only_the_projection_that_fails_on_it(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with views_of(tmp_path, clock, [counter("sick", poison="bad"), counter("well")]) as (log, views):
        await asyncio.gather(
            *(append(log, queried(text="bad" if number == 7 else "good")) for number in range(1, 21))
        )
        await views.wait_for(20, ["well"])
        assert await ids(views, "well") == list(range(1, 21))
        assert await ids(views, "sick") == list(range(1, 7))
        left = views.driver.checkpoints["sick"]
        assert (left.position, left.failed_position, left.error) == (
            6,
            7,
            "ZeroDivisionError: poisoned",
        )
        with pytest.raises(ViewFailed, match="'sick' failed at position 7: ZeroDivisionError"):
            await views.wait_for(20, ["sick"])
        await views.wait_for(6, ["sick"])
    async with views_of(tmp_path, clock, [counter("sick"), counter("well")]) as (_, views):
        await views.wait_for(20, ["sick"])
        assert await ids(views, "sick") == list(range(1, 21))


async def test_a_row_that_is_refused_takes_back_no_more_than_its_own_event(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with views_of(tmp_path, clock, [counter("sick"), counter("well", events=(ToolCalled,))]) as (
        log,
        views,
    ):
        await append(
            log, *[queried(text=REFUSED if number == 7 else "") for number in range(1, 11)], tool_called()
        )
        await views.wait_for(11, ["well"])
        assert await ids(views, "sick") == list(range(1, 7))
        left = views.driver.checkpoints["sick"]
        assert (left.position, left.failed_position) == (6, 7)
        assert "NOT NULL" in (left.error or "")


async def test_when_every_projection_has_failed_the_service_still_answers(
    tmp_path: Path, clock: FakeClock
) -> None:
    with at_most(5):
        async with views_of(
            tmp_path, clock, [counter("sick", poison="bad"), counter("ill", poison="bad")]
        ) as (log, views):
            await append(log, queried(text="bad"))
            await until(
                lambda: (
                    failed(views.driver.checkpoints, ["sick"]) and failed(views.driver.checkpoints, ["ill"])
                )
            )
            await append(log, queried())
            assert log.head == 2


async def test_an_event_of_a_newer_version_fails_only_the_projections_of_its_noun(
    tmp_path: Path, clock: FakeClock
) -> None:
    class MemoryMerged(Event, frozen=True, kw_only=True, tag="memory.merged@1"):
        into: str

    both = [counter("memory"), counter("tool", events=(ToolCalled,))]
    async with (
        event_log.opened(tmp_path / "log.db", clock, VOCABULARY) as log,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(log.run)
        await append(log, queried(), MemoryMerged(into="mem-1"), tool_called())
        await log.drain()
    async with views_of(tmp_path, clock, both) as (log, views):
        await views.wait_for(3, ["tool"])
        await until(lambda: failed(views.driver.checkpoints, ["memory"]))
        left = views.driver.checkpoints["memory"]
        assert (left.position, left.failed_position) == (1, 2)
        assert left.error
        assert "memory.merged@1 cannot be read by this version" in left.error
        assert await ids(views, "tool") == [3]


async def test_a_payload_that_cannot_be_read_throws_no_view_away(tmp_path: Path, clock: FakeClock) -> None:
    """A newer version may add a field under the same tag. What does not show the event goes on; what does
    says where it failed.
    """

    class MemoryQueriedLater(MemoryQueried, frozen=True, kw_only=True, tag="memory.queried@1"):
        mood: str = "good"

    both = [counter("memory"), counter("tool", events=(ToolCalled,))]
    later = MemoryQueriedLater(**msgspec.structs.asdict(queried()))
    async with (
        event_log.opened(tmp_path / "log.db", clock, VOCABULARY) as log,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(log.run)
        await append(log, queried(), later, tool_called())
        await log.drain()
    async with views_of(tmp_path, clock, both) as (log, views):
        file = views.file
        with anyio.move_on_after(PATIENCE_S):
            await views.wait_for(3, ["tool"])
        assert views.file == file
        assert await ids(views, "tool") == [3]


async def test_every_view_of_ours_can_be_reset_and_shows_the_same_again(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await append(log, stored(), embedded(), queried(("mem-1", 0.5)), tool_called())
        await views.wait_for(4, views.names)
        before = {name: report.live_digest for name, report in (await views.verify((), nothing)).items()}
    newer: list[Any] = [
        SimpleNamespace(
            **{n: getattr(p, n) for n in dir(p) if n.isupper() or n == "project"} | {"VERSION": 99}
        )
        for p in projections.ALL
    ]
    async with views_of(tmp_path, clock, newer) as (_, views):
        await until(lambda: not views.rebuilding)
        after = await views.verify((), nothing)
        assert {name: report.live_digest for name, report in after.items()} == before
        assert all(report.equal for report in after.values())


async def test_a_new_projection_catches_up_without_holding_the_others_back(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with views_of(tmp_path, clock, [counter("old")]) as (log, views):
        await append(log, *[queried()] * 1_200)
        await views.wait_for(1_200, ["old"])
    async with views_of(tmp_path, clock, [counter("old"), counter("new")]) as (log, views):
        await append(log, queried())
        await views.wait_for(1_201, ["old"])
        await views.wait_for(1_201, ["new"])
        assert await ids(views, "new") == await ids(views, "old") == list(range(1, 1_202))


async def test_rows_and_checkpoint_are_committed_together_or_not_at_all(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The step is cancelled at every moment of it; the rows that there are then are those that the
    checkpoint speaks of.
    """
    for delay in range(25):
        home = tmp_path / str(delay)
        home.mkdir()
        async with (
            event_log.opened(home / "log.db", clock, VOCABULARY) as log,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(log.run)
            await append(log, *[queried()] * 300)
            async with opened_views(home, log, [counter("a")]) as views:
                step = asyncio.create_task(views.driver.step())
                await asyncio.sleep(delay / 5_000)
                step.cancel()
                await asyncio.gather(step, return_exceptions=True)
                found, shown = await views.read(
                    lambda c: (rows(c, "SELECT count(*) FROM a"), rows(c, "SELECT position FROM checkpoints"))
                )
                assert found == shown
                assert found in ([(0,)], [(300,)])
            await log.drain()


async def test_a_checkpoint_that_cannot_be_written_takes_its_rows_back(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.views.driver.RETRY_SECONDS", 0.02)
    async with views_of(tmp_path, clock, [counter("a"), counter("b")]) as (log, views):
        genuine, fails = generation.move_checkpoints, [True]

        def move(connection: Connection, reached: Iterable[Checkpoint], of: int) -> None:
            if fails:
                raise StorageFull
            genuine(connection, reached, of)

        monkeypatch.setattr(generation, "move_checkpoints", move)
        await append(log, queried(), queried())
        await until(lambda: views.driver.trouble)
        assert await ids(views, "a") == await ids(views, "b") == []
        fails.clear()
        await views.wait_for(2, ["a", "b"])
        assert await ids(views, "a") == await ids(views, "b") == [1, 2]


async def test_a_step_that_was_cancelled_is_taken_again_after_a_restart(
    tmp_path: Path, clock: FakeClock
) -> None:
    for delay in range(8):
        async with views_of(tmp_path, clock, [counter("a")]) as (log, _):
            await append(log, *[queried()] * 50)
            await asyncio.sleep(delay / 1_000)
    async with views_of(tmp_path, clock, [counter("a")]) as (log, views):
        await views.wait_for(log.head, ["a"])
        assert failed(views.driver.checkpoints, ["a"]) is None
        assert await ids(views, "a") == list(range(1, log.head + 1))


async def test_a_full_disk_is_waited_out(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.views.driver.RETRY_SECONDS", 0.02)
    async with views_of(tmp_path, clock, [counter("a")]) as (log, views):
        writer = views.driver.generation.writer
        await writer.run(
            lambda c: c.execute(
                f"PRAGMA max_page_count={c.execute('PRAGMA page_count').fetchone()[0]}"
            ).fetchall()
        )
        await append(log, *[queried()] * 2_000)
        await until(lambda: views.driver.trouble)
        assert "full" in (views.driver.trouble or "")
        assert failed(views.driver.checkpoints, ["a"]) is None
        await writer.run(lambda c: c.execute("PRAGMA max_page_count=100000").fetchall())
        await views.wait_for(2_000, ["a"])
        assert await ids(views, "a") == list(range(1, 2_001))
        await until(lambda: views.driver.trouble is None)


async def test_a_checkpoint_of_the_file_that_fails_makes_no_view_fail(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are committed by then, and must not be written a second time."""
    monkeypatch.setattr("omegad.views.driver.RETRY_SECONDS", 0.02)
    async with views_of(tmp_path, clock, [counter("a")]) as (log, views):

        def fail(*_: object) -> None:
            monkeypatch.undo()
            raise StorageFull

        monkeypatch.setattr(views.driver.generation.checkpointer, "after_commit", fail)
        await append(log, queried(), queried())
        await views.wait_for(2, ["a"])
        await append(log, queried())
        await views.wait_for(3, ["a"])
        assert await ids(views, "a") == [1, 2, 3]


async def _verified(views: Views) -> tuple[bool, str | None, int]:
    report = (await views.verify((), nothing))["vectors"]
    return report.equal, report.problem, report.waiting


async def test_vectors_that_are_not_at_hand_are_filled_in_later(tmp_path: Path, clock: FakeClock) -> None:
    known: dict[Embedding, bytes] = {}
    async with views_of(tmp_path, clock, projections.ALL, known.get) as (log, views):
        told: list[bool] = []
        views.on_deferred = lambda: told.append(True)
        await append(
            log,
            stored("mem-1"),
            embedded("mem-1", "one", "two"),
            stored("mem-2", "other"),
            embedded("mem-2", "three"),
        )
        await views.wait_for(4, views.names)
        assert told
        assert await views.read(_vectors) == [(2048, None, 0), (2049, None, 0), (4096, None, 0)]
        assert await _verified(views) == (True, None, 3)
        assert await views.driver.fill_at([2, 4]) == 0
        wanted = [
            Embedding("paper-1", text_hash)
            for event in (embedded("x", "one"), embedded("x", "three"))
            for text_hash in event.text_hashes
        ]
        known |= {one: look_up(one) for one in wanted}
        assert await views.driver.fill_at([2, 4]) == 1
        assert [(row[0], row[1] is not None, row[2]) for row in await views.read(_vectors)] == [
            (2048, True, 1),
            (2049, False, 0),
            (4096, True, 1),
        ]
        two = Embedding("paper-1", embedded("x", "two").text_hashes[0])
        known[two] = look_up(two)
        assert await views.driver.fill_at([2, 4]) == 1
        assert await views.driver.fill_at([2, 4]) == 0
        assert [row[2] for row in await views.read(_vectors)] == [1, 1, 1]
        assert all(report.equal for report in (await views.verify((), nothing)).values())

        # What nobody notes as lacking is lost, whether or not it could be computed again.
        lose = "UPDATE memory_vectors SET vector = NULL WHERE id < 4096"
        await views.driver.generation.writer.run(lambda connection: connection.execute(lose).fetchall())
        del known[two]
        assert await _verified(views) == (False, "vectors: 2 vectors are missing", 0)
        await views.rebuild(["vectors"], nothing)
        assert await _verified(views) == (True, None, 1)


def _vectors(connection: Any) -> list[tuple[Any, ...]]:
    return rows(connection, "SELECT id, vector, vector IS NOT NULL FROM memory_vectors ORDER BY id")


async def test_the_wal_of_the_views_stays_bounded_under_a_long_load(tmp_path: Path, clock: FakeClock) -> None:
    largest = 0
    async with views_of(tmp_path, clock, [counter("a"), counter("b")]) as (log, views):
        checkpointer = views.driver.generation.checkpointer
        for _ in range(25):
            await append(log, *[queried()] * 800)
            await views.wait_for(log.head, ["a", "b"])
            largest = max(largest, checkpointer.wal_bytes())
    assert largest < 1_000_000


async def test_an_erased_event_is_passed_over(tmp_path: Path, clock: FakeClock) -> None:
    every = (MemoryStored, MemoryQueried, PayloadErased)
    async with views_of(tmp_path, clock, [counter("a", events=every)]) as (log, views):
        await append(log, stored(), queried(), PayloadErased(positions=(1,), reason="asked for"))
        await views.wait_for(3, ["a"])
    async with event_log.opened(tmp_path / "log.db", clock, VOCABULARY) as log:
        await log._writer.run(lambda c: c.execute("DELETE FROM payloads WHERE position = 1").fetchall())
    async with views_of(tmp_path, clock, [counter("a", version=2, events=every)]) as (log, views):
        await until(lambda: not views.rebuilding)
        assert await ids(views, "a") == [2, 3]
