"""Expiry, compaction and consolidation in a service that runs: what is asked, what is answered, and what
is found afterwards.
"""

from typing import Any

import pytest

from omegad.memory.events import MemoryEmbedded, MemoryExpired, MemoryPromoted, MemoryStored, MemorySuperseded
from omegad.memory.types import BUILT_IN
from omegad.memory.upkeep import expiry
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Invalid, Refused
from tests.builders import FakeClock, FakeModel, Served, events_of, everything, served, until

KEYWORDS = Config(model="none", upkeep=False, lint_days=0)  # days pass, and nothing happens but what is asked
SECOND_US = 1_000_000
YEAR_US = 366 * 86_400 * SECOND_US

COMMON = "The nightly exporter of the billing service is slow on every weekday between spring and autumn"
NOTES = tuple(
    f"{COMMON}. {rest}" for rest in ("It fetches rows alone.", "Its batches are small.", "It logs a lot.")
)


async def store(it: Served, content: str, **params: Any) -> str:
    answer = await it.caller.call("memory.store", content=content, **params)
    assert answer["outcome"] == "stored", answer
    return str(answer["memory_id"])


async def found(it: Served, text: str, **params: Any) -> list[str]:
    answer = await it.caller.call("memory.query", text=text, limit=100, **params)
    return [one["memory_id"] for one in answer["results"]]


async def listed(it: Served) -> set[str]:
    return {one["memory_id"] for one in (await it.caller.call("memory.list", limit=1_000))["memories"]}


async def notes(it: Served, **params: Any) -> list[str]:
    return [
        await store(it, content, **{"event_type": "advisor_insight", "project": "shop"} | params)
        for content in NOTES
    ]


async def prove(it: Served) -> None:
    """Compare every view with a replay of the log."""
    await it.caught_up()
    report = await it.caller.call("views.verify")
    assert report["ok"], report


async def test_what_expires_is_hidden_at_its_moment_and_that_is_recorded_once(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        memory_id = await store(it, "the release train leaves soon", ttl_seconds=3600)
        kept = await store(it, "the release train is red")
        await it.expire()
        assert memory_id in await found(it, "release train")
        clock.us += 3600 * SECOND_US
        for mode in ("hybrid", "semantic", "keyword", "phrase"):
            assert await found(it, "release train", mode=mode) == [kept]
        assert await listed(it) == {kept}
        assert await events_of(it, MemoryExpired) == []
        await it.expire()
        await it.expire()
        (expired,) = await events_of(it, MemoryExpired)
        assert expired.memory_id == memory_id
        assert (await it.caller.call("memory.get", memory_id=memory_id))["status"] == "expired"
        assert await found(it, "release train") == [kept]
    async with served(paths, clock) as it:
        await it.expire()
        assert await events_of(it, MemoryExpired) == [expired]
        await it.caller.call("memory.restore", memory_id=memory_id)
        clock.us += YEAR_US
        await it.expire()
        assert set(await found(it, "release train")) == {memory_id, kept}
        assert len(await events_of(it, MemoryExpired)) == 1
        await prove(it)
    assert model.texts


async def test_what_was_restored_before_its_expiry_was_recorded_stays(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = await store(it, "the release train leaves soon", ttl_seconds=60)
        clock.us += 60 * SECOND_US
        await it.caller.call("memory.restore", memory_id=memory_id)
        await it.expire()
        assert await events_of(it, MemoryExpired) == []
        assert await found(it, "release train") == [memory_id]


async def test_words_said_again_after_their_time_make_a_new_memory(paths: Paths, clock: FakeClock) -> None:
    """They would else point at one that nobody finds."""
    async with served(paths, clock, KEYWORDS) as it:
        old = await store(it, "the release train leaves soon", ttl_seconds=60)
        clock.us += 60 * SECOND_US
        new = await store(it, "the release train leaves soon")
        assert new != old
        await it.expire()
        assert [event.memory_id for event in await events_of(it, MemoryExpired)] == [old]
        assert await found(it, "release train") == [new]


async def test_words_said_again_in_time_live_on(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = await store(it, "the release train leaves soon", ttl_seconds=60)
        clock.us += 40 * SECOND_US
        await it.caller.call("memory.store", content="the release train leaves soon", ttl_seconds=60)
        clock.us += 40 * SECOND_US
        await it.expire()
        assert await found(it, "release train") == [memory_id]
        clock.us += 40 * SECOND_US
        await it.expire()
        assert await found(it, "release train") == []
        assert len(await events_of(it, MemoryExpired)) == 1


async def test_more_than_one_batch_is_recorded_in_one_look(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.memory.upkeep.expiry.AT_ONCE_MAX", 2)
    async with served(paths, clock, KEYWORDS) as it:
        ids = {await store(it, f"train {number}", ttl_seconds=60) for number in range(5)}
        clock.us += 60 * SECOND_US
        await it.expire()
        assert {event.memory_id for event in await events_of(it, MemoryExpired)} == ids


async def test_a_rebuild_records_nothing(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await until(lambda: it.daemon.reactions.progress[expiry.NAME].position)  # the present slot is over
        await it.caller.call("memory.store", content="the release train leaves soon", ttl_seconds=60)
        clock.us += 60 * SECOND_US
        await it.caller.call("views.rebuild")
        assert await events_of(it, MemoryExpired) == []
        await it.expire()
        assert len(await events_of(it, MemoryExpired)) == 1


async def test_like_memories_become_one_and_each_can_be_had_back(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        await until(lambda: it.daemon.reactions.progress[expiry.NAME].position)  # the present slot is over
        ids = await notes(it)
        apart = await store(
            it,
            "Payments retry because the gateway drops idle connections",
            event_type="advisor_insight",
            project="shop",
        )
        head, embedded = await it.caught_up(), len(model.texts)
        await it.caller.call("memory.consolidate", dry_run=True)
        told = await it.caller.call("memory.compact", dry_run=True)
        assert (it.daemon.services.log.head, len(model.texts)) == (head, embedded)
        assert [cluster["originals"] for cluster in told["clusters"]] == [ids]
        done = await it.caller.call("memory.compact")
        (cluster,) = done["clusters"]
        assert (cluster | {"memory_id": None}, done["superseded"], done["position"]) == (
            told["clusters"][0],
            3,
            it.daemon.services.log.head,
        )
        assert await listed(it) == {cluster["memory_id"], apart}
        results = await found(it, "nightly exporter batches")
        assert results[0] == cluster["memory_id"]
        assert not set(ids) & set(results)
        summary = await it.caller.call("memory.get", memory_id=cluster["memory_id"])
        assert all(
            rest in summary["content"]
            for rest in ("It fetches rows alone.", "Its batches are small.", "It logs a lot.")
        )
        assert {
            (edge["memory_id"], edge["edge_type"], edge["direction"])
            for edge in summary["edges"]
            if edge["edge_type"] == "superseded_by"
        } == {(memory_id, "superseded_by", "in") for memory_id in ids}
        for memory_id, content in zip(ids, NOTES, strict=True):
            original = await it.caller.call("memory.get", memory_id=memory_id)
            assert (original["content"], original["superseded_by"]) == (content, cluster["memory_id"])
            await it.caller.call("memory.restore", memory_id=memory_id)
        assert await listed(it) == {cluster["memory_id"], apart, *ids}
        assert (await it.caller.call("memory.compact"))["clusters"] == []
        await prove(it)
        (vectors,) = [
            event for event in await events_of(it, MemoryEmbedded) if event.memory_id == cluster["memory_id"]
        ]
        assert len(vectors.text_hashes) == 1
    assert summary["content"] in model.texts


@pytest.mark.parametrize("params", [{}, {"ack": "durable"}])
async def test_a_summary_that_was_not_embedded_is_embedded_by_the_backlog(
    paths: Paths, clock: FakeClock, model: FakeModel, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.embedding.breaker.OPEN_S", 0.0)  # however often the backlog has tried in vain
    async with served(paths, clock) as it:
        await notes(it)
        model.failing = not params
        if params:
            model.may_go_on.clear()
        done = await it.caller.call("memory.compact", **params)
        memory_id = done["clusters"][0]["memory_id"]
        vectors = [event for event in await events_of(it, MemoryEmbedded) if event.memory_id == memory_id]
        assert vectors == []
        model.failing = False
        model.may_go_on.set()
        await it.worked_off()
        assert await found(it, "exporter", mode="semantic") == [memory_id]


async def test_the_same_request_compacts_once(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        caller = it.other("agent")
        await notes(it)
        first = await caller.call("memory.compact", request_id="r")
        head = await it.caught_up()
        assert await caller.call("memory.compact", request_id="r") == first
        assert it.daemon.services.log.head == head
        assert first["superseded"] == 3


async def test_compaction_keeps_to_the_types_and_the_project_asked_for(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        decisions = await notes(it, event_type="decision")
        assert (await it.caller.call("memory.compact"))["superseded"] == 0
        assert (await it.caller.call("memory.compact", event_types=["decision"], project="other"))[
            "superseded"
        ] == 0
        done = await it.caller.call("memory.compact", event_types=["decision"], project="shop")
        assert [cluster["originals"] for cluster in done["clusters"]] == [decisions]
        with pytest.raises(Invalid, match="unknown event_type"):
            await it.caller.call("memory.compact", event_types=["decisions"])


async def test_what_changes_while_a_compaction_is_prepared_is_left_out(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        ids = [
            *await notes(it),
            await store(it, f"{COMMON}. Its disk is full.", event_type="advisor_insight", project="shop"),
        ]
        near = it.daemon.services.near
        genuine = near.embed

        async def embed(content: str, **how: Any) -> Any:
            monkeypatch.setattr(near, "embed", genuine)
            await it.caller.call("memory.edit", memory_id=ids[0], content="Something else")
            return await genuine(content, **how)

        monkeypatch.setattr(near, "embed", embed)
        done = await it.caller.call("memory.compact")
        assert [cluster["originals"] for cluster in done["clusters"]] == [ids[1:]]
        assert "fetches" not in done["clusters"][0]["content"]
        assert ids[0] in await listed(it)


async def test_consolidation_puts_in_order_and_says_what_it_did(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        insights = await notes(it)
        over = await store(it, "the release train leaves soon", ttl_seconds=60)
        captured = await store(it, "pagination starts at one", source="auto_capture", session_id="mine")
        ignored = await store(it, "colours are codes", source="auto_capture")
        bad = await store(it, "the cache never expires")
        for _ in range(2):
            await it.caller.call("memory.rate", memory_id=bad, rating="outdated")
        for day in range(3):
            clock.us += 86_400 * SECOND_US
            assert captured in await found(it, "pagination"), day
        await it.daemon.services.views.wait_for(await _logged(it, 3), ("retrievals",))
        head = it.daemon.services.log.head
        told = await it.caller.call("memory.consolidate", dry_run=True)
        assert it.daemon.services.log.head == head
        done = await it.caller.call("memory.consolidate")
        for answer in (told, done):
            assert (answer["expired"], answer["promoted"], answer["flagged"]) == ([over], [captured], [bad])
            assert [cluster["originals"] for cluster in answer["compacted"]["clusters"]] == [insights]
        assert (told["dry_run"], done["dry_run"], done["position"]) == (
            True,
            False,
            it.daemon.services.log.head,
        )
        assert [(event.memory_id, event.evidence) for event in await events_of(it, MemoryPromoted)] == [
            (captured, "use")
        ]
        summary = done["compacted"]["clusters"][0]["memory_id"]
        assert await listed(it) == {summary, captured, ignored, bad}
        again = await it.caller.call("memory.consolidate")
        assert (again["expired"], again["promoted"], again["compacted"]["clusters"], again["flagged"]) == (
            [],
            [],
            [],
            [bad],
        )
        await prove(it)


async def _logged(it: Served, queries: int) -> int:
    """Wait until that many queries are in the log, which nobody else waits for; return its end."""
    await it.caller.call(
        "memory.rate",
        memory_id=(await it.caller.call("memory.list"))["memories"][-1]["memory_id"],
        rating="unhelpful",
    )
    assert (
        sum(one.tag.startswith("memory.queried") for one in await everything(it.daemon.services.log))
        >= queries
    )
    return it.daemon.services.log.head


async def test_what_is_permanent_outlives_any_maintenance_unread(paths: Paths, clock: FakeClock) -> None:
    """A peer's periodic consolidation deleted permanent decisions, lessons and facts that nobody had read
    for a fortnight.
    """
    permanent = [
        name for name, kind in BUILT_IN.items() if kind.ttl_seconds is None and name != "advisor_insight"
    ]
    async with served(paths, clock, KEYWORDS) as it:
        kept = {
            await store(it, f"{content} So the {kind} says.", event_type=kind)
            for kind in permanent
            for content in NOTES
        }
        contents = {
            memory_id: (await it.caller.call("memory.get", memory_id=memory_id))["content"]
            for memory_id in kept
        }
        insights = await notes(it)
    for _ in range(3):
        clock.us += 5 * YEAR_US
        async with served(paths, clock, KEYWORDS) as it:
            await it.expire()
            await it.caller.call("memory.compact")
            await it.caller.call("memory.consolidate")
            assert await listed(it) >= kept
            for memory_id, content in contents.items():
                assert (await it.caller.call("memory.get", memory_id=memory_id))["content"] == content
            made = await events_of(it, MemoryStored)
            reports = {
                event.memory_id for event in made if event.source in ("auto_lint", "auto_reflect_stale")
            }
            assert {event.memory_id for event in await events_of(it, MemorySuperseded)} - reports == set(
                insights
            )
            assert await events_of(it, MemoryExpired) == []
            assert len(made) - len(reports) == len(kept) + len(insights) + 1


async def test_a_restored_original_that_the_user_edits_is_theirs(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        ids = await notes(it)
        await it.caller.call("memory.compact")
        with pytest.raises(Refused, match="superseded"):
            await it.caller.call("memory.edit", memory_id=ids[0], content="mine")
        await it.caller.call("memory.restore", memory_id=ids[0])
        await it.caller.call("memory.edit", memory_id=ids[0], content=f"{NOTES[0]} It is mine.")
        await notes_like(it)
        assert ids[0] not in {
            one for c in (await it.caller.call("memory.compact"))["clusters"] for one in c["originals"]
        }
        assert ids[0] in await listed(it)


async def notes_like(it: Served) -> None:
    for rest in ("Its disk is full.", "It waits for locks.", "Nobody reads its output."):
        await store(it, f"{COMMON}. {rest}", event_type="advisor_insight", project="shop")
