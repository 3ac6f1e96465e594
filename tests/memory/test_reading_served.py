"""Readings through the service: what follows from commands is read back, fresh, from the views and the
log.
"""

from typing import Any

import anyio
import pytest

from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Invalid, NotFound, Stale
from tests.builders import FakeClock, FakeModel, Served, append, erased, proposal, queried, served

KEYWORDS = Config(model="none")
DAY_US = 86_400_000_000


async def store(it: Served, content: str, **changes: Any) -> str:
    answer = await it.caller.call("memory.store", content=content, **changes)
    memory_id: str = answer["memory_id"]
    return memory_id


def tags(page: Any) -> list[str]:
    return [event["tag"].partition("@")[0] for event in page["events"]]


async def test_a_memory_knows_at_once_how_often_it_was_retrieved(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = await store(it, "deploys are blue-green")
        for _ in range(5):
            assert (await it.caller.call("memory.query", text="deploys"))["results"]
        found = await it.caller.call("memory.get", memory_id=memory_id)
        assert (found["retrieval_count"], found["stale_by"]) == (5, 0)


async def test_a_whole_life_is_told_in_order_with_what_each_event_says(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        call = it.caller.call
        one = await store(
            it, "The exporter needs fetch_size 500", event_type="lesson_learned", session_id="s-1"
        )
        other = await store(it, "Something else entirely")
        await store(it, "The exporter needs fetch_size 500", event_type="lesson_learned", session_id="s-2")
        await call(
            "memory.edit", memory_id=one, content="The exporter needs fetch_size 800", reason="measured"
        )
        await call("memory.rate", memory_id=one, rating="helpful")
        await call("memory.link", memory_id=other, target_id=one, edge_type="evolves")
        await call("memory.unlink", memory_id=other, target_id=one)
        await call("memory.supersede", memory_id=one, superseded_by=other)
        await call("memory.restore", memory_id=one)
        await call("memory.delete", memory_id=one, reason="a test")
        life = await call("memory.history", memory_id=one)
        assert tags(life) == [
            *(
                "memory.stored",
                "memory.repeated",
                "memory.edited",
                "memory.rated",
                "memory.linked",
                "memory.unlinked",
            ),
            *("memory.superseded", "memory.restored", "memory.deleted"),
        ]
        positions = [event["position"] for event in life["events"]]
        assert positions == sorted(positions)
        assert [event["session_id"] for event in life["events"]][:2] == ["s-1", "s-2"]
        assert life["events"][2]["data"]["content"] == "The exporter needs fetch_size 800"
        assert life["events"][-1]["data"]["reason"] == "a test"
        assert (life["next_cursor"], life["stale_by"]) == (None, 0)
        assert life["position"] >= positions[-1]
        assert tags(await call("memory.history", memory_id=other)) == [
            "memory.stored",
            "memory.linked",
            "memory.unlinked",
            "memory.superseded",
        ]


async def test_a_history_is_read_page_by_page_and_what_was_erased_has_no_data(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        one = await store(it, "alpha")
        for _ in range(3):
            await it.caller.call("memory.rate", memory_id=one, rating="helpful")
        await append(it.daemon.services.log, erased(1))
        await it.daemon.services.log._writer.run(
            lambda connection: connection.execute("DELETE FROM payloads WHERE position = 1")
        )
        first = await it.caller.call("memory.history", memory_id=one, limit=3)
        assert (tags(first), first["next_cursor"]) == (["memory.stored", "memory.rated", "memory.rated"], "3")
        assert [event["data"] is None for event in first["events"]] == [True, False, False]
        rest = await it.caller.call("memory.history", memory_id=one, limit=3, cursor=first["next_cursor"])
        assert (tags(rest), rest["next_cursor"]) == (["memory.rated"], None)
        with pytest.raises(Invalid, match="cursor"):
            await it.caller.call("memory.history", memory_id=one, cursor="the next one")


async def test_what_an_embedded_memory_is_like_is_answered_while_the_model_sleeps(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        one = await store(it, "red green blue black")
        near = await store(it, "red green blue white", project="q")
        await store(it, "red one two three four five", event_type="decision")
        asked = len(model.texts)
        model.failing = True
        found = await it.caller.call("memory.similar", memory_id=one, limit=1)
        assert ([result["memory_id"] for result in found["results"]], found["degraded"]) == ([near], None)
        assert found["results"][0].keys() >= {"content", "event_type", "similarity", "status"}
        assert len(model.texts) == asked


async def test_stored_vectors_serve_a_daemon_that_has_no_model(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        one = await store(it, "red green blue black")
        near = await store(it, "red green blue white")
    async with served(paths, clock, KEYWORDS) as it:
        found = await it.caller.call("memory.similar", memory_id=one)
        assert ([result["memory_id"] for result in found["results"]], found["degraded"]) == ([near], None)
        lately = await store(it, "red green blue yellow")
        found = await it.caller.call("memory.similar", memory_id=lately)
        assert ({result["memory_id"] for result in found["results"]}, found["degraded"]) == (
            {one, near},
            "keyword",
        )
    assert model.texts


async def test_edges_are_followed_from_what_commands_drew(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        call = it.caller.call
        one, two, three = [await store(it, content) for content in ("alpha", "beta", "gamma")]
        await call("memory.link", memory_id=one, target_id=two, weight=0.9)
        await call("memory.link", memory_id=three, target_id=two, edge_type="evolves", weight=0.4)
        found = await call("memory.traverse", memory_id=one)
        assert [(node["memory_id"], node["hop"]) for node in found["nodes"]] == [
            (one, 0),
            (two, 1),
            (three, 2),
        ]
        assert {
            (edge["source_id"], edge["target_id"], edge["edge_type"], edge["weight"], edge["hop"])
            for edge in found["edges"]
        } == {(one, two, "related", 0.9, 1), (three, two, "evolves", 0.4, 2)}
        assert len((await call("memory.traverse", memory_id=one, min_weight=0.5))["nodes"]) == 2
        with pytest.raises(Invalid, match="max_hops"):
            await call("memory.traverse", memory_id=one, max_hops=6)


async def test_a_memory_tells_its_edges_with_their_direction_and_what_replaced_it(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        call = it.caller.call
        old, new, third = [await store(it, content) for content in ("alpha", "beta", "gamma")]
        await call("memory.link", memory_id=third, target_id=old, weight=0.3)
        await call("memory.supersede", memory_id=old, superseded_by=new)
        found = await call("memory.get", memory_id=old)
        assert (found["content"], found["status"], found["superseded_by"]) == ("alpha", "superseded", new)
        edges = [(edge["memory_id"], edge["edge_type"], edge["direction"]) for edge in found["edges"]]
        assert edges == [(new, "superseded_by", "out"), (third, "related", "in")]
        assert [memory["memory_id"] for memory in (await call("memory.list"))["memories"]] == [third, new]


async def test_a_memory_is_called_expired_from_the_moment_its_time_is_over(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        one = await store(it, "alpha", ttl_seconds=3_600)
        assert (await it.caller.call("memory.get", memory_id=one))["status"] == "active"
        clock.us += 3_601 * 1_000_000
        assert (await it.caller.call("memory.get", memory_id=one))["status"] == "expired"
        assert (await it.caller.call("memory.traverse", memory_id=one))["nodes"][0]["status"] == "expired"


async def test_the_last_days_and_the_lessons_are_listed(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        call = it.caller.call
        first = await store(it, "never retry a payment without a key", event_type="lesson_learned")
        clock.us += DAY_US
        second = await store(it, "the linter wants sorted imports", event_type="error_pattern")
        plain = await store(it, "lunch is at noon")
        await call("memory.rate", memory_id=first, rating="helpful")
        told = await call("memory.timeline", days=2)
        assert [
            (day["day"], [memory["memory_id"] for memory in day["memories"]]) for day in told["days"]
        ] == [("2026-01-02", [plain, second]), ("2026-01-01", [first])]
        assert [lesson["memory_id"] for lesson in (await call("memory.lessons"))["lessons"]] == [
            first,
            second,
        ]
        for method in ("memory.timeline", "memory.lessons"):
            with pytest.raises(Invalid, match="unknown event_type 'lesson'"):
                await call(method, event_types=["lesson"])


async def test_receipts_show_a_query_that_is_only_being_logged(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.log.event_log.LATER_S", 30.0)
    async with served(paths, clock, Config(model="none", fresh_wait_ms=5_000)) as it:
        one = await store(it, "alpha")
        log = it.daemon.services.log
        await it.caught_up()  # also each reaction's first cursor, which is an append as well
        log.append_later(proposal(queried((one, 0.75), query_id="query-1")))
        assert log.waiting >= 1  # a reaction's cursor may wait as well
        page = await it.caller.call("receipts.list", query_id="query-1")
        assert [
            (receipt["memory_id"], receipt["rank"], receipt["score"], receipt["how"])
            for receipt in page["receipts"]
        ] == [(one, 1, 0.75, "query")]
        assert (await it.caller.call("receipts.list", memory_id=one))["receipts"] == page["receipts"]
        with pytest.raises(Invalid, match="whose receipts"):
            await it.caller.call("receipts.list")


BY_ID = ("memory.get", "memory.similar", "memory.traverse", "memory.history", "receipts.list")


@pytest.mark.parametrize("method", BY_ID)
async def test_an_id_that_was_never_given_is_not_found(method: str, paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await store(it, "alpha")
        await it.caught_up()
        with pytest.raises(NotFound, match="there is no memory mem-0"):
            await it.caller.call(method, memory_id="mem-0")


@pytest.mark.parametrize("method", BY_ID)
async def test_what_the_views_do_not_show_yet_is_stale_and_not_missing(
    method: str, paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.requests.method.VIEWS_WAIT_S", 0.01)
    async with served(paths, clock, Config(model="none", fresh_wait_ms=5)) as it:
        await store(it, "alpha")
        await it.caught_up()
        gate = anyio.Event()
        monkeypatch.setattr(it.daemon.services.views.driver, "step", gate.wait)
        await anyio.sleep(0.01)
        await it.caller.call("memory.store", content="beta", ack="durable")
        late = await it.caller.call("memory.store", content="gamma", ack="durable")
        with pytest.raises(Stale, match=f"do not show position {late['position']} yet"):
            await it.other().call(method, memory_id=late["memory_id"])
        timeline = await it.other().call("memory.timeline")
        assert timeline["position"] + timeline["stale_by"] == late["position"]
        assert timeline["stale_by"] >= 1


async def test_a_caller_sees_its_own_writes_in_every_reading(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, Config(model="none", fresh_wait_ms=0)) as it:
        call = it.caller.call
        before = await store(it, "number none")
        for number in range(5):
            latest = await store(it, f"number {number}", event_type="lesson_learned", session_id="s-1")
            await call("memory.link", memory_id=before, target_id=latest)
            assert (await call("memory.traverse", memory_id=before, direction="out"))["nodes"][-1][
                "memory_id"
            ] == latest
            assert (await call("memory.similar", memory_id=before))["position"] >= number
            assert tags(await call("memory.history", memory_id=latest))[-1] == "memory.linked"
            assert (await call("memory.timeline"))["days"][0]["memories"][0]["memory_id"] == latest
            assert (await call("memory.lessons"))["lessons"][0]["memory_id"] == latest
            before = latest
