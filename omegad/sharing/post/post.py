"""What a home does at the post, over one connection that one task uses."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from omegad.log.event import Position
from omegad.runtime.errors import Invalid
from omegad.sharing.fact import GENESIS, Fact, envelope, link, opened, says_what_it_said, sealed_hash
from omegad.sharing.post.address import Address
from omegad.sharing.post.administration import SCHEMA
from omegad.sharing.post.driver import asking, connecting, imported
from omegad.sharing.post.errors import (
    HomeOutdated,
    NotAMember,
    NotInstalled,
    PostLost,
    PostOutdated,
    PostSilent,
    TooLarge,
)

if TYPE_CHECKING:
    from psycopg import AsyncConnection

FACTS_MAX = 1000
"""How many facts are pushed at once at most."""
PULLED_MAX = 5_000
PULLED_BYTES_MAX = 16 << 20
"""How much is pulled at once, of all origins together, but for one fact of each."""
PROVED_AT_ONCE = 2_000
OLDEST_SCHEMA = 1
"""The oldest schema that this version works with."""

_MICROSECONDS = "(extract(epoch FROM {}) * 1000000)::bigint"
_STANDING = """
SELECT team.team, team.name, person, is_admin FROM omegad.teams AS team
JOIN omegad.members AS member ON member.team = team.team AND login = session_user::text AND left_at IS NULL
WHERE %s::text IS NULL OR name = %s ORDER BY name
"""
_ORIGINS = f"""
SELECT origin, person, machine, head, head_chain, {_MICROSECONDS.format("seen_at")},
    {_MICROSECONDS.format("origin.left_at")}, to_jsonb(origin.*) ->> 'retired_by'
FROM omegad.origins AS origin JOIN omegad.members USING (team, login) WHERE team = %s ORDER BY origin
"""
_PUSH = (
    "SELECT omegad.push(%s, %s, %s, %s, %b::bigint[], %b::bigint[], %b::text[], %b::text[], %b::text[],"
    " %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[])"
)
_STANDS_BESIDE = 'hlc, "position", event_id, tag, subject'
"""What the post goes by of a fact, which its envelope says, too."""
_PULL = f"""
SELECT origin, seq, envelope, chain, salt, body, {_STANDS_BESIDE} FROM (
    SELECT origin, fact.*, sum(bytes) OVER (PARTITION BY origin ORDER BY seq) - bytes AS before
    FROM unnest(%s::text[], %s::bigint[]) AS wanted (origin, after)
    CROSS JOIN LATERAL (
        SELECT seq, envelope, chain, salt, body, {_STANDS_BESIDE},
            CASE WHEN seq > after THEN octet_length(envelope) + coalesce(octet_length(body), 0) ELSE 0 END
                AS bytes
        FROM omegad.facts AS told
        WHERE told.team = %s AND told.origin = wanted.origin AND seq >= after
        ORDER BY seq LIMIT %s + (after > 0)::int  -- and the one before, for its chain
    ) AS fact
) AS found WHERE before < %s ORDER BY origin, seq
"""
_TOLD = """
SELECT envelope, salt, body FROM omegad.facts
WHERE team = %s AND origin = %s AND seq > %s ORDER BY seq LIMIT %s
"""
_PROVED = f"""
SELECT seq, envelope, chain, salt, body, {_STANDS_BESIDE} FROM omegad.facts
WHERE team = %s AND origin = %s AND seq > %s ORDER BY seq LIMIT %s
"""
_WAITING = f"""
SELECT subject, {_MICROSECONDS.format("erased_at")}, array_agg(DISTINCT person || ' (' || machine || ')')
FROM omegad.erased
JOIN omegad.origins AS reader
    ON reader.team = erased.team AND reader.origin <> erased.origin AND reader.left_at IS NULL
    AND reader.joined_at < erased_at
JOIN omegad.members AS member
    ON member.team = reader.team AND member.login = reader.login AND member.left_at IS NULL
LEFT JOIN omegad.cursors AS reached
    ON reached.team = erased.team AND reached.reader = reader.origin AND reached.origin = erased.origin
WHERE erased.team = %s AND coalesce(reached.seq, 0) < erased.seq
GROUP BY subject, erased_at ORDER BY erased_at, subject LIMIT 1000
"""


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """How long the post may take, in seconds: to be connected to, and for each statement."""

    connect_s: float = 2.0
    statement_s: float = 10.0


class Head(msgspec.Struct, frozen=True):
    """The last fact of an origin at the post: its number, the chain after it, and of the event that it tells
    the position in its home's log and the id. `NO_HEAD` where there is none yet.
    """

    seq: int
    chain: bytes
    position: Position
    event_id: str


NO_HEAD = Head(0, GENESIS, 0, "")


class Origin(msgspec.Struct, frozen=True):
    """One home's stream at the post, whose it is, and who retired it. Times are microseconds since 1970."""

    origin: str
    person: str
    machine: str
    head: int
    chain: bytes
    seen_at: int
    left_at: int | None
    retired_by: str | None = None


class Standing(msgspec.Struct, frozen=True):
    """What the post says of itself and of this login. The time is in microseconds since 1970."""

    schema: int
    server_version: int
    now_us: int
    person: str
    is_admin: bool


class Pulled(msgspec.Struct, frozen=True):
    """Facts of other origins, of each in order; which origins have more; all origins of the team.

    `chains` has the chain after the last of an origin's facts. `damaged` names, by origin, the first fact
    that is not what was pushed, or that this version cannot read; it and what follows it is left out.
    """

    facts: list[Fact]
    more: frozenset[str]
    origins: list[Origin]
    chains: dict[str, bytes]
    damaged: dict[str, int]


class Waiting(msgspec.Struct, frozen=True):
    """Something erased, when (microseconds since 1970), and the homes, "person (machine)", that may still
    have it.
    """

    subject: str
    erased_at: int
    homes: tuple[str, ...]


class Proof(msgspec.Struct, frozen=True):
    """An origin's facts at the post gone through: how many there are, and the first that does not prove."""

    origin: str
    person: str
    machine: str
    facts: int
    bad_seq: int | None
    problem: str = ""


@asynccontextmanager
async def connected(address: Address, team: str | None, deadlines: Deadlines) -> "AsyncIterator[Post]":
    """Connect to the post, and listen to what it says of the team; the login's only one where None is named.

    Raises what keeps from that: `DriverAbsent`, `PostUnreachable`, `LoginRefused`, `NotEncrypted`,
    `NotInstalled`, `PostOutdated`, `HomeOutdated`, `NotAMember`.
    """
    imported()
    from psycopg import AsyncConnection  # noqa: PLC0415  an extra

    with connecting(address):
        try:
            with anyio.fail_after(deadlines.connect_s):
                connection = await AsyncConnection.connect(
                    **address.parameters(),  # type: ignore[arg-type]
                    autocommit=True,
                    prepare_threshold=None,  # a pooler in between may hand each statement to another process
                )
        except TimeoutError:
            raise PostSilent(
                f"the post at {address.place} did not answer in {deadlines.connect_s:g} s"
            ) from None
    post = Post(connection, address, team, deadlines)
    try:
        await post.begin()
        yield post
    finally:
        connection.pgconn.finish()  # without a word to the server, which might not listen


class Post:
    """A connection to the post, on behalf of one team. Every method raises `PostLost` and `PostSilent`."""

    def __init__(
        self, connection: "AsyncConnection[Any]", address: Address, team: str | None, deadlines: Deadlines
    ) -> None:
        self._connection = connection
        self._address = address
        self._name = team
        self._statement_s = deadlines.statement_s
        self.team = 0
        """The number of the team at the post, from `begin` on."""

    async def begin(self) -> None:
        """See that the post and this login are what is needed, and listen. Raises what `check` does."""
        with self._asking():
            await self._connection.execute(
                "SELECT set_config('statement_timeout', %s, false)", (f"{self._statement_s * 1000:.0f}",)
            )
        await self.check()
        (channel,) = (await self.rows("SELECT channel FROM omegad.teams WHERE team = %s", (self.team,)))[0]
        with self._asking():
            await self._connection.execute(f'LISTEN "{channel}"'.encode())

    async def check(self) -> Standing:
        """Return what the post is and what this login is in it.

        Raises `NotInstalled`, `PostOutdated`, `HomeOutdated`, `NotAMember`.
        """
        ((is_made,),) = await self.rows("SELECT to_regclass('omegad.schema_version') IS NOT NULL", ())
        if not is_made:
            raise NotInstalled(f"the database {self._address.dbname} holds no post")
        ((schema, works_from, now_us),) = await self.rows(
            "SELECT version, works_from, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
            " FROM omegad.schema_version ORDER BY version DESC LIMIT 1",
            (),
        )
        if works_from > SCHEMA:
            raise HomeOutdated(f"the post's schema is {schema}; this version of omegad knows {SCHEMA}")
        if schema < OLDEST_SCHEMA:
            raise PostOutdated(f"the post's schema is {schema}; this version of omegad needs {OLDEST_SCHEMA}")
        found = await self.rows(_STANDING, (self._name, self._name))
        if not found:
            of = "any team" if self._name is None else f"the team {self._name}"
            raise NotAMember(f"{self._address.user} is not a member of {of}")
        if len(found) > 1:
            names = ", ".join(name for _, name, _, _ in found)
            raise Invalid(f"{self._address.user} is in several teams: {names}", hint="name one of them")
        ((self.team, _, person, is_admin),) = found
        return Standing(schema, self._connection.info.server_version, now_us, person, is_admin)

    async def enrol(self, origin: str, machine: str) -> Head:
        """Make an origin known as this login's, or take it up again; return its head. Raises `NotYours`."""
        await self.rows("SELECT omegad.enrol(%s, %s, %s)", (self.team, origin, machine))
        return await self.head(origin) or NO_HEAD

    async def head(self, origin: str) -> Head | None:
        """Return the last fact of an origin, `NO_HEAD` where it has none, None where nobody knows it."""
        rows = await self.rows(
            "SELECT head, head_chain, head_position, head_event FROM omegad.origins"
            " WHERE team = %s AND origin = %s",
            (self.team, origin),
        )
        return Head(*rows[0]) if rows else None

    async def origins(self) -> list[Origin]:
        """Return all origins of the team."""
        return [Origin(*row) for row in await self.rows(_ORIGINS, (self.team,))]

    async def push(self, origin: str, facts: Sequence[Fact], expected: Head) -> Head:
        """Add facts, which are numbered on from *expected*, after it, all or none; return what is the head
        then. Others are told.

        Raises `Forked` where the head is another, which it is after a push whose acknowledgement was lost;
        `AheadOfClock` where a stamp is more than a minute ahead of the post's clock; `NotYours` where another
        stored what is erased, or has the origin; `TooLarge` beyond `FACTS_MAX`.
        """
        if not facts:
            return expected
        if len(facts) > FACTS_MAX:
            raise TooLarge(f"{len(facts)} facts are pushed at once; {FACTS_MAX} at most")
        assert [fact.seq for fact in facts] == [*range(expected.seq + 1, expected.seq + len(facts) + 1)]
        assert all(fact.origin == origin for fact in facts)
        sealed = [envelope(fact) for fact in facts]
        chains, chain = list[bytes](), expected.chain
        for one in sealed:
            chains.append(chain := link(chain, sealed_hash(one)))
        await self.rows(
            _PUSH,
            (
                *(self.team, origin, expected.seq, expected.chain),
                *([fact.hlc for fact in facts], [fact.position for fact in facts]),
                *([fact.event_id for fact in facts], [fact.tag for fact in facts]),
                *([fact.subject for fact in facts], sealed, chains),
                *([fact.salt for fact in facts], [fact.body for fact in facts]),
            ),
        )
        return Head(facts[-1].seq, chain, facts[-1].position, facts[-1].event_id)

    async def pull(self, cursors: Mapping[str, int], *, but: str, limit: int = 500) -> Pulled:
        """Return facts of all origins but one, of each those after the number that *cursors* has for it, at
        most *limit* of each and `PULLED_MAX` in all, as they are at one moment.
        """
        origins = await self.origins()
        behind = [one for one in origins if one.origin != but and one.head > cursors.get(one.origin, 0)]
        if not behind:
            return Pulled([], frozenset(), origins, {}, {})
        reached = {one.origin: cursors.get(one.origin, 0) for one in behind}
        each = max(1, min(limit, PULLED_MAX // len(behind)))
        rows = await self.rows(
            _PULL,
            (
                *([*reached], [*reached.values()], self.team),
                *(each, max(1, PULLED_BYTES_MAX // len(behind))),
            ),
        )
        pages = _pages(rows)
        facts, chains, damaged = list[Fact](), dict[str, bytes](), dict[str, int]()
        for origin, after in reached.items():
            found, chains[origin], bad = _verified(origin, after, pages.get(origin, []))
            facts += found
            reached[origin] = found[-1].seq if found else after
            if bad is not None:
                damaged[origin] = bad
        more = frozenset(
            one.origin for one in behind if one.origin not in damaged and reached[one.origin] < one.head
        )
        return Pulled(facts, more, origins, chains, damaged)

    async def report(self, reader: str, cursors: Mapping[str, int]) -> None:
        """Say how far a home of this login's has pulled each origin."""
        await self.rows(
            "SELECT omegad.report(%s, %s, %s::text[], %s::bigint[])",
            (self.team, reader, [*cursors], [*cursors.values()]),
        )

    async def waiting(self) -> list[Waiting]:
        """Return what was erased that some home which was there then has not heard of, at most 1,000."""
        rows = await self.rows(_WAITING, (self.team,))
        return [Waiting(subject, erased_at, tuple(homes)) for subject, erased_at, homes in rows]

    async def told(self, origin: str, after: int, limit: int) -> list[Fact]:
        """Return facts of an origin, of any one, from the one after a number on."""
        rows = await self.rows(_TOLD, (self.team, origin, after, limit))
        return [opened(*row) for row in rows]

    async def woken(self, within_s: float) -> bool:
        """Wait until another pushed something, and return whether that was so before the time was over. It
        may be cancelled at any moment.
        """
        own, ends = self._connection.info.backend_pid, anyio.current_time() + within_s
        with asking(self._address):
            while (left_s := ends - anyio.current_time()) > 0:
                async for said in self._connection.notifies(timeout=left_s, stop_after=1):
                    if said.pid != own:
                        return True
        return False

    async def prove(self, progress: Callable[[int], None]) -> list[Proof]:
        """Go through all facts of every origin, and compute their chains again; *progress* is told how many
        facts were gone through.
        """
        done, proofs = 0, list[Proof]()
        for one in await self.origins():
            seq, chain, bad = 0, GENESIS, None
            while bad is None:
                rows = await self.rows(_PROVED, (self.team, one.origin, seq, PROVED_AT_ONCE))
                page = [_Row(*row) for row in rows]
                found, chain, bad = _verified(one.origin, seq, page, chain)
                seq += len(found)
                progress(done := done + len(found))
                if len(page) < PROVED_AT_ONCE:
                    break
            proofs.append(_proof(one, seq, chain, bad))
        return proofs

    async def rows(self, sql: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """Return what a statement does, within the deadline."""
        with self._asking():
            with anyio.fail_after(self._statement_s):
                cursor = await self._connection.execute(sql.encode(), parameters, binary=True)
                return await cursor.fetchall()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            with asking(self._address):
                if self._connection.closed:
                    raise PostLost
                yield
        except TimeoutError:
            self._connection.pgconn.finish()
            raise PostSilent(
                f"the post at {self._address.place} did not answer in {self._statement_s:g} s"
            ) from None


class _Row(msgspec.Struct, frozen=True, gc=False):
    seq: int
    envelope: bytes
    chain: bytes
    salt: bytes | None
    body: bytes | None
    hlc: int
    position: Position
    event_id: str
    tag: str
    subject: str

    def is_of(self, origin: str, seq: int, fact: Fact) -> bool:
        """Say whether a fact is the one with this number, and what the post checked of it is what it says:
        who may erase, and how late it is, the post decides by what stands beside the envelope.
        """
        return (
            (self.seq, origin, seq) == (seq, fact.origin, fact.seq)
            and (self.hlc, self.position, self.event_id) == (fact.hlc, fact.position, fact.event_id)
            and (self.tag, self.subject) == (fact.tag, fact.subject)
        )


def _pages(rows: Sequence[tuple[Any, ...]]) -> dict[str, list[_Row]]:
    pages = dict[str, list[_Row]]()
    for origin, *row in rows:
        pages.setdefault(origin, []).append(_Row(*row))
    return pages


def _verified(
    origin: str, after: int, rows: Sequence[_Row], chain: bytes = GENESIS
) -> tuple[list[Fact], bytes, int | None]:
    """Return an origin's facts after a number as far as they follow one from the other, the chain then, and
    the number of the first that does not.

    The rows may begin with the fact before, whose chain is taken as it is; else that is *chain*.
    """
    facts = list[Fact]()
    for row in rows:
        if row.seq == after:
            chain = row.chain
            continue
        expected = after + len(facts) + 1
        try:
            fact = opened(row.envelope, row.salt, row.body)
        except msgspec.DecodeError:
            return facts, chain, expected
        follows = link(chain, sealed_hash(row.envelope))
        if not row.is_of(origin, expected, fact) or follows != row.chain or not says_what_it_said(fact):
            return facts, chain, expected
        chain = follows
        facts.append(fact)
    return facts, chain, None


def _proof(one: Origin, seq: int, chain: bytes, bad: int | None) -> Proof:
    if bad is not None:
        return Proof(one.origin, one.person, one.machine, seq, bad, "the fact is not what was told")
    if seq < one.head:
        return Proof(one.origin, one.person, one.machine, seq, seq + 1, "facts are missing at the end")
    if seq == one.head and chain != one.chain:
        return Proof(one.origin, one.person, one.machine, seq, seq, "the end of the chain is another")
    return Proof(one.origin, one.person, one.machine, seq, None)
