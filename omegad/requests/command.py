"""What every command has in common, and the kinds of parameter and answer that recur."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.log.decision import DecisionState
from omegad.log.event import Position
from omegad.memory.state import Memories, MemoryState
from omegad.requests.method import Services
from omegad.runtime.errors import NotFound, Refused

Name = Annotated[str, Meta(min_length=1, max_length=256)]
Text = Annotated[str, Meta(min_length=1)]
Reason = Annotated[str, Meta(max_length=4_096, description="why")]
Ack = Literal["related", "durable"]
MemoryId = Annotated[Name, Meta(description="the memory's id")]


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="method", forbid_unknown_fields=True):
    """Base of every command; its tag is the method's name.

    `request_id` makes it safe to send again: the same request of the same client gives the first answer. `ack` says how much to wait
    for: `durable` is answered as soon as the event is on the disk.
    """

    request_id: Annotated[Name | None, Meta(description="makes it safe to send again: the same id gives the first answer")] = None
    ack: Annotated[Ack, Meta(description="how much to wait for: durable is answered as soon as it is on the disk")] = "related"


class Acknowledged(msgspec.Struct, frozen=True, kw_only=True):
    """Where the latest event of a command stands in the log."""

    position: Position = 0


def new_id(services: Services) -> str:
    """Return an id for a memory that is yet to be stored."""
    return f"mem-{services.clock.random_bits(64):016x}"


def known(state: DecisionState, memory_id: str) -> MemoryState:
    """Return what the log knows of a memory; raises `NotFound`."""
    memory = state[Memories].get(memory_id)
    if memory is None:
        raise NotFound(f"there is no memory {memory_id[:80]}")
    return memory


def findable(state: DecisionState, memory_id: str, now_us: int) -> MemoryState:
    """Return what the log knows of a memory that a search may find; raises `NotFound`, or `Refused` for one that is hidden."""
    memory = known(state, memory_id)
    if not memory.is_active(now_us):
        shown = "expired" if memory.state == "active" else memory.state
        raise Refused(f"memory {memory_id} is {shown}", hint="memory.restore brings it back")
    return memory
