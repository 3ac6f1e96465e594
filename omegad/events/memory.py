"""What happens to memories."""

from typing import Literal

import msgspec

from omegad.events.fact import Fact, FreeData, FreeText

EdgeType = Literal["related", "evolved_from", "superseded_by", "contradicts", "evolves", "supersedes"]
Likeness = Literal["exact", "cosine", "jaccard"]


class Relation(msgspec.Struct, frozen=True, kw_only=True):
    """An edge to another memory, chosen when the event was decided. `similarity` is a cosine."""

    memory_id: str
    similarity: float
    edge_type: EdgeType = "related"


class MemoryStored(Fact, frozen=True, kw_only=True, tag="memory.stored@1"):
    """A memory was stored.

    `content_key` identifies the content within its scope (type, project, entity); `referenced_at` is the moment the content speaks
    of, in microseconds since 1970. `pending` says that relations were not decided yet and follow as events of their own.
    """

    memory_id: str
    content: FreeText
    content_key: str
    event_type: str
    entity_id: str | None = None
    tags: tuple[FreeText, ...] = ()
    priority: int = 3
    metadata: FreeData = msgspec.field(default_factory=dict)
    referenced_at: int | None = None
    ttl_seconds: int | None = None
    source: FreeText | None = None
    confidence: float | None = None
    related: tuple[Relation, ...] = ()
    redacted: tuple[str, ...] = ()
    pending: bool = False


class MemoryEmbedded(Fact, frozen=True, kw_only=True, tag="memory.embedded@1"):
    """A memory's text was embedded. The vectors themselves are in the cache, under (embedder_id, text hash), one for each chunk.

    The event's cause is the event that holds the text.
    """

    memory_id: str
    embedder_id: str
    text_hashes: tuple[str, ...]


class MemoryRepeated(Fact, frozen=True, kw_only=True, tag="memory.repeated@1"):
    """What a memory says was said again. `content` is the new wording, None where it is the same to the letter."""

    memory_id: str
    likeness: Likeness
    similarity: float
    content: FreeText | None = None


class MemoryRelated(Fact, frozen=True, kw_only=True, tag="memory.related@1"):
    """The relations of a memory that was stored as pending were decided."""

    memory_id: str
    related: tuple[Relation, ...]


class MemorySuperseded(Fact, frozen=True, kw_only=True, tag="memory.superseded@1"):
    """Another memory took this one's place; it keeps its own content."""

    memory_id: str
    superseded_by: str
    reason: FreeText


class MemoryDeleted(Fact, frozen=True, kw_only=True, tag="memory.deleted@1"):
    """A memory was hidden from every search and list."""

    memory_id: str
    reason: FreeText | None = None
