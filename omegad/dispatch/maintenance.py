"""What keeping the store in order needs from the world: what the views show, like memories found beside the event loop, vectors."""

from functools import partial

import anyio
import anyio.to_thread
import msgspec

from omegad.commands import compaction, consolidation
from omegad.commands.clusters import CHARACTERS_MAX, Member
from omegad.commands.compaction import SOURCE, CompactMemories, Draft, PreparedCompaction
from omegad.commands.consolidation import FLAGGED_RATING_MAX, ConsolidateMemories, PreparedConsolidation
from omegad.dispatch.parts import Parts
from omegad.log.decision import Decide
from omegad.queries import search, upkeep
from omegad.queries.upkeep import Compactable, Compacting
from omegad.storage.driver import Connection

VIEWS_WAIT_S = 5.0  # for the views to show the head; a decision leaves out what they show too late
NAMED_MAX = 1_000  # of each kind in one consolidation; the next one finds the rest
MEMORIES_MAX = 10_000
"""How many memories one compaction looks at, the latest."""


class Maintenance:
    """Prepares compactions and consolidations."""

    def __init__(self, parts: Parts) -> None:
        """Take everything from outside."""
        self._log = parts.log
        self._views = parts.views
        self._near = parts.near
        self._types = parts.types
        self._clock = parts.clock

    async def decide_compaction(self, command: CompactMemories) -> Decide:
        """Find the clusters of a compaction and embed their summaries; return its decision. Raises `Invalid` for an unknown type."""
        for event_type in command.event_types:
            self._types.check(event_type)
        await self._views_at_head()
        return partial(compaction.compact, command, await self._compaction(command))

    async def decide_consolidation(self, command: ConsolidateMemories) -> Decide:
        """Find what a consolidation is about; return its decision."""
        await self._views_at_head()
        now_us = self._clock.now_us()

        def read(connection: Connection) -> PreparedConsolidation:
            return PreparedConsolidation(
                due=upkeep.due(connection, now_us, NAMED_MAX),
                proven=upkeep.proven(connection, now_us, NAMED_MAX),
                flagged=upkeep.flagged(connection, FLAGGED_RATING_MAX, now_us, NAMED_MAX),
            )

        prepared = await self._views.read(read)
        compacting = CompactMemories(dry_run=command.dry_run, ack=command.ack)
        prepared = msgspec.structs.replace(prepared, compaction=await self._compaction(compacting))
        return partial(consolidation.consolidate, command, prepared)

    async def _compaction(self, command: CompactMemories) -> PreparedCompaction:
        wanted = Compacting(event_types=command.event_types, project=command.project, characters_max=CHARACTERS_MAX, source=SOURCE)
        now_us = self._clock.now_us()

        def read(connection: Connection) -> tuple[list[Compactable], int]:
            rows = upkeep.compactable(connection, wanted, now_us, MEMORIES_MAX)
            return rows, search.position(connection, ("memories",))

        rows, position = await self._views.read(read)
        members = [Member(**msgspec.structs.asdict(row)) for row in rows]
        drafts = await anyio.to_thread.run_sync(compaction.drafts, members, command)
        if not command.dry_run:
            drafts = [await self._ready(draft, is_embedded=command.ack != "durable") for draft in drafts]
        return PreparedCompaction(drafts=tuple(drafts), size_min=command.min_cluster, read_position=position)

    async def _ready(self, draft: Draft, *, is_embedded: bool) -> Draft:
        """Return a draft with an id, and with vectors where they are wanted and the model can; else the backlog sees to them."""
        ready = msgspec.structs.replace(draft, memory_id=f"mem-{self._clock.random_bits(64):016x}")
        embedded = await self._near.embed(draft.content, is_backlog=True) if is_embedded else None
        if embedded is None:
            return ready
        return msgspec.structs.replace(ready, embedder_id=embedded.embedder_id, text_hashes=embedded.text_hashes)

    async def _views_at_head(self) -> None:
        with anyio.move_on_after(VIEWS_WAIT_S):
            await self._views.wait_for(self._log.head, upkeep.VIEWS)
