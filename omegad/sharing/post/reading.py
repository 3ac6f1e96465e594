"""What is asked at the post of what a team holds: folding it, its vectors, and candidates by words and by
meaning.
"""

import struct
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from omegad.sharing.post import post
from omegad.sharing.post.address import Address
from omegad.sharing.post.errors import PostOutdated
from omegad.sharing.post.post import Deadlines, Post

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FROM_SCHEMA = 2
"""The oldest schema that a post can be asked with."""
COUNTED_MAX = 20_000
"""Memories that hold a word are counted up to here."""
HELD_COUNTED_MAX = 200_000
WIRE_HEADER_BYTES = 4
EF_SEARCH = 200
"""How many neighbours the index is asked for at a time: more than are wanted, so that few are missed."""

_HELD = """
SELECT number, memory_id, held.origin, person, machine, agent, project, event_type, entity_id, created_us,
    said_us, expires_us, content, tags, auto_tags, priority, metadata::text, referenced_us, source,
    confidence, status, superseded_by, rating, repeated
FROM omegad.held AS held
JOIN omegad.origins AS told ON told.team = held.team AND told.origin = held.origin
JOIN omegad.members AS member ON member.team = told.team AND member.login = told.login
WHERE held.team = %s AND number = ANY (%s) ORDER BY number
"""
_VECTORS = """
SELECT number, passage, text_hash, {schema}.vector_send(v) FROM omegad.vectors
WHERE team = %s AND embedder_id = %s AND number = ANY (%s) ORDER BY number, passage
"""


class HeldAtPost(msgspec.Struct, frozen=True):
    """A memory as the post holds it. `number` stands for it there; times are microseconds since 1970."""

    number: int
    memory_id: str
    origin: str
    person: str
    machine: str
    agent: str | None
    project: str | None
    event_type: str
    entity_id: str | None
    created_us: int
    said_us: int
    expires_us: int | None
    content: str
    tags: list[str]
    auto_tags: list[str]
    priority: int
    metadata: str
    referenced_us: int | None
    source: str | None
    confidence: float | None
    status: str
    superseded_by: str | None
    rating: int
    repeated: int


class Unembedded(NamedTuple):
    """A memory without vectors, and what tells its words from others."""

    number: int
    content: str
    mark: int


class Passage(NamedTuple):
    """A vector of the part of a memory's words that has this number and hash: little-endian float32."""

    number: int
    passage: int
    text_hash: str
    vector: bytes


class Count(NamedTuple):
    """How many memories of a team hold a term, how many of these a question is about, and where they are few
    which.
    """

    known: int
    inside: int
    numbers: frozenset[int]


Filter = Mapping[str, object]
"""What `omegad.scope` of the schema takes."""


@asynccontextmanager
async def connected(address: Address, team: str | None, deadlines: Deadlines) -> "AsyncIterator[Reading]":
    """Connect to the post to ask it. Raises what `post.connected` does; `PostOutdated` where it cannot be
    asked.
    """
    async with post.connected(address, team, deadlines) as at_post:
        standing = await at_post.check()
        if standing.schema < FROM_SCHEMA:
            raise PostOutdated(f"the post's schema is {standing.schema}; {FROM_SCHEMA} can be asked")
        reading = Reading(at_post)
        await reading.begin()
        yield reading


class Reading:
    """Asks a post about one team. Every method raises what those of `Post` do."""

    def __init__(self, at_post: Post) -> None:
        self.post = at_post
        self._schema: str | None = None
        self._by_index = False

    @property
    def has_vectors(self) -> bool:
        """Whether the post holds vectors."""
        return self._schema is not None

    @property
    def is_indexed(self) -> bool:
        """Whether vectors are found by an index, which may miss some, rather than by looking at all."""
        return self._by_index

    async def begin(self) -> None:
        """See whether there are vectors, and an index of them that may be used: one that goes on until it has
        found enough of what passes a filter, which is set, and read back, once pgvector is loaded.
        """
        made = await self.post.rows(
            "SELECT extnamespace::regnamespace::text, to_regclass(%s) IS NOT NULL FROM pg_extension"
            " WHERE extname = 'vector' AND to_regclass('omegad.vectors') IS NOT NULL",
            (f"omegad.vectors_{self.post.team}_nearest",),
        )
        if not made:
            return
        ((self._schema, is_indexed),) = made
        if is_indexed:
            await self.post.rows(f"SELECT '[1]'::{self._schema}.vector::text", ())
            for name, value in (("iterative_scan", "relaxed_order"), ("ef_search", str(EF_SEARCH))):
                await self.post.rows("SELECT set_config(%s, %s, false)", (f"hnsw.{name}", value))
            ((said,),) = await self.post.rows("SELECT current_setting('hnsw.iterative_scan')", ())
            self._by_index = said == "relaxed_order"

    async def fold(self, limit: int) -> int:
        """Go on folding facts, by about *limit* at most; return how many were folded, 0 where all are."""
        ((count,),) = await self.post.rows("SELECT omegad.fold(%s, %s)", (self.post.team, limit))
        return int(count)

    async def unfolded(self) -> int:
        """Return how many facts are not folded yet."""
        ((count,),) = await self.post.rows(
            "SELECT coalesce(sum(head - coalesce(seq, 0)), 0)::bigint FROM omegad.origins"
            " LEFT JOIN omegad.folded USING (team, origin) WHERE team = %s",
            (self.post.team,),
        )
        return int(count)

    async def without_vectors(self, embedder_id: str, limit: int) -> list[Unembedded]:
        """Return memories that have none of an embedder, the latest first."""
        sql = "SELECT * FROM omegad.without_vectors(%s, %s, %s)"
        return [Unembedded(*row) for row in await self.post.rows(sql, (self.post.team, embedder_id, limit))]

    async def keep(self, embedder_id: str, passages: Sequence[Passage], marks: Mapping[int, int]) -> None:
        """Keep vectors, of memories that still say what these *marks*, by number, stand for."""
        await self.post.rows(
            "SELECT omegad.keep_vectors(%s, %s, %s::bigint[], %s::bigint[], %s::integer[], %s::text[],"
            " %s::text[])",
            (
                *(self.post.team, embedder_id, [one.number for one in passages]),
                *([marks[one.number] for one in passages], [one.passage for one in passages]),
                *([one.text_hash for one in passages], [_as_text(one.vector) for one in passages]),
            ),
        )

    async def people(self) -> list[str]:
        """Return who is, or was, in the team."""
        found = await self.post.rows(
            "SELECT DISTINCT person FROM omegad.members WHERE team = %s ORDER BY person", (self.post.team,)
        )
        return [person for (person,) in found]

    async def count(self, among: Filter) -> int:
        """Return how many memories pass a filter, up to `HELD_COUNTED_MAX`."""
        sql = "SELECT omegad.count_held(%s, %s::jsonb, %s)"
        ((count,),) = await self.post.rows(sql, (self.post.team, _json(among), HELD_COUNTED_MAX))
        return int(count)

    async def count_words(self, among: Filter, terms: Sequence[str], few: int) -> dict[str, Count]:
        """Return, for each expression of full text, how many hold it; which, where these are *few* at
        most.
        """
        found = await self.post.rows(
            "SELECT * FROM omegad.count_words(%s, %s::jsonb, %s::text[], %s, %s)",
            (self.post.team, _json(among), list(terms), COUNTED_MAX, few),
        )
        known = {nth: Count(many, inside, frozenset(numbers or ())) for nth, many, inside, numbers in found}
        return {term: known.get(nth, Count(0, 0, frozenset())) for nth, term in enumerate(terms, 1)}

    async def best_by_words(
        self, among: Filter, chosen: str, rarity: Mapping[str, float], limit: int
    ) -> list[int]:
        """Return the numbers of the best of what answers to an expression, weighed by the rarity of terms."""
        found = await self.post.rows(
            "SELECT omegad.best_by_words(%s, %s::jsonb, %s, %s::text[], %s::float8[], %s)",
            (self.post.team, _json(among), chosen, [*rarity], [*rarity.values()], limit),
        )
        return [number for (number,) in found]

    async def nearest(self, among: Filter, embedder_id: str, vector: bytes, limit: int) -> dict[int, float]:
        """Return the cosines of the nearest passages' memories by number, nearest first."""
        found = await self.post.rows(
            "SELECT * FROM omegad.nearest(%s, %s::jsonb, %s, %s, %s, %s)",
            (self.post.team, _json(among), embedder_id, _as_text(vector), limit, self._by_index),
        )
        best = dict[int, float]()
        for number, cosine in sorted(found, key=lambda row: (-row[1], row[0])):
            best.setdefault(number, cosine)
        return best

    async def held(self, numbers: Sequence[int]) -> list[HeldAtPost]:
        """Return memories by their numbers, in the order of these; those that are gone are left out."""
        return [HeldAtPost(*row) for row in await self.post.rows(_HELD, (self.post.team, list(numbers)))]

    async def vectors(self, embedder_id: str, numbers: Sequence[int]) -> list[Passage]:
        """Return the vectors of memories, by number and passage."""
        sql = _VECTORS.format(schema=self._schema)
        rows = await self.post.rows(sql, (self.post.team, embedder_id, list(numbers)))
        return [Passage(number, nth, text_hash, _from_wire(sent)) for number, nth, text_hash, sent in rows]


def _json(among: Filter) -> str:
    return msgspec.json.encode(among).decode()


def _as_text(vector: bytes) -> str:
    return f"[{','.join(map(repr, struct.unpack(f'<{len(vector) // 4}f', vector)))}]"


def _from_wire(sent: bytes) -> bytes:
    """Return a vector as pgvector sends it, in the network's order after its length, in the order of vectors
    here.
    """
    values = sent[WIRE_HEADER_BYTES:]
    return struct.pack(f"<{len(values) // 4}f", *struct.unpack(f">{len(values) // 4}f", values))
