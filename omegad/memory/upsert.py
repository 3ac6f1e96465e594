"""Remember something with its provenance; or say anew, all of it, what a memory says and is known by."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.memory import lifecycle
from omegad.memory.lifecycle import EditMemory, Given, PreparedEdit
from omegad.memory.state import MemoryState, known
from omegad.memory.store import (
    EVENT_TYPE,
    PreparedStore,
    Stored,
    StoreMemory,
    addressed,
    begun,
    effects_of,
    prepare,
    store,
)
from omegad.requests.command import Name
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.requests.verb import Verb
from omegad.runtime.errors import Invalid, Refused
from omegad.runtime.times import parse_time

FUTURE_US = 24 * 3_600 * 1_000_000  # by which the clock of whoever learned something may be ahead


class UpsertMemory(StoreMemory, frozen=True, kw_only=True, tag="memory.upsert"):
    """Remember something with its provenance, all of it; with a `memory_id`, replace what that memory says
    and is known by.

    `timestamp` is when it was learned: the memory is as old as that. What is not given stays as it was; a
    memory's type, project, entity and time to live cannot be replaced.
    """

    source: Annotated[Name, Meta(description="where it comes from")]  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]  what a store may leave out is required here
    timestamp: Annotated[str, Meta(description="when it was learned, like 2026-01-31T09:30:00Z")]
    confidence: Annotated[float, Meta(ge=0, le=1, description="how sure it is")]  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    memory_id: Annotated[Name | None, Meta(description="the memory whose content is replaced")] = None

    def learned_at(self) -> int:
        """Return the moment of the timestamp. Raises `Invalid`."""
        return parse_time(self.timestamp, "timestamp")


class PreparedReplacement(msgspec.Struct, frozen=True, kw_only=True):
    """An upsert of a memory that is there: the edit that it comes to."""

    edit: EditMemory
    prepared: PreparedEdit


async def prepare_upsert(
    services: Services, command: UpsertMemory, context: RequestContext
) -> PreparedStore | PreparedReplacement:
    """Prepare a store, or the edit of the memory that is named. Raises `Invalid`, and `Refused` for noise."""
    if parse_time(command.timestamp, "timestamp") > services.clock.now_us() + FUTURE_US:
        raise Invalid(
            f"timestamp {command.timestamp} is in the future", hint="it is when the memory was learned"
        )
    if command.memory_id is None:
        return await prepare(services, command, context)
    begun(services, command, context)
    given = Given(
        tags=tuple(dict.fromkeys(command.tags)) or None,
        priority=command.priority,
        metadata=command.metadata or None,
        referenced_at=(
            None
            if command.referenced_date is None
            else parse_time(command.referenced_date, "referenced_date")
        ),
        source=command.source,
        confidence=command.confidence,
    )
    edit = EditMemory(memory_id=command.memory_id, content=command.content, ack=command.ack)
    return PreparedReplacement(
        edit=edit, prepared=await lifecycle.prepare_edit(services, edit, context, given)
    )


def upsert(
    command: UpsertMemory, prepared: PreparedStore | PreparedReplacement, state: DecisionState, now_us: int
) -> Decision:
    """Decide a store as `store` does; or an edit, answered as a store is. Raises what either raises, and
    `Refused` where a scope would change.
    """
    if isinstance(prepared, PreparedStore):
        return store(command, prepared, state, now_us)
    memory_id = prepared.edit.memory_id
    memory = known(state, memory_id)
    _check_scope(command, memory)
    done = effects_of(command, memory_id, (), state, now_us)
    edited = lifecycle.edit(prepared.edit, prepared.prepared, state, now_us)
    return Decision(
        events=addressed(command, (*edited.events, *done.events)),
        answer=Stored(
            memory_id=memory_id,
            outcome="stored",
            superseded=done.superseded,
            redacted=prepared.prepared.redacted,
            ignored=_ignored(command, memory),
        ),
    )


def _check_scope(command: UpsertMemory, memory: MemoryState) -> None:
    """Refuse an upsert that gives a memory another type, project, entity or time to live than it has;
    raises `Refused`.
    """
    given: dict[str, object] = {
        "project": command.project,
        "entity_id": command.entity_id,
        "ttl_seconds": command.ttl_seconds,
    }
    if command.event_type != EVENT_TYPE:
        given["event_type"] = command.event_type
    for name, value in given.items():
        if value is not None and value != (known := getattr(memory, name)):
            hint = "leave it out, or store another memory and let it supersede this one"
            raise Refused(
                f"memory {memory.memory_id} has {name} {known!r}, and {value!r} cannot take its place",
                hint=hint,
            )


def _ignored(command: UpsertMemory, memory: MemoryState) -> tuple[str, ...]:
    """Return the names of what was given for a memory that is there, and is not kept: whose session it is,
    and whether it is on probation.
    """
    given = {"session_id": command.session_id, "probation": command.probation}
    return tuple(
        name for name, value in given.items() if value is not None and value != getattr(memory, name)
    )


METHODS = (
    CommandMethod(
        params=UpsertMemory,
        answer=Stored,
        prepare=prepare_upsert,
        decide=upsert,
        verb=Verb(
            examples=(
                (
                    "omegad memory upsert 'Billing runs on PostgreSQL 17' --source runbook --confidence 0.9"
                    " --timestamp 2026-01-31T09:30:00Z"
                ),
            ),
            by="memories.store",
            given=("content",),
        ),
    ),
)
