"""A memory's strength is one number, which falls with time and rises with use, wherever it is shown."""

from typing import Any

import pytest

from omegad.memory.strength import strengths
from omegad.memory.types import BUILT_IN, MemoryType, MemoryTypes
from omegad.runtime.config import Config, Paths
from tests.builders import FakeClock, Served, served

KEYWORDS = Config(model="none")
DAY_US = 86_400_000_000


async def store(it: Served, content: str, event_type: str = "decision", **params: Any) -> str:
    params |= {"content": content, "event_type": event_type, "project": "shop"}
    return str((await it.caller.call("memory.store", **params))["memory_id"])


async def strength(it: Served, memory_id: str, **params: Any) -> float:
    return float((await it.caller.call("memory.get", memory_id=memory_id, **params))["strength"])


async def explained(it: Served, text: str) -> dict[str, Any]:
    found = (await it.caller.call("memory.query", text=text, project="shop", explain=True))["results"]
    return {one["memory_id"]: one["explanation"] for one in found}


async def test_finding_a_memory_strengthens_it_and_time_weakens_it(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        name = await store(it, "invoices are settled nightly")
        seen = [await strength(it, name)]
        for _ in range(25):
            await it.caller.call("memory.query", text="invoices", project="shop")
        seen.append(await strength(it, name))
        given = {"action": "get", "memory_id": name}
        shown = await it.caller.call("tools.call", name="omega_memory", arguments=given, project="shop")
        assert "retrieval_count 25, strength 0.96," in shown["content"][0]["text"]
        clock.us += 30 * DAY_US
        seen.append(await strength(it, name))
        clock.us += 300 * DAY_US
        seen.append(await strength(it, name))
        assert seen[0] == 0.5
        assert seen[1] == pytest.approx(26 / 27, abs=1e-6)
        assert seen[1] > seen[2] > seen[3] > 0.5
        told = (await explained(it, "invoices"))[name]
        assert told["strength"] == seen[3]
        assert told["stages"]["strength"] > 0
        assert (await it.caller.call("views.verify"))["ok"]


async def test_what_is_shown_unasked_is_used_and_what_is_named_to_be_judged_is_not(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        name = await store(it, "invoices are settled nightly")
        # So young that nobody is asked to judge it
        briefed = await it.caller.call("session.briefing", project="shop", session_id="s-1")
        assert briefed["shown"] == [name]
        once = await it.caller.call("memory.get", memory_id=name)
        assert once["retrieval_count"] == 1
        assert once["strength"] == pytest.approx(2 / 3, abs=1e-6)
        judged = await store(it, "lunch is at noon", "memory")
        clock.us += 20 * DAY_US
        before = await it.caller.call("memory.get", memory_id=judged)
        briefed = await it.caller.call("session.briefing", project="shop", session_id="s-2")
        assert briefed["review"] == [judged]
        after = await it.caller.call("memory.get", memory_id=judged)
        assert (after["retrieval_count"], after["strength"]) == (0, before["strength"])


async def test_what_was_shown_unasked_does_not_keep_its_place_by_that(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        old = [await store(it, f"rule number {number} is kept") for number in range(5)]
        for number in range(3):
            await it.caller.call("session.briefing", project="shop", session_id=f"s-{number}")
        new = await store(it, "an entirely new choice")
        shown = (await it.caller.call("session.briefing", project="shop", session_id="later"))["shown"]
        assert new in shown
        assert len(set(old) & set(shown)) == 4


async def test_the_lint_counts_what_is_weak_by_the_number_that_is_shown(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        names = [await store(it, f"{word} is settled nightly") for word in ("alpha", "beta", "gamma")]
        names.append(await store(it, "prefers tabs", "user_preference"))
        clock.us += 60 * DAY_US
        await it.caller.call("memory.query", text="alpha", project="shop")
        clock.us += 25 * DAY_US
        shown = [await strength(it, name) for name in names]
        assert [one < 0.1 for one in shown] == [False, True, True, False]
        assert (await it.caller.call("lint.report"))["figures"]["weak"] == 2


async def test_a_past_moment_has_the_strength_of_then(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        name = await store(it, "invoices are settled nightly")
        await it.caller.call("memory.query", text="invoices", project="shop")
        clock.us += 5 * DAY_US
        then = await it.caller.call("memory.get", memory_id=name)
        for _ in range(3):
            await it.caller.call("memory.query", text="invoices", project="shop")
        clock.us += 5 * DAY_US
        assert await strength(it, name) > then["strength"]
        past = await it.caller.call("memory.get", memory_id=name, as_of=then["position"])
        assert past["retrieval_count"] == then["retrieval_count"]
        assert past["strength"] <= 2 / 3


def test_strength_falls_and_rises_and_stays_between_0_and_1() -> None:
    types = MemoryTypes({"slogan": MemoryType(decays=False)})
    now_us = 5_000 * DAY_US

    def one(uses: int, first: int, last: int, kind: str = "decision") -> float:
        return float(
            strengths([(kind, uses, now_us - first * DAY_US, now_us - last * DAY_US)], types, now_us)[0]
        )

    by_age = [one(1, days, days) for days in (0, 1, 2, 10, 100, 4_000)]
    assert by_age[0] == by_age[1] == 0.5
    assert by_age[1:] == sorted(by_age[1:], reverse=True)
    by_use = [one(uses, 100, 1) for uses in (1, 2, 5, 25, 10**9)]
    assert by_use == sorted(set(by_use))
    assert 0 < by_age[-1] < by_use[-1] < 1
    assert one(3, 100, 2) > one(3, 100, 90)
    for kind in ("slogan", *(name for name, known in BUILT_IN.items() if not known.decays)):
        assert one(1, 4_000, 4_000, kind) == 0.5
    assert strengths([], types, now_us).tolist() == []
