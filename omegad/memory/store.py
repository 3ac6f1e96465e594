"""Remember something: what a store may say, and the decision what it comes to."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from omegad import index
from omegad.embedding.passages import Embedded
from omegad.index.neighbours import COUNT, Near, neighbours, titled
from omegad.index.served import Recent, RecentVectors
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Event, NewEvent, Position
from omegad.log.projection import to_json
from omegad.log.sanitise import TAGS_MAX
from omegad.memory import relating
from omegad.memory.content import (
    auto_tags,
    check_metadata,
    cleaned,
    computed_if_long,
    content_key,
    vectors_of,
)
from omegad.memory.events import (
    Likeness,
    MadeOf,
    MemoryEvolved,
    MemoryPromoted,
    MemoryRepeated,
    MemoryStored,
    Relation,
)
from omegad.memory.relating import Effects, Neighbour, Replaceable, Scope, effects, relations
from omegad.memory.state import Memories, MemoryState, findable, new_id
from omegad.memory.types import TTL_SECONDS_MAX, MemoryType, MemoryTypes
from omegad.requests.command import Command, Name, Text
from omegad.requests.method import CommandMethod, Moment, Outdated, RequestContext, Services
from omegad.requests.verb import AgentTool, Verb
from omegad.runtime.errors import (
    ModelFailed,
    ModelMissing,
    Overloaded,
    ReadTooLong,
    Stale,
)
from omegad.runtime.times import parse_time
from omegad.storage.driver import Connection
from omegad.text.evidence.stance import taken_back
from omegad.text.ingestion.tagging import TAG_CHARACTERS_MAX
from omegad.text.redaction import redact

SUMMARISED_BY = "auto_summary"
"""The source of what sessions are summarised by, which a summary of their week takes the place of."""

EVENT_TYPE = "memory"  # where none is named
THESIS_TYPE, THESIS = "decision", "thesis"
"""The type, and the key in its metadata, of a memory that states a thesis."""

EVIDENCE = ("evidence_for", "evidence_against")
Tag = Annotated[str, Meta(min_length=1, max_length=TAG_CHARACTERS_MAX)]
_AUTOMATIC_SOURCES_TEXT = """
auto automated automatic automatically automation autocapture capture captured hook hooks
"""
AUTOMATIC_SOURCES = frozenset(_AUTOMATIC_SOURCES_TEXT.split())
"""The first word of the source of what nobody asked to remember: `auto_capture`, `hook:Stop`."""

_FIRST_WORD = re.compile(r"[^\W_]+")
SUPERSEDES_MAX = 16


_SHOWN = """
SELECT DISTINCT memory_id FROM retrievals
WHERE session_id = ? AND memory_id IN (SELECT value FROM json_each(?))
"""
ASKED_CONFIDENCE, AUTOMATIC_CONFIDENCE = 1.0, 0.5


class StoreMemory(Command, frozen=True, kw_only=True, tag="memory.store"):
    """Remember something. Content is at most 256 KiB, metadata 16 KiB, tags 32 of 64 characters.

    Time to live and priority are the type's where they are not given. What a `source` like `auto_capture` or
    `hook:…` stores is on probation until it is promoted; `probation` says otherwise. `supersedes` names
    memories whose place it takes, at most 16.
    """

    content: Annotated[
        Text, Meta(description="what to remember; on the command line - reads it from standard input")
    ]
    event_type: Annotated[
        Name, Meta(description="decision, lesson_learned, user_preference, error_pattern, …")
    ] = EVENT_TYPE
    session_id: Annotated[Name | None, Meta(description="which session it is from")] = None
    project: Annotated[Name | None, Meta(description="which project it belongs to")] = None
    entity_id: Annotated[Name | None, Meta(description="which person or thing it is about")] = None
    tags: Annotated[tuple[Tag, ...], Meta(max_length=TAGS_MAX, description="a tag")] = ()
    priority: (
        Annotated[int, Meta(ge=1, le=5, description="how important it is; its type's where none is given")]
        | None
    ) = None
    metadata: Annotated[dict[str, object], Meta(description="a JSON object that is kept with it")] = (
        msgspec.field(default_factory=dict)
    )
    referenced_date: Annotated[
        str | None,
        Meta(description="when what it speaks of happened, like 2026-01-31 or 2026-01-31T09:30:00Z"),
    ] = None
    ttl_seconds: (
        Annotated[int, Meta(ge=1, le=TTL_SECONDS_MAX, description="after how long it is found no more")]
        | None
    ) = None
    source: Annotated[Name | None, Meta(description="where it comes from")] = None
    confidence: Annotated[float, Meta(ge=0, le=1, description="how sure it is")] | None = None
    probation: Annotated[
        bool | None, Meta(description="whether it has to prove itself; what was captured unasked does")
    ] = None
    supersedes: Annotated[
        tuple[Name, ...], Meta(max_length=SUPERSEDES_MAX, description="a memory whose place it takes")
    ] = ()

    def is_automatic(self) -> bool:
        """Say whether nobody asked for this to be remembered."""
        first = _FIRST_WORD.match((self.source or "").casefold())
        return (
            self.probation
            if self.probation is not None
            else first is not None and first.group() in AUTOMATIC_SOURCES
        )

    def learned_at(self) -> int | None:
        """Return when this was learned, in microseconds since 1970; None for now."""
        return None

    def known_before(self) -> frozenset[str] | None:
        """Return the memories that its session had been shown when it was said; None for those that it has
        been shown by now.
        """
        return None

    def sources(self) -> MadeOf | None:
        """Return what omegad has the text from; None where it was said as it is."""
        return None


REST_ALIKE = (
    "alike but for what was taken out: whether the secret is the older memory's or a new one is not kept;"
    " store where it is kept, or when it changed"
)
"""What is said of a duplicate of which a secret was taken out."""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a store: the memory that now holds the content, new or not.

    `contradicts` are the memories that it reverts, `superseded` those that it took the place of as it was
    asked to; `may_replace` are others whose place it may be meant to take, which `memory.supersede` or a
    store with `supersedes` settles. `may_contradict` is the one memory of which the texts do not tell whether
    it still holds: `memory.settle` does, and no pair is asked about twice. `ignored` names what was given and
    is not kept, since an older memory holds the content. `unfound` are ids that the metadata of a thesis
    names as evidence and that no memory has. `note` says of a duplicate of which a secret was taken out that
    only the rest was compared.
    """

    memory_id: str
    outcome: Literal["stored", "duplicate", "evolved"]
    position: Position = 0
    related: tuple[Relation, ...] = ()
    contradicts: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    may_replace: tuple[Replaceable, ...] = ()
    may_contradict: tuple[Replaceable, ...] = ()
    redacted: tuple[str, ...] = ()
    auto_tags: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    unfound: tuple[str, ...] = ()
    degraded: str | None = None
    note: str | None = None
    status: Literal["active", "probation"] = "active"


Said = tuple[MemoryRepeated | MemoryEvolved, *tuple[Event, ...]]
"""That a memory was said again, and what follows from it."""


class PreparedStore(msgspec.Struct, frozen=True, kw_only=True):
    """What deciding a store needs from the world: a fresh id, the clean content, its vectors, and its
    neighbours.

    `neighbours` are as of `read_position`, and `shown` are those that the session had been shown, which it
    echoes rather than corroborates, None where nobody looked; exact where none of them can be missing.
    `arrived` returns the memories like this one that were stored lately, nearest first, and is asked at the
    moment of the append; `compared` says what the content makes of some. `embedded` is None when nothing
    could be embedded.
    """

    memory_id: str
    content: str
    read_position: Position
    kind: MemoryType = MemoryType()
    redacted: tuple[str, ...] = ()
    auto_tags: tuple[str, ...] = ()
    client: str | None = None
    neighbours: tuple[Neighbour, ...] = ()
    shown: frozenset[str] | None = None
    is_shown_exact: bool = True
    embedded: Embedded | None = None
    degraded: str | None = None
    pending: bool = False
    arrived: Callable[[], Sequence[Recent]] = tuple
    compared: Callable[[Sequence[Near]], tuple[Neighbour, ...]] = lambda _: ()
    is_last_try: bool = False


def store(command: StoreMemory, prepared: PreparedStore, state: DecisionState, now_us: int) -> Decision:
    """Decide a store: a duplicate of what is there, exactly or nearly; an addition to it; or a new memory
    with its relations.

    Raises `NotFound` and `Refused` for what it is to supersede, as `memory.supersede` does, and `Outdated`
    when what was prepared does not hold any more, and it is not the last try.
    """
    key = content_key(
        prepared.content, command.event_type, command.project, command.entity_id, command.session_id
    )
    kind, current = prepared.kind, still_valid(prepared, state, now_us)
    open_to_growth = [neighbour for neighbour in current if neighbour.memory_id not in command.supersedes]
    repeated = next((n for n in open_to_growth if n.duplicate), None)
    survivor = state[Memories].holder(key, now_us)
    likeness: Likeness
    likeness, similarity = "exact", 1.0
    if survivor is None and repeated is not None and repeated.duplicate:
        survivor, (likeness, similarity) = state[Memories].get(repeated.memory_id), repeated.duplicate
    if survivor is not None:
        gained = _gained(command, kind, survivor)
        if state[Memories].is_elsewhere(survivor):
            gained = gained._replace(tags=())  # which its own home gives it
        again = MemoryRepeated(
            memory_id=survivor.memory_id,
            likeness=likeness,
            similarity=round(similarity, 6),
            content=None if likeness == "exact" else prepared.content,
            made_of=command.sources(),
            **gained._asdict(),
        )
        done = effects_of(command, survivor.memory_id, current, state, now_us)
        return _strengthened(command, prepared, survivor, (again,), done)
    grown = next((n for n in open_to_growth if n.evolution and _may_grow(n, state)), None)
    survivor = state[Memories].get(grown.memory_id) if grown else None
    if survivor is not None and grown is not None and grown.evolution and not _is_lesser(command, survivor):
        evolved = MemoryEvolved(
            memory_id=survivor.memory_id,
            content=prepared.content,
            content_key=content_key(
                prepared.content,
                survivor.event_type,
                survivor.project,
                survivor.entity_id,
                survivor.session_id,
            ),
            wording=prepared.content,
            made_of=command.sources(),
            similarity=round(grown.evolution, 6),
            auto_tags=prepared.auto_tags,
            **_gained(command, kind, survivor)._asdict(),
        )
        # What is still pending gets its vectors together with its relations.
        embedded = None if survivor.pending else prepared.embedded
        facts: Said = (evolved, *vectors_of(survivor.memory_id, embedded))
        done = effects_of(command, survivor.memory_id, current, state, now_us)
        return _strengthened(command, prepared, survivor, facts, done)
    done = effects_of(command, prepared.memory_id, current, state, now_us)
    return _new(command, prepared, kind, key, relations(current), done=done)


def evidence(command: StoreMemory) -> tuple[str, ...]:
    """Return the ids that the metadata of a thesis names as evidence, for it and against it."""
    is_thesis = command.event_type == THESIS_TYPE and command.metadata.get(THESIS) is True
    given = [command.metadata.get(key) for key in EVIDENCE] if is_thesis else []
    named = (one for ids in given if isinstance(ids, list) for one in ids if isinstance(one, str))
    return tuple(dict.fromkeys(named))


def effects_of(
    command: StoreMemory, memory_id: str, neighbours: Sequence[Neighbour], state: DecisionState, now_us: int
) -> Effects:
    """Return what a store whose content a memory holds does to others; raises `NotFound`, and `Refused`
    where it names a hidden one.
    """
    named = [findable(state, other, now_us) for other in command.supersedes]
    said_at = now_us if (learned := command.learned_at()) is None else learned
    unfound = tuple(one for one in evidence(command) if state[Memories].get(one) is None)
    done = effects(memory_id, said_at, neighbours, named, state, is_asked=not command.is_automatic())
    return msgspec.structs.replace(done, unfound=unfound)


def still_valid(prepared: PreparedStore, state: DecisionState, now_us: int) -> tuple[Neighbour, ...]:
    """Return the neighbours that are still as they were read.

    Raises `Outdated` where some are not or others may have come; at the last try what came since is compared
    here and now, and is among them.
    """
    memories, read_position = state[Memories], prepared.read_position
    memories.look_up([neighbour.memory_id for neighbour in prepared.neighbours])
    current = tuple(
        neighbour
        for neighbour in prepared.neighbours
        if (memory := memories.get(neighbour.memory_id))
        and memory.is_active(now_us)
        and memory.changed_at <= read_position
    )
    if state.head == read_position:  # nothing can have come
        arrivals = []
    else:
        arrivals = [one for one in prepared.arrived() if one.near.memory_id != prepared.memory_id]
    if prepared.is_last_try:
        return _with_arrivals(current, arrivals, prepared, memories, now_us)
    found = (memories.get(one.near.memory_id) for one in arrivals)
    have_arrived = any(memory and memory.changed_at > read_position for memory in found)
    if have_arrived or len(current) < len(prepared.neighbours):
        raise Outdated
    return current


def _with_arrivals(
    current: tuple[Neighbour, ...],
    arrivals: Sequence[Recent],
    prepared: PreparedStore,
    memories: Memories,
    now_us: int,
) -> tuple[Neighbour, ...]:
    """Return neighbours, and beside them the nearest of what has come since they were read, by what it says
    now: a memory of its own, or one that has grown by it.
    """
    came: dict[str, Near] = {}
    for one in arrivals:
        memory = memories.holder(one.content_key, now_us)
        is_new = memory is not None and memory.changed_at > prepared.read_position
        if memory is not None and is_new and memory.memory_id not in {prepared.memory_id, *came}:
            came[memory.memory_id] = msgspec.structs.replace(one.near, memory_id=memory.memory_id)
            if len(came) == COUNT:
                break
    if not came:
        return current
    near = (*current, *prepared.compared(tuple(came.values())))
    return tuple(sorted(near, key=lambda one: -(one.cosine or 0.0)))


def _may_grow(near: Neighbour, state: DecisionState) -> bool:
    """Say whether a memory may say more by what is stored: this home's own, since others reword theirs."""
    memory = state[Memories].get(near.memory_id)
    return memory is not None and not state[Memories].is_elsewhere(memory)


def _is_lesser(command: StoreMemory, survivor: MemoryState) -> bool:
    """Say whether what is stored was captured unasked, and what there is was told by a person."""
    return command.is_automatic() and not survivor.probation


def _ttl_seconds(command: StoreMemory, kind: MemoryType) -> int | None:
    return kind.ttl_seconds if command.ttl_seconds is None else command.ttl_seconds


class _Gained(NamedTuple):
    """What a memory gains from being said again: tags, and how it lasts where that is longer than it did,
    since a store promises its own time to live, whoever holds the content.
    """

    tags: tuple[str, ...] = ()
    ttl_seconds: int | None = None
    is_permanent: bool = False


def _gained(command: StoreMemory, kind: MemoryType, survivor: MemoryState) -> _Gained:
    if _is_lesser(command, survivor):
        return _Gained()
    tags, asked = tuple(dict.fromkeys(command.tags)), _ttl_seconds(command, kind)
    if survivor.ttl_seconds is None or (asked is not None and asked <= survivor.ttl_seconds):
        return _Gained(tags)
    return _Gained(tags, asked, is_permanent=asked is None)


def _strengthened(
    command: StoreMemory,
    prepared: PreparedStore,
    survivor: MemoryState,
    facts: Said,
    done: Effects,
) -> Decision:
    """End a store whose content an older memory holds, as the first of *facts* says: that one may be
    corroborated, unless a session says again what it was shown. Raises `Outdated` where it may have been a
    moment before, unless it is the last try.
    """
    is_others = not command.is_automatic() or command.session_id != survivor.session_id
    is_corroborated = survivor.probation and is_others
    if is_corroborated and command.session_id is not None:
        is_known = prepared.shown is None or survivor.memory_id in prepared.shown
        if not is_known and not prepared.is_shown_exact and not prepared.is_last_try:
            raise Outdated
        is_corroborated = not is_known and prepared.is_shown_exact
    if is_corroborated:
        facts = (*facts, MemoryPromoted(memory_id=survivor.memory_id, evidence="corroboration"))
    said = facts[0]
    given = {
        "metadata": command.metadata or None,
        "priority": command.priority,
        "referenced_date": command.referenced_date,
        "source": command.source,
        "confidence": command.confidence,
        "tags": None if said.tags else command.tags or None,
    }
    is_evolved = isinstance(said, MemoryEvolved)
    answer = Stored(
        memory_id=survivor.memory_id,
        outcome="evolved" if is_evolved else "duplicate",
        note=None if is_evolved or not prepared.redacted else REST_ALIKE,
        contradicts=done.contradicts,
        superseded=done.superseded,
        may_replace=done.may_replace,
        may_contradict=done.may_contradict,
        redacted=prepared.redacted,
        ignored=tuple(name for name, value in given.items() if value is not None),
        degraded=prepared.degraded,
        status="probation" if survivor.probation and not is_corroborated else "active",
    )
    return Decision(events=_events(command, facts, done), answer=answer)


def _new(
    command: StoreMemory,
    prepared: PreparedStore,
    kind: MemoryType,
    key: str,
    near: tuple[tuple[Relation, ...], tuple[Relation, ...]],
    *,
    done: Effects,
) -> Decision:
    is_automatic, (related, also_near) = command.is_automatic(), near
    stored = MemoryStored(
        memory_id=prepared.memory_id,
        content=prepared.content,
        content_key=key,
        event_type=command.event_type,
        entity_id=command.entity_id,
        tags=tuple(dict.fromkeys(command.tags)),
        auto_tags=prepared.auto_tags,
        priority=kind.priority if command.priority is None else command.priority,
        metadata=command.metadata,
        made_of=command.sources(),
        referenced_at=(
            None
            if command.referenced_date is None
            else parse_time(command.referenced_date, "referenced_date")
        ),
        ttl_seconds=_ttl_seconds(command, kind),
        source=command.source or prepared.client or "unnamed client",
        confidence=(
            (AUTOMATIC_CONFIDENCE if is_automatic else ASKED_CONFIDENCE)
            if command.confidence is None
            else command.confidence
        ),
        related=related,
        also_near=also_near,
        redacted=prepared.redacted,
        pending=prepared.pending,
        on_probation=is_automatic,
    )
    answer = Stored(
        memory_id=stored.memory_id,
        outcome="stored",
        related=related,
        contradicts=done.contradicts,
        superseded=done.superseded,
        may_replace=done.may_replace,
        may_contradict=done.may_contradict,
        redacted=prepared.redacted,
        auto_tags=prepared.auto_tags,
        unfound=done.unfound,
        degraded=prepared.degraded,
        status="probation" if is_automatic else "active",
    )
    facts = [stored, *vectors_of(stored.memory_id, prepared.embedded)]
    return Decision(events=_events(command, facts, done), answer=answer)


def _events(command: StoreMemory, facts: Iterable[Event], done: Effects) -> tuple[NewEvent, ...]:
    """Return the events of one store."""
    return addressed(
        command, (*(NewEvent(event=fact, project=command.project) for fact in facts), *done.events)
    )


def addressed(command: StoreMemory, events: Iterable[NewEvent]) -> tuple[NewEvent, ...]:
    """Address the events of one store: the first is what happened, and the cause of the others."""
    occurred_at = command.learned_at()
    return tuple(
        msgspec.structs.replace(
            new, session_id=command.session_id, occurred_at=occurred_at, follows=place > 0
        )
        for place, new in enumerate(events)
    )


async def prepare(services: Services, command: StoreMemory, context: RequestContext) -> PreparedStore:
    """Check and clean a store before any work is done for it, embed it, and look at what is near. Raises
    `Invalid`, `Refused`.
    """
    base = await computed_if_long(services, command.content, partial(begun, services, command, context))
    if command.ack == "durable":
        return msgspec.structs.replace(base, pending=True)
    if waiting := services.begin_embedding(base.content):
        with suppress(TimeoutError):
            return await look_around(services, command, base, waiting, context)
    return await look_around(services, command, base, await services.embed(base.content), context)


def begun(services: Services, command: StoreMemory, context: RequestContext) -> PreparedStore:
    """Check a store, and clean it. Raises `Invalid`, and `Refused` for the noise of a system."""
    in_metadata = check_metadata(command.metadata)
    if command.referenced_date is not None:
        parse_time(command.referenced_date, "referenced_date")
    content = cleaned(command.content, services.rules)
    named = {tag.casefold() for tag in command.tags}
    found = [
        tag for tag in auto_tags(content.text, command.project, services.rules) if tag.casefold() not in named
    ]
    return PreparedStore(
        memory_id=new_id(services),
        content=content.text,
        kind=services[MemoryTypes].of(command.event_type),
        redacted=tuple(dict.fromkeys((*content.redacted, *in_metadata, *redact(" ".join(command.tags))[1]))),
        auto_tags=tuple(found[: TAGS_MAX - len(named)]),
        client=context.client,
        read_position=0,
    )


class _Around(NamedTuple):
    """What is near a text, what of it the session had been shown, as of which position, and its vectors."""

    neighbours: tuple[Neighbour, ...]
    shown: frozenset[str]
    position: Position
    embedded: Embedded | None


async def look_around(
    services: Services,
    command: StoreMemory,
    base: PreparedStore,
    embedding: Embedded | Callable[[], Embedded] | None,
    context: RequestContext,
) -> PreparedStore:
    """Return a store with what is near, and what its text makes of that; without vectors it is near by its
    words, and waits for them. What is *embedding* it may be waited for by the reader, who does meanwhile what
    needs no vector; raises TimeoutError where that takes too long.
    """
    scope = Scope(event_type=command.event_type, entity_id=command.entity_id, session_id=command.session_id)
    jaccard_min = services[MemoryTypes].of(command.event_type).jaccard

    def compared(of: Embedded | None, near: Sequence[Near]) -> tuple[Neighbour, ...]:
        if of is not None and not of.is_whole:
            near = [msgspec.structs.replace(one, is_comparable=False) for one in near]
        return relating.compare(base.content, scope, near, jaccard_min)

    def read(connection: Connection, moment: Moment) -> _Around:
        index, embedded = moment.index_as(VectorIndexes), None if callable(embedding) else embedding
        if index is not None:
            index.sync(connection)
        if callable(embedding):
            relating.read_ahead(base.content)
            with suppress(ModelMissing, ModelFailed, Overloaded):
                embedded = embedding()
        of_model = None if index is None or embedded is None else index.of(embedded.embedder_id)
        by_meaning = None if of_model is None or embedded is None else (of_model, embedded.vector)
        near = _near(connection, base, command.project, by_meaning, moment.now_us)
        shown = command.known_before()
        if shown is None:
            values = (command.session_id, to_json([one.memory_id for one in near]))
            rows = connection.execute(_SHOWN, values).fetchall() if command.session_id else []
            shown = frozenset(memory_id for (memory_id,) in rows)
        return _Around(compared(embedded, near), shown, moment.position, embedded)

    try:
        found, shown, position, embedded = await services.look(
            read, at_least=context.written, names=(*index.VIEWS, "retrievals")
        )
    except (Stale, ReadTooLong):
        # The views cannot be read before they are built again, or not in time; the backlog decides the
        # relations then.
        return msgspec.structs.replace(base, pending=True)
    # What a session was shown a moment ago is in the log before what it says of that, and perhaps not in the
    # views.
    is_exact = command.known_before() is not None or (context.is_again and position >= context.written)
    ready = msgspec.structs.replace(
        base,
        neighbours=found,
        shown=shown,
        is_shown_exact=is_exact,
        read_position=position,
        is_last_try=context.is_last_try,
        embedded=embedded,
    )
    if embedded is None:
        return msgspec.structs.replace(ready, pending=True, degraded="embedding")
    if callable(embedding):
        services.hold(embedded)
    recent = services[RecentVectors]
    recent.add(_said(command, base, embedded), command.project, embedded)
    return msgspec.structs.replace(
        ready,
        arrived=partial(recent.near, command.project, embedded),
        compared=partial(compared, embedded),
    )


def _near(
    connection: Connection,
    base: PreparedStore,
    project: str | None,
    embedded: tuple[VectorIndex, bytes] | None,
    now_us: int,
) -> list[Near]:
    """Return what is near to a text, and behind that what it may revert by its title."""
    near = neighbours(connection, base.content, project, embedded, now_us=now_us, leave_out=base.memory_id)
    title = taken_back(base.content)
    named = titled(connection, title, project, now_us=now_us) if title else []
    known = {base.memory_id, *(one.memory_id for one in near)}
    return near + [one for one in named if one.memory_id not in known]


def _said(command: StoreMemory, base: PreparedStore, embedded: Embedded) -> Recent:
    """Return what a store says, for those that are decided before the views show it."""
    near = Near(
        memory_id=base.memory_id,
        content=base.content,
        event_type=command.event_type,
        entity_id=command.entity_id,
        session_id=command.session_id,
        cosine=None,
        is_comparable=embedded.is_whole,
    )
    scope = (command.event_type, command.project, command.entity_id, command.session_id)
    return Recent(near, content_key(base.content, *scope))


class DeriveMemory(StoreMemory, frozen=True, kw_only=True, tag="memory.derive"):
    """Remember a text that was put together of what others said."""

    made_of: Annotated[
        MadeOf, Meta(description="the memories, and the positions of the events, that it is made of")
    ]

    def sources(self) -> MadeOf:
        """Return what it is made of."""
        return self.made_of


METHODS = (
    CommandMethod(
        params=StoreMemory,
        answer=Stored,
        prepare=prepare,
        decide=store,
        verb=Verb(
            "store",
            by="memories.store",
            is_first=True,
            examples=(
                'omegad store "Prefers tabs over spaces" --event-type user_preference',
                (
                    'omegad store "Retry on 429 with jitter" --event-type lesson_learned --tag http --tag'
                    " retries --priority 4"
                ),
                "omegad store - --project shop < notes.txt",
            ),
        ),
        tool=AgentTool("omega_store", by="remembering.stored"),
    ),
    CommandMethod(params=DeriveMemory, answer=Stored, prepare=prepare, decide=store, is_internal=True),
)
