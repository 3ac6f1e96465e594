"""What the embedding backlog asks for, done."""

from collections.abc import Sequence
from functools import partial

from omegad.commands.embedding import EmbedMemory, MemoryHasVectors
from omegad.dispatch.running import Runner
from omegad.dispatch.services import DaemonServices
from omegad.embedding.embedder import TextFailed
from omegad.embedding.passages import passages
from omegad.errors import Invalid, ModelFailed, Refused
from omegad.method import RequestContext
from omegad.queries import backlog, search
from omegad.queries.backlog import Lacking, Unfilled

BATCH = 64


class BacklogEmbedding:
    """Reads what is lacking from the views, embeds it, and hands the rest to the commands."""

    def __init__(self, services: DaemonServices, runner: Runner) -> None:
        """Take everything from outside."""
        self._services = services
        self._runner = runner

    def embedder_id(self) -> str | None:
        """Return the model in use, None without one."""
        return self._services.near.embedder.embedder_id

    async def count(self, after: int, filled_to: int) -> int:
        """Return how many memories after *after* have no vectors of the model in use, and how many after *filled_to* lack their bytes."""
        await self._services.views.wait_for(self._services.log.head, search.VIEWS)
        return await self._services.views.read(partial(backlog.count, embedder_id=self.embedder_id(), after=after, filled_to=filled_to))

    async def unembedded(self, after: int) -> list[Lacking]:
        """Return some memories after a place that have no vectors of the model in use, oldest first."""
        await self._services.views.wait_for(self._services.log.head, search.VIEWS)
        wanted = partial(backlog.unembedded, embedder_id=self.embedder_id() or "", after=after, limit=BATCH)
        return await self._services.views.read(wanted)

    async def embed(self, memory: Lacking) -> str | None:
        """Embed one and record what follows; return what is wrong with it, None once that is done. Raises what keeps the model from it."""
        command = EmbedMemory(
            memory_id=memory.memory_id,
            content_key=memory.content_hash,
            content=memory.content,
            event_type=memory.event_type,
            project=memory.project,
            entity_id=memory.entity_id,
            session_id=memory.session_id,
        )
        try:
            outcome = await self._runner.execute(command, RequestContext())
            if isinstance(outcome.answer, MemoryHasVectors) and outcome.answer.is_done:
                return None
        except (Invalid, Refused) as error:
            return str(error)
        return await self._problem(memory.content)

    async def unfilled(self, after: int) -> list[Unfilled]:
        """Return some memories after a place whose vectors are recorded and whose bytes were lost, in the order of the records."""
        return await self._services.views.read(partial(backlog.unfilled, embedder_id=self.embedder_id() or "", after=after, limit=BATCH))

    async def compute(self, memory: Unfilled) -> str | None:
        """Compute the vectors of one again; return what is wrong with its text, None once they are there. Raises what keeps the model from it."""
        if await self._services.near.embed(memory.content, is_backlog=True) is not None:
            return None
        return await self._problem(memory.content)

    async def fill(self, memories: Sequence[Unfilled]) -> int:
        """Put vectors that were computed again into the views; return how many memories still lack theirs."""
        places = [memory.place for memory in memories]
        if await self._services.views.driver.fill_at(places):
            self._services.near.forget_mirror()
        left = await self.unfilled(min(places, default=1) - 1)
        return sum(memory.place in places for memory in left)

    async def _problem(self, content: str) -> str:
        """Return what the model finds wrong with a content that it has just failed on. Raises what it fails on whatever the content."""
        for text in passages(content):
            try:
                await self._services.near.embedder.embed_backlog(text)
            except TextFailed as error:
                return str(error)
        raise ModelFailed("the embedding model failed a moment ago")
