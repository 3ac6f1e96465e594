"""Say what a memory is to an older one, where texts did not tell; and see what waits for that."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.index.active import active
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.memory.edges import LinkMemories, link
from omegad.memory.events import ConflictSettled, MemoryUnlinked, Verdict
from omegad.memory.ids import MemoryId
from omegad.memory.lifecycle import RestoreMemory, SupersedeMemory, restore, supersede
from omegad.memory.state import Memories, known
from omegad.requests.agent_tool import AgentTool
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, Moment, QueryMethod
from omegad.requests.query import One, Query, ViewAnswer
from omegad.requests.verb import Table, Verb
from omegad.runtime.errors import Refused
from omegad.runtime.times import rfc3339
from omegad.storage.driver import Connection

WAITS_DAYS = 14
"""For so long somebody may still be asked what was offered; then it stands as it was stored."""

DAY_US = 86_400_000_000
SHOWN_CHARACTERS = 240
SETTLED = "settled by hand"
_UNSETTLED = f"""
SELECT o.memory_id, substr(m.content, 1, :characters), o.target_id, substr(t.content, 1, :characters),
  o.similarity, o.at, m.project
FROM conflict_offers AS o
JOIN memories AS m ON m.node_id = o.memory_id JOIN memories AS t ON t.node_id = o.target_id
WHERE o.verdict IS NULL AND o.at > :since AND (:project IS NULL OR m.project = :project)
AND {active("m")} AND {active("t")} ORDER BY o.id DESC LIMIT :limit
"""


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
    said = state[Memories].conflict(memory.memory_id, target.memory_id)
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
        "characters": SHOWN_CHARACTERS,
        "since": rfc3339(moment.now_us - WAITS_DAYS * DAY_US),
        "project": query.project,
        "now_us": moment.now_us,
        "limit": query.limit,
    }
    rows = connection.execute(_UNSETTLED, values).fetchall()
    found = [Unsettled(**dict(zip(Unsettled.__struct_fields__, row, strict=True))) for row in rows]
    return UnsettledAnswer(conflicts=found, **moment.shown)


METHODS = (
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
