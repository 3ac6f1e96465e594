"""DecisionState that another version of omegad has filled are made again: it may not have known every event, or have made something else of one."""

from pathlib import Path
from typing import Any

import pytest

from omegad import state as inline
from omegad.events.memory import MemoryDeleted
from omegad.log import event_log
from omegad.log.event import RecordedEvent
from omegad.state import DecisionState
from omegad.storage.driver import Connection
from tests.builders import FakeClock, append, deleted, running_log, stored


async def state_of(path: Path, memory_id: str) -> str | None:
    async with event_log.opened(path, FakeClock(seed=2)) as log:
        guard = await log._writer.run(lambda connection: DecisionState(connection).memory(memory_id))
    return guard.state if guard else None


def unknowing(genuine: Any) -> Any:
    """Return a fold that knows nothing of deletions."""

    def fold(connection: Connection, recorded: RecordedEvent) -> None:
        if not isinstance(recorded.event, MemoryDeleted):
            genuine(connection, recorded)

    return fold


async def test_what_another_version_did_not_know_is_known_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.db"
    async with running_log(path) as log:
        await append(log, stored("mem-1", "one"), stored("mem-2", "two"))
        await append(log, deleted("mem-1"))
    with monkeypatch.context() as other:
        other.setattr(inline, "FOLD", inline.FOLD - 1)
        other.setattr(inline, "fold", unknowing(inline.fold))
        assert await state_of(path, "mem-1") == "active"
        async with running_log(path, FakeClock(seed=3)) as log:
            await append(log, deleted("mem-2"))
        assert await state_of(path, "mem-2") == "active"
    assert (await state_of(path, "mem-1"), await state_of(path, "mem-2")) == ("deleted", "deleted")


async def test_tables_of_another_shape_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, genuine = tmp_path / "log.db", inline._schema()
    with monkeypatch.context() as other:
        other.setattr(inline, "_schema", lambda: genuine.replace("calls      INTEGER", "calls_made INTEGER"))
        async with running_log(path) as log:
            await append(log, stored("mem-1", "one"))
    async with event_log.opened(path, FakeClock()) as log:
        assert await log._writer.run(lambda connection: DecisionState(connection).calls("session-1")) == 0


async def test_what_this_version_has_filled_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(log, stored("mem-1", "one"))
    monkeypatch.setattr(inline, "make_again", lambda _connection: pytest.fail("folded again"))
    assert await state_of(tmp_path / "log.db", "mem-1") == "active"
