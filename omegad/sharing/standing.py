"""How it stands with the team, and what would go to it."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.codec import tag_of
from omegad.log.event_log import EventLog
from omegad.log.projection import to_json
from omegad.memory import owner
from omegad.memory.types import MemoryTypes
from omegad.requests.command import Name
from omegad.requests.method import Moment, QueryMethod, RequestContext, ServiceMethod, Services
from omegad.requests.query import Query, Request, ViewAnswer
from omegad.requests.verb import Verb
from omegad.rpc.peer import Call
from omegad.runtime.errors import Invalid
from omegad.runtime.times import rfc3339
from omegad.sharing.events import ShareJoined, ShareRenewed
from omegad.sharing.exchange import Exchange
from omegad.sharing.outgoing import NEVER
from omegad.sharing.state import Known, Team, was_left
from omegad.sharing.verifying import ShareChains, chains
from omegad.storage.driver import Connection

Handler = Callable[..., Awaitable[object]]
"""Answers a request (its Struct, the call)."""

SHOWN_CHARACTERS = 200
PREVIEWED = ("memories", owner.VIEW)
"""The views that say what would go."""
NAMED = tuple(tag_of(kind) for kind in (ShareJoined, ShareRenewed))

_PREVIEW = f"""
SELECT node_id, event_type, substr(content, 1, :characters), created_at,
       CASE WHEN event_type IN (SELECT value FROM json_each(:never)) THEN 'its type is never shared'
            WHEN :types <> '[]' AND event_type NOT IN (SELECT value FROM json_each(:types))
              THEN 'its type is not chosen'
            WHEN NOT o.is_here THEN 'another home stored it'
            WHEN on_probation THEN 'it is on probation'
       END AS stays,
       {owner.OWNER}
FROM {owner.OWNED} WHERE project = :project AND status = 'active'
"""


class ShareStatus(Request, frozen=True, kw_only=True, tag="share.status"):
    """Say how it stands with the team: who is in it, what is shared, what waits to be told, and since
    when.
    """


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A project that is shared; no types for every one that can be."""

    project: str
    types: tuple[str, ...]
    on_probation: bool


class HomeOfTeam(msgspec.Struct, frozen=True, kw_only=True):
    """Another home of the team: how many facts of it were received, of how many that it has told, when it was
    last in touch with the post, whether it has left, and who retired it. What the post alone knows is None
    until it is heard.
    """

    origin: str
    person: str
    machine: str
    received: int
    told: int | None
    seen_at: str | None
    has_left: bool
    retired_by: str | None = None


class Erasing(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that is erased for all, and the homes that have not heard of it yet."""

    memory_id: str
    erased_at: str
    homes: tuple[str, ...]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How it stands. `team` is None where this home shares with none.

    `told` are the facts the team was told of this home; `waiting` are events that it will be told of, the
    first from `waiting_since`. `trouble` is what keeps this home from its team, in words, and `remedy` what
    to do about it. `earlier` are names under which this home told this team before, oldest first;
    `was_left` says that memories were shared with this team before this home left it, which it is not told
    again.
    """

    team: str | None = None
    origin: str | None = None
    earlier: tuple[str, ...] = ()
    was_left: bool = False
    person: str | None = None
    machine: str | None = None
    is_connected: bool = False
    in_touch_at: str | None = None
    trouble: str | None = None
    remedy: str | None = None
    told: int = 0
    waiting: int = 0
    waiting_since: str | None = None
    chosen: tuple[Chosen, ...] = ()
    homes: tuple[HomeOfTeam, ...] = ()
    erasing: tuple[Erasing, ...] = ()

    @property
    def in_words(self) -> str:
        """What is wrong, and what waits for that, for lists of troubles."""
        waits = f"; waits to be told: {self.waiting:,}, since {self.waiting_since}" if self.waiting else ""
        return f"shared: team {self.team} is not reached: {self.trouble}{waits} (`omegad share status`)"


async def standing(exchange: Exchange, log: EventLog) -> Standing:
    """Say how it stands."""
    known = await exchange.known()
    if known.team is None:
        return Standing()
    waiting, since_us = await exchange.telling.waiting(known)
    return Standing(
        team=known.team.team,
        origin=known.team.origin,
        earlier=await _earlier(log, known.team),
        was_left=await log.on_writer(was_left),
        person=known.team.person,
        machine=known.team.machine,
        is_connected=exchange.is_connected,
        in_touch_at=None if exchange.in_touch_us is None else rfc3339(exchange.in_touch_us),
        trouble=exchange.trouble or exchange.damaged or exchange.ahead,
        remedy=_remedy(exchange),
        told=known.team.seq,
        waiting=waiting,
        waiting_since=None if since_us is None else rfc3339(since_us),
        chosen=tuple(
            Chosen(project=one.project, types=one.types, on_probation=one.on_probation)
            for one in known.choices.values()
        ),
        homes=tuple(_homes(exchange, known, known.team.origin)),
        erasing=tuple(
            Erasing(memory_id=one.subject, erased_at=rfc3339(one.erased_at), homes=one.homes)
            for one in exchange.erasing
        ),
    )


async def _earlier(log: EventLog, team: Team) -> tuple[str, ...]:
    names, left = dict[str, None](), await log.tagged(NAMED, 0)
    while left:
        events = await log.read_at(left)
        left = left[len(events) :]
        for one in events:
            if isinstance(one.event, ShareJoined | ShareRenewed) and one.event.team == team.team:
                names[one.event.origin] = None
    return tuple(name for name in names if name != team.origin)


def _remedy(exchange: Exchange) -> str | None:
    if exchange.trouble:
        return exchange.remedy
    if exchange.damaged:
        return "`omegad share verify` proves the rest; nothing more is received of that home"
    return "upgrade omegad here" if exchange.ahead else None


def _homes(exchange: Exchange, known: Known, own: str) -> Iterator[HomeOfTeam]:
    """Yield the other homes, as the log knows them and as the post told last."""
    there = {one.origin: one for one in exchange.homes}
    names = known.origins | {name: (one.person, one.machine) for name, one in there.items()}
    for origin, (person, machine) in sorted(names.items(), key=lambda one: (one[1], one[0])):
        if origin == own:
            continue
        told = there.get(origin)
        yield HomeOfTeam(
            origin=origin,
            person=person,
            machine=machine,
            received=known.reached.get(origin, 0),
            told=told.head if told else None,
            seen_at=rfc3339(told.seen_at) if told else None,
            has_left=told is not None and told.left_at is not None,
            retired_by=told.retired_by if told else None,
        )


class TryNow(Request, frozen=True, kw_only=True, tag="share.try_now"):
    """Have the home tell its team and ask it at once, whatever it waits for. Says how it stands before that
    is done.
    """


class PreviewSharing(Query, frozen=True, kw_only=True, tag="share.preview"):
    """Show what of a project would be shared, and what would stay and why. Nothing is sent by this."""

    project: Annotated[Name, Meta(description="the project")]
    types: Annotated[tuple[Name, ...], Meta(max_length=32, description="as if these types were chosen")] = ()
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many are shown of each")] = 100


class Previewed(msgspec.Struct, frozen=True, kw_only=True):
    """A memory, the beginning of what it says, why it stays, and who of the team said it; `stays` is None
    where it would go.
    """

    memory_id: str
    event_type: str
    content: str
    created_at: str
    stays: str | None
    person: str | None
    machine: str | None


class Preview(ViewAnswer, frozen=True):
    """The newest of what would go and of what would stay, and how many there are of each."""

    go: list[Previewed]
    stay: list[Previewed]
    go_count: int
    stay_count: int


async def prepare_preview(services: Services, query: PreviewSharing, _context: RequestContext) -> None:
    """Raise `Invalid` for types that there are not."""
    for name in query.types:
        services[MemoryTypes].check(name)
        if name in NEVER:
            raise Invalid(f"memories of type {name} are never shared")


def preview(connection: Connection, query: PreviewSharing, _checked: None, moment: Moment) -> Preview:
    """Read it."""
    named = _named(query.project, query.types) | {"limit": query.limit}
    found = dict[bool, list[Previewed]]()
    for goes in (True, False):
        condition = "stays IS NULL" if goes else "stays IS NOT NULL"
        rows = connection.execute(
            f"SELECT * FROM ({_PREVIEW}) WHERE {condition} ORDER BY created_at DESC, node_id LIMIT :limit",
            named,
        )
        found[goes] = [
            Previewed(
                memory_id=memory_id,
                event_type=event_type,
                content=content,
                created_at=created_at,
                stays=stays,
                person=person,
                machine=machine,
            )
            for memory_id, event_type, content, created_at, stays, person, machine, *_ in rows
        ]
    (go_count, stay_count) = connection.execute(
        f"SELECT count(*) FILTER (WHERE stays IS NULL), count(stays) FROM ({_PREVIEW})", named
    ).fetchone()
    return Preview(
        go=found[True],
        stay=found[False],
        go_count=go_count,
        stay_count=stay_count,
        position=moment.position,
        stale_by=moment.stale_by,
    )


def go_count(connection: Connection, project: str, types: tuple[str, ...]) -> int:
    """Return how many memories of a project would be shared."""
    sql = f"SELECT count(*) FROM ({_PREVIEW}) WHERE stays IS NULL"
    ((count,),) = connection.execute(sql, _named(project, types)).fetchall()
    return int(count)


def _named(project: str, types: tuple[str, ...]) -> dict[str, object]:
    return {
        "project": project,
        "characters": SHOWN_CHARACTERS,
        "never": to_json(sorted(NEVER)),
        "types": to_json(types),
    }


def handlers(exchange: Exchange, log: EventLog) -> dict[type[msgspec.Struct], Handler]:
    """Return what answers the methods about sharing itself."""

    async def tried(_request: TryNow, _call: Call) -> Standing:
        exchange.kick()
        return await standing(exchange, log)

    return {
        ShareStatus: lambda _request, _call: standing(exchange, log),
        TryNow: tried,
        ShareChains: lambda _request, _call: chains(log),
    }


METHODS = (
    ServiceMethod(
        params=ShareStatus,
        answer=Standing,
        verb=Verb(
            by="sharing.status",
            about="Say who shares with this home, what is shared, what waits since when, and what is wrong",
            examples=("omegad share status", "omegad share status --json"),
        ),
    ),
    ServiceMethod(
        params=TryNow,
        answer=Standing,
        verb=Verb(
            words="share now", by="sharing.now", about="Tell and ask the team at once, whatever is waited for"
        ),
    ),
    QueryMethod(
        params=PreviewSharing,
        answer=Preview,
        views=PREVIEWED,
        prepare=prepare_preview,
        read=preview,
        verb=Verb(
            by="sharing.preview",
            about="Show what of a project would be shared, what stays, and why; nothing is sent",
            examples=("omegad share preview shop", "omegad share preview shop --type decision"),
        ),
    ),
)
