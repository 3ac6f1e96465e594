"""Draw edges between memories, and take them away."""

from functools import partial
from typing import Annotated

from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.memory.events import EdgeType, MemoryContradicted, MemoryLinked, MemoryUnlinked
from omegad.memory.graph import edge_types_between
from omegad.memory.ids import MemoryId
from omegad.memory.lifecycle import SupersedeMemory, supersede
from omegad.memory.state import known
from omegad.requests.agent_tool import AgentTool
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.requests.verb import Verb
from omegad.runtime.errors import NotFound, Refused

SUPERSEDING: tuple[EdgeType, ...] = ("supersedes", "superseded_by")
BY_HAND = "linked by hand"


class LinkMemories(Command, frozen=True, kw_only=True, tag="memory.link"):
    """Draw an edge from a memory to another; the same edge again sets its weight.

    `supersedes` and `superseded_by` let the one take the place of the other, as `memory.supersede` does;
    `contradicts` marks the other as contradicted by this one.
    """

    memory_id: MemoryId
    target_id: Annotated[Name, Meta(description="the id of the memory that the edge leads to")]
    edge_type: Annotated[EdgeType, Meta(description="what the one is to the other")] = "related"
    weight: Annotated[float, Meta(ge=0, le=1, description="how strong it is")] = 1.0


class UnlinkMemories(Command, frozen=True, kw_only=True, tag="memory.unlink"):
    """Take away the edge of a type from a memory to another, or their edges of every type where none is
    named.
    """

    memory_id: MemoryId
    target_id: Annotated[Name, Meta(description="the id of the memory that the edge leads to")]
    edge_type: Annotated[
        EdgeType | None, Meta(description="of this type alone; of every type when left out")
    ] = None


def link(command: LinkMemories, state: DecisionState, now_us: int) -> Decision:
    """Decide an edge; raises `NotFound` for an id that was never stored, `Refused` for an edge to itself,
    and what `memory.supersede` raises for one that supersedes.
    """
    if command.memory_id == command.target_id:
        raise Refused("a memory cannot be linked to itself")
    memory, target = known(state, command.memory_id), known(state, command.target_id)
    if command.edge_type in SUPERSEDING:
        old, new = (target, memory) if command.edge_type == "supersedes" else (memory, target)
        given = SupersedeMemory(memory_id=old.memory_id, superseded_by=new.memory_id, reason=BY_HAND)
        return supersede(given, state, now_us)
    event = MemoryLinked(
        memory_id=command.memory_id,
        target_id=command.target_id,
        edge_type=command.edge_type,
        weight=command.weight,
    )
    events = [NewEvent(event=event, project=memory.project)]
    if command.edge_type == "contradicts":
        denied = MemoryContradicted(
            memory_id=target.memory_id,
            contradicted_by=memory.memory_id,
            strength=command.weight,
            reason=BY_HAND,
        )
        events.append(NewEvent(event=denied, project=target.project, follows=True))
    return Decision(events=tuple(events), answer=Acknowledged())


async def prepare_unlink(
    services: Services, command: UnlinkMemories, context: RequestContext
) -> tuple[EdgeType, ...]:
    """Return the types of the edges that are meant."""
    found = partial(
        edge_types_between, ends=(command.memory_id, command.target_id), edge_type=command.edge_type
    )
    at_least = max(context.written, context.acknowledged)
    return await services.look(lambda connection, _: found(connection), at_least=at_least, names=("edges",))


def unlink(
    command: UnlinkMemories, edge_types: tuple[EdgeType, ...], state: DecisionState, now_us: int
) -> Decision:
    """Decide to take away the edges of *edge_types*, those that there are of the ones asked for; raises
    `NotFound` where there is none.
    """
    del now_us
    memory = known(state, command.memory_id)
    known(state, command.target_id)
    if not edge_types:
        kind = f"{command.edge_type} " if command.edge_type else ""
        raise NotFound(f"there is no {kind}edge from {command.memory_id} to {command.target_id}")
    event = MemoryUnlinked(memory_id=command.memory_id, target_id=command.target_id, edge_types=edge_types)
    return Decision(events=(NewEvent(event=event, project=memory.project),), answer=Acknowledged())


METHODS = (
    CommandMethod(
        params=LinkMemories,
        answer=Acknowledged,
        decide=link,
        verb=Verb(
            says="linked {memory_id} to {target_id} at position {position}",
            examples=(
                (
                    "omegad memory link mem-0123456789abcdef mem-fedcba9876543210 --edge-type evolves"
                    " --weight 0.8"
                ),
            ),
        ),
        tool=AgentTool("omega_memory link", by="memory.done"),
    ),
    CommandMethod(
        params=UnlinkMemories,
        answer=Acknowledged,
        prepare=prepare_unlink,
        decide=unlink,
        verb=Verb(says="unlinked {memory_id} from {target_id} at position {position}"),
        tool=AgentTool("omega_memory unlink", by="memory.done"),
    ),
)
