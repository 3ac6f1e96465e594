"""That each event and each slot of time is reacted to once, whatever happens in between."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.catalog import reactions
from omegad.log.decision import Cursor, Outcome
from omegad.log.event import RecordedEvent
from omegad.log.event_log import EventLog
from omegad.memory.events import MemoryRated, MemoryStored
from omegad.memory.lifecycle import RateMemory
from omegad.memory.store import StoreMemory
from omegad.reactions import runner
from omegad.reactions.contract import Reader
from omegad.reactions.runner import Pace, Runner
from omegad.requests.command import Command
from omegad.requests.method import RequestContext
from omegad.runtime.config import Paths
from omegad.runtime.errors import Refused, Stale, StorageFull, ViewFailed
from tests.builders import (
    PATIENCE_S,
    START_US,
    FakeClock,
    append,
    everything,
    proposal,
    rated,
    running_log,
    served,
    stored,
    tool_called,
    until,
)

QUICK = Pace(retry_s=0.001, retry_max_s=0.002, clock_s=0.002, sweep_s=0.002)
HOUR_US = 3_600_000_000

Step = Callable[[Command, RequestContext, Cursor | None], Awaitable[object]]


class Killed(BaseException):
    """The process ends here."""


class Praise:
    """Rates every memory that is stored, as often as told; each command is known by its reason."""

    NAME, VERSION, VIEWS, EVENTS = "praise", 1, (), (MemoryStored,)

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self.seen: list[str] = []
        self.raised: dict[str, list[Exception]] = {}
        """What it raises on a memory, one after the other."""

    def react(self, recorded: RecordedEvent, _reader: Reader) -> Iterator[RateMemory]:
        assert isinstance(recorded.event, MemoryStored)
        memory_id = recorded.event.memory_id
        self.seen.append(memory_id)
        if left := self.raised.get(memory_id):
            raise left.pop()
        for number in range(self.count):
            yield RateMemory(memory_id=memory_id, rating="helpful", reason=str(number))


class Hourly:
    """Rates one memory in each slot."""

    NAME, VERSION, VIEWS, EVERY = "hourly", 1, (), 3600

    def __init__(self) -> None:
        self.slots: list[int] = []
        self.raised: list[Exception] = []

    def due(self, slot: int, _reader: Reader) -> Iterable[RateMemory]:
        self.slots.append(slot)
        if self.raised:
            raise self.raised.pop()
        return [RateMemory(memory_id="m", rating="helpful", reason=str(slot))]


class BlindViews:
    """Views that show nothing, and are never late."""

    async def wait_for(self, _position: int, _names: object) -> None:
        """Return at once."""

    async def read(self, work: Callable[[Any], Any]) -> Any:
        return work(None)


def appending(log: EventLog) -> Step:
    """Carry out commands as the dispatch does, as far as the log is concerned."""

    async def execute(command: Command, context: RequestContext, cursor: Cursor | None = None) -> Outcome:
        assert isinstance(command, RateMemory)
        event = MemoryRated(memory_id=command.memory_id, rating="helpful", points=1, reason=command.reason)
        return await log.append(
            proposal(
                event, client=context.client, cause=context.cause, request=context.delivery, cursor=cursor
            )
        )

    return execute


@asynccontextmanager
async def running(
    log: EventLog, *those: Any, execute: Step | None = None, clock: FakeClock | None = None
) -> AsyncIterator[Runner]:
    it = Runner(
        log, cast("Any", BlindViews()), clock or FakeClock(), execute or appending(log), those, pace=QUICK
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(it.run)
        yield it
        tasks.cancel_scope.cancel()


async def has_begun(log: EventLog, name: str = "praise") -> None:
    with anyio.fail_after(PATIENCE_S):
        while name not in await log.cursors():  # noqa: ASYNC110  a cursor announces nothing
            await anyio.sleep(0.001)


async def ratings(log: EventLog) -> list[tuple[str, str | None, int | None]]:
    """Return what was rated, the reason, and the position of the cause."""
    return [
        (one.event.memory_id, one.event.reason, one.cause)
        for one in await everything(log)
        if isinstance(one.event, MemoryRated)
    ]


async def test_what_follows_from_each_event_is_done_in_order_and_names_its_cause(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(log, stored("before it began"))
        async with running(log, Praise(2)) as it:
            await has_begun(log)
            await append(log, stored("a"), tool_called())
            await until(lambda: log.head == 5)
            await append(log, stored("b"))
            await until(lambda: log.head == 8)
            assert await ratings(log) == [("a", "0", 2), ("a", "1", 2), ("b", "0", 6), ("b", "1", 6)]
            await until(lambda: it.status()["praise"].lag == 0)
            assert it.status()["praise"].trouble is None
        assert {one.client for one in await everything(log) if isinstance(one.event, MemoryRated)} == {
            "reaction:praise"
        }
        assert (await log.cursors())["praise"].position == 6


async def test_another_run_goes_on_where_the_last_one_ended_also_as_another_version(
    tmp_path: Path, clock: FakeClock
) -> None:
    newer = Praise()
    newer.VERSION = 2
    async with running_log(tmp_path / "log.db", clock) as log:
        async with running(log, Praise()):
            await has_begun(log)
            await append(log, stored("a"))
            await until(lambda: log.head == 2)
        await append(log, stored("b"))
    async with running_log(tmp_path / "log.db", clock) as log, running(log, newer):
        await until(lambda: log.head == 4)
        assert (await ratings(log), newer.seen) == ([("a", "0", 1), ("b", "0", 3)], ["b"])
        assert (await log.cursors())["praise"].version == 2


@given(count=st.integers(1, 3), kills=st.sets(st.tuples(st.integers(1, 12), st.booleans()), max_size=6))
def test_whenever_it_is_killed_each_command_is_carried_out_once(
    count: int, kills: set[tuple[int, bool]]
) -> None:
    async def scenario(folder: Path) -> None:
        calls, clock = 0, FakeClock()

        def deadly(log: EventLog) -> Step:
            execute = appending(log)

            async def step(command: Command, context: RequestContext, cursor: Cursor | None = None) -> None:
                nonlocal calls
                calls += 1
                if (calls, False) in kills:
                    raise Killed
                await execute(command, context, cursor)
                if (calls, True) in kills:
                    raise Killed

            return step

        memories = ["a", "b", "c"]
        async with running_log(folder / "log.db", clock) as log:
            async with running(log, Praise(count)):
                await has_begun(log)
            await append(log, *map(stored, memories))
        for _ in range(len(kills) + 1):
            async with running_log(folder / "log.db", clock) as log:
                with suppress(BaseExceptionGroup):
                    async with running(log, Praise(count), execute=deadly(log)) as it:
                        await until(lambda: it.progress["praise"].saved == 3)
        async with running_log(folder / "log.db", clock) as log:
            expected = [
                (name, str(number), place)
                for place, name in enumerate(memories, 1)
                for number in range(count)
            ]
            assert await ratings(log) == expected

    with TemporaryDirectory() as folder:
        anyio.run(scenario, Path(folder))


async def test_one_event_that_it_fails_on_is_set_aside_and_keeps_nobody_from_going_on(tmp_path: Path) -> None:
    failing, other = Praise(), Praise()
    other.NAME = "other"
    failing.raised = {"bad": [ValueError("no sense in it")] * 99, "once": [ValueError("out of luck")]}
    async with running_log(tmp_path / "log.db") as log, running(log, failing, other) as it:
        await has_begun(log)
        await has_begun(log, "other")
        await append(log, stored("bad"), stored("once"), stored("good"))
        await until(lambda: log.head == 3 + 5)
        assert sorted(name for name, _, _ in await ratings(log)) == ["bad", "good", "good", "once", "once"]
        assert failing.seen == ["bad"] * runner.TRIES + ["once"] * 2 + ["good"]
        status = it.status()
        assert (status["praise"].trouble or "").startswith(
            "set aside 1, the first at 1 (ValueError); `omegad reaction list`"
        )
        assert status["other"].trouble is None


@pytest.mark.parametrize(
    "error",
    [ViewFailed("the view is broken"), StorageFull("the disk is full"), Stale("the view is being built")],
)
async def test_what_the_event_is_not_to_blame_for_is_waited_out(tmp_path: Path, error: Exception) -> None:
    reaction = Praise()
    reaction.raised = {"a": [error] * 10}
    async with running_log(tmp_path / "log.db") as log, running(log, reaction) as it:
        await has_begun(log)
        await append(log, stored("a"))
        await until(lambda: len(reaction.seen) > runner.TRIES)
        assert it.status()["praise"].trouble == str(error)
        await until(lambda: log.head == 2)
        assert it.status()["praise"].trouble is None


async def test_what_is_refused_is_passed_over(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        execute = appending(log)

        async def refusing(command: Command, context: RequestContext, cursor: Cursor | None = None) -> None:
            if cast("RateMemory", command).memory_id == "gone":
                raise Refused
            await execute(command, context, cursor)

        async with running(log, Praise(), execute=refusing) as it:
            await has_begun(log)
            await append(log, stored("gone"), stored("there"))
            await until(lambda: log.head == 3)
            assert (await ratings(log), it.status()["praise"].trouble) == ([("there", "0", 2)], None)


async def test_events_that_lead_to_nothing_move_the_cursor_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SAVE_EVERY", 10)
    async with running_log(tmp_path / "log.db") as log, running(log, Praise()) as it:
        await has_begun(log)
        await append(log, *(tool_called(number) for number in range(1, 10)))
        await until(lambda: it.status()["praise"].lag == 0)
        assert (await log.cursors())["praise"].position == 0
        await append(log, tool_called(10))
        await until(lambda: it.progress["praise"].saved == 10)
        assert (await log.cursors())["praise"].position == 10


async def test_each_slot_of_time_has_its_turn_once(tmp_path: Path) -> None:
    clock, schedule, first = FakeClock(step_us=0), Hourly(), START_US // HOUR_US
    async with running_log(tmp_path / "log.db") as log:
        async with running(log, schedule, clock=clock):
            await until(lambda: log.head == 1)
            await anyio.sleep(0.02)
            clock.us += HOUR_US
            await until(lambda: log.head == 2)
            clock.us += 5 * HOUR_US
            await until(lambda: log.head == 3)
            clock.us -= 2 * HOUR_US
            await anyio.sleep(0.02)
            clock.us += 2 * HOUR_US
            await anyio.sleep(0.02)
        assert schedule.slots == [first, first + 1, first + 6]
        async with running(log, schedule, clock=clock):
            await anyio.sleep(0.02)
            assert schedule.slots == [first, first + 1, first + 6]
            clock.us += HOUR_US
            await until(lambda: log.head == 4)
        assert await ratings(log) == [
            ("m", str(slot), None) for slot in (first, first + 1, first + 6, first + 7)
        ]


async def test_a_slot_that_it_fails_on_is_tried_again_and_then_set_aside(tmp_path: Path) -> None:
    clock, schedule = FakeClock(step_us=0), Hourly()
    schedule.raised = [ValueError("out of luck")] * (runner.TRIES + 1)
    async with running_log(tmp_path / "log.db") as log, running(log, schedule, clock=clock) as it:
        await until(lambda: it.progress["hourly"].position)
        assert len(schedule.slots) == runner.TRIES
        clock.us += HOUR_US
        await until(lambda: log.head == 1)
        assert len(schedule.slots) == runner.TRIES + 2
        assert (it.status()["hourly"].trouble or "").startswith(
            f"set aside 1, the first at {schedule.slots[0]} (ValueError);"
        )


class Copy(Praise):
    """Writes down which memories are stored, outside the home, and records that."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.failures = 1

    async def effect(self, recorded: RecordedEvent) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("the folder is away")
        self.file.write_text(str(recorded.position))


async def test_an_effect_outside_the_home_is_done_again_until_it_is_recorded(tmp_path: Path) -> None:
    file = tmp_path / "copy"
    async with running_log(tmp_path / "log.db") as log:

        async def deadly(_command: Command, _context: RequestContext, _cursor: Cursor | None = None) -> None:
            raise Killed

        with suppress(BaseExceptionGroup):
            async with running(log, Copy(file), execute=deadly):
                await has_begun(log)
                await append(log, stored("a"))
                await anyio.sleep_forever()
        assert file.read_text() == "1"
        file.unlink()
        async with running(log, Copy(file)):
            await until(lambda: log.head == 2)
        assert (file.read_text(), await ratings(log)) == ("1", [("a", "0", 1)])


class Learn:
    """A reaction as people write them: what was rated badly is noted as an error pattern."""

    NAME, VERSION, VIEWS, EVENTS = "learn", 1, ("memories",), (MemoryRated,)

    @staticmethod
    def react(recorded: RecordedEvent, reader: Reader) -> Iterator[StoreMemory]:
        assert isinstance(recorded.event, MemoryRated)
        sql = "SELECT content FROM memories WHERE node_id = ? AND rating <= -2"
        for (content,) in reader.connection.execute(sql, (recorded.event.memory_id,)):
            yield StoreMemory(content=f"This proved wrong: {content}", event_type="error_pattern")


async def test_a_reaction_is_added_by_its_name_in_the_list(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reactions, "ALL", (*reactions.ALL, Learn()))
    async with served(paths, clock) as it:
        log = it.daemon.services.log
        await has_begun(log, "learn")
        one = (await it.caller.call("memory.store", content="the build needs no compiler"))["memory_id"]
        await it.caller.call("memory.rate", memory_id=one, rating="outdated")
        await until(lambda: log.head == 3)
        (learnt,) = [
            one for one in await everything(log) if isinstance(one.event, MemoryStored) and one.cause
        ]
        assert (learnt.cause, learnt.client) == (2, "reaction:learn")
        await it.caught_up()
        listed = (await it.caller.call("memory.list"))["memories"]
        assert {memory["content"] for memory in listed} == {
            "the build needs no compiler",
            "This proved wrong: the build needs no compiler",
        }
        assert (await it.caller.call("system.status"))["reactions"]["learn"]["trouble"] is None


async def test_the_service_says_what_is_wrong_with_a_reaction(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_recorded: RecordedEvent, _reader: Reader) -> Iterable[Command]:
        raise ValueError("no sense in it")

    monkeypatch.setattr(Learn, "react", staticmethod(fail))
    monkeypatch.setattr(reactions, "ALL", (*reactions.ALL, Learn()))
    async with served(paths, clock) as it:
        await has_begun(it.daemon.services.log, "learn")
        await append(it.daemon.services.log, rated("m"))
        await until(lambda: it.daemon.reactions.progress["learn"].position == 1)
        degraded = (await it.caller.call("system.status"))["degraded"]
        assert [
            told
            for told in degraded
            if told.startswith("the reaction learn: set aside 1, the first at 1 (ValueError);")
        ]
        assert 'omegad_reaction_lag{reaction="learn"} 0' in (await it.caller.call("system.metrics"))["text"]
