"""What memories are to each other: edges are drawn and taken away; and where texts did not tell what one is
to an older one, somebody says it, and sees what waits for that.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, get_args

import msgspec
from msgspec import Meta

from omegad.index.active import active
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.log.projection import to_json
from omegad.memory.events import (
    ConflictSettled,
    EdgeType,
    MemoryContradicted,
    MemoryLinked,
    MemoryUnlinked,
    Verdict,
)
from omegad.memory.graph import edge_types_between
from omegad.memory.lifecycle import RestoreMemory, SupersedeMemory, restore, supersede
from omegad.memory.state import Memories, MemoryId, known
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, Moment, QueryMethod, RequestContext, Services
from omegad.requests.query import One, Query, ViewAnswer
from omegad.requests.verb import AgentTool, Table, Verb
from omegad.runtime.errors import NotFound, Refused
from omegad.runtime.times import rfc3339
from omegad.storage.driver import Connection

WAITS_DAYS = 14
"""For so long somebody may still be asked what was offered; then it stands as it was stored."""
DAY_US = 86_400_000_000
SETTLED = "settled by hand"
_UNSETTLED = f"""
SELECT o.memory_id, substr(m.content, 1, :characters), o.target_id, substr(t.content, 1, :characters),
  o.similarity, o.at, m.project
FROM conflict_offers AS o
JOIN memories AS m ON m.node_id = o.memory_id JOIN memories AS t ON t.node_id = o.target_id
WHERE o.verdict IS NULL AND o.at > :since AND (:project IS NULL OR m.project = :project)
AND {active("m")} AND {active("t")} ORDER BY o.id DESC LIMIT :limit
"""

_UNSETTLED_AGAINST = f"""
SELECT o.target_id, m.node_id, substr(m.content, 1, :characters)
FROM conflict_offers AS o JOIN memories AS m ON m.node_id = o.memory_id
WHERE o.target_id IN (SELECT value FROM json_each(:targets)) AND o.verdict IS NULL AND o.at > :since
AND {active("m")} ORDER BY o.id
"""

_IS_SHOWN = """
SELECT c.position >= m.position FROM checkpoints AS c, checkpoints AS m
WHERE c.name = 'conflicts' AND m.name = 'memories'
"""

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


def settling(memory_id: str, target_id: str) -> str:
    """Return the command by which a person says what a memory is to an older one."""
    return f"omegad memory settle {memory_id} {target_id} {'|'.join(get_args(Verdict))}"


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
    ends = (command.memory_id, command.target_id)
    return await services.look(
        lambda connection, _: edge_types_between(connection, ends=ends, edge_type=command.edge_type),
        at_least=max(context.written, context.acknowledged),
        names=("edges",),
    )


def unlink(
    command: UnlinkMemories, edge_types: tuple[EdgeType, ...], state: DecisionState, _now_us: int
) -> Decision:
    """Decide to take away the edges of *edge_types*, those that there are of the ones asked for; raises
    `NotFound` where there is none.
    """
    memory = known(state, command.memory_id)
    known(state, command.target_id)
    if not edge_types:
        kind = f"{command.edge_type} " if command.edge_type else ""
        raise NotFound(f"there is no {kind}edge from {command.memory_id} to {command.target_id}")
    event = MemoryUnlinked(memory_id=command.memory_id, target_id=command.target_id, edge_types=edge_types)
    return Decision(events=(NewEvent(event=event, project=memory.project),), answer=Acknowledged())


class SettleConflict(Command, frozen=True, kw_only=True, tag="memory.settle"):
    """Say what a memory is to an older one: it contradicts it, supersedes it, or both hold and are
    compatible. What is compatible is neither asked nor flagged again; what was settled can be settled anew.
    """

    memory_id: MemoryId
    target_id: Annotated[Name, Meta(description="the id of the older memory")]
    verdict: Annotated[Verdict, Meta(description="what the one is to the other")]


class ListUnsettled(Query, frozen=True, kw_only=True, tag="memory.unsettled"):
    """List what was asked when memories were stored, and nobody has settled within 14 days: whether one
    contradicts, supersedes, or goes with another.
    """

    project: Annotated[One | None, Meta(description="of this project")] = None
    limit: Annotated[int, Meta(ge=1, le=100, description="how many at most")] = 20


class Unsettled(msgspec.Struct, frozen=True, kw_only=True):
    """A memory and the older one that it may contradict, how both begin, and how near they are."""

    memory_id: str
    content: str
    target_id: str
    target: str
    similarity: float
    at: str
    project: str | None


class UnsettledAnswer(ViewAnswer, frozen=True):
    """What waits, the latest first."""

    conflicts: list[Unsettled]


def settle(command: SettleConflict, state: DecisionState, now_us: int) -> Decision:
    """Decide what two memories are to each other, and what comes of that; what has been said and is so needs
    nothing. Raises `NotFound`, `Refused` for a memory and itself, and what `memory.supersede` and
    `memory.restore` raise.
    """
    if command.memory_id == command.target_id:
        raise Refused("a memory cannot contradict itself")
    memory, target = known(state, command.memory_id), known(state, command.target_id)
    said = state[Memories].conflicts(memory.memory_id, [target.memory_id]).get(target.memory_id)
    follows = [msgspec.structs.replace(new, follows=True) for new in _comes_of(command, said, state, now_us)]
    if said == command.verdict and not follows:
        return Decision(answer=Acknowledged())
    settled = ConflictSettled(memory_id=memory.memory_id, target_id=target.memory_id, verdict=command.verdict)
    return Decision(events=(NewEvent(event=settled, project=memory.project), *follows), answer=Acknowledged())


def _comes_of(
    command: SettleConflict, said: str | None, state: DecisionState, now_us: int
) -> Iterator[NewEvent]:
    one, other = command.memory_id, command.target_id
    target = known(state, other)
    if command.verdict == "supersedes":
        if target.is_active(now_us):
            given = SupersedeMemory(memory_id=other, superseded_by=one, reason=SETTLED)
            yield from supersede(given, state, now_us).events
        return
    if said == "supersedes" and target.state == "superseded":
        yield from restore(RestoreMemory(memory_id=other, reason=SETTLED), state, now_us).events
    if command.verdict == "contradicts" and target.denied_by != one:
        drawn = LinkMemories(memory_id=one, target_id=other, edge_type="contradicts")
        yield from link(drawn, state, now_us).events
    elif command.verdict == "compatible":
        # A rule may have flagged it, either way round
        for by, denied in ((one, other), (other, one)):
            if known(state, denied).denied_by == by:
                unlinked = MemoryUnlinked(memory_id=by, target_id=denied, edge_types=("contradicts",))
                yield NewEvent(event=unlinked)


def unsettled(connection: Connection, query: ListUnsettled, moment: Moment) -> UnsettledAnswer:
    """Read what was offered lately, of memories that can be found, and nobody has settled."""
    values = {
        "characters": 240,
        "since": _lately(moment.now_us),
        "project": query.project,
        "now_us": moment.now_us,
        "limit": query.limit,
    }
    rows = connection.execute(_UNSETTLED, values).fetchall()
    found = [Unsettled(**dict(zip(Unsettled.__struct_fields__, row, strict=True))) for row in rows]
    return UnsettledAnswer(conflicts=found, **moment.shown)


def unsettled_against(
    connection: Connection, memory_ids: Iterable[str], now_us: int, characters: int
) -> dict[str, tuple[str, str]]:
    """Return, of some memories, those that a later one may contradict, as an offer of the last two weeks says
    that nobody has settled: by id, the id of the latest that may, and so many characters of its text.
    """
    values = {
        "characters": characters,
        "targets": to_json(list(memory_ids)),
        "since": _lately(now_us),
        "now_us": now_us,
    }
    rows = connection.execute(_UNSETTLED_AGAINST, values)
    return {target_id: (memory_id, content) for target_id, memory_id, content in rows}


def are_offers_shown(connection: Connection) -> bool:
    """Say whether the view of what was offered shows as much as that of memories: where it has failed, or an
    earlier version made tables of it that cannot be read, it tells of nothing since. Tables of an earlier
    version that can be read are kept in step until they are built again, as those of every view.
    """
    return bool(connection.execute(_IS_SHOWN).fetchone()[0])


def _lately(now_us: int) -> str:
    return rfc3339(now_us - WAITS_DAYS * DAY_US)


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
        verb=Verb(
            examples=("omegad memory unlink mem-0123456789abcdef mem-fedcba9876543210",),
            says="unlinked {memory_id} from {target_id} at position {position}",
        ),
        tool=AgentTool("omega_memory unlink", by="memory.done"),
    ),
    CommandMethod(
        params=SettleConflict,
        answer=Acknowledged,
        decide=settle,
        verb=Verb(
            says="settled: {memory_id} {verdict} {target_id}",
            examples=("omegad memory settle mem-0123456789abcdef mem-fedcba9876543210 compatible",),
        ),
        tool=AgentTool("omega_memory settle", by="memory.done"),
    ),
    QueryMethod(
        params=ListUnsettled,
        answer=UnsettledAnswer,
        views=("memories", "conflicts"),
        read=unsettled,
        verb=Verb(
            table=Table(
                "conflicts",
                (
                    ("NEW", "{memory_id}"),
                    ("OLD", "{target_id}"),
                    ("ASKED", "{at:moment}"),
                    ("SAYS", "{content}"),
                    ("MAY CONTRADICT", "{target}"),
                ),
                none="nothing waits to be settled",
            ),
            examples=("omegad memory unsettled --project shop",),
        ),
        tool=AgentTool("omega_reflect unsettled", by="upkeep.unsettled"),
    ),
)
