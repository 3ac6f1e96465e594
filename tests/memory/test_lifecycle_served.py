"""The life of a memory through the service: denied and said again, replaced and restored, edited, grown,
expired, imported, upgraded.
"""

import asyncio
from typing import Any

import anyio
import pytest

from omegad.log.reading import FORMAT
from omegad.memory.events import MemoryEmbedded, MemoryEvolved, MemoryStored
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Conflict, Invalid, NotFound, Refused
from tests.builders import (
    EMBEDDER,
    PATIENCE_S,
    FakeClock,
    FakeModel,
    Served,
    everything,
    rows,
    served,
    until,
    vector_of,
)
from tests.memory.test_state import downgrade

KEYWORDS = Config(model="none")
DAY_US = 86_400_000_000


async def store(it: Served, content: str, **changes: Any) -> Any:
    return await it.caller.call("memory.store", content=content, **changes)


async def get(it: Served, memory_id: str) -> Any:
    return await it.caller.call("memory.get", memory_id=memory_id)


async def found(it: Served, text: str, **changes: Any) -> list[str]:
    return [
        one["memory_id"] for one in (await it.caller.call("memory.query", text=text, **changes))["results"]
    ]


async def listed(it: Served) -> list[str]:
    return [one["memory_id"] for one in (await it.caller.call("memory.list"))["memories"]]


async def shown(it: Served, sql: str) -> list[tuple[Any, ...]]:
    await it.caught_up()
    return await it.daemon.services.views.read(lambda connection: rows(connection, sql))


ON_POSTGRES = "Billing runs on PostgreSQL 16"
ON_COCKROACH = "Billing runs on CockroachDB"
TITLE = "Cache the rendered pages for an hour"
REVERT = f'Revert "{TITLE}"'


async def test_what_takes_the_place_of_another_is_offered_it_and_takes_it_when_told_to(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        first = (await store(it, ON_POSTGRES, project="shop"))["memory_id"]
        other = (await store(it, "Staging runs on PostgreSQL 15", project="shop"))["memory_id"]
        second = await store(it, ON_COCKROACH, project="shop", supersedes=[first, other])
        assert (second["outcome"], second["superseded"], second["contradicts"]) == (
            "stored",
            [first, other],
            [],
        )
        assert [(await get(it, one))["superseded_by"] for one in (first, other)] == [second["memory_id"]] * 2
        assert await listed(it) == [second["memory_id"]]
        again = await store(it, ON_POSTGRES, project="shop")
        assert (again["outcome"], again["superseded"]) == (
            "stored",
            [],
        ), "what is said again is stored again, and hides nothing"
        settled = await store(it, ON_POSTGRES, project="shop", supersedes=[second["memory_id"]])
        assert (settled["outcome"], settled["memory_id"], settled["superseded"]) == (
            "duplicate",
            again["memory_id"],
            [second["memory_id"]],
        )
        assert await listed(it) == [again["memory_id"]]
        assert (await it.caller.call("views.verify"))["ok"]
    assert model.texts


async def test_nothing_is_stored_where_what_it_is_to_replace_is_not_there(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        gone = (await store(it, "alpha"))["memory_id"]
        await it.caller.call("memory.delete", memory_id=gone)
        head = it.daemon.services.log.head
        for names, error in (
            (["mem-nobody"], NotFound),
            ([gone], Refused),
            (["x"] * 17, Invalid),
            ([""], Invalid),
        ):
            for ack in ("related", "durable"):
                with pytest.raises(error):
                    await store(it, "beta", supersedes=names, ack=ack)
        assert it.daemon.services.log.head == head


async def test_what_an_upsert_edits_takes_the_place_of_what_it_names_but_not_its_own(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        one, other = [(await store(it, content))["memory_id"] for content in ("alpha", "beta")]
        told = {
            "content": "gamma",
            "source": "me",
            "timestamp": "2025-06-01",
            "confidence": 1.0,
            "memory_id": one,
        }
        answer = await it.caller.call("memory.upsert", **told, supersedes=[one, other])
        assert (answer["memory_id"], answer["superseded"]) == (one, [other])
        assert await listed(it) == [one]


@pytest.mark.parametrize(
    "content",
    [ON_COCKROACH, "Billing switched from PostgreSQL 16 to MySQL", "Billing no longer runs on PostgreSQL 16"],
)
async def test_what_the_text_alone_seems_to_replace_is_left_as_it_is(
    content: str, paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        first = (await store(it, ON_POSTGRES))["memory_id"]
        second = await store(it, content)
        assert (second["outcome"], second["superseded"]) == ("stored", [])
        assert (await get(it, first))["status"] == "active"
    assert model.texts


async def test_nothing_is_in_conflict_with_what_is_hidden(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        first = (await store(it, TITLE))["memory_id"]
        revert = (await store(it, REVERT))["memory_id"]
        other = (await store(it, "pages are not cached at all"))["memory_id"]
        await it.caller.call("memory.link", memory_id=other, target_id=first, edge_type="contradicts")
        for hide, left in ((other, revert), (revert, None)):
            await it.caller.call("memory.delete", memory_id=hide)
            assert (await get(it, first))["contradicted_by"] == left
            found = (await it.caller.call("memory.query", text=TITLE))["results"]
            assert {one.get("contradicted_by") for one in found if one["memory_id"] == first} == {left}
        await it.caller.call("memory.restore", memory_id=revert)
        assert (await get(it, first))["contradicted_by"] == revert
        await it.caller.call("memory.supersede", memory_id=revert, superseded_by=first)
        assert (await get(it, first))["contradicted_by"] is None
        assert (await it.caller.call("views.verify"))["ok"]
    assert model.texts


@pytest.mark.parametrize(
    "addition",
    [
        "; it retries twice on a timeout",
        ", and it retries twice",
        ", it may retry twice",
        " and retries twice",
        " because all of them fit",
        ", which is enough",
        " (as of May)",
    ],
)
@pytest.mark.parametrize("is_long", [False, True], ids=["short", "long"])
async def test_one_sentence_that_goes_on_grows_the_memory(
    paths: Paths, clock: FakeClock, addition: str, *, is_long: bool
) -> None:
    said = "The exporter reads pages" + " of five hundred rows of every order of the day" * is_long
    async with served(paths, clock, KEYWORDS) as it:
        first = await store(it, f"{said}.", event_type="decision")
        grown = await store(it, f"{said}{addition}.", event_type="decision")
        assert (grown["outcome"], grown["memory_id"]) == ("evolved", first["memory_id"])
        assert (await get(it, first["memory_id"]))["content"] == f"{said}{addition}."
        narrowed = await store(it, f"{said} in the cloud.", event_type="decision")
        assert narrowed["outcome"] == "stored"


@pytest.mark.usefixtures("model")
async def test_a_revert_flags_what_it_names_however_many_are_nearer_to_what_it_says(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        first = await store(it, TITLE)
        said = "the proxy kept stale fragments of basket {} after a deploy and nobody could purge them"
        for number in range(12):
            await store(it, said.format(number))
        for revert in (f"{REVERT}\n\n{said.format('one')}", f"{REVERT} (#12)\n{said.format('two')}"):
            assert first["memory_id"] in (await store(it, revert))["contradicts"]


async def test_a_revert_is_stored_beside_what_it_reverts_and_flags_it(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        first = await store(it, TITLE)
        second = await store(it, REVERT)
        assert (second["outcome"], second["contradicts"], second["superseded"]) == (
            "stored",
            [first["memory_id"]],
            [],
        )
        older = await get(it, first["memory_id"])
        assert (older["content"], older["status"], older["contradicted_by"]) == (
            TITLE,
            "active",
            second["memory_id"],
        )
        assert (second["memory_id"], "contradicts", "in") in [
            (edge["memory_id"], edge["edge_type"], edge["direction"]) for edge in older["edges"]
        ]
        again = await store(it, TITLE)
        assert (again["outcome"], again["memory_id"], again["contradicts"]) == (
            "duplicate",
            first["memory_id"],
            [],
        )
        assert (await get(it, first["memory_id"]))["contradicted_by"] is None
    assert model.texts


@pytest.mark.parametrize("how", ["superseded", "deleted"])
async def test_a_memory_that_is_restored_is_found_again_by_words_and_by_meaning(
    paths: Paths, clock: FakeClock, model: FakeModel, how: str
) -> None:
    async with served(paths, clock) as it:
        one, other = await store(it, "alpha beta PaymentGateway"), await store(it, "epsilon zeta")
        if how == "superseded":
            await it.caller.call(
                "memory.supersede", memory_id=one["memory_id"], superseded_by=other["memory_id"]
            )
        else:
            await it.caller.call("memory.delete", memory_id=one["memory_id"])
        assert one["memory_id"] not in [
            *await found(it, "alpha beta"),
            *await found(it, "alpha beta", mode="semantic"),
            *await listed(it),
        ]
        assert (await get(it, one["memory_id"]))["status"] == how
        await it.caller.call("memory.restore", memory_id=one["memory_id"])
        for mode in ("hybrid", "semantic", "keyword", "phrase"):
            assert (await found(it, "alpha beta", mode=mode))[:1] == [one["memory_id"]], mode
        assert await found(it, "payment gateway", mode="keyword") == [one["memory_id"]]
        restored = await get(it, one["memory_id"])
        assert (restored["status"], restored["superseded_by"]) == ("active", None)
        assert [edge for edge in restored["edges"] if edge["edge_type"] == "superseded_by"] == []
        with pytest.raises(Refused):
            await it.caller.call("memory.restore", memory_id=one["memory_id"])
        assert (await it.caller.call("views.verify"))["ok"]
    assert model.texts


async def test_a_memory_is_not_restored_beside_one_that_says_the_same(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        one = await store(it, "alpha beta")
        await it.caller.call("memory.delete", memory_id=one["memory_id"])
        other = await store(it, "alpha beta")
        with pytest.raises(Conflict):
            await it.caller.call("memory.restore", memory_id=one["memory_id"])
        await it.caller.call("memory.edit", memory_id=other["memory_id"], content="gamma")
        await it.caller.call("memory.restore", memory_id=one["memory_id"])
        assert await found(it, "alpha") == [one["memory_id"]]


OLD, NEW = "alpha beta gamma PaymentGateway", "delta epsilon zeta HttpServer"


@pytest.mark.usefixtures("model")
async def test_after_an_edit_the_new_words_are_found_and_nothing_of_the_old(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        one = (await store(it, OLD))["memory_id"]
        other = (await store(it, "alpha beta gamma something else entirely"))["memory_id"]
        assert one in await found(it, OLD, mode="semantic")
        index = it.daemon.services.near.index(it.daemon.services.views.file)
        assert index is not None
        before = await shown(it, f"SELECT id FROM memory_vectors WHERE memory_id = '{one}'")
        await it.caller.call("memory.edit", memory_id=one, content=NEW, reason="a slip")
        assert await found(it, "alpha beta gamma", mode="keyword") == [other]
        assert await found(it, "payment", mode="keyword") == []
        for words in ("delta epsilon", "server"):
            assert await found(it, words, mode="keyword") == [one]
        after = await shown(it, f"SELECT id, vector FROM memory_vectors WHERE memory_id = '{one}'")
        assert [row[1] for row in after] == [vector_of(NEW)]
        assert {row[0] for row in after}.isdisjoint(row[0] for row in before)
        assert {row[0] for row in await shown(it, "SELECT rowid FROM memories_vec")} == {
            row[0] for row in await shown(it, "SELECT id FROM memories")
        }
        found_now = await it.caller.call("memory.query", text=OLD, mode="semantic")
        assert found_now["results"][0]["memory_id"] == other
        assert await found(it, NEW, mode="semantic", limit=1) == [one]
        edited = await get(it, one)
        assert (edited["content"], edited["created_at"] < edited["edited_at"], edited["repeated"]) == (
            NEW,
            True,
            0,
        )


async def test_a_memory_is_as_near_as_what_it_says_now(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    """Whoever asks the index for the cosine of a memory that was found otherwise gets none of what it said
    before.
    """
    async with served(paths, clock) as it:
        one = (await store(it, OLD))["memory_id"]
        await found(it, OLD, mode="semantic")
        await it.caller.call("memory.edit", memory_id=one, content=NEW)
        await found(it, NEW, mode="semantic")
        index = it.daemon.services.near.index(it.daemon.services.views.file)
        assert index is not None
        (row,) = await shown(it, "SELECT id FROM memories")
        of_old = await it.daemon.services.views.read(
            lambda connection: index.cosines_of(connection, {EMBEDDER: vector_of(OLD)}, [row[0]])
        )
        of_new = await it.daemon.services.views.read(
            lambda connection: index.cosines_of(connection, {EMBEDDER: vector_of(NEW)}, [row[0]])
        )
        assert of_new == {row[0]: pytest.approx(1.0)}
        assert of_old[row[0]] < 0.5
    assert model.texts


async def test_an_edit_without_the_model_is_found_by_words_at_once_and_by_meaning_later(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        one = (await store(it, OLD))["memory_id"]
        await it.caller.call("memory.edit", memory_id=one, content=NEW, ack="durable")
        assert await found(it, "delta", mode="keyword") == [one]
        await it.worked_off()
        assert [row[0] for row in await shown(it, "SELECT vector FROM memory_vectors")] == [vector_of(NEW)]
        assert await found(it, NEW, mode="semantic") == [one]
    assert model.texts[-1] == NEW or NEW in model.texts


async def test_a_memory_that_is_edited_before_it_is_embedded_is_related_all_the_same(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        first = (await store(it, "alpha beta gamma delta"))["memory_id"]
        model.failing = True
        quick = (await store(it, "omega psi", ack="durable"))["memory_id"]
        await until(lambda: "omega psi" in model.texts)
        model.failing = False
        await it.caller.call("memory.edit", memory_id=quick, content="alpha beta gamma epsilon")
        await it.worked_off()
        with anyio.fail_after(PATIENCE_S):
            while (memory := await get(it, quick))["pending"]:  # noqa: ASYNC110  it announces no change
                await asyncio.sleep(0.01)
        assert first in [edge["memory_id"] for edge in memory["edges"]]


async def test_vectors_that_come_too_late_for_what_a_memory_said_are_of_no_account(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        model.may_go_on.clear()
        one = (await store(it, OLD, ack="durable"))["memory_id"]
        await until(lambda: OLD in model.texts)  # the backlog is at it
        await it.caller.call("memory.edit", memory_id=one, content=NEW, ack="durable")
        model.may_go_on.set()
        await it.worked_off()
        embeddings = [
            one for one in await everything(it.daemon.services.log) if isinstance(one.event, MemoryEmbedded)
        ]
        assert len(embeddings) == 1
        assert [row[0] for row in await shown(it, "SELECT vector FROM memory_vectors")] == [vector_of(NEW)]
        assert (await it.caller.call("views.verify"))["ok"]


async def test_an_edit_keeps_secrets_out_and_refuses_what_is_empty_hidden_or_taken(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        one, other = (await store(it, "alpha"))["memory_id"], (await store(it, "beta"))["memory_id"]
        token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
        await it.caller.call("memory.edit", memory_id=one, content=f"the token is {token}")
        assert token not in (await get(it, one))["content"]
        with pytest.raises(Invalid):
            await it.caller.call("memory.edit", memory_id=one, content=" ")
        with pytest.raises(Conflict, match=other):
            await it.caller.call("memory.edit", memory_id=one, content="beta")
        head = it.daemon.services.log.head
        await it.caller.call("memory.edit", memory_id=other, content="beta")
        assert it.daemon.services.log.head == head
        await it.caller.call("memory.delete", memory_id=other)
        with pytest.raises(Refused):
            await it.caller.call("memory.edit", memory_id=other, content="gamma")
        with pytest.raises(NotFound):
            await it.caller.call("memory.edit", memory_id="mem-nobody", content="gamma")


SAID, SAID_MORE = (
    "deploys go through blue-green in the cloud",
    "deploys go through blue-green in the cloud; rollbacks too",
)


@pytest.mark.parametrize("settings", [Config(), KEYWORDS], ids=["with a model", "by words"])
async def test_a_memory_that_is_said_again_with_more_grows_and_keeps_its_id(
    paths: Paths, clock: FakeClock, model: FakeModel, settings: Config
) -> None:
    async with served(paths, clock, settings) as it:
        one = await store(it, SAID, session_id="s1")
        more = await store(it, SAID_MORE, session_id="s2")
        assert (more["outcome"], more["memory_id"]) == ("evolved", one["memory_id"])
        memory = await get(it, one["memory_id"])
        assert memory["content"] == SAID_MORE
        assert await found(it, "rollbacks") == [one["memory_id"]]
        (event,) = [
            recorded
            for recorded in await everything(it.daemon.services.log)
            if isinstance(recorded.event, MemoryEvolved)
        ]
        assert isinstance(event.event, MemoryEvolved)
        assert (event.event.wording, event.event.memory_id, event.session_id) == (
            SAID_MORE,
            one["memory_id"],
            "s2",
        )
        again = await store(it, SAID_MORE)
        assert (again["outcome"], again["memory_id"]) == ("duplicate", one["memory_id"])
        assert (await get(it, one["memory_id"]))["content"] == memory["content"]
        if settings is not KEYWORDS:
            vectors = await shown(it, f"SELECT vector FROM memory_vectors WHERE embedder_id = '{EMBEDDER}'")
            assert vectors == [(vector_of(memory["content"]),)]
    assert settings is KEYWORDS or model.texts


async def test_a_memory_whose_time_is_over_is_hidden_at_its_moment_and_can_be_kept(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        one = (await store(it, "alpha beta", event_type="session_summary"))["memory_id"]
        assert (await found(it, "alpha beta"), await found(it, "alpha beta", mode="semantic")) == (
            [one],
            [one],
        )
        clock.us += DAY_US
        for mode in ("hybrid", "semantic", "keyword", "phrase"):
            assert await found(it, "alpha beta", mode=mode) == [], mode
        assert await listed(it) == []
        await it.expire()
        assert (await get(it, one))["status"] == "expired"
        await it.caller.call("memory.restore", memory_id=one)
        clock.us += 400 * DAY_US
        await it.expire()
        for mode in ("hybrid", "semantic", "keyword", "phrase"):
            assert await found(it, "alpha beta", mode=mode) == [one], mode
        assert (await get(it, one))["expires_at"] is None
        assert (await it.caller.call("views.verify"))["ok"]
    assert model.texts


async def test_what_is_said_again_lives_on(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        one = (await store(it, "alpha beta", ttl_seconds=3_600))["memory_id"]
        for _ in range(4):
            clock.us += DAY_US // 48
            assert (await store(it, "alpha beta", ttl_seconds=3_600))["memory_id"] == one
        assert await listed(it) == [one]


async def test_what_was_imported_from_long_ago_shortens_no_life(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        one = (await store(it, "alpha beta", ttl_seconds=3_600))["memory_id"]
        old = await it.caller.call(
            "memory.upsert", content="alpha beta", source="import", timestamp="2024-01-01", confidence=0.5
        )
        assert (old["outcome"], old["memory_id"]) == ("duplicate", one)
        assert await listed(it) == [one]
        assert await found(it, "alpha") == [one]


@pytest.mark.parametrize("timestamp", ["0002-01-01", "1969-12-31", "9998-12-31T23:59:59Z"])
@pytest.mark.parametrize("ttl_seconds", [None, 1, 100 * 366 * 86_400], ids=str)
async def test_whenever_something_was_learned_nobody_is_kept_from_being_answered(
    paths: Paths, clock: FakeClock, timestamp: str, ttl_seconds: int | None
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        params = {
            "content": "alpha",
            "source": "import",
            "timestamp": timestamp,
            "confidence": 0.5,
            "ttl_seconds": ttl_seconds,
        }
        try:
            one = (await it.caller.call("memory.upsert", **params))["memory_id"]
        except Invalid:
            return
        other = (await store(it, "beta"))["memory_id"]
        assert other in await listed(it)
        assert await found(it, "beta") == [other]
        assert (await get(it, one))["content"] == "alpha"
        assert (await it.caller.call("views.verify"))["ok"]
        assert not [
            trouble for trouble in (await it.caller.call("system.status"))["degraded"] if "view" in trouble
        ]


async def test_an_upsert_with_an_id_replaces_what_that_memory_says(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        one = (await store(it, "alpha"))["memory_id"]
        provenance = {"source": "import", "timestamp": "2026-01-01", "confidence": 0.5}
        answer = await it.caller.call("memory.upsert", memory_id=one, content="beta", **provenance)
        assert (answer["memory_id"], (await get(it, one))["content"]) == (one, "beta")
        with pytest.raises(NotFound):
            await it.caller.call("memory.upsert", memory_id="mem-nobody", content="gamma", **provenance)


GIVEN = {
    "tags": ["red"],
    "priority": 5,
    "metadata": {"ticket": "OPS-7"},
    "referenced_date": "2025-03-04",
    "source": "export",
    "confidence": 0.9,
}


async def test_an_upsert_with_an_id_replaces_what_is_known_of_that_memory(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        first = {
            "tags": ["blue", "green"],
            "priority": 2,
            "metadata": {"a": 1},
            "referenced_date": "2024-01-01",
            "source": "import",
            "confidence": 0.5,
        }
        one = (await it.caller.call("memory.upsert", content="alpha", timestamp="2025-12-01", **first))[
            "memory_id"
        ]
        for content in ("alpha", "beta"):  # the same words are no reason to leave the rest out
            await it.caller.call(
                "memory.upsert", memory_id=one, content=content, timestamp="2025-12-02", **GIVEN
            )
            now = await get(it, one)
            assert {name: now[name] for name in GIVEN} == GIVEN | {
                "referenced_date": "2025-03-04T00:00:00.000000Z"
            }
            assert (now["content"], now["edited_at"][:10]) == (content, "2025-12-02")
        assert (
            await found(it, "red")
            == await found(it, "4 March 2025")
            == await found(it, "beta", tags=["red"])
            == [one]
        )
        assert await found(it, "blue") == await found(it, "beta", tags=["blue"]) == []
        await it.caller.call(
            "memory.upsert",
            memory_id=one,
            content="gamma",
            timestamp="2025-12-03",
            source="x",
            confidence=1.0,
        )
        now = await get(it, one)
        assert (now["tags"], now["priority"], now["metadata"], now["source"]) == (
            ["red"],
            5,
            {"ticket": "OPS-7"},
            "x",
        )
        assert (await it.caller.call("views.verify"))["ok"]


@pytest.mark.parametrize(
    "given",
    [{"project": "other"}, {"entity_id": "other"}, {"event_type": "decision"}, {"ttl_seconds": 60}],
    ids=str,
)
async def test_an_upsert_that_would_move_a_memory_elsewhere_is_refused(
    given: dict[str, Any], paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        provenance = {"source": "import", "timestamp": "2026-01-01", "confidence": 0.5}
        one = (await store(it, "alpha", project="shop", event_type="lesson_learned"))["memory_id"]
        with pytest.raises(Refused, match=f"{next(iter(given))} .* cannot take its place"):
            await it.caller.call("memory.upsert", memory_id=one, content="beta", **provenance, **given)
        await it.caller.call(
            "memory.upsert",
            memory_id=one,
            content="beta",
            **provenance,
            project="shop",
            event_type="lesson_learned",
        )
        assert (await get(it, one))["content"] == "beta"


async def test_tags_that_come_with_what_is_said_again_are_kept(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        one = (await store(it, "alpha beta", tags=["blue"]))["memory_id"]
        for tags in (["red", "blue"], ["red"], []):
            assert (await store(it, "alpha beta", tags=tags))["outcome"] == "duplicate"
        assert (await get(it, one))["tags"] == ["blue", "red"]
        assert await found(it, "red") == await found(it, "alpha", tags=["red"]) == [one]
        assert await shown(it, "SELECT tags FROM memories_fts") == [("blue red",)]
        await it.caller.call("memory.delete", memory_id=one)
        await it.caller.call("memory.restore", memory_id=one)
        assert await found(it, "red") == [one]
        assert (await it.caller.call("views.verify"))["ok"]


async def test_the_tags_of_a_text_are_those_of_what_it_says_now(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        one = (await store(it, "the importer is written in Rust", project="/src/shop"))["memory_id"]
        assert (await get(it, one))["auto_tags"] == ["rust", "shop"]
        await it.caller.call(
            "memory.edit", memory_id=one, content="the importer is written in Python, tested with pytest"
        )
        assert (await get(it, one))["auto_tags"] == ["python", "pytest", "shop"]
        assert await found(it, "importer", tags=["rust"]) == []
        assert await found(it, "importer", tags=["pytest"]) == [one]


async def test_what_was_captured_is_on_probation_until_it_is_used(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        stored = await store(it, "alpha", source="auto_capture", session_id="s")
        assert stored["status"] == (await get(it, stored["memory_id"]))["status"] == "probation"
        assert (await it.caller.call("memory.rate", memory_id=stored["memory_id"], rating="helpful"))[
            "score"
        ] == 1
        memory = await get(it, stored["memory_id"])
        assert (memory["status"], memory["rating"], memory["confidence"], memory["source"]) == (
            "active",
            1,
            0.5,
            "auto_capture",
        )


async def test_edges_can_be_drawn_and_taken_away(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        one, other = (await store(it, "alpha"))["memory_id"], (await store(it, "beta"))["memory_id"]
        ends = {"memory_id": one, "target_id": other}
        await it.caller.call("memory.link", **ends, edge_type="evolves", weight=0.5)
        await it.caller.call("memory.link", **ends, edge_type="evolves", weight=0.75)
        drawn = {"edge_type": "evolves", "weight": 0.75}
        assert (await get(it, one))["edges"] == [{"memory_id": other, "direction": "out", **drawn}]
        assert (await get(it, other))["edges"] == [{"memory_id": one, "direction": "in", **drawn}]
        with pytest.raises(NotFound):
            await it.caller.call("memory.unlink", **ends, edge_type="related")
        await it.caller.call("memory.unlink", **ends)
        assert (await get(it, one))["edges"] == []
        with pytest.raises(NotFound):
            await it.caller.call("memory.unlink", **ends)


async def test_a_home_of_the_first_format_is_served_as_it_was(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        kept = (await store(it, "alpha beta", tags=["blue"], ttl_seconds=3_600))["memory_id"]
        gone = (await store(it, "gamma delta"))["memory_id"]
        await it.caller.call("memory.delete", memory_id=gone)
        before = {name: await get(it, name) for name in (kept, gone)}
    downgrade(paths.log)
    for path in paths.home.glob("views*"):
        path.unlink()
    async with served(paths, clock) as it:
        await it.caught_up()
        events = await everything(it.daemon.services.log)
        assert {event.tag for event in events if isinstance(event.event, MemoryStored)} == {"memory.stored@1"}
        for name, memory in before.items():
            now = await get(it, name)
            assert now == memory | {"position": now["position"], "auto_tags": []}
        assert await found(it, "alpha beta", mode="semantic") == [kept]
        assert (await store(it, "alpha beta", ttl_seconds=3_600))["outcome"] == "duplicate"
        await it.caller.call("memory.restore", memory_id=gone)
        assert await found(it, "gamma", mode="keyword") == [gone]
        assert (await it.caller.call("log.verify"))["ok"]
        assert (await it.caller.call("views.verify"))["ok"]
        identity = await it.daemon.services.log._writer.run(
            lambda connection: rows(connection, "SELECT format FROM identity")
        )
        assert identity == [(FORMAT,)]
    assert model.texts


async def test_what_is_noise_is_refused_and_what_it_is_about_is_tagged(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        with pytest.raises(Refused, match="noise"):
            await store(it, "<system-reminder>do not</system-reminder>")
        stored = await store(it, "the exporter.py of the shop needs Python", tags=["Python"])
        assert "exporter.py" in " ".join(stored["auto_tags"])
        memory = await get(it, stored["memory_id"])
        assert memory["auto_tags"] == stored["auto_tags"]
        assert "python" not in [tag.casefold() for tag in memory["auto_tags"]]  # it has that one already


@pytest.mark.usefixtures("model")
async def test_the_answer_says_what_was_taken_out_wherever_it_stood(paths: Paths, clock: FakeClock) -> None:
    key = "AKIAIOSFODNN7EXAMPLE"
    async with served(paths, clock) as it:
        stored = await store(
            it, "the importer needs its own user", metadata={"password": "hunter22"}, tags=[key]
        )
        assert sorted(stored["redacted"]) == ["assigned_secret", "aws_access_key"]
        memory = await get(it, stored["memory_id"])
        assert "hunter22" not in str(memory)
        assert key not in str(memory)
        edited = await it.caller.call(
            "memory.edit", memory_id=stored["memory_id"], content=f"the importer uses {key}"
        )
        assert edited["redacted"] == ["aws_access_key"]
        assert key not in (await get(it, stored["memory_id"]))["content"]
