"""The views that are served: which file, what is refused, rebuilding beside it, and proof that they equal
the log.
"""

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

import projections
from omegad.daemon import VOCABULARY
from omegad.log import event_log
from omegad.log.checkpoint import Checkpoint, failed
from omegad.log.event_log import EventLog
from omegad.log.folding import Progress
from omegad.log.projection import Projection
from omegad.runtime.errors import (
    Invalid,
    LogLost,
    Refused,
    Stale,
    StorageCorrupt,
    StorageFailed,
    StorageFull,
    ViewFailed,
)
from omegad.storage.driver import Connection
from omegad.views import current, generation, log_check
from omegad.views.barrier import Barrier, Snapshot
from omegad.views.building import Order
from omegad.views.current import Views
from omegad.views.workers import Work
from tests.builders import (
    PATIENCE_S,
    FakeClock,
    T,
    WorkersHere,
    append,
    contradicted,
    deleted,
    edited,
    embedded,
    evolved,
    expired,
    linked,
    opened_views,
    promoted,
    queried,
    rated,
    related,
    relations,
    repeated,
    restored,
    rows,
    running_log,
    stored,
    superseded,
    tool_called,
    unlinked,
    until,
)
from tests.views.test_driver import counter, ids, nothing, views_of

OF_TOOL_CALLS = {"audit", "conversations"}  # the views that a tool call changes


async def fill(log: EventLog, count: int = 3, first: int = 1) -> None:
    """Append a little of everything."""
    for number in range(first, first + count):
        name = f"mem-{number}"
        edges = relations((f"mem-{number - 1}", 0.6)) if number > 1 else ()
        await append(
            log,
            stored(name, f"note {number} on the build", related=edges),
            embedded(name, f"note {number} on the build"),
        )
        await append(
            log, repeated(name), queried((name, 0.9), query_id=f"query-{number}"), tool_called(number)
        )
    await append(
        log, stored(f"old-{first}", f"old {first}", pending=True), related(f"old-{first}", ("mem-1", 0.5))
    )
    await append(
        log,
        superseded(f"old-{first}", "mem-1"),
        stored(f"gone-{first}", f"gone {first}"),
        deleted(f"gone-{first}"),
    )
    last = f"mem-{first + count - 1}"
    await append(
        log,
        edited(last, "another note"),
        embedded(last, "another note"),
        evolved("mem-1"),
        restored(f"old-{first}"),
        rated(last),
    )
    await append(
        log,
        linked(last, "mem-1"),
        unlinked(last, "mem-1", "related"),
        contradicted("mem-1", last),
        promoted(last),
        expired(f"old-{first}"),
    )


def names_in(home: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in home.glob(pattern))


async def live(views: Views) -> dict[str, str]:
    return {name: report.live_digest for name, report in (await views.verify((), nothing)).items()}


async def on_file(views: Views, sql: str) -> None:
    """Tamper with the views that are served."""
    await views.driver.generation.writer.run(lambda connection: connection.execute(sql).fetchall())


async def test_the_name_views_db_points_at_the_file_that_is_served(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        pointer = tmp_path / "views.db"
        assert pointer.is_symlink()
        assert pointer.readlink() == Path(views.file.name)
        before = views.file
        await fill(log)
        await views.rebuild((), nothing)
        assert views.file != before
        assert pointer.readlink() == Path(views.file.name)
        assert names_in(tmp_path, "views-*") == names_in(tmp_path, f"{before.name}*") + names_in(
            tmp_path, f"{views.file.name}*"
        )
        await views.rebuild(["edges"], nothing)
        assert not before.exists(), "the one before is kept, and no other"


async def test_the_same_views_are_served_after_a_restart(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log)
        await views.wait_for(log.head, views.names)
        file, before = views.file, await live(views)
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        assert views.file == file
        assert views.driver.position() == log.head
        assert await live(views) == before


async def test_orphans_of_an_interrupted_rebuild_are_removed_at_the_start(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log)
        await views.wait_for(log.head, views.names)
        file = views.file
    for name in ("views-77.db", "views-77.db-wal", "views-77.db-shm", "views-78.db"):
        (tmp_path / name).write_bytes(b"left behind")
    async with views_of(tmp_path, clock, projections.ALL) as (_, views):
        assert views.file == file
        assert names_in(tmp_path, "views-7*") == []


@pytest.mark.parametrize("damage", ["rubbish", "empty", "missing", "cut", "no pointer", "dangling pointer"])
async def test_a_damaged_file_is_built_again(tmp_path: Path, clock: FakeClock, damage: str) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log, 20)
        await views.wait_for(log.head, views.names)
        file, before = views.file, await live(views)
    data = file.read_bytes()
    match damage:
        case "rubbish":
            file.write_bytes(os.urandom(len(data)))
        case "empty":
            file.write_bytes(b"")
        case "missing":
            file.unlink()
        case "cut":
            file.write_bytes(data[: len(data) // 2])
        case "no pointer":
            (tmp_path / "views.db").unlink()
        case _:
            (tmp_path / "views.db").unlink()
            (tmp_path / "views.db").symlink_to("views-99.db")
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        with anyio.fail_after(PATIENCE_S):
            await append(log, tool_called(99, tool_use_id="late"))
            await until(lambda: views.driver.position() == log.head)
            reports = await views.verify((), nothing)
        assert [name for name, report in reports.items() if not report.equal] == []
        digests = {name: report.live_digest for name, report in reports.items()}
        assert {name for name in digests if digests[name] != before[name]} == OF_TOOL_CALLS


@pytest.mark.parametrize("fails", [False, True], ids=["beside", "and where that fails, step by step"])
async def test_views_that_show_nothing_of_a_long_log_are_built_beside(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    monkeypatch.setattr(current, "FAR_BEHIND", 100)
    async with running_log(tmp_path / "log.db", clock) as log:
        await fill(log, 60)

        genuine = WorkersHere.done

        async def full(self: WorkersHere, work: Work, answer: type[T], tell: Progress) -> T:
            if isinstance(work, Order):
                raise StorageFull
            return await genuine(self, work, answer, tell)

        if fails:
            monkeypatch.setattr(WorkersHere, "done", full)
        async with opened_views(tmp_path, log, projections.ALL) as views, anyio.create_task_group() as tasks:
            first = views.file
            tasks.start_soon(views.run)
            with anyio.fail_after(PATIENCE_S):
                found = await views.at(
                    Barrier(names=("memories",), wait_s=PATIENCE_S),
                    lambda c, _: rows(c, "SELECT count(*) FROM memories"),
                )
                assert found == [(62,)]
                assert (views.file == first) == fails
                await append(log, stored("late"))
                await views.wait_for(log.head, views.names)
            assert all(report.equal for report in (await views.verify((), nothing)).values())
            tasks.cancel_scope.cancel()


async def test_damage_that_only_a_reader_meets_is_mended_too(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log, 60)
        await views.wait_for(log.head, views.names)
        file = views.file
        root = await views.read(
            lambda c: c.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'memories'").fetchone()[0]
        )
    data = bytearray(file.read_bytes())
    data[(root - 1) * 4096 : root * 4096] = b"\xff" * 4096
    file.write_bytes(data)

    def count(connection: Connection) -> int:
        found: int = connection.execute(
            "SELECT count(*) FROM memories NOT INDEXED WHERE content != ''"
        ).fetchone()[0]
        return found

    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        found = -1
        with anyio.move_on_after(PATIENCE_S):
            while found < 62:
                try:
                    found = await views.read(count)
                except Exception:  # noqa: BLE001  the first reader to meet it may be told
                    await anyio.sleep(0.05)
        assert found == 62


async def test_a_log_that_is_not_the_one_that_the_views_have_seen_is_refused(
    tmp_path: Path, clock: FakeClock
) -> None:
    """A log restored from a backup, to which other events were appended, reaches the same positions with
    another history.
    """
    async with views_of(tmp_path, clock, [counter("a")]) as (log, views):
        await append(log, queried(text="kept"))
        await append(log, queried(text="lost"))
        await views.wait_for(2, ["a"])
        file = views.file
    for count, complaint in ((0, "which ends at 0"), (1, "which ends at 1"), (3, "which has another there")):
        for name in names_in(tmp_path, "log.db*"):
            (tmp_path / name).unlink()
        async with running_log(tmp_path / "log.db", clock) as log:
            await append(log, *[queried(text="other")] * count)
        (tmp_path / "views.db").unlink(
            missing_ok=True
        )  # a file that nothing points at may be the last copy just as well
        for _ in range(2):
            with pytest.raises(LogLost, match=f"has seen event 2 of log.db, {complaint}"):
                async with (
                    event_log.opened(tmp_path / "log.db", clock, VOCABULARY) as log,
                    opened_views(tmp_path, log, [counter("a")]),
                ):
                    pass
        assert file.exists()
    aside = log_check.set_aside(tmp_path, datetime(2026, 1, 2, tzinfo=UTC))
    assert [path.name for path in aside] == [f"{file.name}.of-another-log-20260102T000000000000"]
    async with views_of(tmp_path, clock, [counter("a")]) as (_, views):
        await views.wait_for(3, ["a"])
        assert await ids(views, "a") == [1, 2, 3]
    assert aside[0].exists()


async def _outdated(home: Path, clock: FakeClock) -> None:
    """Make views of which each lacks a row, as if an earlier version had left it out."""
    async with views_of(home, clock, [counter("a"), counter("b")]) as (log, views):
        await append(log, *[queried()] * 600)
        await views.wait_for(600, ["a", "b"])
        for name in ("a", "b"):
            await on_file(views, f"DELETE FROM {name} WHERE id = 5")


async def test_a_view_of_an_earlier_version_answers_until_the_new_one_is_built(
    tmp_path: Path, clock: FakeClock
) -> None:
    await _outdated(tmp_path, clock)
    now = [counter("a", version=2), counter("b")]
    barrier = Barrier(names=("a", "b"))
    async with running_log(tmp_path / "log.db", clock) as log, opened_views(tmp_path, log, now) as views:
        old = views.file
        assert views.rebuilding == ("a",)
        assert (await views.at(barrier, lambda _, snapshot: snapshot)).versions == {"a": 1, "b": 1}
        assert 5 not in await ids(views, "a")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(views.run)
            counts = {len(await ids(views, "a"))}
            while 600 not in counts:
                counts.add(
                    await views.at(
                        barrier,
                        lambda connection, _: connection.execute("SELECT count(*) FROM a").fetchone()[0],
                    )
                )
            assert counts == {599, 600}
            await until(lambda: not views.rebuilding)
            assert (await views.at(barrier, lambda _, snapshot: snapshot)).versions == {"a": 2, "b": 1}
            assert await ids(views, "a") == list(range(1, 601))
            assert 5 not in await ids(views, "b")
            await append(log, queried())
            await views.wait_for(601, ["a", "b"])
            assert names_in(tmp_path, "views-*.db") == [old.name, views.file.name]
            tasks.cancel_scope.cancel()


async def test_a_view_whose_tables_have_changed_is_read_by_nobody_until_it_is_built_again(
    tmp_path: Path, clock: FakeClock
) -> None:
    await _outdated(tmp_path, clock)
    now = [counter("a", version=2, column="kind"), counter("b")]

    def kinds(connection: Connection, _snapshot: Snapshot) -> set[str]:
        return {row[0] for row in connection.execute("SELECT kind FROM a")}

    async with running_log(tmp_path / "log.db", clock) as log, opened_views(tmp_path, log, now) as views:
        assert views.rebuilding == ("a",)
        for barrier in (
            Barrier(names=("a", "b"), wait_s=0.0),
            Barrier(names=("a",), wait_s=0.0, makes_do=True),
        ):
            with pytest.raises(Stale, match="'a' is being built again: 0 %"):
                await views.at(barrier, kinds)
        with pytest.raises(Stale):
            await views.verify(("a",), nothing)
        assert await views.at(Barrier(names=("b",)), lambda _, snapshot: snapshot.position) == 600
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(views.run)
            await append(log, queried())
            assert await views.at(Barrier(names=("a", "b"), acknowledged=601, wait_s=PATIENCE_S), kinds) == {
                "memory.queried@1"
            }
            await until(lambda: not views.rebuilding)
            assert (await views.verify(("a",), nothing))["a"].equal
            tasks.cancel_scope.cancel()


async def test_an_earlier_version_is_replaced_when_there_is_room_and_a_failure_is_named(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _outdated(tmp_path, clock)
    monkeypatch.setattr(current, "RETRY_SECONDS", 0.01)
    genuine, attempts = generation.copy_to, list[Path]()

    def full(connection: Connection, target: Path) -> None:
        attempts.append(target)
        if len(attempts) < 3:
            raise StorageFull
        genuine(connection, target)

    monkeypatch.setattr(generation, "copy_to", full)
    async with views_of(tmp_path, clock, [counter("a", version=2, poison="bad"), counter("b")]) as (
        log,
        views,
    ):
        await until(lambda: len(attempts) == 3 and not views.rebuilding)
        await append(log, queried(text="bad"))
        await until(lambda: failed(views.driver.checkpoints, ["a"]))
    async with views_of(tmp_path, clock, [counter("a", version=3, poison="bad"), counter("b")]) as (_, views):
        await until(lambda: not views.rebuilding)
        left = views.checkpoints["a"]
        assert (left.version, left.position, left.failed_position) == (3, 600, 601)
        assert views.checkpoints["b"].position == 601


async def test_damage_on_a_full_disk_is_waited_out(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(current, "RETRY_SECONDS", 0.01)
    async with views_of(tmp_path, clock, [counter("a")]) as (log, views):
        await append(log, queried())
        await views.wait_for(1, ["a"])
        genuine, attempts = generation.prepare, list[int]()

        def prepare(connection: Connection, projections: Sequence[Projection]) -> dict[str, Checkpoint]:
            attempts.append(1)
            if len(attempts) < 4:
                raise StorageFull
            return genuine(connection, projections)

        monkeypatch.setattr(generation, "prepare", prepare)

        def damaged(_connection: Connection) -> None:
            raise StorageCorrupt

        with pytest.raises(StorageCorrupt):
            await views.read(damaged)
        await until(lambda: len(attempts) == 4 and views.driver.position() == 1)
        assert await ids(views, "a") == [1]
        await until(lambda: names_in(tmp_path, "views-*.db") == [views.file.name])


async def test_a_directory_in_the_place_of_a_file_is_named(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, [counter("a")]) as (_, views):
        (tmp_path / "views-verify.tmp").mkdir()
        with pytest.raises(StorageFailed, match=r"views-verify\.tmp: "):
            await views.verify((), nothing)
    (tmp_path / "views.db").unlink()
    (tmp_path / "views.db").mkdir()
    with pytest.raises(StorageFailed, match=r"views\.db is a directory"):
        async with views_of(tmp_path, clock, [counter("a")]):
            pass


@pytest.mark.parametrize("names", [(), ("retrievals",)], ids=["all", "one"])
async def test_a_rebuilt_file_has_every_index_and_waits_for_the_disk_again(
    tmp_path: Path, clock: FakeClock, names: tuple[str, ...]
) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log, 10)

        async def shape() -> list[list[tuple[object, ...]]]:
            asked = (
                "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name",
                "PRAGMA synchronous",
                "PRAGMA cache_size",
            )
            return await views.driver.generation.writer.run(
                lambda connection: [connection.execute(sql).fetchall() for sql in asked]
            )

        before = await shape()
        await views.rebuild(names, nothing)
        assert await shape() == before


@pytest.mark.parametrize("names", [(), ("edges",), ("vectors", "fulltext")], ids=["all", "one", "two"])
async def test_a_rebuild_gives_the_same_rows_while_appends_go_on(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    monkeypatch.setattr("omegad.log.folding.BATCH_EVENTS", 16)
    async with views_of(tmp_path, clock, projections.ALL) as (log, views), anyio.create_task_group() as tasks:
        await fill(log, 150)

        async def go_on() -> None:
            await fill(log, 100, first=1_000)

        tasks.start_soon(go_on)
        told: list[tuple[int, int]] = []
        reports = await views.rebuild(names, lambda done, total: told.append((done, total)))
        assert set(reports) == set(names or views.names)
        assert told
        assert told == sorted(told)
        await until(lambda: log.head == 1_280)
        await views.wait_for(log.head, views.names)
        assert all(report.equal for report in (await views.verify((), nothing)).values())


async def test_a_rebuild_reads_no_more_than_its_views_show_and_comes_to_the_end_of_the_log(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with views_of(tmp_path, clock, [counter("a")]) as (log, views):
        await append(log, queried(), *(tool_called(number) for number in range(1, 4)))
        await views.wait_for(4, ["a"])
        report = (await views.rebuild((), nothing))["a"]
        assert (report.rows, report.position) == (1, 4)
        await append(log, queried(), tool_called(4))
        await views.wait_for(6, ["a"])
        assert await ids(views, "a") == [1, 5]
        assert (await views.verify((), nothing))["a"].equal


async def test_a_rebuild_of_one_view_mends_that_one_alone(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log)
        await views.wait_for(log.head, views.names)
        await on_file(views, "UPDATE memories SET priority = 5 WHERE id = 1")
        await on_file(views, "DELETE FROM edges")
        await views.rebuild(["memories"], nothing)
        wrong = [name for name, report in (await views.verify((), nothing)).items() if not report.equal]
        assert wrong == ["edges"]


async def test_readers_are_answered_all_through_a_rebuild(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views), anyio.create_task_group() as tasks:
        await fill(log, 100)
        await views.wait_for(log.head, views.names)
        counts: list[int] = []

        async def read_on() -> None:
            while True:
                counts.append(
                    await views.read(lambda c: c.execute("SELECT count(*) FROM memories").fetchone()[0])
                )

        for _ in range(4):
            tasks.start_soon(read_on)
        for _ in range(3):
            await views.rebuild((), nothing)
        tasks.cancel_scope.cancel()
    assert set(counts) == {102}


async def test_one_rebuild_at_a_time(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log, 50)
        with pytest.raises(Invalid, match="no view 'wishes'"):
            await views.rebuild(["wishes"], nothing)
        with pytest.raises(Invalid):
            await views.verify(["wishes"], nothing)
        outcomes = await asyncio.gather(
            views.rebuild((), nothing), views.rebuild((), nothing), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [dict, Refused]
        await views.rebuild(["edges"], nothing)


async def test_a_rebuild_that_is_cancelled_leaves_the_live_views_and_no_file(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log, 60)
        await views.wait_for(log.head, views.names)
        for delay in range(0, 120, 8):
            with anyio.move_on_after(delay / 1_000):
                await views.rebuild((), nothing)
            assert not views.rebuilding
            assert names_in(tmp_path, "*unfinished*") == []
            assert views.file.name == (tmp_path / "views.db").readlink().name
            assert len(names_in(tmp_path, "views-*.db")) <= 2
        await fill(log, 1, first=500)
        await views.wait_for(log.head, views.names)
        assert all(report.equal for report in (await views.verify((), nothing)).values())


async def test_a_rebuild_whose_projection_fails_leaves_the_live_views(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with views_of(tmp_path, clock, [counter("a")]) as (log, views):
        await append(log, queried(), queried(text="bad"))
        await views.wait_for(2, ["a"])
    async with views_of(tmp_path, clock, [counter("a", poison="bad")]) as (_, views):
        file = views.file
        with pytest.raises(ViewFailed, match="failed at position 2"):
            await views.rebuild((), nothing)
        assert views.file == file
        assert await ids(views, "a") == [1, 2]
        assert not views.rebuilding


async def test_a_rebuild_for_which_there_is_no_room_leaves_no_file(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_connection: Connection, target: Path) -> None:
        target.write_bytes(b"the first pages")
        raise StorageFull

    monkeypatch.setattr(generation, "copy_to", full)
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log)
        with pytest.raises(StorageFull):
            await views.rebuild(["edges"], nothing)
        assert names_in(tmp_path, "views-*.db") == [views.file.name]
        assert not views.rebuilding


async def test_verifying_finds_nothing_where_nothing_is_wrong(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log, 10)
        await views.wait_for(log.head, views.names)
        reports = await views.verify((), nothing)
        assert {name: (report.equal, report.problem) for name, report in reports.items()} == dict.fromkeys(
            views.names, (True, None)
        )
        assert all(report.live_digest == report.replay_digest for report in reports.values())
        assert set(await views.verify(["audit"], nothing)) == {"audit"}
        assert not names_in(tmp_path, "views-verify*")


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("memories", "UPDATE memories SET content = content || '.' WHERE id = 1"),
        ("memories", "DELETE FROM memories WHERE id = 1"),
        ("edges", "UPDATE edges SET weight = 0.1 WHERE id = (SELECT min(id) FROM edges)"),
        ("vectors", "UPDATE memory_vectors SET chunk = 7"),
        (
            "vectors",
            "UPDATE memory_vectors SET vector = (SELECT vector FROM memory_vectors ORDER BY id DESC LIMIT 1)",
        ),
        ("fulltext", "DELETE FROM memories_fts WHERE rowid = 1"),
        ("fulltext", "UPDATE memories_fts_content SET c0 = 'other words' WHERE id = 1"),
        ("fulltext", "DELETE FROM memories_fts_data WHERE id > 10"),
        ("fulltext", "DELETE FROM fulltext_rows"),
        ("audit", "UPDATE coord_audit SET tool_name = 'Read'"),
        ("retrievals", "UPDATE retrievals SET score = score / 2"),
        ("retrievals", "DELETE FROM retrieval_queries"),
    ],
)
async def test_verifying_finds_what_was_tampered_with(
    tmp_path: Path, clock: FakeClock, name: str, sql: str
) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log)
        await views.wait_for(log.head, views.names)
        await on_file(views, sql)
        reports = await views.verify((), nothing)
        assert [other for other, report in reports.items() if not report.equal] == [name]
        await views.rebuild((), nothing)
        assert all(report.equal for report in (await views.verify((), nothing)).values())


async def test_two_may_verify_at_once(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log, 60)
        await views.wait_for(log.head, views.names)
        found = await asyncio.gather(*(views.verify((), nothing) for _ in range(3)), return_exceptions=True)
        assert [
            outcome
            for outcome in found
            if isinstance(outcome, BaseException) and not isinstance(outcome, Refused)
        ] == []
        assert all(
            report.equal for outcome in found if isinstance(outcome, dict) for report in outcome.values()
        )
        assert any(isinstance(outcome, dict) for outcome in found)


async def test_verifying_and_rebuilding_at_once_end_both(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, projections.ALL) as (log, views):
        await fill(log, 60)
        await views.wait_for(log.head, views.names)
        with anyio.fail_after(PATIENCE_S):
            for _ in range(3):
                found, _ = await asyncio.gather(views.verify((), nothing), views.rebuild((), nothing))
                assert {name: report.problem for name, report in found.items() if not report.equal} == {}


async def test_filling_vectors_and_rebuilding_at_once_end_both(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, projections.ALL, _nowhere) as (log, views):
        await fill(log, 60)
        await views.wait_for(log.head, views.names)
        with anyio.fail_after(PATIENCE_S):
            for _ in range(3):
                await asyncio.gather(views.driver.fill_at(range(1, 200)), views.rebuild((), nothing))


def _nowhere(_wanted: object) -> None:
    return None
