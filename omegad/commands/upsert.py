"""Remember something with its provenance; or replace what a memory says, and what it is known by."""

from typing import Annotated

from msgspec import Meta

from omegad.commands.command import Name
from omegad.commands.store import EVENT_TYPE, StoreMemory
from omegad.errors import Refused
from omegad.state import MemoryState
from omegad.times import parse_time


class UpsertMemory(StoreMemory, frozen=True, kw_only=True, tag="memory.upsert"):
    """Remember something with its provenance, all of it; with a `memory_id`, replace what that memory says and is known by.

    `timestamp` is when it was learned: the memory is as old as that. What is not given stays as it was; a memory's type, project,
    entity and time to live cannot be replaced.
    """

    source: Name  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]  what a store may leave out is required here
    timestamp: str
    confidence: Annotated[float, Meta(ge=0, le=1)]  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    memory_id: Name | None = None

    def learned_at(self) -> int:
        """Return the moment of the timestamp. Raises `Invalid`."""
        return parse_time(self.timestamp, "timestamp")


def check_scope(command: UpsertMemory, memory: MemoryState) -> None:
    """Refuse an upsert that gives a memory another type, project, entity or time to live than it has; raises `Refused`."""
    given: dict[str, object] = {"project": command.project, "entity_id": command.entity_id, "ttl_seconds": command.ttl_seconds}
    if command.event_type != EVENT_TYPE:
        given["event_type"] = command.event_type
    for name, value in given.items():
        if value is not None and value != (known := getattr(memory, name)):
            hint = "leave it out, or store another memory and let it supersede this one"
            raise Refused(f"memory {memory.memory_id} has {name} {known!r}, and {value!r} cannot take its place", hint=hint)


def ignored(command: UpsertMemory, memory: MemoryState) -> tuple[str, ...]:
    """Return the names of what was given for a memory that is there, and is not kept: whose session it is, and whether it is on probation."""
    given = {"session_id": command.session_id, "probation": command.probation}
    return tuple(name for name, value in given.items() if value is not None and value != getattr(memory, name))
