"""What a memory that is stored, or said again, does to others: to those it is to replace, those it reverts, and those it may be meant to replace."""

from collections.abc import Iterable, Sequence

import msgspec

from omegad.log.decision import DecisionState
from omegad.log.event import NewEvent
from omegad.memory.events import MemoryContradicted, MemorySuperseded
from omegad.memory.relating import Neighbour
from omegad.memory.state import Memories, MemoryState

REPLACEABLE_MAX = 3
STRENGTH = 1.0
ASKED_FOR = "asked for"


class Replaceable(msgspec.Struct, frozen=True, kw_only=True):
    """A memory whose place the stored one may be meant to take: the beginning of what it says, and how near it is."""

    memory_id: str
    content: str
    cosine: float


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """The events that follow a store, the ids of the memories that they deny and supersede, and what more could be replaced."""

    events: tuple[NewEvent, ...] = ()
    contradicts: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    may_replace: tuple[Replaceable, ...] = ()


def effects(memory_id: str, said_at: int, neighbours: Sequence[Neighbour], named: Iterable[MemoryState], state: DecisionState) -> Effects:
    """Return what a memory that was said at a moment, in microseconds since 1970, does to its neighbours and to those *named*.

    It supersedes those named, but never itself. What was said after it, it does not deny, and is not offered for replacement.
    """
    replaced = {other.memory_id: other for other in named if other.memory_id != memory_id}
    before = [n for n in neighbours if n.memory_id != memory_id and (other := state[Memories].get(n.memory_id)) and other.said_at <= said_at]
    denied = [denial(memory_id, n.memory_id, n.contradiction) for n in before if n.contradiction]
    events = [NewEvent(event=fact) for fact in denied]
    for other in replaced.values():
        fact = MemorySuperseded(memory_id=other.memory_id, superseded_by=memory_id, reason=ASKED_FOR)
        events.append(NewEvent(event=fact, project=other.project))
    return Effects(
        events=tuple(events),
        contradicts=tuple(fact.memory_id for fact in denied),
        superseded=tuple(replaced),
        may_replace=tuple(_offered(n for n in before if n.memory_id not in replaced)),
    )


def denial(memory_id: str, denied_id: str, reason: str) -> MemoryContradicted:
    """Return that one memory denies another."""
    return MemoryContradicted(memory_id=denied_id, contradicted_by=memory_id, strength=STRENGTH, reason=reason)


def _offered(neighbours: Iterable[Neighbour]) -> list[Replaceable]:
    near = [
        Replaceable(memory_id=n.memory_id, content=n.replaceable, cosine=round(n.cosine, 6))
        for n in neighbours
        if n.replaceable is not None and n.cosine is not None
    ]
    near.sort(key=lambda one: (-one.cosine, one.memory_id))
    return near[:REPLACEABLE_MAX]
