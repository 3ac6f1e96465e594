"""While a hook is answered others give way, for a moment; after that they have as long for themselves."""

import threading

import anyio
import pytest

from omegad.runtime import precedence
from omegad.runtime.precedence import Precedence
from tests.builders import PATIENCE_S


async def test_others_give_way_until_the_last_hook_is_answered() -> None:
    one, told, began = Precedence(), list[str](), threading.Event()

    def other() -> None:
        began.set()
        one.give_way()
        told.append("goes on")

    thread = threading.Thread(target=other)
    with one.held(), one.held():
        one.afterwards(lambda: told.append("is told"))
        thread.start()
        assert began.wait(PATIENCE_S)
        assert (one.is_held, told) == (True, [])
    thread.join(PATIENCE_S)
    assert sorted(told) == ["goes on", "is told"]
    assert not one.is_held


async def test_a_hook_that_takes_long_holds_nobody_up_and_the_next_ones_only_when_others_had_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 1000.0
    monkeypatch.setattr(precedence, "HOLD_S", 0.01)
    one = Precedence(lambda: now_s)
    with one.held():
        now_s += 5
        with anyio.fail_after(PATIENCE_S):
            while one.is_held:  # noqa: ASYNC110  nothing announces it
                await anyio.sleep(0.005)
    now_s += 4.9
    with one.held():
        assert not one.is_held
    now_s += 0.2
    with one.held():
        assert one.is_held


async def test_what_comes_in_bulk_waits_at_every_few_and_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited, number = list[int](), 0
    monkeypatch.setattr(precedence.READS, "give_way", lambda: waited.append(number))
    for number in range(3 * precedence.BULK):
        precedence.bulk_gives_way(number)
    assert not waited
    with precedence.READS.held():
        for number in range(2 * precedence.BULK + 1):
            precedence.bulk_gives_way(number)
    assert waited == [precedence.BULK, 2 * precedence.BULK]


async def test_who_waits_on_the_loop_goes_on_when_others_need_not_give_way() -> None:
    one, told = Precedence(), list[str]()

    async def other() -> None:
        await one.given()
        told.append("goes on")

    async with anyio.create_task_group() as tasks:
        with one.held():
            tasks.start_soon(other)
            await anyio.wait_all_tasks_blocked()
            assert not told
    assert told == ["goes on"]
