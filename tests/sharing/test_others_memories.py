"""What others stored: told with who said it, left for them to put in order, and what use of it proves here."""

from typing import Any

from omegad.memory.events import MemoryRestored
from omegad.runtime.config import Config, Paths
from omegad.sharing.outgoing import facts_of
from tests.agents.test_briefing import hook
from tests.builders import FakeClock, Served, contradicted, served
from tests.sharing.foreign import ForeignHome, join

KEYWORDS = Config(model="none")
DAY_US = 86_400_000_000
BILLING = (
    "Billing of the shop runs on PostgreSQL 16 because of row-level security, and reports read a replica which"
    " nightly jobs rebuild from archived snapshots"
)
BY_GRACE = "(Grace, grace-desktop)"
CHANGES = {
    "edited",
    "evolved",
    "superseded",
    "deleted",
    "restored",
    "expired",
    "linked",
    "unlinked",
    "related",
}


async def in_team(it: Served) -> ForeignHome:
    await join(it)
    return ForeignHome(it)


async def says(it: Served, content: str, **more: Any) -> Any:
    given = {"project": "shop", "event_type": "decision", "session_id": "s-of-ada"} | more
    return await it.caller.call("memory.store", content=content, **given)


async def life(it: Served, memory_id: str) -> list[str]:
    """Return the events of a memory's life that this home recorded."""
    events = (await it.caller.call("memory.history", memory_id=memory_id))["events"]
    return [
        one["tag"].partition("@")[0].removeprefix("memory.") for one in events if one["person"] != "Grace"
    ]


async def rules(it: Served) -> set[str]:
    return {one["rule"] for one in (await it.caller.call("lint.report", limit=100))["findings"]}


async def choose(it: Served, **more: Any) -> None:
    await it.caller.call("share.choose", project="shop", **more)


async def test_what_an_agent_is_told_says_who_said_what_others_did(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        grace = await in_team(it)
        await grace.stores("mem-1", BILLING, event_type="decision")
        own = (await says(it, "Exports of the shop are written as Parquet files"))["memory_id"]

        async def tool(name: str, **arguments: Any) -> str:
            answer = await it.caller.call("tools.call", name=name, arguments=arguments, project="shop")
            assert not answer["is_error"], answer
            return str(answer["content"][0]["text"])

        for told in (
            await tool("omega_query", query="which database has billing", mode="keyword"),
            await tool("omega_query", query="shop runs", mode="keyword", person="Grace"),
            await tool("omega_welcome"),
            (await it.caller.call("context.assemble", project="shop"))["text"],
            (await it.caller.call("context.assemble", project="shop", query="billing PostgreSQL"))["text"],
            await hook(it, "SessionStart"),
            await hook(
                it, "UserPromptSubmit", "other", prompt="Why does billing of the shop run on PostgreSQL 16?"
            ),
        ):
            (line,) = (one for one in told.splitlines() if "PostgreSQL" in one)
            assert line.endswith(BY_GRACE)
            assert told.count("Grace") == 1
        assert "Ada" not in await tool("omega_query", query="Parquet", mode="keyword")
        assert '"Grace, grace-desktop", position' in await tool(
            "omega_memory", action="history", memory_id="mem-1"
        )
        assert "person Grace, machine grace-desktop, agent codex" in await tool(
            "omega_memory", action="get", memory_id="mem-1"
        )
        assert own in await tool("omega_welcome")


async def test_a_store_that_repeats_what_another_said_corroborates_it_and_gives_it_no_tags(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        grace = await in_team(it)
        await choose(it, on_probation=True)
        await grace.stores("mem-1", BILLING, event_type="decision")
        stored = await says(it, BILLING, tags=["billing"])
        assert (stored["memory_id"], stored["outcome"], stored["ignored"]) == ("mem-1", "duplicate", ["tags"])
        assert await life(it, "mem-1") == ["repeated", "promoted"]
        found = await it.caller.call("memory.get", memory_id="mem-1")
        assert (found["tags"], found["status"], found["repeated"]) == ([], "active", 1)


async def test_a_store_that_says_more_than_another_did_is_a_memory_of_its_own(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        grace = await in_team(it)
        of_grace = "Imports of the shop are read from CSV files each morning"
        await grace.stores("mem-1", of_grace, event_type="decision")
        stored = await says(it, f"{of_grace}, after their checksums")
        assert stored["outcome"] == "stored"
        assert await life(it, "mem-1") == []
        assert (await it.caller.call("memory.get", memory_id="mem-1"))["content"] == of_grace
        own = (await says(it, "Exports of the shop are written as Parquet files each night"))["memory_id"]
        grown = await says(
            it, "Exports of the shop are written as Parquet files each night, compressed with zstd"
        )
        assert (grown["memory_id"], grown["outcome"]) == (own, "evolved")


async def test_upkeep_leaves_what_others_said_as_it_is(paths: Paths, clock: FakeClock) -> None:
    insight = "The export of the shop ran {} rows in one batch of the nightly job"
    async with served(paths, clock, KEYWORDS) as it:
        grace = await in_team(it)
        several = [
            await grace.stores(f"mem-{n}", insight.format(n), event_type="advisor_insight") for n in range(6)
        ]
        short = await grace.stores("mem-short", "Ports above 9000 are free this week", ttl_seconds=3_600)
        bad = await grace.stores("mem-bad", "Retries never back off at all", event_type="decision")
        await it.caller.call("memory.rate", memory_id=bad, rating="outdated")
        own = (await says(it, "The own note lasts for an hour", ttl_seconds=3_600))["memory_id"]
        clock.us += 90 * DAY_US
        await it.expire()
        done = await it.caller.call("memory.consolidate")
        assert own not in done["expired"]  # which the schedule had recorded
        assert (done["compacted"]["clusters"], done["stale"]) == ([], [])
        dry = await it.caller.call("memory.compact", event_types=["advisor_insight"], dry_run=True)
        assert dry["clusters"] == []
        for method in ("memory.stale", "memory.junk"):
            found = {one["memory_id"] for one in (await it.caller.call(method, days=0))["memories"]}
            assert not found & {bad, *several}
        findings = (await it.caller.call("lint.report", limit=100))["findings"]
        assert not {bad, *several} & {one for finding in findings for one in finding["ids"]}
        for memory_id in (*several, short, bad):
            assert not CHANGES & set(await life(it, memory_id))
        assert (await it.caller.call("memory.get", memory_id=own))["status"] == "expired"
        # Nor is it found once its time is over
        assert (await it.caller.call("memory.get", memory_id=short))["status"] == "expired"
        assert (await it.caller.call("memory.query", text="ports above", mode="keyword"))["results"] == []


async def test_what_its_home_renews_is_found_again(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        grace = await in_team(it)
        short = await grace.stores("mem-short", "Ports above 9000 are free this week", ttl_seconds=3_600)
        clock.us += DAY_US
        await it.expire()
        await grace.tells(MemoryRestored(memory_id=short, reason="it is", is_permanent=True))
        (found,) = (await it.caller.call("memory.query", text="ports above", mode="keyword"))["results"]
        assert found["memory_id"] == short


async def test_a_conflict_between_others_is_theirs_and_one_with_this_home_is_told(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        grace = await in_team(it)
        for memory_id in ("mem-1", "mem-2"):
            await grace.stores(memory_id, f"what {memory_id} says of the shop", event_type="decision")
        await grace.tells(contradicted("mem-1", "mem-2"))
        assert "contradiction" not in await rules(it)
        own = (await says(it, "What Ada says of the shop is otherwise"))["memory_id"]
        await it.caller.call("memory.link", memory_id=own, target_id="mem-2", edge_type="contradicts")
        assert "contradiction" in await rules(it)


async def test_what_others_store_on_probation_counts_less_until_it_proves_itself_here(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        grace = await in_team(it)
        await choose(it, on_probation=True)
        await grace.stores("mem-1", "Deploys of the shop are blue-green", event_type="decision")
        clock.us += 1_000_000

        async def score() -> float:
            query = {"text": "how are deploys of the shop done", "mode": "keyword", "project": "shop"}
            (found,) = (await it.caller.call("memory.query", explain=True, **query))["results"]
            assert found["memory_id"] == "mem-1"
            return float(found["explanation"]["stages"].get("probation", 0.0))

        assert (await it.caller.call("memory.get", memory_id="mem-1"))["status"] == "probation"
        on_it = await score()
        assert on_it < 0
        await it.caller.call("memory.rate", memory_id="mem-1", rating="helpful")
        assert (await it.caller.call("memory.get", memory_id="mem-1"))["status"] == "active"
        assert await score() == 0.0


async def test_use_strength_and_probation_of_what_others_said_are_this_homes_own(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        grace = await in_team(it)
        await choose(it)
        await grace.stores("mem-1", BILLING, event_type="decision")
        assert (await it.caller.call("memory.query", text="billing", mode="keyword"))["results"]
        await it.caller.call("memory.demote", memory_id="mem-1")
        await it.caller.call("memory.promote", memory_id="mem-1")
        assert (await it.caller.call("memory.get", memory_id="mem-1"))["retrieval_count"] == 1
        log = it.daemon.services.log
        told = [
            event for one in await log.read(0, 100) if one.origin == log.origin for event in facts_of(one, {})
        ]
        assert told == []
