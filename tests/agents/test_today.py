"""What the loops did lately and what waits for a person, on one screen."""

from typing import Any

from omegad.memory.upkeep.consolidation import IDLE_US, DailyUpkeep
from omegad.runtime.config import Config, Paths
from tests.builders import FakeClock, Served, served

KEYWORDS = Config(model="none", lint_days=0)
DAY_US = 86_400_000_000
SCREEN_LINES = 45


async def store(it: Served, content: str, event_type: str = "memory", **more: Any) -> str:
    answer = await it.caller.call("memory.store", content=content, event_type=event_type, **more)
    return str(answer["memory_id"])


async def today(it: Served, **params: Any) -> Any:
    await it.caught_up()
    return await it.caller.call("upkeep.today", **params)


async def keep_up(it: Served, clock: FakeClock) -> None:
    """Let the daily upkeep come."""
    schedule = DailyUpkeep()
    for _ in range(2):
        clock.us += IDLE_US
        await it.caught_up()
        await it.expire(schedule)


async def found(it: Served, clock: FakeClock, content: str) -> None:
    """Have something found on three days."""
    for _ in range(3):
        await it.caller.call("memory.query", text=content, mode="keyword")
        await it.caught_up()
        clock.us += DAY_US


async def test_nothing_is_one_line(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        answer = await today(it)
        assert (answer["happened"], answer["waiting"]) == ([], [])
        since = answer["since"][:16].replace("T", " ")
        assert answer["text"] == f"nothing happened since {since} UTC, and nothing waits for you"


async def test_what_happened_by_itself_is_told_with_its_reason(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        captured = await store(it, "pagination starts at one", source="auto_capture", session_id="mine")
        await found(it, clock, "pagination starts at one")
        await store(it, "The export runs nightly", "decision", project="shop")
        thesis = await it.caller.call("thesis.state", statement="caching pays off")
        for number in range(3):
            evidence = await store(it, f"the cache saved {number} seconds", session_id=f"s{number}")
            await it.caller.call(
                "thesis.evidence", thesis_id=thesis["thesis_id"], memory_id=evidence, side="for"
            )
        await keep_up(it, clock)
        answer = await today(it)
        happened = {one["kind"]: one for one in answer["happened"]}
        (promoted,) = happened["promoted"]["shown"]
        assert promoted == {
            "memory_id": captured,
            "text": '"pagination starts at one"',
            "why": "among the best answers in 3 other sessions",
        }
        (moved,) = happened["thesis"]["shown"]
        assert moved["why"] == '0.00 → 0.75: 3 for, last "the cache saved 2 seconds"'
        assert happened["learned"]["count"] == 5
        assert answer["text"].splitlines()[1] == "learned: 5"
        assert answer["text"].endswith("omegad upkeep undo takes it back")
        await it.caller.call("memory.consolidate")
        assert (await today(it))["text"].endswith("omegad upkeep undo takes it back")
        clock.us += DAY_US
        assert (await today(it))["happened"] == []
        assert len((await today(it, days=2))["happened"]) == 3


async def test_what_waits_is_told_in_words_with_the_command_that_settles_it(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        yes = await store(it, "The cache expires after a day", project="shop")
        no = await store(it, "The cache never expires", project="shop")
        for one, other in ((no, yes), (yes, no)):
            await it.caller.call("memory.link", memory_id=one, target_id=other, edge_type="contradicts")
        due = await it.caller.call("reminder.set", content="rotate the keys", due="2026-01-01")
        await it.caller.call("task.create", title="mend the export")
        habit = await store(it, "Habit: after edits, `make` is run", "user_preference", source="auto_habit")
        answer = await today(it)
        (conflict,) = [one for one in answer["happened"] if one["kind"] == "contradicted"]
        assert (conflict["count"], len(conflict["shown"])) == (1, 1)
        assert conflict["shown"][0]["text"] == '"The cache expires after a day"'
        assert conflict["shown"][0]["why"].endswith(': "The cache never expires"')
        assert [one["command"] for one in answer["waiting"]] == [
            f"omegad reminder dismiss {due['memory_id']}",
            f"omegad memory settle {no} {yes} contradicts|supersedes|compatible",
            f"omegad memory promote {habit}, or omegad delete {habit}",
            "omegad tasks",
        ]
        asked = answer["waiting"][1]["text"]
        assert (
            asked
            == 'which of these holds, or do all: "The cache never expires", "The cache expires after a day"?'
        )
        told = await it.caller.call("tools.call", name="omega_stats", arguments={"action": "today"})
        assert asked in told["content"][0]["text"]


async def test_a_gap_waits_until_a_task_is_put_down_for_it(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await store(it, "Billing runs on port 8080", entity_id="svc:billing")
        gap = {
            "text": "1 gap, first: of svc:billing only 1 thing is known",
            "command": "omegad lint --tasks",
        }
        assert (await today(it))["waiting"] == [gap]
        await it.caller.call("lint.tasks")
        assert [one["command"] for one in (await today(it))["waiting"]] == ["omegad tasks"]
        await store(it, "The billing team meets on Tuesdays", entity_id="svc:billing")
        assert [one["command"] for one in (await today(it))["waiting"]] == ["omegad tasks"]


async def test_it_is_one_screen_however_much_happened(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        for number in range(40):
            one = await store(it, f"item {number} is {'very ' * 90}long", "decision", project=f"p{number}")
            await it.caller.call("reminder.set", content=f"do {number}", due="2026-01-01")
            await it.caller.call("memory.rate", memory_id=one, rating="outdated")
        await keep_up(it, clock)
        clock.us += DAY_US
        lines = (await today(it, days=3))["text"].splitlines()
        assert len(lines) <= SCREEN_LINES
        assert max(map(len, lines)) <= 200


async def test_what_was_taken_back_is_not_told_as_done(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        captured = await store(it, "pagination starts at one", source="auto_capture", session_id="mine")
        await found(it, clock, "pagination starts at one")
        await keep_up(it, clock)
        await it.caller.call("upkeep.undo")
        happened = {one["kind"]: one for one in (await today(it))["happened"]}
        assert "promoted" not in happened
        assert [one["memory_id"] for one in happened["demoted"]["shown"]] == [captured]


async def test_no_command_is_named_that_finds_nothing_to_take_back(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await store(it, "The export runs nightly")
        clock.us += DAY_US
        await keep_up(it, clock)
        assert (await today(it, days=3))["text"].endswith("nothing to take back")
