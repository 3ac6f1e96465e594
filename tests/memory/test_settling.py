"""What texts do not tell: whether a memory denies an older one is asked once, and settled by one call."""

from typing import Any

import pytest

from omegad.memory.edges import DAY_US, WAITS_DAYS
from omegad.runtime.config import Paths
from omegad.runtime.errors import NotFound, Refused
from tests.builders import FakeClock, Served, served

pytestmark = pytest.mark.usefixtures("model")

OLD = "sessions of the shop are kept in redis"
NEW = "sessions of the shop are kept in memcached"
OVERRIDING = "sessions of the shop switched to signed cookies"


async def store(it: Served, content: str, **changes: Any) -> Any:
    return await it.caller.call("memory.store", **{"content": content, "project": "shop"} | changes)


async def waiting(it: Served) -> list[tuple[str, str]]:
    found = (await it.caller.call("memory.unsettled", project="shop"))["conflicts"]
    return [(one["memory_id"], one["target_id"]) for one in found]


async def two(it: Served, newer: str = NEW, **changes: Any) -> tuple[str, str]:
    """Return a new memory and the older one that its store asked about."""
    old = (await store(it, OLD, **changes))["memory_id"]
    stored = await store(it, newer, **changes)
    assert [one["memory_id"] for one in stored["may_contradict"]] == [old]
    assert stored["may_contradict"][0]["content"] == OLD
    return stored["memory_id"], old


async def test_who_answers_somebody_in_a_conversation_is_not_asked_whether_that_takes_it_back(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        for project, old, new, session_id in (
            ("a", "Anna", "Ben", "talk"),
            ("b", "Anna", "Ben", "later"),
            ("c", "Billing", "Billing", "talk"),
        ):
            await store(it, f"{old}: {OLD}", session_id="talk", project=project)
            said = await store(it, f"{new}: {OVERRIDING}", session_id=session_id, project=project)
            assert len(said["may_contradict"]) == (project != "a"), project


@pytest.mark.parametrize("newer", [NEW, OVERRIDING])
async def test_what_texts_do_not_tell_is_asked_once_and_waits(
    paths: Paths, clock: FakeClock, newer: str
) -> None:
    async with served(paths, clock) as it:
        new, old = await two(it, newer)
        assert await waiting(it) == [(new, old)]
        assert (await store(it, newer))["may_contradict"] == []
        assert (await store(it, OLD))["may_contradict"] == []
        assert await waiting(it) == [(new, old)]
        clock.us += WAITS_DAYS * DAY_US
        assert await waiting(it) == []
        assert (await it.caller.call("views.verify"))["ok"]


async def test_what_may_be_denied_is_told_unasked_beside_what_may_deny_it(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        new, old = await two(it, event_type="decision")

        async def beside() -> str:
            text = (await it.caller.call("session.briefing", project="shop"))["text"]
            (line,) = [one for one in text.splitlines() if one.startswith(f"- {old}: ")]
            return str(line.removeprefix(f"- {old}: {OLD}"))

        assert await beside() == f" ({new}, later, may deny it)"
        clock.us += WAITS_DAYS * DAY_US
        assert await beside() == f" ({new}, later, may take its place)", "nobody has said so in time"
        clock.us -= WAITS_DAYS * DAY_US
        await it.caller.call("memory.settle", memory_id=new, target_id=old, verdict="compatible")
        assert await beside() == ""


async def test_a_contradiction_is_settled_as_one_drawn_by_hand(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        stated = await it.caller.call("thesis.state", statement=OLD, project="shop", session_id="author")
        stored = await store(it, NEW, session_id="other")
        assert [one["memory_id"] for one in stored["may_contradict"]] == [stated["memory_id"]]
        pair = {"memory_id": stored["memory_id"], "target_id": stated["memory_id"]}
        await it.caller.call("memory.settle", **pair, verdict="contradicts")
        await it.worked_off()
        assert (await it.caller.call("memory.get", memory_id=pair["target_id"]))["contradicted_by"] == pair[
            "memory_id"
        ]
        thesis = await it.caller.call("thesis.get", thesis_id=stated["thesis_id"])
        assert (thesis["for_count"], thesis["against_count"]) == (0, 1)
        assert await waiting(it) == []
        await it.caller.call("memory.settle", **pair, verdict="compatible")
        await it.worked_off()
        assert (await it.caller.call("memory.get", memory_id=pair["target_id"]))["contradicted_by"] is None
        assert (await it.caller.call("thesis.get", thesis_id=stated["thesis_id"]))["against_count"] == 0
        assert (await it.caller.call("views.verify"))["ok"]


async def test_what_supersedes_takes_the_place_until_it_is_settled_anew(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        new, old = await two(it)
        pair = {"memory_id": new, "target_id": old}
        for _ in range(2):
            await it.caller.call("memory.settle", **pair, verdict="supersedes")
            replaced = await it.caller.call("memory.get", memory_id=old)
            assert (replaced["status"], replaced["superseded_by"]) == ("superseded", new)
        assert await waiting(it) == []
        await it.caller.call("memory.settle", **pair, verdict="contradicts")
        shown = await it.caller.call("memory.get", memory_id=old)
        assert (shown["status"], shown["contradicted_by"]) == ("active", new)
        await it.caller.call("memory.settle", **pair, verdict="compatible")
        assert (await it.caller.call("memory.get", memory_id=old))["contradicted_by"] is None
        await it.caller.call("memory.settle", memory_id=old, target_id=new, verdict="contradicts")
        await it.caller.call("memory.settle", **pair, verdict="compatible")
        assert (await store(it, NEW))["may_replace"] == [], "what was said last holds, either way round"
        assert (await it.caller.call("views.verify"))["ok"]


async def test_what_has_been_said_and_is_so_needs_no_event(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        new, old = await two(it)
        for verdict in ("contradicts", "compatible", "supersedes"):
            pair = {"memory_id": new, "target_id": old, "verdict": verdict}
            assert (await it.caller.call("memory.settle", **pair))["position"] > 0
            head = (await it.caller.call("system.status"))["log"]["head"]
            await it.caller.call("memory.settle", **pair)
            told = await it.caller.call("log.read", after=head)
            assert [one for one in told["events"] if "conflict" in one["tag"]] == []


async def test_what_is_compatible_is_neither_asked_nor_offered_again(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        new, old = await two(it)
        await it.caller.call("memory.settle", memory_id=new, target_id=old, verdict="compatible")
        assert await waiting(it) == []
        for content in (NEW, OLD):
            again = await store(it, content)
            assert again["outcome"] == "duplicate"
            assert again["may_contradict"] == again["may_replace"] == []
        assert (await it.caller.call("views.verify"))["ok"]


async def test_what_a_rule_flagged_is_taken_back_for_good(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        old = (await store(it, "never run the linter before a commit"))["memory_id"]
        newer = "always run the linter before a commit"
        stored = await store(it, newer)
        assert (stored["contradicts"], stored["may_contradict"]) == ([old], [])
        await it.caller.call(
            "memory.settle", memory_id=stored["memory_id"], target_id=old, verdict="compatible"
        )
        assert (await it.caller.call("memory.get", memory_id=old))["contradicted_by"] is None
        assert (await store(it, newer))["contradicts"] == []


async def test_what_is_in_another_order_is_asked_and_what_is_said_again_is_not(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        call = (await store(it, "call flush before close"))["memory_id"]
        turned = await store(it, "call close before flush")
        assert [one["memory_id"] for one in turned["may_contradict"]] == [call]
        await store(it, "the migration can be rolled back", project="depot")
        again = "the migration can be rolled back with one command"
        said = await store(it, again, event_type="lesson_learned", project="depot")
        assert (said["outcome"], said["may_contradict"]) == ("stored", [])
        await store(it, "Prepare the packages (#12)", project="depot")
        assert (await store(it, "Prepare the packages (#13)", project="depot"))["may_contradict"] == []


async def test_what_nobody_asked_to_remember_asks_nobody(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        await store(it, OLD)
        assert (await store(it, NEW, source="auto_capture"))["may_contradict"] == []
        assert await waiting(it) == []


async def test_what_is_hidden_waits_for_nobody(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        new, old = await two(it)
        await it.caller.call("memory.delete", memory_id=old)
        assert await waiting(it) == []
        await it.caller.call("memory.restore", memory_id=old)
        assert await waiting(it) == [(new, old)]
        await it.caller.call("memory.erase", memory_id=old)
        assert await waiting(it) == []
        assert (await it.caller.call("views.verify"))["ok"]


async def test_only_two_memories_that_there_are_are_settled(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        old = (await store(it, OLD))["memory_id"]
        with pytest.raises(Refused, match="itself"):
            await it.caller.call("memory.settle", memory_id=old, target_id=old, verdict="contradicts")
        with pytest.raises(NotFound):
            await it.caller.call("memory.settle", memory_id=old, target_id="nobody", verdict="compatible")


async def test_an_agent_is_asked_in_the_answer_of_its_store_and_says_it_with_its_next_call(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:

        async def call(name: str, **arguments: Any) -> Any:
            return await it.caller.call("tools.call", name=name, arguments=arguments, project="shop")

        old = (await store(it, OLD))["memory_id"]
        answer = await call("omega_store", content=NEW)
        new, asked = answer["structured"]["memory_id"], answer["structured"]["may_contradict"]
        assert asked == [{"id": old, "text": OLD}]
        said = f"{new} contradicts {old}"
        told = [line for line in answer["content"][0]["text"].splitlines() if "may " in line]
        how = f'say so in your next call: settle=["{said}"], or supersedes, or compatible'
        assert told == [f"may contradict {old}: {OLD}; {how}"]
        listed = await call("omega_reflect", action="unsettled")
        assert listed["structured"]["conflicts"] == [
            {"id": new, "text": NEW, "may_contradict": old, "other": OLD}
        ]
        wrong = await call("omega_query", query="sessions", settle=[f"{new} denies {old}"])
        assert wrong["is_error"]
        assert "settle=" in wrong["content"][0]["text"]
        found = await call("omega_query", query=OLD, settle=[said])
        shown = next(one for one in found["structured"]["results"] if one["id"] == old)
        assert (shown["contradicted_by"], shown["conflict"]) == (new, f"linked by hand: {NEW}")
        await call("omega_store", content="invoices are numbered by year", settle=[f"{new} compatible {old}"])
        done = await call("omega_memory", action="settle", memory_id=new, target_id=old, verdict="supersedes")
        assert done["structured"]["done"] == "settle"
        assert (await it.caller.call("memory.get", memory_id=old))["superseded_by"] == new
