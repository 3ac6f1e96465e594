"""Put the store in order: record what has expired, promote what has proved itself, compact what accumulates,
name what is rated badly.

Deletes nothing; what has no time to live is only ever compacted, and that where its type is one of
`COMPACTED_TYPES`.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent, Position
from omegad.memory import compaction, lifecycle
from omegad.memory import due_upkeep as upkeep
from omegad.memory.compaction import Compaction, CompactMemories, PreparedCompaction, compacted, without_id
from omegad.memory.events import MemoryExpired, MemoryPromoted
from omegad.memory.state import Memories, MemoryState
from omegad.requests.agent_tool import AgentTool
from omegad.requests.command import Command
from omegad.requests.method import CommandMethod, Moment, RequestContext, Services
from omegad.requests.verb import Verb
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

NAMED_MAX = 1_000  # of each kind in one consolidation; the next one finds the rest
FLAGGED_RATING_MAX = -3
"""The sum of ratings from which a memory is named as one to be looked at."""


class ConsolidateMemories(Command, frozen=True, kw_only=True, tag="memory.consolidate"):
    """Record due expiries, end the probation of what has proved itself, compact session summaries and advisor
    insights; delete nothing.

    A dry run says what would be done.
    """

    dry_run: Annotated[bool, Meta(description="only say what would be done")] = False


class Consolidated(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, or would be, by memory id. `flagged` are the memories rated -3 or worse, which stay
    as they are.
    """

    dry_run: bool
    expired: tuple[str, ...]
    promoted: tuple[str, ...]
    compacted: Compaction
    flagged: tuple[str, ...]
    position: Position = 0


class PreparedConsolidation(msgspec.Struct, frozen=True, kw_only=True):
    """What the views showed: memories whose time is over, with evidence for them, rated badly, and like
    each other.
    """

    due: tuple[str, ...] = ()
    proven: tuple[str, ...] = ()
    flagged: tuple[str, ...] = ()
    compaction: PreparedCompaction = PreparedCompaction()


async def prepare(
    services: Services, command: ConsolidateMemories, context: RequestContext
) -> PreparedConsolidation:
    """Find what a consolidation is about."""

    def read(connection: Connection, moment: Moment) -> PreparedConsolidation:
        return PreparedConsolidation(
            due=upkeep.due(connection, moment.now_us, NAMED_MAX),
            proven=upkeep.proven(connection, moment.now_us, NAMED_MAX),
            flagged=upkeep.flagged(connection, FLAGGED_RATING_MAX, moment.now_us, NAMED_MAX),
        )

    found = await services.look(read, at_least=services.head, names=upkeep.VIEWS, turn=Turn.LONG)
    compacting = CompactMemories(dry_run=command.dry_run, ack=command.ack)
    return msgspec.structs.replace(found, compaction=await compaction.prepare(services, compacting, context))


def consolidate(
    command: ConsolidateMemories, prepared: PreparedConsolidation, state: DecisionState, now_us: int
) -> Decision:
    """Decide a consolidation, all of it at once; what has changed since it was prepared is left out."""
    expired = lifecycle.expire(prepared.due, state, now_us).events
    promoted = [memory for memory in _active(prepared.proven, state, now_us) if memory.probation]
    promotions = tuple(
        NewEvent(event=MemoryPromoted(memory_id=memory.memory_id, evidence="use"), project=memory.project)
        for memory in promoted
    )
    promoted_ids = tuple(memory.memory_id for memory in promoted)
    compactions, account = compacted(prepared.compaction, state, now_us, promoted_ids)
    if command.dry_run:
        account = Compaction(clusters=tuple(map(without_id, account.clusters)), superseded=account.superseded)
    events = () if command.dry_run else (*expired, *promotions, *compactions)
    answer = Consolidated(
        dry_run=command.dry_run,
        expired=tuple(new.event.memory_id for new in expired if isinstance(new.event, MemoryExpired)),
        promoted=promoted_ids,
        compacted=account,
        flagged=tuple(
            memory.memory_id
            for memory in _active(prepared.flagged, state, now_us)
            if memory.rating <= FLAGGED_RATING_MAX
        ),
        position=0 if events else prepared.compaction.read_position,
    )
    return Decision(events=events, answer=answer)


def _active(memory_ids: tuple[str, ...], state: DecisionState, now_us: int) -> list[MemoryState]:
    found = (state[Memories].get(memory_id) for memory_id in memory_ids)
    return [memory for memory in found if memory is not None and memory.is_active(now_us)]


METHODS = (
    CommandMethod(
        params=ConsolidateMemories,
        answer=Consolidated,
        prepare=prepare,
        decide=consolidate,
        verb=Verb(by="upkeep.consolidate", examples=("omegad memory consolidate --dry-run",)),
        tool=AgentTool("omega_maintain consolidate", by="upkeep.consolidated"),
    ),
)
