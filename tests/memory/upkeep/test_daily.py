"""The daily upkeep: when it comes, what it does and why, and how it is undone."""

from typing import Any

import pytest

from omegad.memory.events import (
    MemoryDemoted,
    MemoryPromoted,
    MemoryRestored,
    MemorySuperseded,
    UpkeepCompleted,
    UpkeepReverted,
)
from omegad.memory.upkeep.consolidation import IDLE_US, SHORT_IDLE_US, DailyUpkeep
from omegad.memory.upkeep.review import DAY_US
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Refused
from tests.builders import FakeClock, Served, events_of, served

KEYWORDS = Config(model="none")
YEAR_US = 365 * DAY_US
WEDNESDAY_US = 1_767_225_600_000_000 + 6 * DAY_US  # 2026-01-07


async def store(it: Served, content: str, **params: Any) -> str:
    answer = await it.caller.call("memory.store", content=content, **params)
    assert answer["outcome"] == "stored", answer
    return str(answer["memory_id"])


async def tell(it: Served, event: str, session: str, **fields: Any) -> None:
    said = {"session_id": session, "cwd": "/src/shop", "hook_event_name": event} | fields
    await it.caller.call("hook.dispatch", event=event, payload=said)


async def end(it: Served, session: str) -> None:
    """Have a session change a file and end."""
    edit = {"file_path": f"/src/shop/{session}.py", "old_string": "a", "new_string": "b"}
    await tell(it, "PostToolUse", session, tool_name="Edit", tool_input=edit, tool_use_id="one")
    await tell(it, "SessionEnd", session, reason="other")
    await it.caught_up()


async def get(it: Served, memory_id: str) -> Any:
    return await it.caller.call("memory.get", memory_id=memory_id)


class Looking:
    """The schedule as a daemon has it that has just started; *runs* counts how often the upkeep came."""

    def __init__(self, it: Served, clock: FakeClock) -> None:
        self._it, self._clock, self._schedule = it, clock, DailyUpkeep()

    async def after(self, wait_us: int = 0) -> int:
        """Look once more after a while; return how many upkeeps there were in all."""
        self._clock.us += wait_us
        await self._it.caught_up()
        await self._it.expire(self._schedule)
        return len(await events_of(self._it, UpkeepCompleted))

    async def through(self, wait_us: int = 0) -> int:
        """Let some time go by, and then look as long as a daemon does that has just woken."""
        await self.after(wait_us)
        return await self.after(IDLE_US)


async def used_elsewhere(it: Served, clock: FakeClock, content: str) -> str:
    """Return what was captured, and then found on three days."""
    captured = await store(it, content, source="auto_capture", session_id="mine")
    for _ in range(3):
        await it.caller.call("memory.query", text=content, mode="keyword")
        await it.caught_up()
        clock.us += DAY_US
    return captured


async def test_once_a_day_what_proved_itself_is_promoted_weeks_are_compacted_and_all_of_it_is_undone_at_once(
    paths: Paths, clock: FakeClock
) -> None:
    clock.us = WEDNESDAY_US
    async with served(paths, clock, KEYWORDS) as it:
        for session in ("alpha", "beta"):
            await end(it, session)
        captured = await used_elsewhere(it, clock, "pagination starts at one")
        looking = Looking(it, clock)
        assert await looking.through(3 * DAY_US) == 1
        (done,) = await events_of(it, UpkeepCompleted)
        assert done.by == "schedule"
        (promoted,), (week,) = done.promoted, done.compacted
        assert (promoted.memory_id, promoted.reason) == (
            captured,
            "among the best answers in 3 other sessions",
        )
        assert week.reason == "stands for the sessions of the week 2026-W02"
        (event,) = await events_of(it, MemoryPromoted)
        assert event.reason == promoted.reason
        summary = await get(it, week.memory_id)
        assert summary["content"].splitlines() == [
            "Week 2026-W02 of shop: 2 sessions.",
            "- Edited: /src/shop/alpha.py",
            "- Edited: /src/shop/beta.py",
        ]
        gone = {one.memory_id for one in await events_of(it, MemorySuperseded)}
        assert len(gone) == 2
        status = (await it.caller.call("system.status"))["upkeep"]
        assert (status["promoted"], status["compacted"], status["undone"]) == (1, 1, False)

        undone = await it.caller.call("upkeep.undo")
        assert (undone["demoted"], undone["deleted"]) == ([captured], [week.memory_id])
        assert set(undone["restored"]) == gone
        assert [type(one) for one in await events_of(it, MemoryDemoted, MemoryRestored, UpkeepReverted)] == [
            MemoryDemoted,
            MemoryRestored,
            MemoryRestored,
            UpkeepReverted,
        ]
        assert (await get(it, captured))["status"] == "probation"
        assert {(await get(it, one))["status"] for one in gone} <= {"active", "probation"}
        assert (await it.caller.call("system.status"))["upkeep"]["undone"]
        with pytest.raises(Refused, match="no upkeep to undo"):
            await it.caller.call("upkeep.undo")

        assert await looking.through(DAY_US) == 2
        *_, again = await events_of(it, UpkeepCompleted)
        assert (again.promoted, again.compacted) == ((), ())
        await it.caught_up()
        assert (await it.caller.call("views.verify"))["ok"]


async def test_the_upkeep_waits_for_a_day_and_for_sessions_to_be_quiet_but_not_for_ever(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        looking = Looking(it, clock)
        assert await looking.through() == 0
        await store(it, "the release train is red")
        assert await looking.through(DAY_US // 2) == 0
        clock.us += DAY_US // 2
        await tell(it, "SessionStart", "busy", source="startup")
        assert await looking.after() == 0
        await tell(it, "UserPromptSubmit", "busy", prompt="go on")
        assert await looking.after(IDLE_US // 2) == 0
        assert await looking.after(IDLE_US // 2) == 1
        assert await looking.after(IDLE_US) == 1
        for _ in range(2):  # somebody is at work day and night
            clock.us += DAY_US
            for _ in range(3):
                clock.us += IDLE_US - SHORT_IDLE_US // 2
                await tell(it, "UserPromptSubmit", "busy", prompt="and on")
                assert await looking.after(SHORT_IDLE_US // 2) == 1
        assert await looking.after(SHORT_IDLE_US) == 2


async def test_a_daemon_that_has_just_started_or_woken_waits_for_who_is_about_to_come(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await store(it, "the release train is red")
        looking = Looking(it, clock)
        assert await looking.after(3 * DAY_US) == 0  # it slept
        assert await looking.after(SHORT_IDLE_US // 2) == 0
        assert await looking.after(8 * 3_600_000_000) == 0
        assert await Looking(it, clock).after(SHORT_IDLE_US) == 0
        assert await looking.after(IDLE_US) == 1


async def test_a_clock_that_was_ahead_stops_no_upkeep_and_repeats_none(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await store(it, "the release train is red")
        looking = Looking(it, clock)
        clock.us += YEAR_US
        await tell(it, "SessionStart", "ahead", source="startup")
        assert await looking.through(IDLE_US) == 1
        clock.us -= YEAR_US
        assert await looking.through() == 2
        assert await looking.through(DAY_US // 2) == 2
        assert await looking.through(DAY_US // 2) == 3
        clock.us -= 3_600_000_000
        assert await looking.through() == 3
        assert await looking.through(DAY_US + 3_600_000_000) == 4


async def test_a_setting_turns_it_off(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, Config(model="none", upkeep=False)) as it:
        assert DailyUpkeep.NAME not in (await it.caller.call("system.status"))["reactions"]
        assert (await it.caller.call("system.status"))["upkeep"] is None


async def test_what_was_rated_badly_is_marked_once(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        bad = await store(it, "the cache never expires")
        await it.caller.call("memory.rate", memory_id=bad, rating="outdated")
        looking = Looking(it, clock)
        assert [await looking.through(DAY_US) for _ in range(2)] == [1, 2]
        first, second = await events_of(it, UpkeepCompleted)
        assert [(one.memory_id, one.reason) for one in first.stale] == [(bad, "rated badly")]
        assert second.stale == ()


async def test_a_consolidation_by_hand_is_undone_as_well(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        captured = await used_elsewhere(it, clock, "pagination starts at one")
        done = await it.caller.call("memory.consolidate")
        assert done["promoted"] == [captured]
        undone = await it.caller.call("upkeep.undo", done_at=done["position"])
        assert undone["demoted"] == [captured]
        await it.caught_up()
        assert (await it.caller.call("memory.consolidate"))["promoted"] == []
