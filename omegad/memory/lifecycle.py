"""What may be done with a memory once it is stored: edit, delete, supersede, restore, rate, promote; and
what another system counted of it is taken over.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.embedding.passages import Embedded
from omegad.index.active import is_over
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Event, NewEvent
from omegad.memory.content import auto_tags, cleaned, computed_if_long, content_key, vectors_of
from omegad.memory.events import (
    MemoryCountsCarried,
    MemoryDeleted,
    MemoryDemoted,
    MemoryEdited,
    MemoryPromoted,
    MemoryRated,
    MemoryRestored,
    MemorySuperseded,
    Rating,
)
from omegad.memory.state import Memories, MemoryId, MemoryState, findable, known
from omegad.requests.command import Acknowledged, Command, Name, Reason, Text
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.requests.verb import AgentTool, Verb
from omegad.runtime.errors import Conflict, OmegadError, Refused
from omegad.runtime.times import parse_time

COUNT_MAX = 1_000_000_000
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]

POINTS: dict[Rating, int] = {"helpful": 1, "unhelpful": -1, "outdated": -2}
_REPLACED = "SELECT source_id FROM edges WHERE target_id = ? AND edge_type = 'superseded_by' ORDER BY id"


class ChangeMemory(Command, frozen=True, kw_only=True):
    """Base of what is done with one memory."""

    memory_id: MemoryId
    reason: Reason | None = None


class EditMemory(ChangeMemory, frozen=True, kw_only=True, tag="memory.edit"):
    """Replace what a memory says. Its id, type and history stay."""

    content: Annotated[
        Text, Meta(description="what it says from now on; on the command line - reads it from standard input")
    ]


class DeleteMemory(ChangeMemory, frozen=True, kw_only=True, tag="memory.delete"):
    """Hide a memory from every search and list; its history stays."""


class SupersedeMemory(ChangeMemory, frozen=True, kw_only=True, tag="memory.supersede"):
    """Let another memory take the place of this one, which is hidden from then on and says what replaced
    it.
    """

    superseded_by: Annotated[Name, Meta(description="the id of the memory that takes its place")]


class RestoreMemory(ChangeMemory, frozen=True, kw_only=True, tag="memory.restore"):
    """Undo that a memory was deleted, superseded, or expired; one whose time is over has no time to live
    from then on.
    """


class RateMemory(ChangeMemory, frozen=True, kw_only=True, tag="memory.rate"):
    """Say how useful a memory was: helpful adds 1 to its score, unhelpful takes 1, outdated 2."""

    rating: Annotated[Rating, Meta(description="helpful adds 1 to its score, unhelpful takes 1, outdated 2")]


class PromoteMemory(ChangeMemory, frozen=True, kw_only=True, tag="memory.promote"):
    """End a memory's probation."""


class DemoteMemory(ChangeMemory, frozen=True, kw_only=True, tag="memory.demote"):
    """Take back that a memory was promoted: it is on probation again, and has to prove itself."""


class Deleted(Acknowledged, frozen=True, kw_only=True):
    """Where the deletion stands in the log, and the memories that it had taken the place of, which stay
    hidden until they are restored.
    """

    superseded: tuple[str, ...] = ()


class Rated(Acknowledged, frozen=True):
    """The sum of a memory's ratings."""

    score: int


class Promoted(Acknowledged, frozen=True):
    """What a memory is now."""

    status: Literal["active"] = "active"


class Edited(Acknowledged, frozen=True, kw_only=True):
    """Where the edit stands in the log, and the kinds of secret that were taken out of it."""

    redacted: tuple[str, ...] = ()


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a memory beside its content, and was given with an edit; what is None stays as it
    was.
    """

    tags: tuple[str, ...] | None = None
    priority: int | None = None
    metadata: dict[str, object] | None = None
    referenced_at: int | None = None
    source: str | None = None
    confidence: float | None = None


class PreparedEdit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit's content, clean, and its vectors where it could be embedded.

    `auto_tags` returns the tags that the content has by rule within a project; `given` is what an upsert
    replaces beside the content.
    """

    content: str
    redacted: tuple[str, ...] = ()
    embedded: Embedded | None = None
    auto_tags: Callable[[str | None], tuple[str, ...]] = lambda _project: ()
    given: Given | None = None


async def prepare_edit(
    services: Services, command: EditMemory, _context: RequestContext, given: Given | None = None
) -> PreparedEdit:
    """Clean and embed an edit, with which more may be *given*. Raises `Invalid`, and `Refused` for noise."""
    content = await computed_if_long(
        services, command.content, partial(cleaned, command.content, services.rules)
    )
    return PreparedEdit(
        content=content.text,
        redacted=content.redacted,
        embedded=None if command.ack == "durable" else await services.embed(content.text),
        auto_tags=partial(auto_tags, content.text, rules=services.rules),
        given=given,
    )


def edit(command: EditMemory, prepared: PreparedEdit, state: DecisionState, now_us: int) -> Decision:
    """Decide an edit; one that gives nothing but what is there already is answered without an event.

    Raises `NotFound`, `Refused` for a memory that is hidden, and `Conflict` where another one says exactly
    that.
    """
    memory = findable(state, command.memory_id, now_us)
    key = content_key(
        prepared.content, memory.event_type, memory.project, memory.entity_id, memory.session_id
    )
    if key == memory.content_key and prepared.given is None:
        return Decision(answer=Edited(position=memory.changed_at, redacted=prepared.redacted))
    _check_free(state, key, memory, now_us)
    edited = MemoryEdited(
        memory_id=memory.memory_id,
        content=prepared.content,
        content_key=key,
        reason=command.reason,
        auto_tags=prepared.auto_tags(memory.project),
        redacted=prepared.redacted,
        **msgspec.structs.asdict(prepared.given or Given()),
    )
    # What is still pending gets its vectors together with its relations.
    vectors = vectors_of(memory.memory_id, None if memory.pending else prepared.embedded)
    return _decided(memory, edited, *vectors, answer=Edited(redacted=prepared.redacted))


async def prepare_delete(
    services: Services, command: DeleteMemory, context: RequestContext
) -> tuple[str, ...]:
    """Return the memories that one may have taken the place of; views that cannot be read keep nobody from
    deleting.
    """
    with suppress(OmegadError):
        return await services.look(
            lambda connection, _: tuple(
                name for (name,) in connection.execute(_REPLACED, (command.memory_id,))
            ),
            at_least=max(context.written, context.acknowledged),
            names=("edges",),
        )
    return ()


def delete(command: DeleteMemory, replaced: tuple[str, ...], state: DecisionState, _now_us: int) -> Decision:
    """Decide a deletion; *replaced* are the memories it may have taken the place of. Raises `NotFound`,
    `Refused` where it is deleted already.
    """
    superseded = tuple(
        name
        for name in replaced
        if (other := state[Memories].get(name)) is not None and other.state == "superseded"
    )
    return deleted(known(state, command.memory_id), command.reason, superseded)


def deleted(memory: MemoryState, reason: str | None, superseded: tuple[str, ...] = ()) -> Decision:
    """Decide that a memory is deleted, which took the place of those *superseded*. Raises `Refused` where it
    is already.
    """
    if memory.state == "deleted":
        raise Refused(f"memory {memory.memory_id} is deleted already")
    fact = MemoryDeleted(memory_id=memory.memory_id, reason=reason)
    return _decided(memory, fact, answer=Deleted(superseded=superseded))


def supersede(command: SupersedeMemory, state: DecisionState, now_us: int) -> Decision:
    """Decide a supersession; raises `NotFound`, and `Refused` where either is hidden or both are the same."""
    if command.memory_id == command.superseded_by:
        raise Refused("a memory cannot supersede itself")
    memory = findable(state, command.memory_id, now_us)
    findable(state, command.superseded_by, now_us)
    reason = command.reason or "asked for"
    return _decided(
        memory,
        MemorySuperseded(memory_id=command.memory_id, superseded_by=command.superseded_by, reason=reason),
    )


def restore(command: RestoreMemory, state: DecisionState, now_us: int) -> Decision:
    """Decide a restoration; raises `NotFound`, `Refused` for a memory that is not hidden, `Conflict` where
    another says exactly that now.
    """
    memory = known(state, command.memory_id)
    if memory.is_active(now_us):
        raise Refused(f"memory {command.memory_id} is not deleted, superseded or expired")
    _check_free(state, memory.content_key, memory, now_us)
    return _decided(
        memory,
        MemoryRestored(
            memory_id=command.memory_id,
            reason=command.reason,
            is_permanent=is_over(memory.expires_at, now_us),
        ),
    )


def rate(command: RateMemory, state: DecisionState, _now_us: int) -> Decision:
    """Decide a rating, whatever the memory's state: it may have been hidden since it was read. One that
    helped has proved itself.
    """
    memory = known(state, command.memory_id)
    points = POINTS[command.rating]
    facts: list[Event] = [
        MemoryRated(memory_id=command.memory_id, rating=command.rating, points=points, reason=command.reason)
    ]
    if memory.probation and points > 0:
        facts.append(MemoryPromoted(memory_id=command.memory_id, evidence="use"))
    return _decided(memory, *facts, answer=Rated(score=memory.rating + points))


def promote(command: PromoteMemory, state: DecisionState, now_us: int) -> Decision:
    """Decide a promotion; one that is not on probation stays as it is. Raises `NotFound`, and `Refused`
    for a memory that is hidden.
    """
    memory = findable(state, command.memory_id, now_us)
    if not memory.probation:
        return Decision(answer=Promoted(position=memory.changed_at))
    return _decided(
        memory, MemoryPromoted(memory_id=command.memory_id, evidence="explicit"), answer=Promoted()
    )


def demote(command: DemoteMemory, state: DecisionState, now_us: int) -> Decision:
    """Decide that a promotion is taken back; one that is on probation stays as it is. Raises `NotFound`, and
    `Refused` for a memory that is hidden.
    """
    memory = findable(state, command.memory_id, now_us)
    if memory.probation:
        return Decision(answer=Acknowledged(position=memory.changed_at))
    return _decided(memory, MemoryDemoted(memory_id=command.memory_id, reason=command.reason or "by hand"))


def _check_free(state: DecisionState, key: str, memory: MemoryState, now_us: int) -> None:
    holder = state[Memories].holder(key, now_us)
    if holder is not None and holder.memory_id != memory.memory_id:
        raise Conflict(f"memory {holder.memory_id} says exactly that", hint="delete or edit that one first")


def _decided(memory: MemoryState, *facts: Event, answer: msgspec.Struct | None = None) -> Decision:
    events = (
        NewEvent(event=fact, project=memory.project, follows=place > 0) for place, fact in enumerate(facts)
    )
    return Decision(events=tuple(events), answer=Acknowledged() if answer is None else answer)


class CarryOver(Command, frozen=True, kw_only=True, tag="memory.carry_over"):
    """Count for a memory what another system, that it came from, had counted of it: how often it was found,
    and how it was rated. These count as if they had been counted here.
    """

    memory_id: MemoryId
    origin: Annotated[Name, Meta(description="the system that it came from")]
    retrievals: Annotated[Count, Meta(description="how often it was found there")] = 0
    last_retrieved_at: Annotated[
        str | None, Meta(description="when it was found there last, like 2026-01-31T09:30:00Z")
    ] = None
    helpful: Annotated[Count, Meta(description="how often it was rated helpful")] = 0
    unhelpful: Annotated[Count, Meta(description="how often it was rated unhelpful")] = 0
    outdated: Annotated[Count, Meta(description="how often it was rated outdated")] = 0


def carry_over(command: CarryOver, state: DecisionState, now_us: int) -> Decision:
    """Decide what is taken over. Raises `NotFound`, and `Invalid` for a time that is none."""
    memory = known(state, command.memory_id)
    last = command.last_retrieved_at
    facts: list[Event] = []
    if command.retrievals:
        facts.append(
            MemoryCountsCarried(
                memory_id=memory.memory_id,
                origin=command.origin,
                retrievals=command.retrievals,
                last_retrieved_at=(
                    None if last is None else min(parse_time(last, "last_retrieved_at"), now_us)
                ),
            )
        )
    ratings: tuple[tuple[Rating, int], ...] = (
        ("helpful", command.helpful),
        ("unhelpful", command.unhelpful),
        ("outdated", command.outdated),
    )
    facts += [
        MemoryRated(
            memory_id=memory.memory_id,
            rating=rating,
            points=POINTS[rating] * times,
            reason=f"rated so {times} times in {command.origin}",
        )
        for rating, times in ratings
        if times
    ]
    if memory.probation and command.helpful:
        facts.append(MemoryPromoted(memory_id=memory.memory_id, evidence="use"))
    return _decided(memory, *facts)


METHODS = (
    CommandMethod(
        params=EditMemory,
        answer=Edited,
        prepare=prepare_edit,
        decide=edit,
        verb=Verb(
            says="edited {memory_id} at position {position}",
            examples=(
                'omegad memory edit mem-0123456789abcdef "Billing runs on PostgreSQL 17"',
                "omegad memory edit mem-0123456789abcdef - < notes.txt",
            ),
        ),
        tool=AgentTool("omega_memory edit", by="memory.done"),
    ),
    CommandMethod(
        params=DeleteMemory,
        answer=Deleted,
        prepare=prepare_delete,
        decide=delete,
        verb=Verb(
            examples=("omegad delete mem-0123456789abcdef --reason 'it was never so'",),
            also="delete",
            is_first=True,
            says="deleted {memory_id} at position {position}",
        ),
        tool=AgentTool("omega_memory delete", by="memory.done"),
    ),
    CommandMethod(
        params=SupersedeMemory,
        answer=Acknowledged,
        decide=supersede,
        verb=Verb(
            says="superseded {memory_id} by {superseded_by} at position {position}",
            examples=(
                'omegad memory supersede mem-0123456789abcdef mem-fedcba9876543210 --reason "we moved"',
            ),
        ),
        tool=AgentTool("omega_memory supersede", by="memory.done", takes={"superseded_by": "target_id"}),
    ),
    CommandMethod(
        params=RestoreMemory,
        answer=Acknowledged,
        decide=restore,
        verb=Verb(
            examples=("omegad memory restore mem-0123456789abcdef",),
            says="restored {memory_id} at position {position}",
        ),
        tool=AgentTool("omega_memory restore", by="memory.done"),
    ),
    CommandMethod(
        params=RateMemory,
        answer=Rated,
        decide=rate,
        verb=Verb(
            says="rated {memory_id} {rating}; its score is {score}",
            examples=("omegad memory rate mem-0123456789abcdef helpful",),
        ),
        tool=AgentTool("omega_memory rate", by="memory.done"),
    ),
    CommandMethod(
        params=PromoteMemory,
        answer=Promoted,
        decide=promote,
        verb=Verb(
            examples=("omegad memory promote mem-0123456789abcdef",),
            says="promoted {memory_id}; it is {status}",
        ),
        tool=AgentTool("omega_memory promote", by="memory.done"),
    ),
    CommandMethod(
        params=DemoteMemory,
        answer=Acknowledged,
        decide=demote,
        verb=Verb(
            examples=("omegad memory demote mem-0123456789abcdef",), says="{memory_id} is on probation again"
        ),
    ),
    CommandMethod(
        params=CarryOver,
        answer=Acknowledged,
        decide=carry_over,
        verb=Verb(
            examples=("omegad memory carry_over mem-0123456789abcdef mem0 --retrievals 12 --helpful 3",),
            says="{memory_id} carries over what {origin} counted of it",
        ),
    ),
)
