"""The embedder: its order, its bounds, which model it takes, and how it lets one go."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from omegad.embedding import cache
from omegad.embedding.cache import text_hash
from omegad.embedding.catalogue import BGE, BUILDER_VERSION, MINILM, Manifest, installed
from omegad.embedding.embedder import LOOK_AGAIN_S, Embedder
from omegad.embedding.jobs import WAITING_MAX, Urgency
from omegad.runtime.errors import ModelFailed, ModelMissing, Overloaded, ShuttingDown
from omegad.runtime.precedence import HOOKS
from tests.builders import PATIENCE_S, until
from tests.embedding.fakes import FakeSession, bench, get_many, put_model


def test_what_runs_models_tells_nobody_and_leaves_nothing_in_the_users_folders(tmp_path: Path) -> None:
    places = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(tmp_path))
    environ = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"} | places
    command = [sys.executable, "-c", "import omegad.embedding.session"]
    subprocess.run(command, env=environ, check=True, timeout=PATIENCE_S)
    assert [*tmp_path.rglob("*")] == []


async def test_a_vector_comes_back_for_a_query_and_for_a_store(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        assert it.embedder.status().state == "unloaded"
        assert (await it.embedder.embed_query("query")).rstrip(b"\0") == b"q"
        assert (await it.embedder.embed_store("store")).rstrip(b"\0") == b"s"
        status = it.embedder.status()
        assert (status.state, status.model, status.embedder_id, status.waiting, status.failure) == (
            "ready",
            MINILM.name,
            "abc",
            0,
            None,
        )
        assert it.session.loads == 1


async def test_a_stored_text_is_computed_once_and_a_changed_embedder_computes_it_anew(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        await it.embedder.embed_store("caf\u00e9")
        await it.embedder.embed_store("cafe\u0301")
        await it.embedder.embed_backlog("caf\u00e9")
        assert it.session.texts == ["caf\u00e9"]
        assert set(await get_many(it.vectors, "abc", [text_hash("caf\u00e9")])) == {text_hash("caf\u00e9")}
    put_model(tmp_path / "models", embedder_id="xyz")
    async with bench(tmp_path) as it:
        await it.embedder.embed_store("caf\u00e9")
        assert it.session.texts == ["caf\u00e9"]


async def test_only_queries_carry_the_models_prefix(tmp_path: Path) -> None:
    put_model(tmp_path / "models", BGE)
    async with bench(tmp_path) as it:
        await it.embedder.embed_query("disk full")
        await it.embedder.embed_store("disk full")
        assert it.session.texts == [BGE.query_prefix + "disk full", "disk full"]


async def test_a_lone_surrogate_is_embedded_as_something_that_can_be_encoded(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        await it.embedder.embed_store("a\ud800b")
        assert it.session.texts == ["a?b"]


async def test_queries_go_before_stores_and_stores_before_the_backlog(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it, anyio.create_task_group() as callers:
        it.session.may_go_on.clear()
        callers.start_soon(it.embedder.embed_query, "first")
        await until(lambda: it.session.texts == ["first"])
        for call, text in (
            (it.embedder.embed_backlog, "backlog"),
            (it.embedder.embed_store, "store 1"),
            (it.embedder.embed_store, "store 2"),
            (it.embedder.embed_query, "query"),
        ):
            waiting = it.embedder.status().waiting
            callers.start_soon(call, text)
            await until(lambda waiting=waiting: it.embedder.status().waiting > waiting)  # type: ignore[misc]
        it.session.may_go_on.set()
        await until(lambda: len(it.session.texts) == 5)
        assert it.session.texts == ["first", "query", "store 1", "store 2", "backlog"]
        assert it.session.at_once_max == 1


async def test_a_hook_goes_before_queries_and_nothing_else_is_begun_while_it_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.runtime.precedence.HOLD_S", PATIENCE_S)
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it, anyio.create_task_group() as callers:
        it.session.may_go_on.clear()
        callers.start_soon(it.embedder.embed_query, "first")
        await until(lambda: it.session.texts == ["first"])
        for text in ("query 1", "query 2"):
            callers.start_soon(it.embedder.embed_query, text)
        await until(lambda: it.embedder.status().waiting == 2)
        with HOOKS.held():
            it.session.may_go_on.set()
            await it.embedder.embed_query("hook", Urgency.HOOK)
            assert it.session.texts == ["first", "hook"]
            assert it.embedder.status().waiting == 2
        await until(lambda: it.session.texts[2:] == ["query 1", "query 2"])


async def test_too_many_waiting_are_refused_without_keeping_more_urgent_ones_out(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it, anyio.create_task_group() as callers:
        it.session.may_go_on.clear()
        callers.start_soon(it.embedder.embed_query, "first")
        await until(lambda: bool(it.session.texts))
        for number in range(WAITING_MAX):
            callers.start_soon(it.embedder.embed_backlog, str(number))
        await until(lambda: it.embedder.status().waiting == WAITING_MAX)
        with pytest.raises(Overloaded):
            await it.embedder.embed_backlog("one too many")
        callers.start_soon(it.embedder.embed_query, "urgent")
        await until(lambda: it.embedder.status().waiting == WAITING_MAX + 1)
        callers.cancel_scope.cancel()


async def test_who_stops_waiting_takes_the_text_out_of_the_queue(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        it.session.may_go_on.clear()
        waiters = [asyncio.ensure_future(it.embedder.embed_query(str(n))) for n in range(5)]
        await until(lambda: it.embedder.status().waiting == 4)
        for waiter in waiters:
            waiter.cancel()
        await asyncio.wait(waiters)
        assert it.embedder.status().waiting == 0
        it.session.may_go_on.set()
        await it.embedder.embed_query("next")
        assert it.session.texts == ["0", "next"]


async def test_natively_cancelled_waiters_never_break_the_worker(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        for round_ in range(40):
            it.session.may_go_on.clear()
            calls = (it.embedder.embed_query, it.embedder.embed_store, it.embedder.embed_backlog)
            waiters = [asyncio.ensure_future(calls[n % 3](f"{round_} {n}")) for n in range(6)]
            await asyncio.sleep(0.001 * (round_ % 4))
            for waiter in waiters[round_ % 2 :: 2]:
                waiter.cancel()
            it.session.may_go_on.set()
            outcomes = await asyncio.gather(*waiters, return_exceptions=True)
            assert [isinstance(outcome, asyncio.CancelledError) for outcome in outcomes].count(True) == 3
            assert all(isinstance(outcome, bytes | asyncio.CancelledError) for outcome in outcomes)
        assert await it.embedder.embed_query("still there")
        assert it.session.at_once_max == 1
        assert it.embedder.status().waiting == 0


async def test_a_model_installed_meanwhile_is_noticed_within_a_second(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        assert it.embedder.embedder_id is None
        assert it.embedder.status().state == "absent"
        with pytest.raises(ModelMissing):
            await it.embedder.embed_query("x")
        put_model(tmp_path / "models")
        with pytest.raises(ModelMissing):
            await it.embedder.embed_store("x")
        it.time.now += LOOK_AGAIN_S
        assert await it.embedder.embed_store("x")
        assert it.embedder.embedder_id == "abc"


async def test_a_model_of_an_earlier_version_that_cannot_be_made_anew_serves_as_it_is(tmp_path: Path) -> None:
    put_model(tmp_path / "models", builder_version=BUILDER_VERSION - 1)
    async with bench(tmp_path) as it:
        assert it.embedder.status().state == "absent"
        await until(lambda: it.embedder._is_renewed)
        it.time.now += LOOK_AGAIN_S
        assert await it.embedder.embed_store("x")
        assert it.embedder.embedder_id == "abc"


async def test_the_model_in_use_stays_the_one_in_use(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        await it.embedder.embed_query("x")
        put_model(tmp_path / "models", BGE, "better")
        it.time.now += 60
        await it.embedder.embed_query("x")
        assert it.embedder.embedder_id == "abc"


async def test_a_model_replaced_by_another_of_its_name_is_not_mixed_with_it(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        assert it.embedder.embedder_id == "abc"
        put_model(tmp_path / "models", embedder_id="other")
        with pytest.raises(ModelFailed, match="another"):
            await it.embedder.embed_query("x")


async def test_none_means_no_model_even_where_one_is_installed(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path, choice="none") as it:
        with pytest.raises(ModelMissing, match="is none"):
            await it.embedder.embed_query("x")


async def test_an_idle_model_is_unloaded_and_loaded_again_when_needed(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path, idle_unload_s=0.02) as it:
        await it.embedder.embed_query("x")
        await until(lambda: it.embedder.status().state == "unloaded")
        await it.embedder.embed_query("y")
        assert it.session.loads == 2


@pytest.mark.parametrize("natively", [True, False])
async def test_who_waits_when_the_service_stops_is_told_so(tmp_path: Path, natively: bool) -> None:  # noqa: FBT001
    put_model(tmp_path / "models")
    session = FakeSession()
    session.may_go_on.clear()
    async with cache.opened(tmp_path / "embeddings.db") as vectors:
        embedder = Embedder(
            vectors, models_dir=tmp_path / "models", choice="auto", idle_unload_s=60, load=session.load
        )
        scope = anyio.CancelScope()

        async def run() -> None:
            with scope:
                await embedder.run()

        running = asyncio.ensure_future(run())
        waiters = [asyncio.ensure_future(embedder.embed_query(str(n))) for n in range(3)]
        await until(lambda: len(session.texts) == 1 and embedder.status().waiting == 2)
        if natively:
            running.cancel()
        else:
            scope.cancel()
        await asyncio.sleep(0.01)
        session.may_go_on.set()
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait([running])
            outcomes = await asyncio.gather(*waiters, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes[1:]] == [ShuttingDown, ShuttingDown]
        assert isinstance(outcomes[0], bytes | ShuttingDown)
        with pytest.raises(ShuttingDown):
            await embedder.embed_query("late")


async def test_a_query_is_begun_where_it_is_next_and_a_thread_waits_for_its_vector(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        assert it.embedder.begin_query("alpha") is None, "the model is not loaded"
        await it.embedder.embed_query("beta")
        it.session.may_go_on.clear()
        job = it.embedder.begin_query("gamma")
        assert job is not None
        with pytest.raises(TimeoutError):
            job.wait(0)
        assert it.embedder.begin_query("delta") is None, "another is waiting"
        it.session.may_go_on.set()
        assert (await anyio.to_thread.run_sync(job.wait, PATIENCE_S)).rstrip(b"\0") == b"g"
        assert await job.result() == job.wait(0)


async def test_a_text_to_store_is_begun_where_it_is_next_and_is_embedded_once(tmp_path: Path) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        assert it.embedder.begin_store("alpha") is None, "the model is not loaded"
        await it.embedder.embed_store("beta")
        for _ in range(2):
            job = it.embedder.begin_store("gamma")
            assert job is not None
            vector = await anyio.to_thread.run_sync(job.wait, PATIENCE_S)
            assert vector.rstrip(b"\0") == b"g"
            it.embedder.hold(text_hash("gamma"), vector)
        assert it.session.texts == ["beta", "gamma"], "the second time it is at hand"


async def test_who_asks_for_the_model_while_another_thread_looks_for_it_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slowly(models_dir: Path, choice: str) -> Manifest | None:
        begun.set()
        assert may_end.wait(PATIENCE_S)
        return installed(models_dir, choice)

    async with bench(tmp_path) as it:
        await until(lambda: it.embedder._is_renewed)
        put_model(tmp_path / "models")
        monkeypatch.setattr("omegad.embedding.embedder.installed", slowly)
        found = list[str | None]()

        def ask() -> None:
            found.append(it.embedder.embedder_id)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, ask)
            await until(begun.is_set)
            tasks.start_soon(anyio.to_thread.run_sync, ask)
            await anyio.sleep(0.05)
            may_end.set()
        assert found == ["abc", "abc"]


class WordByWord(FakeSession):
    """Finds a text near to another by how many letters they share."""

    def nearness(self, asked: str, said: str) -> float:
        self.embed(asked)
        return len({*asked}.intersection(said)) / 8


async def test_a_thread_is_told_how_near_two_texts_are_word_by_word_once_the_model_is_loaded(
    tmp_path: Path,
) -> None:
    put_model(tmp_path / "models")
    async with bench(tmp_path) as it:
        await it.embedder.embed_query("of a model that compares no words")
        assert await anyio.to_thread.run_sync(it.embedder.nearness, "ab", "bcd", PATIENCE_S) is None
    async with bench(tmp_path, session=WordByWord()) as it:

        async def told(asked: str, within_s: float = PATIENCE_S) -> float | None:
            return await anyio.to_thread.run_sync(it.embedder.nearness, asked, "bcd", within_s)

        assert await told("ab") is None
        assert it.session.texts == []
        await it.embedder.embed_query("query")
        assert (await told("ab"), await told("bc")) == (1 / 8, 2 / 8)
        it.session.unfit.add("unfit")
        assert await told("unfit") is None
        it.session.may_go_on.clear()
        assert await told("bc", 0.01) is None
        it.session.may_go_on.set()
        assert await told("bc") == 2 / 8
