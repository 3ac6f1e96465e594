"""The spool: what one file does to the service keeps neither the others nor the service from going on."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from omegad.agents.hooks import DispatchHook
from omegad.agents.spool import Spool
from omegad.runtime.errors import StorageFull


def leave(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.json").write_bytes(
            msgspec.json.encode({"method": "hook.dispatch", "event": name, "payload": {}})
        )


class Taken:
    """Takes in what it is given, but for the event that it fails on, and what comes after that where
    nothing can be written.
    """

    def __init__(self, error: Exception) -> None:
        self.events: list[str] = []
        self._error: Exception | None = error

    async def __call__(self, commands: Sequence[DispatchHook]) -> list[Exception | None]:
        came_to: list[Exception | None] = []
        for command in commands:
            is_full = bool(came_to) and isinstance(came_to[-1], StorageFull)
            came_to.append(self._error if command.event == "two" or is_full else None)
            if came_to[-1] is None:
                self.events.append(command.event)
        return came_to

    def mend(self) -> None:
        self._error = None


def spool_of(folder: Path, error: Exception) -> tuple[Spool, Taken]:
    spool, taken = Spool(folder), Taken(error)
    spool.execute = taken
    return spool, taken


async def test_a_file_that_the_service_fails_on_is_set_aside_and_the_others_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    leave(folder, "one", "three", "two")
    leave(folder, "zero")
    spool, taken = spool_of(folder, KeyError("a mistake"))
    await spool.drain()
    assert taken.events == ["one", "three", "zero"]
    assert [path.name for path in (folder / "unreadable").iterdir()] == ["two.json"]
    assert spool.lost == 1
    assert list(folder.glob("*.json")) == []


async def test_what_cannot_be_written_now_is_taken_in_later_in_its_order(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    leave(folder, "two", "zero")
    spool, taken = spool_of(folder, StorageFull())
    await spool.drain()
    assert taken.events == []
    assert spool.trouble
    assert len(list(folder.glob("*.json"))) == 2
    taken.mend()
    await spool.drain()
    assert taken.events == ["two", "zero"]
    assert not spool.trouble


@pytest.mark.parametrize("is_file", [True, False], ids=["a file is in its place", "none"])
async def test_a_spool_that_cannot_be_read_is_told_of_and_ends_nothing(
    tmp_path: Path, *, is_file: bool
) -> None:
    if is_file:
        (tmp_path / "spool").write_text("no folder")
    spool, taken = spool_of(tmp_path / "spool", KeyError())
    await spool.drain()
    assert (taken.events, spool.trouble is not None) == ([], is_file)
