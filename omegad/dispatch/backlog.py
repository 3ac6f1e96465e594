"""What the embedding backlog asks for, done."""

from functools import partial

from omegad.commands.store import StoreMemory
from omegad.dispatch.commands import CommandDispatch
from omegad.dispatch.parts import Parts
from omegad.queries import backlog, search
from omegad.queries.backlog import Lacking

BATCH = 64


class BacklogEmbedding:
    """Reads what is lacking from the views, embeds it, and hands the rest to the commands."""

    def __init__(self, parts: Parts, commands: CommandDispatch) -> None:
        """Take everything from outside."""
        self._parts = parts
        self._commands = commands

    def embedder_id(self) -> str | None:
        """Return the model in use, None without one."""
        return self._parts.near.embedder.embedder_id

    async def count(self) -> int:
        """Return how many memories have no vectors of the model in use."""
        await self._parts.views.wait_for(self._parts.log.head, search.VIEWS)
        return await self._parts.views.read(partial(backlog.count, embedder_id=self.embedder_id()))

    async def unembedded(self) -> list[Lacking]:
        """Return some memories without vectors of the model in use, oldest first."""
        await self._parts.views.wait_for(self._parts.log.head, search.VIEWS)
        return await self._parts.views.read(partial(backlog.unembedded, embedder_id=self.embedder_id() or "", limit=BATCH))

    async def embed(self, memory: Lacking) -> bool:
        """Embed one and record what follows; say whether the model could."""
        command = StoreMemory(content=memory.content, event_type=memory.event_type, project=memory.project, entity_id=memory.entity_id)
        return await self._commands.embed_stored(memory.memory_id, memory.content_hash, command)

    async def fill(self) -> int:
        """Compute again some vectors whose bytes were lost, and put them into the views; return how many memories have theirs."""
        embedder_id = self.embedder_id()
        if embedder_id is None:
            return 0
        rows = await self._parts.views.read(partial(backlog.unfilled, embedder_id=embedder_id, limit=BATCH))
        for _, content in rows:
            if await self._parts.near.embed(content, is_backlog=True) is None:
                return 0
        filled = await self._parts.views.driver.fill_at([position for position, _ in rows])
        if filled:
            self._parts.near.forget_mirror()
        return filled
