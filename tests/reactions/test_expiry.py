"""When what is over is looked for, and how that goes on after a failure."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from omegad.errors import OmegadError, StorageFull, ViewFailed
from omegad.reactions import expiry
from omegad.reactions.expiry import Expiry
from tests.builders import PATIENCE_S, until


class FakeStore:
    """Memories whose time is over, found three at a time."""

    def __init__(self, over: Sequence[str] = ()) -> None:
        self.over = list(over)
        self.expired: list[str] = []
        self.looks = 0
        self.is_recorded = True
        self.blind: OmegadError | None = None
        self.full: OmegadError | None = None

    async def due(self) -> tuple[str, ...]:
        self.looks += 1
        if self.blind:
            raise self.blind
        return tuple(self.over[:3])

    async def expire(self, memory_ids: tuple[str, ...]) -> None:
        if self.full:
            raise self.full
        self.expired += memory_ids
        if self.is_recorded:
            self.over = [one for one in self.over if one not in memory_ids]


@asynccontextmanager
async def running(store: FakeStore) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Expiry(store.due, store.expire).run)
        yield
        tasks.cancel_scope.cancel()


async def test_all_that_is_over_is_recorded_at_once() -> None:
    store = FakeStore("abcdefgh")
    await Expiry(store.due, store.expire).look()
    assert store.expired == list("abcdefgh")


async def test_what_is_not_recorded_is_not_asked_for_again_and_again() -> None:
    store = FakeStore("abcd")
    store.is_recorded = False
    with anyio.fail_after(PATIENCE_S):
        await Expiry(store.due, store.expire).look()
    assert store.expired == ["a", "b", "c"]


async def test_it_looks_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "LOOK_AGAIN_S", 0.01)
    store = FakeStore()
    async with running(store):
        await until(lambda: store.looks >= 2)
        store.over = ["late"]
        await until(lambda: store.expired)
    assert store.expired == ["late"]


async def test_a_look_a_minute_is_enough() -> None:
    store = FakeStore()
    async with running(store):
        await until(lambda: store.looks)
        await anyio.sleep(0.05)
        assert store.looks == 1


@pytest.mark.parametrize("name", ["blind", "full"])
async def test_what_fails_is_tried_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "LOOK_AGAIN_S", 0.01)
    store = FakeStore("a")
    setattr(store, name, ViewFailed() if name == "blind" else StorageFull())
    async with running(store):
        await until(lambda: store.looks >= 3)
        assert store.expired == []
        setattr(store, name, None)
        await until(lambda: store.expired)
    assert store.expired == ["a"]
