"""Dropping what a junk audit listed: many memories in one step."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent, Position
from omegad.memory.events import MemoryDeleted
from omegad.memory.state import MemoryState, known
from omegad.requests.command import Command, Name, Reason
from omegad.requests.method import CommandMethod
from omegad.requests.verb import Verb

REASON = "captured unasked, never helped"


class PruneMemories(Command, frozen=True, kw_only=True, tag="memory.prune"):
    """Delete memories that `memory.junk` listed, all in one step; those that have proved themselves since, or are hidden, stay as they are."""

    memory_ids: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=1_000, description="a memory's id")]
    reason: Reason = REASON


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted, which memory.restore brings back, and what was not."""

    deleted: tuple[str, ...]
    kept: tuple[str, ...]
    position: Position = 0


def prune(command: PruneMemories, state: DecisionState, now_us: int) -> Decision:
    """Decide which of the memories named go: those on probation still, and not rated helpful. Raises `NotFound`."""
    memories = [known(state, memory_id) for memory_id in dict.fromkeys(command.memory_ids)]
    gone = [memory for memory in memories if _is_junk(memory, now_us)]
    events = (
        NewEvent(event=MemoryDeleted(memory_id=memory.memory_id, reason=command.reason), project=memory.project, follows=place > 0)
        for place, memory in enumerate(gone)
    )
    deleted = tuple(memory.memory_id for memory in gone)
    kept = tuple(memory.memory_id for memory in memories if memory.memory_id not in deleted)
    changed_at = 0 if gone else max(memory.changed_at for memory in memories)
    return Decision(events=tuple(events), answer=Pruned(deleted=deleted, kept=kept, position=changed_at))


def _is_junk(memory: MemoryState, now_us: int) -> bool:
    return memory.is_active(now_us) and memory.probation and memory.rating <= 0


METHODS = (
    CommandMethod(
        params=PruneMemories,
        answer=Pruned,
        decide=prune,
        verb=Verb(by="upkeep.prune", given=()),
    ),
)
