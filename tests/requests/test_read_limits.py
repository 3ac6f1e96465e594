"""What takes long to read keeps nobody waiting: it is interrupted in the end, and has readers of its own
until then.
"""

import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from omegad.catalog.methods import SERVED
from omegad.memory.content import Clean, cleaned
from omegad.requests.method import QueryMethod, Rules
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import ReadTooLong
from omegad.storage import readers
from omegad.storage.database import open_writer
from omegad.storage.driver import Connection
from tests.builders import PATIENCE_S, FakeClock, Served, served, until

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"
NUMBERS = ENDLESS.format("i")
PROMPT = {"session_id": "s-1", "prompt": "which database did we choose for the billing?", "cwd": "/src/shop"}


def in_sqlite(connection: Connection, *_: Any) -> None:
    """Keep two statements open, of which the second never has a row."""
    open_all_along = connection.execute(NUMBERS)
    next(open_all_along)
    connection.execute(ENDLESS.format("count(*)")).fetchone()


def beside_sqlite(connection: Connection, *_: Any) -> None:
    """Compute between statements that are over at once."""
    rows = connection.execute(NUMBERS)
    while next(rows):
        readers.check()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have some methods never come to their end, each in another way."""
    begun: list[str] = []
    for name, read in (("lint.report", in_sqlite), ("memory.get", in_sqlite), ("memory.list", beside_sqlite)):
        method = SERVED[name]
        assert isinstance(method, QueryMethod)

        def endless(*given: Any, _name: str = name, _read: Any = read) -> None:
            begun.append(_name)
            _read(*given)

        monkeypatch.setitem(SERVED, name, replace(method, read=endless))
    return begun


async def test_slow_reports_keep_no_query_and_no_hook_waiting(
    paths: Paths, clock: FakeClock, slow: list[str]
) -> None:
    async with served(paths, clock, Config(model="none")) as it, anyio.create_task_group() as tasks:
        await it.caller.call(
            "memory.store", content="the billing runs on PostgreSQL 16", event_type="decision"
        )
        for _ in range(4):
            tasks.start_soon(it.other().call, "lint.report")
        await until(lambda: slow)
        with anyio.fail_after(PATIENCE_S / 2):
            assert (await it.caller.call("memory.query", text="which database for the billing?"))["results"]
            await it.caller.call(
                "hook.dispatch", event="UserPromptSubmit", payload=PROMPT, host="claude-code"
            )
            assert (await it.caller.call("log.read", limit=1))["events"]
        assert slow == ["lint.report"]
        tasks.cancel_scope.cancel()  # which interrupts the one, and takes the others from the line


async def test_slow_questions_keep_no_hook_waiting(paths: Paths, clock: FakeClock, slow: list[str]) -> None:
    async with (
        served(paths, clock, Config(model="none", readers=2)) as it,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(6):
            tasks.start_soon(_get, it)
        await until(lambda: len(slow) == 2)
        with anyio.fail_after(PATIENCE_S / 2):
            await it.caller.call(
                "hook.dispatch", event="UserPromptSubmit", payload=PROMPT, host="claude-code"
            )
        tasks.cancel_scope.cancel()


async def test_slow_questions_keep_no_edit_of_a_held_file_unanswered(
    paths: Paths, clock: FakeClock, slow: list[str], tmp_path: Path
) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    call = {
        "cwd": str(tmp_path / "shop"),
        "tool_name": "Edit",
        "tool_input": {"file_path": "a.py", "old_string": "a", "new_string": "b"},
    }
    async with (
        served(paths, clock, Config(model="none", readers=2)) as it,
        anyio.create_task_group() as tasks,
    ):
        assert not (await _before_edit(it, call, "holder"))["stdout"]
        for _ in range(6):
            tasks.start_soon(_get, it)
        await until(lambda: len(slow) == 2)
        with anyio.fail_after(PATIENCE_S / 2):
            assert '"deny"' in (await _before_edit(it, call, "another"))["stdout"]
        tasks.cancel_scope.cancel()


async def _before_edit(it: Served, call: dict[str, Any], session_id: str) -> Any:
    payload = {**call, "session_id": session_id, "tool_use_id": session_id}
    return await it.caller.call("hook.dispatch", event="PreToolUse", payload=payload, host="claude-code")


async def test_what_is_read_for_others_stands_still_while_a_hook_is_answered(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.runtime.precedence.HOLD_S", PATIENCE_S)
    steps: list[int] = []
    stood_still: list[int] = []

    def computing(*_: Any) -> None:
        while True:
            readers.check()
            steps.append(1)

    def of_hook(*_: Any) -> tuple[()]:
        until_s, before = time.monotonic() + PATIENCE_S / 4, -1
        while time.monotonic() < until_s and len(steps) != before:
            before = len(steps)
            time.sleep(0.05)
        stood_still.append(len(steps) == before)
        return ()

    method = SERVED["memory.list"]
    assert isinstance(method, QueryMethod)
    monkeypatch.setitem(SERVED, "memory.list", replace(method, read=computing))
    monkeypatch.setattr("omegad.agents.hooks.surfacing.due", of_hook)
    async with served(paths, clock, Config(model="none")) as it, anyio.create_task_group() as tasks:
        tasks.start_soon(it.other().call, "memory.list")
        await until(lambda: steps)
        await it.caller.call("hook.dispatch", event="UserPromptSubmit", payload=PROMPT, host="claude-code")
        assert stood_still == [True]
        before = len(steps)
        await until(lambda: len(steps) > before)
        tasks.cancel_scope.cancel()


async def test_a_long_text_that_is_stored_keeps_no_hook_waiting(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def slowly(content: str, rules: Rules) -> Clean:
        begun.set()
        assert may_go_on.wait(PATIENCE_S / 4)
        return cleaned(content, rules)

    monkeypatch.setattr("omegad.memory.store.cleaned", slowly)
    async with served(paths, clock, Config(model="none")) as it, anyio.create_task_group() as tasks:
        tasks.start_soon(
            partial(it.other().call, "memory.store", content="the billing runs on PostgreSQL 16. " * 1_500)
        )
        await until(begun.is_set)
        await it.caller.call("hook.dispatch", event="UserPromptSubmit", payload=PROMPT, host="claude-code")
        may_go_on.set()


async def test_whoever_gives_up_does_not_wait_for_the_thread_that_reads_and_its_reader_comes_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.db"
    open_writer(path, durable=False).close()
    may_end = threading.Event()
    async with readers.opened(path, 1) as reading:
        with anyio.fail_after(PATIENCE_S / 2):
            with anyio.move_on_after(0.01) as given_up:
                await reading.read(lambda _: may_end.wait(PATIENCE_S))
            assert given_up.cancelled_caught
        may_end.set()
        assert await reading.read(lambda connection: connection.execute("SELECT 1").fetchone()[0]) == 1


async def _get(it: Any) -> None:
    await it.other().call("memory.get", memory_id="mem-1")


async def test_what_takes_too_long_is_refused_and_its_reader_is_free(
    paths: Paths, clock: FakeClock, slow: list[str]
) -> None:
    refused: list[ReadTooLong] = []

    async def ask(method: str, **params: str) -> None:
        with pytest.raises(ReadTooLong) as caught:
            await it.other().call(method, **params)
        refused.append(caught.value)

    async with served(
        paths, clock, Config(model="none", readers=2, read_timeout_s=0.75, report_timeout_s=0.8)
    ) as it:
        async with anyio.create_task_group() as tasks:
            for asked in (
                partial(ask, "memory.get", memory_id="mem-1"),
                partial(ask, "memory.list"),
                partial(ask, "lint.report"),
            ):
                tasks.start_soon(asked)
        assert sorted(slow) == ["lint.report", "memory.get", "memory.list"]
        assert sorted(map(str, refused)) == [
            f"it took longer than {limit} s to read" for limit in ("0.75", "0.75", "0.8")
        ]
        assert all(one.kind == "overloaded" and "read_timeout_s" in one.hint for one in refused)
        stored = await it.caller.call(
            "memory.store", content="the billing runs on PostgreSQL 16", event_type="decision"
        )
        assert (await it.caller.call("memory.query", text="billing PostgreSQL"))["results"][0][
            "memory_id"
        ] == stored["memory_id"]
        await it.caller.call("memory.lessons")  # by the reader that the lint had
        await it.daemon.services.views.rebuild(
            (), lambda _done, _total: None
        )  # which waits for all readers of the file before


async def test_what_a_hook_looks_for_too_long_it_goes_on_without(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.agents.hooks.surfacing.due", in_sqlite)
    async with served(paths, clock, Config(model="none", read_timeout_s=0.4)) as it:
        answer = await it.caller.call(
            "hook.dispatch", event="UserPromptSubmit", payload=PROMPT, host="claude-code"
        )
        assert answer["exit_code"] == 0
        assert "prompt.submitted@1" in [one["tag"] for one in (await it.caller.call("log.read"))["events"]]


async def test_hooks_are_read_for_before_those_who_wait_longer(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    open_writer(path, durable=False).close()
    order: list[str] = []
    async with readers.opened(path, 1) as reading, anyio.create_task_group() as tasks:
        begun = anyio.Event()
        tasks.start_soon(_hold, reading, begun)
        await begun.wait()
        for turn in (readers.Turn.LONG, readers.Turn.USUAL, readers.Turn.FIRST):
            tasks.start_soon(_note, reading, turn, order)
        await anyio.lowlevel.checkpoint()
    assert order == ["FIRST", "USUAL", "LONG"]


async def _hold(reading: readers.Readers, begun: anyio.Event) -> None:
    with anyio.move_on_after(0.05):
        begun.set()
        await reading.read(in_sqlite)


async def _note(reading: readers.Readers, turn: readers.Turn, order: list[str]) -> None:
    await reading.read(lambda _: order.append(turn.name), turn)
