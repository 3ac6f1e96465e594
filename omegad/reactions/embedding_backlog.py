"""Memories that were stored without their vectors get them, and their relations, once the model can.

What is lacking is read from the views: memories stored while there was no model or without waiting for it, memories embedded by
another model, and vectors whose bytes the cache has lost. Whether it was recorded already is the log's to say.
"""

from typing import Protocol

import anyio
import structlog

from omegad.errors import OmegadError
from omegad.queries.backlog import Lacking

LOOK_AGAIN_S = 2.0

_log = structlog.get_logger(__name__)


class Embedding(Protocol):
    """What the reaction asks for."""

    def embedder_id(self) -> str | None:
        """Return the model in use, None without one."""
        ...

    async def count(self) -> int:
        """Return how many memories have no vectors of the model in use."""
        ...

    async def unembedded(self) -> list[Lacking]:
        """Return some memories without vectors, oldest first; waits for the views to show what is in the log."""
        ...

    async def embed(self, memory: Lacking) -> bool:
        """Embed one and record what follows; say whether the model could."""
        ...

    async def fill(self) -> int:
        """Compute again some vectors whose bytes were lost; return how many."""
        ...


class EmbeddingBacklog:
    """Works the backlog off, whenever there is one and a model."""

    def __init__(self, embedding: Embedding) -> None:
        """Start with a look: an earlier run may have left something."""
        self.size = 0
        """How many memories were found waiting at the last look."""
        self._embedding = embedding
        self._wanted = anyio.Event()
        self._wanted.set()

    def wake(self) -> None:
        """Look again: something was stored without its vectors."""
        self._wanted.set()

    async def run(self) -> None:
        """Work for ever; wait for a reason to look, or for a model to appear."""
        known: str | None = None
        while True:
            with anyio.move_on_after(LOOK_AGAIN_S):
                await self._wanted.wait()
            embedder_id = self._embedding.embedder_id()
            if not self._wanted.is_set() and embedder_id == known:
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
        self.size = await self._embedding.count()
        if embedder_id is None:
            return True
        while found := await self._embedding.unembedded():
            for memory in found:
                if not await self._embedding.embed(memory):
                    return False
                self.size = max(0, self.size - 1)
        while filled := await self._embedding.fill():
            self.size = max(0, self.size - filled)
        return True
