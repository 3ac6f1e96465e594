"""What happens to memories."""

from typing import Literal

import msgspec

from omegad.log.event import Event, FreeData, FreeText, GivenName, MadeDigest, MadeId, Position

EdgeType = Literal["related", "evolved_from", "superseded_by", "contradicts", "evolves", "supersedes"]
Likeness = Literal["exact", "cosine", "jaccard"]
Rating = Literal["helpful", "unhelpful", "outdated"]
Evidence = Literal["explicit", "use", "corroboration"]
Verdict = Literal["contradicts", "supersedes", "compatible"]


class Relation(msgspec.Struct, frozen=True, kw_only=True):
    """An edge to another memory, chosen when the event was decided. `similarity` is a cosine."""

    memory_id: MadeId
    similarity: float
    edge_type: EdgeType = "related"


class MadeOf(msgspec.Struct, frozen=True, kw_only=True):
    """What omegad put a text together of, or cut it from: memories, and what other events at these
    positions say.
    """

    memories: tuple[MadeId, ...] = ()
    positions: tuple[Position, ...] = ()


class MemoryStored(Event, frozen=True, kw_only=True, tag="memory.stored@2"):
    """A memory was stored.

    `content_key` identifies the content within its scope (type, project, entity); `referenced_at` is the
    moment the content speaks of, in microseconds since 1970. `auto_tags` were found in the content by rule.
    `on_probation` says that it was captured without being asked for, and counts for less until it is
    promoted. `pending` says that relations were not decided yet and follow as events of their own. `made_of`
    is where omegad has the text from, None where it was said as it is. `also_near` are memories beyond those
    that it is related to which are so near that it may speak for them.
    """

    memory_id: MadeId
    content: FreeText
    content_key: MadeDigest
    event_type: GivenName
    entity_id: GivenName | None = None
    tags: tuple[FreeText, ...] = ()
    priority: int = 3
    metadata: FreeData = msgspec.field(default_factory=dict)
    referenced_at: int | None = None
    ttl_seconds: int | None = None
    source: FreeText | None = None
    confidence: float | None = None
    related: tuple[Relation, ...] = ()
    redacted: tuple[GivenName, ...] = ()
    pending: bool = False
    auto_tags: tuple[FreeText, ...] = ()
    on_probation: bool = False
    made_of: MadeOf | None = None
    also_near: tuple[Relation, ...] = ()


class MemoryEmbedded(Event, frozen=True, kw_only=True, tag="memory.embedded@1"):
    """A memory's text was embedded. The vectors themselves are in the cache, under (embedder_id, text hash),
    one for each chunk.

    The event's cause is the event that holds the text.
    """

    memory_id: MadeId
    embedder_id: GivenName
    text_hashes: tuple[MadeDigest, ...]


class MemoryRepeated(Event, frozen=True, kw_only=True, tag="memory.repeated@2"):
    """What a memory says was said again. `content` is the new wording, None where it is the same to the
    letter; `tags` came with it.

    `is_permanent` says that the memory has no time to live any more, `ttl_seconds` that it has a longer one
    from now on. `made_of` is as in `MemoryStored`.
    """

    memory_id: MadeId
    likeness: Likeness
    similarity: float
    content: FreeText | None = None
    tags: tuple[FreeText, ...] = ()
    ttl_seconds: int | None = None
    is_permanent: bool = False
    made_of: MadeOf | None = None


class MemoryRelated(Event, frozen=True, kw_only=True, tag="memory.related@1"):
    """The relations of a memory that was stored as pending were decided; `also_near` as in `MemoryStored`."""

    memory_id: MadeId
    related: tuple[Relation, ...]
    also_near: tuple[Relation, ...] = ()


class MemorySuperseded(Event, frozen=True, kw_only=True, tag="memory.superseded@1"):
    """Another memory took this one's place; it keeps its own content."""

    memory_id: MadeId
    superseded_by: MadeId
    reason: FreeText


class MemoryDeleted(Event, frozen=True, kw_only=True, tag="memory.deleted@1"):
    """A memory was hidden from every search and list."""

    memory_id: MadeId
    reason: FreeText | None = None


class MemoryEvolved(Event, frozen=True, kw_only=True, tag="memory.evolved@1"):
    """What a memory says was said again with more: the addition was appended. `content` is the whole that it
    now says.

    `wording` is what was said, `similarity` the word Jaccard between that and what the memory said before;
    `tags` came with it, and `auto_tags` were found in it by rule. The time to live changes as with
    `MemoryRepeated`, and `made_of` is as in `MemoryStored`.
    """

    memory_id: MadeId
    content: FreeText
    content_key: MadeDigest
    wording: FreeText
    similarity: float
    tags: tuple[FreeText, ...] = ()
    auto_tags: tuple[FreeText, ...] = ()
    ttl_seconds: int | None = None
    is_permanent: bool = False
    made_of: MadeOf | None = None


class MemoryEdited(Event, frozen=True, kw_only=True, tag="memory.edited@1"):
    """A memory's content was replaced by its owner, and with it what else is not None. One that `is_whole`
    says all of it: a time, source or confidence that it does not give, the memory has not any more.

    `auto_tags` were found in the new content by rule, `redacted` are the kinds of secret that were taken out
    of it.
    """

    memory_id: MadeId
    content: FreeText
    content_key: MadeDigest
    reason: FreeText | None = None
    auto_tags: tuple[FreeText, ...] = ()
    redacted: tuple[GivenName, ...] = ()
    tags: tuple[FreeText, ...] | None = None
    priority: int | None = None
    metadata: FreeData | None = None
    referenced_at: int | None = None
    source: FreeText | None = None
    confidence: float | None = None
    is_whole: bool = False


class MemoryContradicted(Event, frozen=True, kw_only=True, tag="memory.contradicted@1"):
    """A newer memory, `contradicted_by`, says the opposite of this one, or another value of the same
    thing. `strength` is 0 to 1.
    """

    memory_id: MadeId
    contradicted_by: MadeId
    strength: float
    reason: FreeText


class ConflictOffered(Event, frozen=True, kw_only=True, tag="memory.conflict_offered@1"):
    """Whether a memory denies an older one, `target_id`, cannot be read from the two: whoever stored it is
    asked, and answers with `memory.conflict_settled`. `similarity` is a cosine.
    """

    memory_id: MadeId
    target_id: MadeId
    similarity: float


class ConflictSettled(Event, frozen=True, kw_only=True, tag="memory.conflict_settled@1"):
    """Somebody said what a memory is to an older one, `target_id`; what comes of that follows."""

    memory_id: MadeId
    target_id: MadeId
    verdict: Verdict


class MemoryRestored(Event, frozen=True, kw_only=True, tag="memory.restored@1"):
    """A memory that was deleted, superseded or expired is found again. `is_permanent` says that it has no
    time to live any more.
    """

    memory_id: MadeId
    reason: FreeText | None = None
    is_permanent: bool = False


class MemoryErased(Event, frozen=True, kw_only=True, tag="memory.erased@1"):
    """A memory was removed for good, with every wording that it ever had; the payloads that held them are
    erased by `payload.erased`.
    """

    memory_id: MadeId
    reason: FreeText | None = None


class MemoryExpired(Event, frozen=True, kw_only=True, tag="memory.expired@1"):
    """A memory's time to live was over at `expired_at`, in microseconds since 1970. Searches have hidden
    it since then.
    """

    memory_id: MadeId
    expired_at: int


class MemoryRated(Event, frozen=True, kw_only=True, tag="memory.rated@1"):
    """Somebody said how useful a memory was; `points` is what that adds to its score."""

    memory_id: MadeId
    rating: Rating
    points: int
    reason: FreeText | None = None


class MemoryCountsCarried(Event, frozen=True, kw_only=True, tag="memory.counts_carried@1"):
    """A memory came from another system, which had found it so often before, `last_retrieved_at` in
    microseconds since 1970. What it was rated there follows as ratings.
    """

    memory_id: MadeId
    origin: GivenName
    retrievals: int
    last_retrieved_at: int | None = None


class MemoryPromoted(Event, frozen=True, kw_only=True, tag="memory.promoted@1"):
    """A memory that was on probation counts in full. `reason` is what it proved itself by, in words."""

    memory_id: MadeId
    evidence: Evidence
    reason: FreeText | None = None


class MemoryDemoted(Event, frozen=True, kw_only=True, tag="memory.demoted@1"):
    """A promotion was taken back: the memory is on probation again."""

    memory_id: MadeId
    reason: FreeText


class Upkept(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that upkeep did something with, and why; of a compaction the one that stands for others."""

    memory_id: MadeId
    reason: FreeText


class UpkeepCompleted(Event, frozen=True, kw_only=True, tag="upkeep.completed@1"):
    """The store was put in order, by the daily schedule or because somebody asked for it: the events of this
    append before it say so of each memory. `stale` are those that should be looked at again from now on.
    """

    by: Literal["schedule", "hand"]
    expired: tuple[Upkept, ...] = ()
    promoted: tuple[Upkept, ...] = ()
    compacted: tuple[Upkept, ...] = ()
    stale: tuple[Upkept, ...] = ()


class UpkeepReverted(Event, frozen=True, kw_only=True, tag="upkeep.reverted@1"):
    """What the upkeep at a position had done was taken back, as far as nobody had changed it since."""

    done_at: Position


class MemoryLinked(Event, frozen=True, kw_only=True, tag="memory.linked@1"):
    """An edge was drawn, or its weight set anew."""

    memory_id: MadeId
    target_id: MadeId
    edge_type: EdgeType
    weight: float


class MemoryUnlinked(Event, frozen=True, kw_only=True, tag="memory.unlinked@1"):
    """The edges of these types to a memory were taken away."""

    memory_id: MadeId
    target_id: MadeId
    edge_types: tuple[EdgeType, ...]


class Proof(msgspec.Struct, frozen=True, array_like=True):
    """Where a memory was among the best of a sure answer: the session, or the day where none was named."""

    memory_id: MadeId
    used_in: GivenName


class ProofsAged(Event, frozen=True, kw_only=True, tag="memory.proofs_aged@1"):
    """What queries whose time is over say for memories that were on probation when their details went."""

    proofs: tuple[Proof, ...]
