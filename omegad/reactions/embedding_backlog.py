"""Memories that were stored without their vectors get them, and their relations, once the model can.

What is lacking is read from the views: memories stored while there was no model or without waiting for it, memories embedded by
another model, and vectors whose bytes the cache has lost. Whether it was recorded already is the log's to say.

A memory that cannot be embedded, though others can, is set aside: those after it go on, and it is tried again after a while, when it says
something else, and at the next start.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import anyio
import msgspec
import structlog

from omegad.errors import ModelFailed, ModelMissing, OmegadError, Overloaded
from omegad.queries.backlog import Lacking, Unfilled

LOOK_AGAIN_S = 2.0
TRY_AGAIN_S = 3_600.0  # after which what was set aside is tried once more
COUNTING_SHARE = 0.1  # of the time, at most, is spent counting what is left

Memory = TypeVar("Memory", Lacking, Unfilled)
Key = tuple[str, str]
"""A memory's id and the hash of what it says."""

_log = structlog.get_logger(__name__)


class Embedding(Protocol):
    """What the reaction asks for. Places order the memories of a kind; 0 is before the first."""

    def embedder_id(self) -> str | None:
        """Return the model in use, None without one."""
        ...

    async def count(self, after: int, filled_to: int) -> int:
        """Return how many memories after *after* have no vectors of the model in use, and how many after *filled_to* lack their bytes."""
        ...

    async def unembedded(self, after: int) -> list[Lacking]:
        """Return some memories after a place that have no vectors, oldest first; waits for the views to show what is in the log."""
        ...

    async def embed(self, memory: Lacking) -> str | None:
        """Embed one and record what follows; return what is wrong with it, None once done. Raises `ModelMissing`, `ModelFailed`, `Overloaded`."""
        ...

    async def unfilled(self, after: int) -> list[Unfilled]:
        """Return some memories after a place whose vectors are recorded and whose bytes were lost."""
        ...

    async def compute(self, memory: Unfilled) -> str | None:
        """Compute the vectors of one again; returns and raises as `embed` does."""
        ...

    async def fill(self, memories: Sequence[Unfilled]) -> int:
        """Give memories the vectors that were computed again; return how many still lack theirs."""
        ...


class Aside(msgspec.Struct, frozen=True):
    """Why a memory is set aside, and until when, in seconds of the event loop's clock."""

    memory_id: str
    problem: str
    until: float


class EmbeddingBacklog:
    """Works the backlog off, whenever there is one and a model."""

    def __init__(self, embedding: Embedding) -> None:
        """Start with a look: an earlier run may have left something."""
        self.size = 0
        """How many memories wait, those set aside not among them."""
        self._embedding = embedding
        self._wanted = anyio.Event()
        self._wanted.set()
        self._aside: dict[Key, Aside] = {}
        self._ahead: set[Key] = set()
        """Those set aside that the present round has not come to; it forgets the ones that it never finds."""
        self._count_again_at = 0.0

    @property
    def trouble(self) -> str | None:
        """How many memories are set aside, and why the first of them is, in words; None where none is."""
        if not self._aside:
            return None
        first = next(iter(self._aside.values()))
        return f"{len(self._aside)} memories cannot be embedded and are found by words alone; of {first.memory_id}: {first.problem}"

    def wake(self) -> None:
        """Look again: something was stored without its vectors."""
        self._wanted.set()

    async def run(self) -> None:
        """Work for ever; wait for a reason to look, for a model to appear, or for something set aside to be due."""
        known: str | None = None
        while True:
            with anyio.move_on_after(LOOK_AGAIN_S):
                await self._wanted.wait()
            embedder_id = self._embedding.embedder_id()
            if not self._wanted.is_set() and embedder_id == known and not self._is_any_due():
                continue
            self._wanted = anyio.Event()
            try:
                is_done = await self._work_off(embedder_id)
            except OmegadError as error:
                _log.warning("backlog.failed", error=str(error))
                is_done = False
            known = embedder_id if is_done else None

    async def _work_off(self, embedder_id: str | None) -> bool:
        """Embed what is lacking; say whether nothing is left to come back for."""
        self._ahead = set(self._aside)
        await self._count(0, 0)
        if embedder_id is None:
            return True
        try:
            await self._fill_all(await self._embed_all())
        except (ModelMissing, ModelFailed, Overloaded):
            return False
        for key in self._ahead:
            del self._aside[key]
        return True

    async def _embed_all(self) -> int:
        """Embed what has no vectors; return the place of the last."""
        place = 0
        while found := await self._embedding.unembedded(place):
            self.size = max(self.size, sum(_key(memory) not in self._aside for memory in found))
            for memory in found:
                await self._try(memory, self._embedding.embed)
                place = memory.place
                await self._count_now_and_then(place, 0)
        return place

    async def _fill_all(self, embedded_to: int) -> None:
        """Compute again what was lost."""
        place, unfilled = 0, 0
        while found := await self._embedding.unfilled(place):
            computed = [memory for memory in found if await self._try(memory, self._embedding.compute)]
            unfilled += await self._embedding.fill(computed)
            place = found[-1].place
            await self._count_now_and_then(embedded_to, place)
        await self._count(embedded_to, place)
        self.size += unfilled

    async def _try(self, memory: Memory, work: Callable[[Memory], Awaitable[str | None]]) -> bool:
        """Do *work* for a memory that is not set aside, or is so no longer; say whether that is done. Set it aside where it cannot be."""
        key = _key(memory)
        self._ahead.discard(key)
        aside = self._aside.get(key)
        if aside is not None and anyio.current_time() < aside.until:
            return False
        problem = await work(memory)
        if problem is not None:
            _log.warning("backlog.set_aside", memory_id=memory.memory_id, problem=problem, retry_s=TRY_AGAIN_S)
            self._aside[key] = Aside(memory.memory_id, problem, anyio.current_time() + TRY_AGAIN_S)
        elif aside is not None:
            del self._aside[key]
        if aside is None:
            self.size = max(0, self.size - 1)
        return problem is None

    def _is_any_due(self) -> bool:
        now = anyio.current_time()
        return any(aside.until <= now for aside in self._aside.values())

    async def _count_now_and_then(self, embedded_to: int, filled_to: int) -> None:
        """Count again, since more is stored meanwhile, but not where that would take much of the time."""
        if anyio.current_time() >= self._count_again_at:
            await self._count(embedded_to, filled_to)

    async def _count(self, embedded_to: int, filled_to: int) -> None:
        started = anyio.current_time()
        self.size = max(0, await self._embedding.count(embedded_to, filled_to) - len(self._ahead))
        ended = anyio.current_time()
        self._count_again_at = ended + (ended - started) / COUNTING_SHARE


def _key(memory: Lacking | Unfilled) -> Key:
    return memory.memory_id, memory.content_hash
