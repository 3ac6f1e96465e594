"""Reading the views: what is waited for, what is refused, and the moment that an answer is of."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omegad.daemon import VOCABULARY
from omegad.log import event_log
from omegad.runtime.errors import Invalid, NotFound, OmegadError, Stale, ViewFailed
from omegad.storage.driver import Connection
from omegad.views import barrier
from omegad.views.barrier import Barrier, Snapshot
from omegad.views.current import Views
from tests.builders import FakeClock, append, open_in_memory, opened_views, queried, running_log
from tests.views.test_driver import counter, views_of


def _count(connection: Connection, snapshot: Snapshot) -> tuple[int, int, int]:
    found: int = connection.execute("SELECT count(*) FROM a").fetchone()[0]
    return found, snapshot.position, snapshot.stale_by


def _missing(_connection: Connection, _snapshot: Snapshot) -> None:
    raise NotFound("there is no memory mem-1")


def _empty(_connection: Connection, snapshot: Snapshot) -> str:
    snapshot.require_current()
    return "nothing"


async def _refusal(
    views: Views, asked: Barrier, work: Callable[[Connection, Snapshot], object]
) -> OmegadError:
    with pytest.raises(OmegadError) as caught:
        await views.at(asked, work)
    return caught.value


async def test_a_read_sees_what_it_waited_for_and_says_which_moment_that_is(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with views_of(tmp_path, clock, [counter("a", version=7), counter("b")]) as (log, views):
        await append(log, *[queried()] * 30)
        for reached in (
            Barrier(names=("a",), own=30),
            Barrier(names=("a",), min_position=30),
            Barrier(names=("a",), acknowledged=30, wait_s=20.0),
        ):
            assert await views.at(reached, _count) == (30, 30, 0)
        assert await views.at(
            Barrier(names=("a",)), lambda _, snapshot: (snapshot.versions, snapshot.file)
        ) == ({"a": 7}, views.file)
        assert isinstance(await _refusal(views, Barrier(names=("a",), min_position=31), _count), Invalid)
        assert isinstance(await _refusal(views, Barrier(names=("a",)), _missing), NotFound)


def test_a_snapshot_is_as_old_as_the_projection_that_is_furthest_behind(tmp_path: Path) -> None:
    connection = open_in_memory()
    connection.execute("CREATE TABLE checkpoints (name TEXT, position INTEGER, version INTEGER)")
    connection.execute(
        "INSERT INTO checkpoints VALUES ('memories', 9, 3), ('vectors', 7, 2), ('audit', 1, 1)"
    )
    taken = [
        barrier.taken(connection, tmp_path, Barrier(names=names, acknowledged=8))
        for names in (("memories", "vectors"), ("memories",))
    ]
    assert [(one.position, one.stale_by, one.versions) for one in taken] == [
        (7, 1, {"memories": 3, "vectors": 2}),
        (9, 0, {"memories": 3}),
    ]


async def test_what_is_not_shown_yet_is_not_called_missing(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.views.barrier.OWN_WRITES_S", 0.01)
    async with (
        running_log(tmp_path / "log.db", clock) as log,
        opened_views(tmp_path, log, [counter("a")]) as views,
    ):
        await append(log, queried(), queried())
        behind = Barrier(names=("a",), acknowledged=2, wait_s=0.0)
        assert await views.at(behind, _count) == (0, 0, 2)
        for work in (_missing, _empty):
            assert isinstance(await _refusal(views, behind, work), Stale)
        for must in ({"own": 1}, {"min_position": 2}):
            assert isinstance(await _refusal(views, Barrier(names=("a",), **must), _count), Stale)  # type: ignore[arg-type]
        assert await views.at(Barrier(names=("a",), own=2, wait_s=0.0, makes_do=True), _count) == (0, 0, 0)
        await views.driver.step()
        assert await views.at(behind, _empty) == "nothing"


async def test_views_that_do_not_show_the_log_they_were_opened_with_are_read_by_nobody_who_needs_them_whole(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with running_log(tmp_path / "log.db", clock) as log:
        await append(log, *[queried()] * 1_000)
    async with (
        event_log.opened(tmp_path / "log.db", clock, VOCABULARY) as log,
        opened_views(tmp_path, log, [counter("a")]) as views,
    ):
        await views.driver.step()
        unpretentious: dict[str, Any] = {"names": ("a",), "wait_s": 0.0}
        refused = await _refusal(views, Barrier(**unpretentious), _count)
        assert isinstance(refused, Stale)
        assert "500 of 1,000 events (50 %)" in str(refused)
        assert await views.at(Barrier(**unpretentious, makes_do=True), _count) == (500, 500, 0)
        await views.driver.step()
        assert await views.at(Barrier(**unpretentious), _count) == (1_000, 1_000, 0)


async def test_a_view_that_has_failed_is_read_only_by_what_makes_do(tmp_path: Path, clock: FakeClock) -> None:
    async with views_of(tmp_path, clock, [counter("a", poison="bad"), counter("b")]) as (log, views):
        await append(log, queried(), queried(text="bad"))
        await views.wait_for(2, ["b"])
        acknowledged: dict[str, Any] = {"names": ("a",), "acknowledged": 2, "wait_s": 20.0}
        assert isinstance(await _refusal(views, Barrier(**acknowledged), _count), ViewFailed)
        assert await views.at(Barrier(**acknowledged, makes_do=True), _count) == (1, 1, 1)
