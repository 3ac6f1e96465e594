"""What was asked of the memory, and what it answered."""

from typing import Literal

import msgspec

from omegad.log.event import Event, FreeData, FreeText, GivenName, MadeId, Position


class Returned(msgspec.Struct, frozen=True, kw_only=True):
    """One result of a query; ranks are counted from 1 by the order of the list."""

    memory_id: MadeId
    score: float


class MemoryQueried(Event, frozen=True, kw_only=True, tag="memory.queried@1"):
    """A query was answered from the views as they stood at `read_position`, under the ranking named.

    `at` is the moment that the query took for now, in microseconds since 1970; `versions` are those of the
    projections that were read.
    """

    query_id: MadeId
    text: FreeText
    mode: Literal["hybrid", "semantic", "keyword", "phrase"]
    limit: int
    filters: FreeData
    results: tuple[Returned, ...]
    read_position: Position
    at: int
    ranking_version: int
    embedder_id: GivenName | None
    abstained: bool
    degraded: GivenName | None = None
    took_us: int
    versions: dict[GivenName, int] = msgspec.field(default_factory=dict)


class Use(msgspec.Struct, frozen=True, array_like=True):
    """How often a memory was found or shown, how often of these it was shown unasked, when it was last, and
    the latest moment of all, both in microseconds since 1970.
    """

    memory_id: MadeId
    times: int
    unasked: int
    last_at: int
    latest_at: int


class QueryAged(MemoryQueried, frozen=True, kw_only=True, tag="memory.query_aged@1", omit_defaults=True):
    """What remains of a query whose time is over: how it was asked, when, and how much it found. The last of
    those that aged together counts the `uses` of all.
    """

    text: FreeText = ""
    filters: FreeData = msgspec.field(default_factory=dict)
    results: tuple[Returned, ...] = ()
    embedder_id: GivenName | None = None
    abstained: bool = False
    returned: int = 0
    uses: tuple[Use, ...] = ()


class Read(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A query that is no search: by which method, at which moment in microseconds since 1970, and the first
    of the memories that it named; or the kind of error that it `failed` with.
    """

    method: GivenName
    at: int
    memory_ids: tuple[MadeId, ...] = ()
    failed: GivenName | None = None


class MemoryRead(Event, frozen=True, kw_only=True, tag="memory.read@1"):
    """Somebody read what is remembered, otherwise than by a search: all of about a second."""

    reads: tuple[Read, ...]
