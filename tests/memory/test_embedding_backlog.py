"""The backlog of a served home: when it looks, what the status says of it, and how it deals with a text
that the model cannot embed.
"""

import threading
from typing import Any

import anyio
import pytest

from omegad.embedding.breaker import FAILURES_MAX
from omegad.index import served as served_index
from omegad.log.decision import Outcome
from omegad.memory import embedding
from omegad.memory.embedding import EmbeddingBacklog, EmbedMemory, MemoryHasVectors
from omegad.requests.method import RequestContext
from omegad.requests.running import RequestRunner
from omegad.runtime.config import Paths
from omegad.runtime.errors import Invalid, OmegadError, Refused, StorageBusy
from omegad.storage.driver import Connection
from tests.builders import (
    PATIENCE_S,
    FakeClock,
    FakeModel,
    Served,
    edited,
    put_model,
    recorded,
    served,
    stored,
    until,
    vector_of,
)
from tests.builders import embedded as embedded_event

UNFIT = "unfit"


class PickyModel(FakeModel):
    """Fails on the texts that hold a word; takes a permit for each text, where there are any to be had."""

    permits: threading.Semaphore | None = None

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def embed(self, text: str) -> bytes:
        self.asked.append(text)
        if self.permits is not None:
            self.permits.acquire(timeout=PATIENCE_S)
        if UNFIT in text:
            raise ValueError("the output has length 0")
        return super().embed(text)


@pytest.fixture
def model(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> PickyModel:
    fake = PickyModel()
    put_model(paths.models)
    monkeypatch.setattr("omegad.embedding.embedder._load_session", lambda _folder, _manifest: fake)
    return fake


async def embedded(it: Served) -> int:
    def count(connection: Connection) -> int:
        found: int = connection.execute(
            "SELECT count(DISTINCT memory_id) FROM memory_vectors WHERE vector IS NOT NULL"
        ).fetchone()[0]
        return found

    await it.caught_up()
    return await it.daemon.services.views.read(count)


async def all_embedded(it: Served, wanted: int) -> None:
    with anyio.fail_after(PATIENCE_S):
        while await embedded(it) != wanted:  # noqa: ASYNC110  the views announce no rows
            await anyio.sleep(0.01)


@pytest.mark.usefixtures("model")
async def test_one_text_that_cannot_be_embedded_holds_up_nobody(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        for number in range(FAILURES_MAX):
            await it.caller.call("memory.store", content=f"{UNFIT} text number {number}", ack="durable")
        for number in range(10):
            await it.caller.call("memory.store", content=f"memory of thing{number}", ack="durable")
        await all_embedded(it, 10)
        await until(lambda: it.daemon.backlog.size == 0)
        assert (await it.caller.call("memory.query", text="what of thing3?"))["degraded"] is None
        status = await it.caller.call("system.status")
        assert (status["embedding"]["state"], status["embedding"]["backlog"]) == ("ready", 0)
        (trouble,) = status["degraded"]
        assert trouble.startswith(
            f"the reaction embedding_backlog: {FAILURES_MAX} memories cannot be embedded and are found by"
            " words alone; of mem-"
        )
        assert trouble.endswith("the output has length 0")


@pytest.mark.usefixtures("model")
async def test_a_long_memory_is_set_aside_for_one_of_its_passages(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        await it.caller.call("memory.store", content="word " * 1_000 + UNFIT, ack="durable")
        await until(lambda: it.daemon.backlog.trouble is not None)
        assert await embedded(it) == 0


@pytest.mark.usefixtures("model")
async def test_one_that_says_something_else_is_tried_at_once(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        stored = await it.caller.call("memory.store", content=f"{UNFIT} text", ack="durable")
        await until(lambda: it.daemon.backlog.trouble is not None)
        await it.caller.call(
            "memory.edit", memory_id=stored["memory_id"], content="a text like others", ack="durable"
        )
        await all_embedded(it, 1)
        await until(lambda: it.daemon.backlog.trouble is None)


async def test_lost_vectors_of_a_text_that_can_be_embedded_no_more_hold_up_no_others(
    paths: Paths, clock: FakeClock, model: PickyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.memory.embedding.BATCH", 2)
    monkeypatch.setattr(PickyModel, "embed", lambda _model, text: vector_of(text))
    async with served(paths, clock) as it:
        for text in (
            f"{UNFIT} now",
            *(f"memory of thing{number}" for number in range(4)),
            f"{UNFIT} and last",
        ):
            await it.caller.call("memory.store", content=text)
        await all_embedded(it, 6)
    for path in (*paths.home.glob("embeddings.db*"), *paths.home.glob("views*")):
        path.unlink()
    monkeypatch.undo()
    monkeypatch.setattr("omegad.embedding.embedder._load_session", lambda _folder, _manifest: model)
    async with served(paths, clock) as it:
        await all_embedded(it, 4)
        await until(lambda: it.daemon.backlog.size == 0)
        assert (it.daemon.backlog.trouble or "").startswith("2 memories")


@pytest.mark.parametrize("error", [Refused("no such type"), Invalid("too large")], ids=["refused", "invalid"])
async def test_one_whose_embedding_is_refused_is_set_aside(
    paths: Paths, clock: FakeClock, model: PickyModel, monkeypatch: pytest.MonkeyPatch, error: OmegadError
) -> None:
    async def execute(_requests: RequestRunner, command: EmbedMemory, context: RequestContext) -> Outcome:
        del context
        if command.said.content == "one":
            raise error
        assert model.embed(command.said.content)
        return Outcome(answer=MemoryHasVectors(is_done=True), position=0)

    monkeypatch.setattr(RequestRunner, "execute", execute)
    async with served(paths, clock) as it:
        for text in ("one", "two"):
            await it.caller.call("memory.store", content=text, ack="durable")
        await until(lambda: it.daemon.backlog.trouble is not None)
        await until(lambda: "two" in model.texts)
        assert (it.daemon.backlog.trouble or "").endswith(str(error))


async def test_the_status_counts_what_is_stored_while_the_backlog_is_worked_off(
    paths: Paths, clock: FakeClock, model: PickyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.memory.embedding.BATCH", 2)
    async with served(paths, clock) as it:
        model.permits = threading.Semaphore(0)
        await it.caller.call("memory.store", content="the first memory", ack="durable")
        await until(lambda: model.asked)
        assert it.daemon.backlog.size == 1
        for number in range(6):
            await it.caller.call("memory.store", content=f"memory of thing{number}", ack="durable")
        sizes = []
        for number in range(1, 7):
            model.permits.release()
            await until(lambda: len(model.asked) > number)  # noqa: B023  within the round
            sizes.append(it.daemon.backlog.size)
        assert sizes == [6, 5, 4, 3, 2, 1]
        status = await it.caller.call("system.status")
        assert (status["embedding"]["backlog"], status["degraded"]) == (
            1,
            ["1 memories wait for their vectors"],
        )
        model.permits.release(7)
        await all_embedded(it, 7)
        await until(lambda: it.daemon.backlog.size == 0)
        assert model.asked == ["the first memory", *(f"memory of thing{number}" for number in range(6))]


async def test_it_looks_for_a_reason_alone(
    paths: Paths, clock: FakeClock, model: PickyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeps = 0
    genuine = EmbeddingBacklog.sweep

    async def counted(backlog: EmbeddingBacklog) -> bool:
        nonlocal sweeps
        is_done = await genuine(backlog)
        # Not before: what comes while it looks is a reason to look again, and so is a model that was not loaded.
        sweeps += bool(backlog._swept_with and backlog._swept_with.used)
        return is_done

    monkeypatch.setattr(EmbeddingBacklog, "sweep", counted)
    async with served(paths, clock) as it:
        await until(lambda: sweeps == 1)
        stored = await it.caller.call("memory.store", content="embedded at once")
        await it.caller.call("tool.record", session_id="s", tool_name="Bash")
        await it.caller.call("memory.query", text="embedded")
        await it.caught_up()
        await anyio.sleep(0.1)
        assert sweeps == 1
        await it.caller.call(
            "memory.edit", memory_id=stored["memory_id"], content="embedded later", ack="durable"
        )
        await until(lambda: sweeps == 2)
        await until(lambda: "embedded later" in model.asked)
        await it.caller.call("views.rebuild")
        await until(lambda: sweeps == 3)


async def test_what_goes_missing_while_it_looks_is_looked_for_again(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    genuine = embedding.count

    async with served(paths, clock) as it:

        def count(*values: Any, **named: Any) -> int:
            nonlocal looks
            looks += 1
            if looks == 1:
                it.daemon.backlog.look_again()
            return genuine(*values, **named)

        monkeypatch.setattr(embedding, "count", count)
        await until(lambda: looks == 2)
        await anyio.sleep(0.1)
        assert looks == 2


async def test_a_model_that_cannot_now_is_tried_again_and_sets_nothing_aside(
    paths: Paths, clock: FakeClock, model: PickyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.embedding.breaker.OPEN_S", 0.0)
    model.failing = True
    async with served(paths, clock) as it:
        await it.caller.call("memory.store", content="alpha", ack="durable")
        await until(lambda: model.asked.count("alpha") > FAILURES_MAX)
        assert (it.daemon.backlog.size, it.daemon.backlog.trouble) == (1, None)
        model.failing = False
        await all_embedded(it, 1)
        await until(lambda: it.daemon.backlog.size == 0)


async def test_views_that_cannot_be_read_are_waited_for(
    paths: Paths, clock: FakeClock, model: PickyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_values: object, **_named: object) -> int:
        raise StorageBusy

    with monkeypatch.context() as broken:
        broken.setattr("omegad.memory.embedding.count", fail)
        async with served(paths, clock) as it:
            await it.caller.call("memory.store", content="alpha", ack="durable")
            await until(lambda: it.daemon.reactions.status()["embedding_backlog"].trouble)
            assert model.asked == []
            broken.undo()
            await all_embedded(it, 1)
            await until(lambda: it.daemon.reactions.status()["embedding_backlog"].trouble is None)


async def test_one_that_was_set_aside_is_tried_again_after_a_while(
    paths: Paths, clock: FakeClock, model: PickyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.memory.embedding.TRY_AGAIN_S", 0.05)
    async with served(paths, clock) as it:
        await it.caller.call("memory.store", content=UNFIT, ack="durable")
        await until(lambda: model.asked.count(UNFIT) >= 3)
        assert it.daemon.backlog.trouble is not None
        monkeypatch.setattr(PickyModel, "embed", lambda _model, text: vector_of(text))
        await all_embedded(it, 1)
        await until(lambda: it.daemon.backlog.trouble is None)


@pytest.mark.usefixtures("model")
async def test_one_that_is_gone_is_not_told_of_any_more(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        stored = await it.caller.call("memory.store", content=UNFIT, ack="durable")
        await until(lambda: it.daemon.backlog.trouble is not None)
        await it.caller.call("memory.delete", memory_id=stored["memory_id"])
        await until(lambda: it.daemon.backlog.trouble is None)


async def test_lost_vectors_of_passages_that_a_text_is_not_cut_into_any_more_are_told_of(
    paths: Paths, clock: FakeClock, model: PickyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock) as it:
        await it.caller.call("memory.store", content="alpha beta")
        await all_embedded(it, 1)
    for path in (*paths.home.glob("embeddings.db*"), *paths.home.glob("views*")):
        path.unlink()
    monkeypatch.setattr("omegad.embedding.catalogue.passages", str.split)
    async with served(paths, clock) as it:
        await until(lambda: it.daemon.backlog.trouble is not None)
        assert (it.daemon.backlog.trouble or "").endswith(
            "the vectors that were recorded are of another text than it has"
        )
        assert it.daemon.backlog.size == 0
    assert model.asked[-2:] == ["alpha", "beta"]


async def test_what_is_edited_before_anybody_looks_is_embedded_again_though_it_had_vectors(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        looks = it.daemon.backlog.concerns
        events = [
            recorded(one, position) for position, one in enumerate((stored(), embedded_event(), edited()), 1)
        ]
        assert [looks(events[:1]), looks(events[:2]), looks(events), looks(events[2:])] == [
            True,
            False,
            True,
            True,
        ]


async def test_a_text_that_takes_the_model_long_is_stored_with_its_vector_all_the_same(
    paths: Paths, clock: FakeClock, model: PickyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_index, "BEGUN_S", 0.01)
    async with served(paths, clock) as it, anyio.create_task_group() as tasks:
        await it.caller.call("memory.store", content="the model is loaded for this one")
        model.permits = threading.Semaphore(0)
        answers = list[Any]()

        async def store() -> None:
            answers.append(await it.caller.call("memory.store", content="no reader waits for this one"))

        tasks.start_soon(store)
        embedder = it.daemon.services.near.embedder
        await until(lambda: embedder.status().waiting == 1)  # the reader has given up, and it is asked again
        model.permits.release(2)
        await until(lambda: bool(answers))
        assert (answers[0]["outcome"], answers[0]["degraded"]) == ("stored", None)
        assert await embedded(it) == 2


@pytest.mark.usefixtures("model")
async def test_a_text_that_fails_while_it_is_waited_for_is_stored_by_its_words(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        await it.caller.call("memory.store", content="the model is loaded for this one")
        stored = await it.caller.call("memory.store", content=f"the parser drops {UNFIT} lines")
        assert (stored["outcome"], stored["degraded"]) == ("stored", "embedding")
        assert await embedded(it) == 1
