"""Commands on memories."""

import unicodedata
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.commands.command import Command, Name, Text
from omegad.commands.likeness import differ_in_detail, jaccard
from omegad.commands.memory_types import TTL_SECONDS, MemoryTypes
from omegad.errors import Invalid, NotFound, Refused
from omegad.events.fact import NewEvent, Position
from omegad.events.memory import Likeness, MemoryDeleted, MemoryEmbedded, MemoryRelated, MemoryRepeated, MemoryStored, MemorySuperseded, Relation
from omegad.log.decision import Decision
from omegad.log.guards import Guards
from omegad.log.sanitise import CONTENT_BYTES_MAX, METADATA_BYTES_MAX, TAGS_MAX
from omegad.log.secrets import redact
from omegad.times import parse_time

DUPLICATE_COSINE = 0.95
RELATED_COSINE = 0.45
RELATED_MAX = 3
TAG_CHARACTERS_MAX = 64
TTL_SECONDS_MAX = 100 * 366 * 86_400  # a hundred years; what is to stay longer has no time to live


class StoreMemory(Command, frozen=True, kw_only=True, tag="memory.store"):
    """Remember something. Content is at most 256 KiB, metadata 16 KiB, tags 32 of 64 characters."""

    content: Text
    event_type: Name = "memory"
    session_id: Name | None = None
    project: Name | None = None
    entity_id: Name | None = None
    tags: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=TAG_CHARACTERS_MAX)], ...], Meta(max_length=TAGS_MAX)] = ()
    priority: Annotated[int, Meta(ge=1, le=5)] = 3
    metadata: dict[str, object] = msgspec.field(default_factory=dict)
    referenced_date: str | None = None
    ttl_seconds: Annotated[int, Meta(ge=1, le=TTL_SECONDS_MAX)] | None = None
    source: Name | None = None
    confidence: Annotated[float, Meta(ge=0, le=1)] | None = None


class DeleteMemory(Command, frozen=True, kw_only=True, tag="memory.delete"):
    """Hide a memory from every search and list; its history stays."""

    memory_id: Name
    reason: str | None = None


class Related(msgspec.Struct, frozen=True, kw_only=True):
    """An edge in an answer."""

    memory_id: str
    similarity: float
    edge_type: str


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a store: the memory that now holds the content, new or not."""

    memory_id: str
    outcome: Literal["stored", "duplicate", "evolved"]
    position: Position = 0
    related: tuple[Related, ...] = ()
    contradicts: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    degraded: str | None = None
    status: str = "active"


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """Where the latest event of a command stands in the log."""

    position: Position = 0


class Neighbour(msgspec.Struct, frozen=True, kw_only=True):
    """A memory near to the one being stored.

    `similarity` is the cosine, None where it was found by words alone; `is_comparable` says that the cosine is of the whole texts.
    """

    memory_id: str
    content: str
    event_type: str
    entity_id: str | None
    similarity: float | None
    is_comparable: bool = True


class PreparedStore(msgspec.Struct, frozen=True, kw_only=True):
    """What deciding a store needs from the world: a fresh id, the clean content, its vectors' names, and its neighbours.

    `neighbours` are as of `read_position`; `arrived` returns the ids of memories like this one that were stored lately, by a ring of
    late vectors, and is asked at the moment of the append. `embedder_id` is None when nothing could be embedded.
    """

    memory_id: str
    content: str
    redacted: tuple[str, ...]
    read_position: Position
    neighbours: tuple[Neighbour, ...] = ()
    embedder_id: str | None = None
    text_hashes: tuple[str, ...] = ()
    degraded: str | None = None
    pending: bool = False
    arrived: Callable[[], Sequence[str]] = tuple
    is_last_try: bool = False


class Outdated(Refused):
    """The neighbours have changed since they were looked up."""


def clean(command: StoreMemory, types: MemoryTypes) -> tuple[str, tuple[str, ...]]:
    """Check a store before any work is done for it; return its content in NFC, free of secrets, and what was taken out.

    Raises `Invalid` for what is too large or of no known kind.
    """
    types.check(command.event_type)
    size = len(command.content.encode())
    if size > CONTENT_BYTES_MAX:
        raise Invalid(f"content has {size} bytes; the limit is {CONTENT_BYTES_MAX}", hint="store the essence, or several memories")
    if not command.content.strip():
        raise Invalid("content is empty")
    if len(msgspec.json.encode(command.metadata)) > METADATA_BYTES_MAX:
        raise Invalid(f"metadata is larger than {METADATA_BYTES_MAX} bytes of JSON")
    if command.referenced_date is not None:
        parse_time(command.referenced_date, "referenced_date")
    return redact(unicodedata.normalize("NFC", command.content))


def content_key(command: StoreMemory, content: str) -> str:
    """Identify content within its scope: the same words in another project, or as another type, are another memory."""
    scope = msgspec.json.encode((command.event_type, command.project, command.entity_id, content))
    return sha256(scope).hexdigest()


def store(command: StoreMemory, prepared: PreparedStore, jaccard_min: float, guards: Guards, now_us: int) -> Decision:
    """Decide a store: a duplicate of what is there, exactly or nearly, or a new memory with its relations.

    Raises `Outdated` when what was prepared does not hold any more, and it is not the last try.
    """
    del now_us
    key = content_key(command, prepared.content)
    if holder := guards.holder(key):
        return _repeated(command, prepared, holder.memory_id, "exact", 1.0)
    neighbours = _still_valid(prepared, guards)
    for neighbour in neighbours:
        if likeness := _duplicates(command, prepared, neighbour, jaccard_min):
            return _repeated(command, prepared, neighbour.memory_id, *likeness)
    return _new(command, prepared, key, _relations(neighbours))


def delete(command: DeleteMemory, guards: Guards, now_us: int) -> Decision:
    """Decide a deletion; raises `NotFound`, or `Refused` where the memory is deleted already."""
    del now_us
    guard = guards.memory(command.memory_id)
    if guard is None:
        raise NotFound(f"there is no memory {command.memory_id}")
    if guard.state == "deleted":
        raise Refused(f"memory {command.memory_id} is deleted already")
    event = MemoryDeleted(memory_id=command.memory_id, reason=command.reason)
    return Decision(events=(NewEvent(event=event),), answer=Recorded())


def embed(command: StoreMemory, prepared: PreparedStore, jaccard_min: float, guards: Guards, now_us: int) -> Decision:
    """Decide what follows once a memory that was stored without the model has been embedded: its vectors, and its relations if pending.

    Where it then proves to say what an older one says, that one supersedes it. Does nothing where the embedder's vectors are recorded
    already, so that it can be asked any number of times. Raises `Outdated` as `store` does.
    """
    del now_us
    assert prepared.embedder_id is not None
    guard = guards.memory(prepared.memory_id)
    if guard is None or guards.is_embedded(guard.memory_id, prepared.embedder_id):
        return Decision(answer=Recorded())
    cause = guard.stored_at
    vectors = MemoryEmbedded(memory_id=guard.memory_id, embedder_id=prepared.embedder_id, text_hashes=prepared.text_hashes)
    events = [NewEvent(event=vectors, cause=cause)]
    if guard.pending:
        neighbours = _still_valid(prepared, guards)
        older = [n for n in neighbours if (other := guards.memory(n.memory_id)) and other.stored_at < guard.stored_at]
        same = next((n.memory_id for n in older if _duplicates(command, prepared, n, jaccard_min)), None)
        events.append(NewEvent(event=MemoryRelated(memory_id=guard.memory_id, related=() if same else _relations(neighbours)), cause=cause))
        if same and guard.state == "active":
            event = MemorySuperseded(memory_id=guard.memory_id, superseded_by=same, reason="says the same")
            events.append(NewEvent(event=event, cause=cause))
    return Decision(events=tuple(events), answer=Recorded())


def _still_valid(prepared: PreparedStore, guards: Guards) -> tuple[Neighbour, ...]:
    """Return the neighbours that are still as they were read; ask for another look where others may have come, unless it was the last."""
    current: list[Neighbour] = []
    for neighbour in prepared.neighbours:
        guard = guards.memory(neighbour.memory_id)
        if guard is not None and guard.state == "active":
            current.append(neighbour)
    arrivals = [guards.memory(memory_id) for memory_id in prepared.arrived() if memory_id != prepared.memory_id]
    have_arrived = any(guard is not None and guard.changed_at > prepared.read_position for guard in arrivals)
    is_outdated = have_arrived or len(current) < len(prepared.neighbours)
    if is_outdated and not prepared.is_last_try:
        raise Outdated
    return tuple(current)


def _duplicates(command: StoreMemory, prepared: PreparedStore, neighbour: Neighbour, jaccard_min: float) -> tuple[Likeness, float] | None:
    if (neighbour.event_type, neighbour.entity_id) != (command.event_type, command.entity_id):
        return None
    if differ_in_detail(prepared.content, neighbour.content):
        return None
    if neighbour.is_comparable and neighbour.similarity is not None and neighbour.similarity >= DUPLICATE_COSINE:
        return "cosine", neighbour.similarity
    overlap = jaccard(prepared.content, neighbour.content)
    return ("jaccard", overlap) if overlap >= jaccard_min else None


def _relations(neighbours: Sequence[Neighbour]) -> tuple[Relation, ...]:
    near = [(n.similarity, n.memory_id) for n in neighbours if n.similarity is not None and n.similarity >= RELATED_COSINE]
    near.sort(key=lambda pair: (-pair[0], pair[1]))
    return tuple(Relation(memory_id=memory_id, similarity=round(similarity, 6)) for similarity, memory_id in near[:RELATED_MAX])


def _repeated(command: StoreMemory, prepared: PreparedStore, memory_id: str, likeness: Likeness, similarity: float) -> Decision:
    content = None if likeness == "exact" else prepared.content
    event = MemoryRepeated(memory_id=memory_id, likeness=likeness, similarity=round(similarity, 6), content=content)
    answer = Stored(memory_id=memory_id, outcome="duplicate", redacted=prepared.redacted, degraded=prepared.degraded)
    return Decision(events=(NewEvent(event=event, session_id=command.session_id, project=command.project),), answer=answer)


def _new(command: StoreMemory, prepared: PreparedStore, key: str, relations: tuple[Relation, ...]) -> Decision:
    stored = MemoryStored(
        memory_id=prepared.memory_id,
        content=prepared.content,
        content_key=key,
        event_type=command.event_type,
        entity_id=command.entity_id,
        tags=tuple(dict.fromkeys(command.tags)),
        priority=command.priority,
        metadata=command.metadata,
        referenced_at=None if command.referenced_date is None else parse_time(command.referenced_date, "referenced_date"),
        ttl_seconds=command.ttl_seconds or TTL_SECONDS.get(command.event_type),
        source=command.source,
        confidence=command.confidence,
        related=relations,
        redacted=prepared.redacted,
        pending=prepared.pending,
    )
    events = [NewEvent(event=stored, session_id=command.session_id, project=command.project)]
    if prepared.embedder_id is not None:
        vectors = MemoryEmbedded(memory_id=stored.memory_id, embedder_id=prepared.embedder_id, text_hashes=prepared.text_hashes)
        events.append(NewEvent(event=vectors, session_id=command.session_id, project=command.project, follows=True))
    answer = Stored(
        memory_id=stored.memory_id,
        outcome="stored",
        related=tuple(Related(memory_id=r.memory_id, similarity=r.similarity, edge_type=r.edge_type) for r in relations),
        redacted=prepared.redacted,
        degraded=prepared.degraded,
    )
    return Decision(events=tuple(events), answer=answer)
