"""When the backlog looks, what it asks for, and how it goes on after a failure."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from omegad.errors import ModelFailed, StorageBusy, ViewFailed
from omegad.queries.backlog import Lacking, Unfilled
from omegad.reactions import embedding_backlog
from omegad.reactions.embedding_backlog import EmbeddingBacklog
from tests.builders import until


class FakeEmbedding:
    """Memories that lack vectors, texts that cannot be embedded, and a model that can or cannot."""

    def __init__(self, *lacking: str) -> None:
        self.lacking = dict(enumerate(lacking, 1))
        self.unfilled_ones: dict[int, str] = {}
        self.model: str | None = "paper"
        self.can = True
        self.bad: set[str] = set()
        self.unfillable: set[str] = set()
        self.error: Exception | None = None
        self.looks = 0
        self.embedded: list[str] = []
        self.tried: list[str] = []
        self.between: Callable[[], None] = lambda: None
        self.seconds_to_count = 0.0
        self.seconds_to_embed = 0.0

    def add(self, *names: str) -> None:
        """Store more, after what there is."""
        for name in names:
            self.lacking[max(self.lacking, default=0) + 1] = name

    def embedder_id(self) -> str | None:
        return self.model

    async def count(self, after: int, filled_to: int) -> int:
        self.looks += 1
        if self.error:
            raise self.error
        await anyio.sleep(self.seconds_to_count)
        return sum(place > after for place in self.lacking) + sum(place > filled_to for place in self.unfilled_ones)

    async def unembedded(self, after: int) -> list[Lacking]:
        found = [
            Lacking(place, name, "content", f"hash of {name}", "memory", None, None, None) for place, name in self.lacking.items() if place > after
        ]
        return found[:2]

    async def embed(self, memory: Lacking) -> str | None:
        self.tried.append(memory.memory_id)
        await anyio.sleep(self.seconds_to_embed)
        if not self.can:
            raise ModelFailed
        if memory.memory_id in self.bad:
            return "not a word"
        self.embedded.append(self.lacking.pop(memory.place))
        self.between()
        return None

    async def unfilled(self, after: int) -> list[Unfilled]:
        return [Unfilled(place, name, "content", f"hash of {name}") for place, name in self.unfilled_ones.items() if place > after][:2]

    async def compute(self, memory: Unfilled) -> str | None:
        self.tried.append(memory.memory_id)
        return "not a word" if memory.memory_id in self.bad else None

    async def fill(self, memories: Sequence[Unfilled]) -> int:
        fillable = [memory.place for memory in memories if memory.memory_id not in self.unfillable]
        for place in fillable:
            del self.unfilled_ones[place]
        return len(memories) - len(fillable)


@asynccontextmanager
async def running(embedding: FakeEmbedding) -> AsyncIterator[EmbeddingBacklog]:
    backlog = EmbeddingBacklog(embedding)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(backlog.run)
        yield backlog
        tasks.cancel_scope.cancel()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_backlog, "LOOK_AGAIN_S", 0.02)


async def test_what_an_earlier_run_left_is_worked_off_oldest_first() -> None:
    embedding = FakeEmbedding("a", "b", "c", "d", "e")
    embedding.unfilled_ones = dict.fromkeys(range(1, 6), "lost")
    async with running(embedding) as backlog:
        await until(lambda: not embedding.unfilled_ones)
        assert embedding.embedded == ["a", "b", "c", "d", "e"]
        await until(lambda: backlog.size == 0)


async def test_it_looks_again_when_it_is_told_and_not_otherwise() -> None:
    embedding = FakeEmbedding()
    async with running(embedding) as backlog:
        await until(lambda: embedding.looks == 2)
        await anyio.sleep(0.1)
        assert embedding.looks == 2
        embedding.add("a")
        backlog.wake()
        await until(lambda: embedding.embedded == ["a"])


async def test_without_a_model_it_counts_and_begins_when_one_appears() -> None:
    embedding = FakeEmbedding("a", "b")
    embedding.model = None
    async with running(embedding) as backlog:
        await until(lambda: backlog.size == 2)
        await anyio.sleep(0.05)
        assert embedding.embedded == []
        embedding.model = "paper"
        await until(lambda: embedding.embedded == ["a", "b"])
        await until(lambda: backlog.size == 0)


async def test_a_model_that_cannot_now_is_tried_again() -> None:
    embedding = FakeEmbedding("a")
    embedding.can = False
    async with running(embedding):
        await until(lambda: embedding.looks >= 3)
        embedding.can = True
        await until(lambda: embedding.embedded == ["a"])


@pytest.mark.parametrize("error", [ViewFailed(), StorageBusy()])
async def test_a_failure_is_waited_out(error: Exception) -> None:
    embedding = FakeEmbedding("a")
    embedding.error = error
    async with running(embedding):
        await until(lambda: embedding.looks >= 2)
        embedding.error = None
        await until(lambda: embedding.embedded == ["a"])


async def test_what_is_stored_meanwhile_is_counted_and_worked_off() -> None:
    embedding = FakeEmbedding("a", "b", "c", "d")
    sizes: list[int] = []

    def store() -> None:
        sizes.append(backlog.size)
        if len(embedding.embedded) == 1:
            embedding.add(*(f"late {number}" for number in range(20)))

    embedding.between = store
    embedding.seconds_to_embed = 0.002
    async with running(embedding) as backlog:
        await until(lambda: len(embedding.embedded) == 24)
        await until(lambda: backlog.size == 0)
    assert sizes[0] == 4
    assert sizes[-8:] == [8, 7, 6, 5, 4, 3, 2, 1]


async def test_counting_takes_little_of_the_time() -> None:
    embedding = FakeEmbedding(*(f"memory {number}" for number in range(200)))
    embedding.seconds_to_count = 0.02
    async with running(embedding):
        await until(lambda: len(embedding.embedded) == 200)
    assert embedding.looks <= 3


async def test_one_that_cannot_be_embedded_is_set_aside_and_the_others_go_on() -> None:
    embedding = FakeEmbedding("a", "b", "c", "d", "e")
    embedding.unfilled_ones = {1: "x", 2: "y", 3: "z"}
    embedding.bad = {"a", "x"}
    async with running(embedding) as backlog:
        await until(lambda: embedding.unfilled_ones == {1: "x"})
        await until(lambda: backlog.size == 0)
        assert embedding.embedded == ["b", "c", "d", "e"]
        assert backlog.trouble == "2 memories cannot be embedded and are found by words alone; of a: not a word"
        embedding.add("f")
        backlog.wake()
        await until(lambda: "f" in embedding.embedded)
        await until(lambda: backlog.size == 0)
        assert embedding.tried.count("a") == embedding.tried.count("x") == 1


async def test_those_whose_vectors_are_computed_and_fit_no_record_go_on_waiting() -> None:
    embedding = FakeEmbedding()
    embedding.unfilled_ones = {1: "x", 2: "y", 3: "z"}
    embedding.unfillable = {"x", "z"}
    async with running(embedding) as backlog:
        await until(lambda: embedding.tried == ["x", "y", "z"])
        await anyio.sleep(0.1)
        assert (backlog.size, backlog.trouble) == (2, None)


async def test_those_set_aside_do_not_count_among_those_that_wait() -> None:
    embedding = FakeEmbedding("a", "b")
    embedding.bad = {"a", "b"}
    async with running(embedding) as backlog:
        await until(lambda: backlog.trouble is not None and backlog.trouble.startswith("2 "))
        embedding.model = None
        embedding.add("c")
        backlog.wake()
        await until(lambda: backlog.size == 1)


async def test_one_that_was_set_aside_is_tried_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_backlog, "TRY_AGAIN_S", 0.05)
    embedding = FakeEmbedding("a", "b")
    embedding.bad = {"a"}
    async with running(embedding) as backlog:
        await until(lambda: embedding.tried.count("a") >= 3)
        assert backlog.trouble is not None
        embedding.bad.clear()
        await until(lambda: embedding.embedded == ["b", "a"])
        await until(lambda: backlog.trouble is None)


async def test_one_that_is_gone_is_not_told_of_any_more() -> None:
    embedding = FakeEmbedding("a", "b")
    embedding.bad = {"a"}
    async with running(embedding) as backlog:
        await until(lambda: backlog.trouble is not None)
        del embedding.lacking[1]
        backlog.wake()
        await until(lambda: backlog.trouble is None)


async def test_a_model_that_cannot_now_sets_nothing_aside() -> None:
    embedding = FakeEmbedding("a", "b")
    embedding.can = False
    async with running(embedding) as backlog:
        await until(lambda: embedding.looks >= 3)
        assert (backlog.trouble, backlog.size, set(embedding.tried)) == (None, 2, {"a"})
