"""When the backlog looks, what it asks for, and how it goes on after a failure."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from omegad.errors import StorageBusy, ViewFailed
from omegad.queries.backlog import Lacking
from omegad.reactions import embedding_backlog
from omegad.reactions.embedding_backlog import EmbeddingBacklog
from tests.builders import until


class FakeEmbedding:
    """Memories that lack vectors, and a model that can or cannot."""

    def __init__(self, *lacking: str) -> None:
        self.lacking = list(lacking)
        self.unfilled = 0
        self.model: str | None = "paper"
        self.can = True
        self.error: Exception | None = None
        self.looks = 0
        self.embedded: list[str] = []

    def embedder_id(self) -> str | None:
        return self.model

    async def count(self) -> int:
        self.looks += 1
        if self.error:
            raise self.error
        return len(self.lacking) + self.unfilled

    async def unembedded(self) -> list[Lacking]:
        return [Lacking(name, "content", "key", "memory", None, None) for name in self.lacking[:2]]

    async def embed(self, memory: Lacking) -> bool:
        if self.can:
            self.lacking.remove(memory.memory_id)
            self.embedded.append(memory.memory_id)
        return self.can

    async def fill(self) -> int:
        filled, self.unfilled = min(2, self.unfilled), max(0, self.unfilled - 2)
        return filled


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
    embedding.unfilled = 5
    async with running(embedding) as backlog:
        await until(lambda: embedding.unfilled == 0)
        assert embedding.embedded == ["a", "b", "c", "d", "e"]
        await until(lambda: backlog.size == 0)


async def test_it_looks_again_when_it_is_told_and_not_otherwise() -> None:
    embedding = FakeEmbedding()
    async with running(embedding) as backlog:
        await until(lambda: embedding.looks == 1)
        await anyio.sleep(0.1)
        assert embedding.looks == 1
        embedding.lacking.append("a")
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
