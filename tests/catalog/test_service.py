"""The service in one process: requests in, answers out, and what the log and the views say afterwards."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest

from omegad.log.event import RecordedEvent
from omegad.memory.embedding import EmbeddingBacklog
from omegad.memory.events import MemoryEmbedded, MemoryRelated, MemoryRepeated, MemoryStored, MemorySuperseded
from omegad.rpc.protocol import MethodNotFound
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Conflict, Invalid, NotFound, Refused
from omegad.search.events import MemoryQueried
from omegad.session.events import ToolCalled
from tests.builders import (
    EMBEDDER,
    PATIENCE_S,
    FakeClock,
    FakeModel,
    Served,
    at_most,
    events_of,
    everything,
    put_model,
    served,
    until,
)

KEYWORDS = Config(model="none")


def hold(it: Served, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Keep the views from going on until the function returned is called."""
    driver, gate = it.daemon.services.views.driver, anyio.Event()
    genuine = driver.step

    async def step() -> None:
        await gate.wait()
        await genuine()

    monkeypatch.setattr(driver, "step", step)
    return gate.set


async def test_a_client_always_sees_what_it_has_stored(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock, Config(fresh_wait_ms=0)) as it:
        for number in range(20):
            answer = await it.caller.call("memory.store", content=f"alpha {number} beta")
            found = await it.caller.call("memory.query", text=f"alpha {number}", limit=100)
            assert answer["memory_id"] in [one["memory_id"] for one in found["results"]]
            assert found["position"] >= answer["position"]
            assert (await it.caller.call("memory.get", memory_id=answer["memory_id"]))[
                "content"
            ] == f"alpha {number} beta"
            assert (await it.caller.call("memory.list", limit=1))["memories"][0]["memory_id"] == answer[
                "memory_id"
            ]
    assert model.texts


async def test_a_client_waits_for_its_own_writes_and_others_are_told_how_stale_they_are(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.requests.method.VIEWS_WAIT_S", 0.01)
    async with (
        served(paths, clock, Config(model="none", fresh_wait_ms=5)) as it,
        anyio.create_task_group() as tasks,
    ):
        await it.caller.call("memory.store", content="alpha")
        await it.caught_up()
        let_go = hold(it, monkeypatch)
        await asyncio.sleep(0.01)
        own = await it.caller.call("memory.store", content="beta", ack="durable")
        own = await it.caller.call("memory.store", content="gamma", ack="durable")
        stale = await it.other().call("memory.query", text="alpha beta gamma")
        assert stale["position"] + stale["stale_by"] == own["position"]
        assert stale["stale_by"] >= 1
        assert len(stale["results"]) < 3
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await it.caller.call("memory.query", text="alpha beta gamma"))

        tasks.start_soon(ask)
        await asyncio.sleep(0.1)
        assert answers == []
        let_go()
        await until(lambda: answers)
        assert len(answers[0]["results"]) == 3
        assert answers[0]["stale_by"] == 0


async def test_a_query_may_ask_for_a_position(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.requests.method.VIEWS_WAIT_S", 0.01)
    async with served(paths, clock, Config(model="none", fresh_wait_ms=0)) as it:
        stored = await it.caller.call("memory.store", content="alpha")
        found = await it.other().call("memory.query", text="alpha", min_position=stored["position"])
        assert len(found["results"]) == 1
        with pytest.raises(Invalid, match="beyond the end"):
            await it.caller.call("memory.query", text="alpha", min_position=999)
        monkeypatch.setattr("omegad.views.barrier.OWN_WRITES_S", 0.05)
        await it.caught_up()
        hold(it, monkeypatch)
        later = await it.caller.call("memory.store", content="beta", ack="durable")
        later = await it.caller.call("memory.store", content="gamma", ack="durable")
        with pytest.raises(Exception, match="did not reach position"):
            await it.other().call("memory.query", text="alpha", min_position=later["position"])


async def test_two_identical_stores_at_once_make_one_memory(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        answers = await asyncio.gather(
            *(it.other().call("memory.store", content="the very same words") for _ in range(8))
        )
        assert sorted(answer["outcome"] for answer in answers) == ["duplicate"] * 7 + ["stored"]
        assert len({answer["memory_id"] for answer in answers}) == 1
        assert len(await events_of(it, MemoryStored)) == 1
        assert len(await events_of(it, MemoryRepeated)) == 7
    assert model.texts


async def test_of_two_nearly_identical_stores_at_once_the_second_sees_the_first(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        texts = [
            "We deploy with blue-green",
            "we deploy with Blue-green!",
            "We deploy, with blue-green.",
            "WE deploy with blue-green",
        ]
        answers = await asyncio.gather(*(it.other().call("memory.store", content=text) for text in texts[:3]))
        assert sorted(answer["outcome"] for answer in answers) == ["duplicate", "duplicate", "stored"]
        assert {
            likeness for event in await events_of(it, MemoryRepeated) for likeness in [event.likeness]
        } <= {"cosine", "jaccard"}
    assert model.texts


async def test_of_two_related_stores_at_once_the_second_is_linked_to_the_first(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        texts = ["alpha beta gamma delta", "alpha beta gamma epsilon"]
        answers = await asyncio.gather(*(it.other().call("memory.store", content=text) for text in texts))
        one, other = sorted(answers, key=lambda answer: answer["position"])
        assert [edge["memory_id"] for edge in other["related"]] == [one["memory_id"]]
        assert one["related"] == []
    assert model.texts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "the timeout of the upload is 30 seconds by default",
            "the timeout of the upload is 60 seconds by default",
        ),
        (
            "the cache of the api is enabled in production now",
            "the cache of the api is disabled in production now",
        ),
        (
            "run the long test suite with --slow before a release",
            "run the long test suite with --fast before a release",
        ),
        (
            "page the person on duty when load > 80 percent please",
            "page the person on duty when load < 80 percent please",
        ),
    ],
)
async def test_memories_whose_details_differ_are_never_taken_for_one(
    paths: Paths, clock: FakeClock, model: FakeModel, one: str, other: str
) -> None:
    model.same = True
    async with served(paths, clock) as it:
        first = await it.caller.call("memory.store", content=one)
        second = await it.caller.call("memory.store", content=other)
        assert [first["outcome"], second["outcome"]] == ["stored", "stored"]


async def test_a_long_text_is_no_duplicate_because_its_beginning_is(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    beginning = "word " * 300
    async with served(paths, clock) as it:
        first = await it.caller.call("memory.store", content=beginning + "then apples pears plums " * 20)
        second = await it.caller.call("memory.store", content=beginning + "then trains boats planes " * 20)
        assert [first["outcome"], second["outcome"]] == ["stored", "stored"]
    assert model.texts


async def test_what_is_stored_for_durability_alone_is_related_afterwards_exactly_once(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        first = await it.caller.call("memory.store", content="alpha beta gamma delta")
        quick = await it.caller.call("memory.store", content="alpha beta gamma epsilon", ack="durable")
        assert quick["related"] == []
        await until(lambda: len(model.texts) >= 2)
        await it.worked_off()
        for _ in range(3):
            await it.daemon.backlog.sweep()
        await it.worked_off()
        (related,) = await events_of(it, MemoryRelated)
        assert (related.memory_id, [edge.memory_id for edge in related.related]) == (
            quick["memory_id"],
            [first["memory_id"]],
        )
        assert [event.memory_id for event in await events_of(it, MemoryEmbedded)] == [
            first["memory_id"],
            quick["memory_id"],
        ]
        found = await it.caller.call("memory.get", memory_id=quick["memory_id"])
        assert found["pending"] is False
        assert [edge["memory_id"] for edge in found["edges"]] == [first["memory_id"]]


async def test_a_durable_duplicate_gives_way_to_the_memory_there_is(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        first = await it.caller.call("memory.store", content="We deploy with blue-green")
        second = await it.caller.call("memory.store", content="we deploy with Blue-green!", ack="durable")
        await it.worked_off()
        (event,) = await events_of(it, MemorySuperseded)
        assert (event.memory_id, event.superseded_by) == (second["memory_id"], first["memory_id"])
    assert model.texts


async def test_of_many_durable_stores_that_say_the_same_one_stays(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    """Whoever is embedded first, never may each give way to another."""
    signs = ["", "!", ".", "!!", "..", "!.", ".!", "!!!"]
    async with served(paths, clock) as it:
        for number in range(6):
            await asyncio.gather(
                *(
                    it.other().call("memory.store", content=f"say it x{number}{sign}", ack="durable")
                    for sign in signs
                )
            )
        await it.worked_off()
        page = await it.caller.call("memory.list", limit=100)
        left = sorted(one["content"].rstrip("!.?") for one in page["memories"])
        assert left == [f"say it x{number}" for number in range(6)]
    assert model.texts


async def test_without_a_model_storing_and_asking_work_and_say_what_they_lack(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        answer = await it.caller.call("memory.store", content="alpha beta")
        assert (answer["outcome"], answer["degraded"]) == ("stored", "embedding")
        found = await it.caller.call("memory.query", text="alpha")
        assert (found["degraded"], [one["memory_id"] for one in found["results"]]) == (
            "keyword",
            [answer["memory_id"]],
        )
        status = await it.caller.call("system.status")
        assert status["embedding"]["state"] == "absent"
        await until(lambda: it.daemon.backlog.size == 1)
        troubles = " ".join((await it.caller.call("system.status"))["degraded"])
        assert "no embedding model" in troubles
        assert "1 memories wait" in troubles


async def test_a_question_of_meaning_falls_back_to_words_where_there_is_no_model(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        await it.caller.call("memory.store", content="alpha beta")
        found = await it.caller.call("memory.query", text="alpha", mode="semantic")
        assert (found["degraded"], len(found["results"])) == ("keyword", 1)


async def test_what_was_stored_without_a_model_is_embedded_when_one_appears(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeModel()
    monkeypatch.setattr("omegad.embedding.embedder._load_session", lambda _folder, _manifest: fake)
    monkeypatch.setattr("omegad.embedding.embedder.LOOK_AGAIN_S", 0.01)
    async with served(paths, clock) as it:
        for text in ("alpha beta gamma delta", "alpha beta gamma epsilon", "zeta"):
            await it.caller.call("memory.store", content=text)
        put_model(paths.models)
        await until(lambda: it.daemon.services.near.embedder.embedder_id == EMBEDDER)
        await it.worked_off()
        await until(lambda: it.daemon.backlog.size == 0)
        assert len(await events_of(it, MemoryEmbedded)) == 3
        assert {len(event.related) for event in await events_of(it, MemoryRelated)} == {0, 1}
        found = await it.caller.call("memory.query", text="zeta eta", mode="semantic")
        assert (found["degraded"], found["results"][0]["content"]) == (None, "zeta")
        assert not (await it.caller.call("system.status"))["degraded"]


async def test_a_model_that_fails_keeps_nobody_from_storing_and_is_told(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    model.failing = True
    async with served(paths, clock) as it:
        for number in range(4):
            assert (await it.caller.call("memory.store", content=f"alpha {number}"))[
                "degraded"
            ] == "embedding"
        assert (await it.caller.call("memory.query", text="alpha"))["degraded"] == "keyword"
        assert "the embedding model fails: out of luck" in (await it.caller.call("system.status"))["degraded"]


async def test_a_slow_model_makes_a_query_fall_back_to_words(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock, Config(query_timeout_s=0.05)) as it:
        await it.caller.call("memory.store", content="alpha beta")
        model.may_go_on.clear()
        found = await it.caller.call("memory.query", text="alpha")
        model.may_go_on.set()
        assert (found["degraded"], [one["content"] for one in found["results"]]) == (
            "keyword",
            ["alpha beta"],
        )


async def test_every_query_is_recorded_with_what_it_returned(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        stored = await it.caller.call("memory.store", content="alpha beta", project="p", session_id="s")
        asker = it.other("cli")
        found = await asker.call(
            "memory.query", text="alpha", project="p", session_id="s", event_types=["memory"], limit=5
        )
        nothing = await asker.call("memory.query", text="omega", mode="phrase")
        await until(lambda: it.daemon.services.log.head == stored["position"] + 2)
        first, second = (await everything(it.daemon.services.log))[-2:]
        assert isinstance(first.event, MemoryQueried)
        event = first.event
        assert (first.session_id, first.project, first.client) == ("s", "p", "cli")
        assert (event.query_id, event.text, event.mode, event.limit) == (
            found["query_id"],
            "alpha",
            "hybrid",
            5,
        )
        assert (
            event.filters == {"event_types": ["memory"], "project": "p", "session_id": "s"}
            or dict(event.filters)["project"] == "p"
        )
        assert [(one.memory_id, one.score) for one in event.results] == [
            (one["memory_id"], one["score"]) for one in found["results"]
        ]
        assert (event.read_position, event.embedder_id, event.degraded, event.abstained) == (
            found["position"],
            EMBEDDER,
            None,
            False,
        )
        assert isinstance(second.event, MemoryQueried)
        assert (
            second.event.abstained,
            second.event.embedder_id,
            nothing["abstained"],
            nothing["results"],
        ) == (True, None, True, [])
        await it.caught_up()
        counted = await it.caller.call("memory.get", memory_id=stored["memory_id"])
        assert counted["retrieval_count"] == 1
    assert model.texts


async def test_the_same_request_is_answered_the_same_and_done_once(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        cli = it.other("cli")
        first = await cli.call("memory.store", content="alpha", request_id="r1")
        assert await it.other("cli").call("memory.store", request_id="r1", content="alpha") == first
        with pytest.raises(Conflict):
            await cli.call("memory.store", content="beta", request_id="r1")
        other = await it.other("other").call("memory.store", content="beta", request_id="r1")
        assert other["memory_id"] != first["memory_id"]
    async with served(paths, clock) as it:
        assert await it.other("cli").call("memory.store", content="alpha", request_id="r1") == first
        assert len(await events_of(it, MemoryStored)) == 2
    assert model.texts


async def test_whoever_sends_a_request_again_sees_what_it_promised(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock, Config(fresh_wait_ms=0)) as it:
        first = await it.other("cli").call("memory.store", content="alpha", request_id="r1")
        again = it.other("cli")
        await again.call("memory.store", content="alpha", request_id="r1")
        assert again.peer.written == first["position"]
    assert model.texts


async def test_a_deleted_memory_is_found_no_more_and_its_content_may_come_again(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        stored = await it.caller.call("memory.store", content="alpha beta")
        await it.caller.call("memory.delete", memory_id=stored["memory_id"], reason="wrong")
        assert (await it.caller.call("memory.query", text="alpha"))["results"] == []
        assert (await it.caller.call("memory.list"))["memories"] == []
        assert (await it.caller.call("memory.get", memory_id=stored["memory_id"]))["status"] == "deleted"
        with pytest.raises(Refused):
            await it.caller.call("memory.delete", memory_id=stored["memory_id"])
        with pytest.raises(NotFound):
            await it.caller.call("memory.delete", memory_id="mem-nobody")
        again = await it.caller.call("memory.store", content="alpha beta")
        assert again["outcome"] == "stored"
        assert again["related"] == []
    assert model.texts


async def test_a_tool_call_delivered_twice_counts_once(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        call = {"session_id": "s", "tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "ls"}}
        answers = await asyncio.gather(*(it.other().call("tool.record", **call) for _ in range(5)))
        assert answers == [{"position": 1, "call_index": 1}] * 5
        assert len(await events_of(it, ToolCalled)) == 1


@pytest.mark.parametrize(
    "params",
    [
        {"referenced_date": "9999-12-31T23:59:59-14:00"},
        {"referenced_date": "0001-01-01T00:00:00+14:00"},
        {"ttl_seconds": 2**63},
        {"ttl_seconds": 10**13},
        {"metadata": {"n": 10**40}},
        {"content": "\0"},
        {"content": "nul\0nul", "tags": ["\0"], "project": "\0", "session_id": "\0", "entity_id": "\0"},
        {"content": "\U0001f600" * 20_000},
    ],
    ids=lambda params: str(params)[:40],
)
@pytest.mark.parametrize("ack", ["related", "durable"])
async def test_no_store_whatever_makes_a_view_fail_or_keeps_others_from_being_served(
    paths: Paths, clock: FakeClock, model: FakeModel, params: dict[str, Any], ack: str
) -> None:
    async with served(paths, clock) as it:
        try:
            await it.caller.call("memory.store", ack=ack, **{"content": "alpha"} | params)
        except Invalid:
            return
        stored = await it.caller.call("memory.store", content="omega psi")
        found = await it.caller.call("memory.query", text="omega psi")
        assert found["results"][0]["memory_id"] == stored["memory_id"]
        await it.caller.call("memory.list")
        await it.worked_off()
        assert not (await it.caller.call("system.status"))["degraded"]
        assert (await it.caller.call("views.verify"))["ok"]
    assert model.texts


async def test_a_text_made_to_be_slow_holds_nobody_up(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        with at_most(4):
            await it.caller.call("memory.store", content="password=" * 29_000)


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("memory.query", {"text": ""}, Invalid),
        ("memory.query", {"text": "a", "limit": 101}, Invalid),
        ("memory.query", {"text": "a", "event_types": ["nonsense"]}, Invalid),
        ("memory.query", {"text": "a", "since": "yesterday"}, Invalid),
        ("memory.list", {"cursor": "x"}, Invalid),
        ("memory.get", {"memory_id": "mem-nobody"}, NotFound),
        ("memory.store", {"content": "a", "event_type": "nonsense"}, Invalid),
        ("memory.wish", {}, MethodNotFound),
        ("log.follow", {"after": 99}, Invalid),
        ("views.rebuild", {"name": "nonsense"}, Invalid),
        ("views.verify", {"name": "nonsense"}, Invalid),
        ("system.hello", {"protocol": 9}, Invalid),
    ],
)
async def test_a_wrong_request_is_answered_with_what_is_wrong(
    paths: Paths, clock: FakeClock, method: str, params: dict[str, Any], error: type[Exception]
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        with pytest.raises(error):
            await it.caller.call(method, **params)


async def test_the_log_can_be_read_followed_and_verified(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it, anyio.create_task_group() as tasks:
        follower = it.other()
        tasks.start_soon(lambda: follower.call("log.follow", after=0))
        for number in range(5):
            await it.caller.call("memory.store", content=f"alpha {number}")
        await until(lambda: len(follower.told) == 5)
        assert [(method, event["position"], event["tag"]) for method, event in follower.told] == [
            ("log.event", number, "memory.stored@2") for number in range(1, 6)
        ]
        page = await it.caller.call("log.read", after=1, limit=2)
        assert [event["position"] for event in page["events"]] == [2, 3]
        assert page["head"] == 5
        assert page["events"][0]["data"]["content"] == "alpha 1"
        assert (await it.caller.call("log.verify"))["ok"] is True
        tasks.cancel_scope.cancel()


async def test_long_work_tells_how_far_it_is_to_who_gave_a_token(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await it.caller.call("memory.store", content="alpha")
        await it.caught_up()
        for method in ("log.verify", "views.verify", "views.rebuild"):
            asker = it.other()
            await asker.call(method, progress_token="t")  # noqa: S106  not a secret
            assert asker.told[-1] == ("progress", {"progress_token": "t", "progress": 1, "total": 1}), method
            silent = it.other()
            await silent.call(method)
            assert silent.told == []


async def test_the_status_names_a_view_that_failed_and_where(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        from projections import audit  # noqa: PLC0415

        await it.caller.call("memory.store", content="alpha")
        await it.caught_up()

        def poisoned(_recorded: RecordedEvent) -> Any:
            raise ZeroDivisionError("poisoned")

        monkeypatch.setattr(audit, "project", poisoned)
        await it.caller.call("tool.record", session_id="s", tool_name="Bash")
        await it.caller.call("memory.store", content="beta")
        assert len((await it.caller.call("memory.query", text="alpha beta", all=True))["results"]) == 2
        status = await it.caller.call("system.status")
        assert (status["views"]["audit"]["state"], status["views"]["audit"]["position"]) == ("failed", 1)
        assert status["views"]["audit"]["error"] == "at position 2: ZeroDivisionError: poisoned"
        assert any("audit" in trouble and "position 2" in trouble for trouble in status["degraded"])
        assert status["views"]["memories"]["state"] in {"live", "catching_up"}
        assert 'omegad_view_failed{view="audit"} 1' in (await it.caller.call("system.metrics"))["text"]
        monkeypatch.undo()
        assert (await it.caller.call("views.rebuild", name="audit"))["ok"]
        assert (await it.caller.call("system.status"))["views"]["audit"]["state"] in {"live", "catching_up"}


async def test_lost_vectors_are_computed_again(paths: Paths, clock: FakeClock, model: FakeModel) -> None:
    async with served(paths, clock) as it:
        for number in range(3):
            await it.caller.call("memory.store", content=f"alpha beta {number}")
        await it.caught_up()
    for path in (*paths.home.glob("embeddings.db*"), *paths.home.glob("views*")):
        path.unlink()
    async with served(paths, clock) as it:
        await it.caught_up()
        await until(lambda: it.daemon.backlog.size == 0 and len(model.texts) >= 6)
        with anyio.fail_after(PATIENCE_S):
            while await it.daemon.services.views.read(  # noqa: ASYNC110
                lambda c: c.execute("SELECT count(*) FROM deferred").fetchone()[0]
            ):
                await asyncio.sleep(0.01)
        found = await it.caller.call("memory.query", text="alpha beta 1", mode="semantic", all=True)
        assert (len(found["results"]), found["degraded"]) == (3, None)
        assert len(await events_of(it, MemoryEmbedded)) == 3
        assert (await it.caller.call("views.verify"))["ok"]


async def test_vectors_of_another_model_that_are_lost_keep_no_others_from_being_computed(
    paths: Paths, clock: FakeClock, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.memory.embedding.BATCH", 2)
    async with served(paths, clock) as it:
        for number in range(5):
            await it.caller.call("memory.store", content=f"alpha beta x{number}")
    put_model(paths.models, "paper-2")
    async with served(paths, clock) as it:
        await it.daemon.services.views.wait_for(0, ["vectors"])
        await until(lambda: len(model.texts) == 10)
        await until(lambda: it.daemon.backlog.size == 0)
    for path in (*paths.home.glob("embeddings.db*"), *paths.home.glob("views*")):
        path.unlink()
    async with served(paths, clock) as it:
        await until(lambda: len(model.texts) >= 15)
        found: list[Any] = []
        with anyio.fail_after(PATIENCE_S):
            while len(found) < 5:
                found = (
                    await it.caller.call("memory.query", text="alpha beta x1", mode="semantic", all=True)
                )["results"]
                await asyncio.sleep(0.02)
        await it.daemon.backlog.sweep()
        await until(
            lambda: it.daemon.backlog.size == 0
        )  # nobody waits for the vectors of a model that is gone
        assert not (await it.caller.call("system.status"))["degraded"]


async def test_answers_are_the_same_after_a_restart_and_without_the_views(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async def ask(it: Served) -> list[Any]:
        found = await it.caller.call("memory.query", text="alpha beta 3", all=True)
        listed = await it.caller.call("memory.list")
        # Scores are others by a little: what was found once is stronger, and time goes on.
        return [
            [(one["memory_id"], one["content"]) for one in found["results"]],
            [{**one, "retrieval_count": 0, "last_retrieved_at": None} for one in listed["memories"]],
        ]

    async with served(paths, clock) as it:
        for number in range(8):
            await it.caller.call("memory.store", content=f"alpha beta {number}")
        before = await ask(it)
    async with served(paths, clock) as it:
        await it.caught_up()
        assert await ask(it) == before
    for path in paths.home.glob("views*"):
        path.unlink()
    async with served(paths, clock) as it:
        await it.caught_up()
        assert await ask(it) == before
    assert model.texts


async def test_a_type_that_is_configured_no_more_keeps_its_memories_and_the_backlog_going(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    with_recipes = Config(event_types={"recipe": {"jaccard": 0.7}})
    model.failing = True
    async with served(paths, clock, with_recipes) as it:
        stored = await it.caller.call("memory.store", content="flour and water", event_type="recipe")
    model.failing = False
    async with served(paths, clock) as it:
        await it.worked_off()
        assert [event.memory_id for event in await events_of(it, MemoryEmbedded)] == [stored["memory_id"]]


async def test_a_home_without_memories_is_not_degraded(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        await it.caller.call("tool.record", session_id="s", tool_name="Bash")
        found = await it.caller.call("memory.query", text="alpha", mode="semantic")
        assert (found["degraded"], found["results"]) == (None, [])
    assert model.texts


async def test_a_question_of_meaning_is_answered_by_words_while_no_vector_is_at_hand(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock) as it:
        await it.caller.call("memory.store", content="alpha beta")
    put_model(paths.models)

    async def idle(_backlog: EmbeddingBacklog) -> bool:
        return True

    monkeypatch.setattr(EmbeddingBacklog, "_sweep", idle)
    async with served(paths, clock) as it:
        it.daemon.services.near.embedder._load = lambda _folder, _manifest: FakeModel()
        found = await it.caller.call("memory.query", text="alpha", mode="semantic")
        assert (found["degraded"], [one["content"] for one in found["results"]]) == (
            "keyword",
            ["alpha beta"],
        )
        nothing = await it.caller.call("memory.query", text="omega", mode="semantic")
        assert (nothing["degraded"], nothing["results"]) == ("keyword", [])


async def test_the_first_question_waits_for_vectors_where_there_are_none(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock) as it:  # as a home that has only its log
        await it.caller.call("memory.store", content="alpha beta")
    put_model(paths.models)

    async def later(_backlog: EmbeddingBacklog) -> bool:
        return True

    monkeypatch.setattr(EmbeddingBacklog, "sweep", later)
    async with served(paths, clock) as it:
        it.daemon.services.near.embedder._load = lambda _folder, _manifest: FakeModel()
        found = await it.caller.call("memory.query", text="alpha", mode="semantic")
        assert (found["degraded"], found["unembedded"]) == (None, 0)


async def test_a_rebuild_tells_of_what_it_built_and_claims_no_more(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        await it.caller.call("memory.store", content="alpha beta")
        report = await it.caller.call("views.rebuild", name="memories")
        assert report["ok"] is True
        assert {name: sorted(view) for name, view in report["views"].items()} == {
            "memories": ["digest", "position", "rows"]
        }


async def test_what_another_client_has_just_linked_can_be_unlinked(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock, KEYWORDS) as it, anyio.create_task_group() as tasks:
        one, other = [
            (await it.caller.call("memory.store", content=content))["memory_id"]
            for content in ("alpha", "beta")
        ]
        await it.caught_up()
        let_go = hold(it, monkeypatch)
        await asyncio.sleep(0.01)
        await it.caller.call("memory.link", memory_id=one, target_id=other)
        tasks.start_soon(partial(it.other().call, "memory.unlink", memory_id=one, target_id=other))
        await asyncio.sleep(0.05)
        let_go()


async def test_nobody_can_be_called_as_a_reaction_is(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        with pytest.raises(Invalid, match="reaction:expiry"):
            await it.caller.call("system.hello", client="reaction:expiry")
