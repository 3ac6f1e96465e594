"""What another system counted of a memory counts here as what is counted here."""

from typing import Any

import pytest

from omegad.memory.events import MemoryCountsCarried, MemoryPromoted, MemoryRated
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Invalid, NotFound
from omegad.runtime.times import rfc3339
from tests.builders import FakeClock, Served, everything, served

KEYWORDS = Config(model="none")
OF_THEIRS = {"origin": "omega-memory", "request_id": "counts"}


async def _store(it: Served, content: str, **params: Any) -> str:
    return str((await it.caller.call("memory.store", content=content, **params))["memory_id"])


async def _get(it: Served, memory_id: str) -> Any:
    return await it.caller.call("memory.get", memory_id=memory_id)


async def test_counts_that_are_carried_over_rank_and_show_as_own_ones(paths: Paths) -> None:
    async with served(paths, FakeClock(), KEYWORDS) as it:
        own, theirs = [
            await _store(it, f"The {side} door of the cellar is green") for side in ("left", "right")
        ]
        for rating in ("helpful", "helpful", "unhelpful", "outdated", "helpful"):
            await it.caller.call("memory.rate", memory_id=own, rating=rating)
        for _ in range(3):
            await it.caller.call("memory.query", text='"left door"', mode="phrase")
        counts = {"retrievals": 3, "helpful": 3, "unhelpful": 1, "outdated": 1}
        first = await it.caller.call("memory.carry_over", memory_id=theirs, **OF_THEIRS, **counts)
        again = await it.caller.call("memory.carry_over", memory_id=theirs, **OF_THEIRS, **counts)
        assert again["position"] == first["position"]
        await it.caught_up()
        shown = [await _get(it, name) for name in (own, theirs)]
        assert [(one["rating"], one["retrieval_count"]) for one in shown] == [(0, 3), (0, 3)]
        await it.caller.call("memory.carry_over", memory_id=theirs, origin="elsewhere", helpful=2)
        await it.caller.call("memory.rate", memory_id=own, rating="helpful")
        await it.caller.call("memory.rate", memory_id=own, rating="helpful")
        await it.caught_up()
        found = await it.caller.call("memory.query", text="door of the cellar", explain=True)
        explained = [one["explanation"]["stages"] for one in found["results"]]
        assert len(explained) == 2
        assert explained[0]["rating"] == explained[1]["rating"] > 0
        assert explained[0]["strength"] == explained[1]["strength"] > 0
        assert (await it.caller.call("views.verify"))["ok"]


async def test_a_count_tells_when_a_memory_was_found_last_and_never_later_than_now(paths: Paths) -> None:
    clock = FakeClock()
    async with served(paths, clock, KEYWORDS) as it:
        name = await _store(it, "The cellar door is green")
        for number, last in enumerate(("2025-01-02T00:00:00Z", "2024-01-02T00:00:00Z", None)):
            told = {"request_id": str(number), "retrievals": 1, "last_retrieved_at": last}
            await it.caller.call("memory.carry_over", memory_id=name, **OF_THEIRS | told)
        await it.caught_up()
        assert (await _get(it, name))["last_retrieved_at"] == "2025-01-02T00:00:00.000000Z"
        told = {"request_id": "late", "retrievals": 1, "last_retrieved_at": "2126-01-02T00:00:00Z"}
        await it.caller.call("memory.carry_over", memory_id=name, **OF_THEIRS | told)
        await it.caught_up()
        shown = await _get(it, name)
        assert shown["retrieval_count"] == 4
        assert shown["last_retrieved_at"] <= rfc3339(clock.now_us())


async def test_what_helped_elsewhere_has_proved_itself(paths: Paths) -> None:
    async with served(paths, FakeClock(), KEYWORDS) as it:
        name = await _store(it, "The cellar door is green", source="auto_capture")
        await it.caller.call("memory.carry_over", memory_id=name, **OF_THEIRS, helpful=2)
        kinds = (MemoryCountsCarried, MemoryRated, MemoryPromoted)
        told = [one.event for one in await everything(it.daemon.services.log) if isinstance(one.event, kinds)]
        assert told == [
            MemoryRated(
                memory_id=name, rating="helpful", points=2, reason="rated so 2 times in omega-memory"
            ),
            MemoryPromoted(memory_id=name, evidence="use"),
        ]


async def test_what_is_not_there_or_no_time_is_refused(paths: Paths) -> None:
    async with served(paths, FakeClock(), KEYWORDS) as it:
        with pytest.raises(NotFound):
            await it.caller.call("memory.carry_over", memory_id="mem-none", **OF_THEIRS, retrievals=1)
        name = await _store(it, "The cellar door is green")
        with pytest.raises(Invalid, match="last_retrieved_at"):
            await it.caller.call(
                "memory.carry_over", memory_id=name, **OF_THEIRS, retrievals=1, last_retrieved_at="soon"
            )
