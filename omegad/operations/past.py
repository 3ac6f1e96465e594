"""Looking back: queries as of an earlier moment, with what has changed since told beside the answer; and what
happened between two moments, put together by what it is about.

Nothing is recorded of it: looking back is no use of a memory.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Annotated
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Meta

from omegad.index.vector_indexes import VectorIndexes
from omegad.log.checkpoint import failed
from omegad.log.codec import tag_of
from omegad.log.event import Position, RecordedEvent
from omegad.operations import aged_batches
from omegad.operations.retention import EVENTS_AT_ONCE, LOOKED_THROUGH, QUERIES
from omegad.operations.services import DaemonServices
from omegad.requests.method import Moment, QueryMethod, RequestContext, ServiceMethod
from omegad.requests.query import AsOf, Request
from omegad.requests.verb import Verb
from omegad.rpc.peer import Call
from omegad.runtime.errors import Invalid, NotFound, OmegadError, ViewFailed
from omegad.runtime.times import parse_time, rfc3339
from omegad.search.events import MemoryQueried, QueryAged
from omegad.search.pipeline import BY_WORDS
from omegad.search.ranking import RANKING_VERSION
from omegad.session.events import MemorySurfaced
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn
from omegad.views.barrier import Barrier, taken
from omegad.views.past import PastFile

VIEWS = ("retrievals",)
WAIT_S = 5.0  # for the views to show the answer that is named
POSITION_DIGITS = 18
SLICE_EVENTS = 500  # read at once; others are served in between
_YEAR = re.compile(r"[0-9]{4}-")
_OF_DAY = re.compile(r"[0-9]{1,2}:")

EVENTS_MAX = 100_000
"""Events that one answer looks at."""
TEXT_CHARACTERS = 200
UNTOLD = frozenset({"embedded", "rippled"})  # of a memory: what omegad works out by itself
NAMED = {"skill": "skill", "identity": "file"}
"""What an event of a noun without ids of its own is about."""
TEXTS = ("content", "statement", "title", "text", "reason", "why")
"""Fields that say what somebody said, the most telling first."""


class DiffLog(Request, frozen=True, kw_only=True, tag="log.diff"):
    """Show what was stored, edited, deleted, rated and so on between two moments, by memory, thesis, task
    and so on.
    """

    since: Annotated[
        AsOf, Meta(description="after this moment: a position, a time, or the query_id of an answer")
    ] = msgspec.field(name="from")
    until: Annotated[AsOf, Meta(description="up to this moment; the end of the log when left out")] | None = (
        msgspec.field(name="to", default=None)
    )
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many memories, theses and so on at most")] = (
        200
    )


class Change(msgspec.Struct, kw_only=True):
    """What became of one thing: what happened, in order and each kind once; the latest wording's
    beginning; and when it was last heard of.
    """

    noun: str
    id: str
    what: list[str] = []
    text: str | None = None
    first: Position
    last: Position
    at: str


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """What happened after position `from` up to `to`: how many events of each tag, and what they are about,
    in the order of its first event.

    Where that is more than one answer holds, `to` is as far as it goes, and `next` is the `from` to go on
    with; else that is null.
    """

    since: Position = msgspec.field(name="from")
    until: Position = msgspec.field(name="to")
    tags: dict[str, int]
    changes: list[Change]
    next: Position | None


class Changes:
    """Puts events together."""

    def __init__(self, limit: int) -> None:
        """Tell of *limit* things at most."""
        self.tags: dict[str, int] = {}
        self.by_id: dict[tuple[str, str], Change] = {}
        self._limit = limit

    def add(self, recorded: RecordedEvent) -> bool:
        """Add an event, unless it is about one thing too many; say whether it was added."""
        tag = recorded.tag.partition("@")[0]
        noun, _, what = tag.partition(".")
        # Nothing is known of what is erased, and some is about nothing that lasts.
        subject = getattr(recorded.event, NAMED.get(noun, f"{noun}_id"), None)
        if isinstance(subject, str) and what not in UNTOLD:
            change = self.by_id.get((noun, subject))
            if change is None:
                if len(self.by_id) == self._limit:
                    return False
                change = self.by_id[noun, subject] = Change(
                    noun=noun, id=subject, first=recorded.position, last=0, at=""
                )
            if what not in change.what:
                change.what.append(what)
            texts = (text for name in TEXTS if isinstance(text := getattr(recorded.event, name, None), str))
            change.text = next(texts, "")[:TEXT_CHARACTERS] or change.text
            change.last, change.at = recorded.position, rfc3339(recorded.occurred_at)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        return True


Earlier = MemoryQueried | MemorySurfaced
FINDING = (tag_of(MemoryQueried), tag_of(MemorySurfaced))


class Then(msgspec.Struct, frozen=True, kw_only=True):
    """The moment that an answer is as of: a position of the log, and the time that is taken for now.

    `changed` has what an earlier answer was made with otherwise, as [then, now], by name: views, `ranking`,
    `embedder` (null without its help). `is_comparable` says whether that is known; without an earlier answer
    there is nothing to compare. `erased` counts the payloads up to there that were erased, and are shown no
    more. `aged` says up to which position, by kind, details are gone since their time was over, and `counted`
    up to which one it is counted how often memories were found, where that is not up to `position`.
    """

    position: Position
    at: str
    query_id: str | None = None
    is_comparable: bool = False
    changed: dict[str, tuple[object, object]] = {}
    erased: int = 0
    aged: dict[str, Position] = {}
    counted: Position | None = None


def recorded_at(connection: Connection, query_id: str) -> Position:
    """Return where the log has the answer named; raises `NotFound`."""
    row = connection.execute("SELECT id FROM retrieval_queries WHERE query_id = ?", (query_id,)).fetchone()
    if row is None:
        raise NotFound(
            f"there is no query {query_id[:80]!r}",
            hint="name a position, a time like 2026-01-31T09:30:00Z, or the query_id of an answer of"
            " memory.query",
        )
    position: Position = row[0]
    return position


class PastMoment(msgspec.Struct, frozen=True, kw_only=True):
    """The moment that is asked for, and the answer that it was named by, if it was."""

    position: Position
    now_us: int
    earlier: Earlier | None = None


class _Unrecorded(DaemonServices):
    """Services that leave no trace of what was asked."""

    def record(
        self, event: msgspec.Struct, context: RequestContext, *, session_id: str | None, project: str | None
    ) -> None:
        """Let it go."""


class PastReader:
    """Answers queries as of earlier moments."""

    def __init__(self, services: DaemonServices) -> None:
        """Take what the service has."""
        self._services = _Unrecorded(
            **{field.name: getattr(services, field.name) for field in fields(services)}
        )
        self._indexes: WeakKeyDictionary[PastFile, VectorIndexes] = WeakKeyDictionary()

    async def query(
        self, method: QueryMethod, params: msgspec.Struct, context: RequestContext, as_of: str | int
    ) -> msgspec.Raw:
        """Return the JSON of the answer, with `as_of` beside its fields, a `Then`.

        Raises `Invalid` for a moment that is not in the log, `NotFound` for an answer that is not, `Stale`
        where the views of then take long to make, `ViewFailed` where one cannot be made, and what reading
        raises.
        """
        wanted = await self.resolved(as_of)
        prepared = await method.prepared(self._services, params, context)
        barrier = Barrier(names=method.views or self._services.views.names)
        async with self._services.past.at(wanted.position) as past:
            if mark := failed(past.checkpoints, barrier.names):
                raise ViewFailed(
                    f"the view {mark.name!r} failed at position {mark.failed_position}: {mark.error}"
                )
            index = self._index(past)

            def read(connection: Connection) -> tuple[object, dict[str, int]]:
                versions = taken(connection, past.path, barrier).versions
                moment = Moment(
                    position=wanted.position, stale_by=0, now_us=wanted.now_us, versions=versions, index=index
                )
                return method.read(connection, params, *prepared, moment), versions

            found, versions = await past.readers.read(read, method.turn)
            answer = await method.finish(self._services, params, found, context) if method.finish else found
        earlier = wanted.earlier
        aged = await self._services.log.aged()
        then = Then(
            position=wanted.position,
            at=rfc3339(wanted.now_us),
            query_id=earlier.query_id if earlier else None,
            is_comparable=bool(earlier and earlier.versions),
            changed=changed(earlier, versions, self._embedder_id(earlier)) if earlier else {},
            erased=await self._services.log.erased(wanted.position),
            aged=aged,
            counted=await self._counted(wanted.position) if wanted.position < aged.get(QUERIES, 0) else None,
        )
        return msgspec.Raw(msgspec.json.encode(answer)[:-1] + b',"as_of":' + msgspec.json.encode(then) + b"}")

    async def _counted(self, position: Position) -> Position | None:
        """Return up to where it is counted how often memories were found, None where that is *position*."""
        log = self._services.log
        asked = await log.tagged(FINDING, max(0, position - LOOKED_THROUGH), through=position)
        events, left = list[RecordedEvent](), asked[-EVENTS_AT_ONCE:]
        while left:
            events += await log.read_at(left)
            left = [one for one in left if one > events[-1].position]
        return aged_batches.counted(events)

    async def diff(self, request: DiffLog, _call: Call) -> Diff:
        """Put together what happened between two moments; raises as `resolved` does, and `Invalid` where
        the second is before the first.
        """
        log = self._services.log
        since, until = (await self.resolved(request.since, "from")).position, log.head
        if request.until is not None:
            until = (await self.resolved(request.until, "to")).position
        if until < since:
            raise Invalid(
                f"log.diff: position {until} is before {since}", hint="let from be the earlier moment"
            )
        changes, after, last = Changes(request.limit), since, min(until, since + EVENTS_MAX)
        while after < last:
            for recorded in await log.read(after, min(SLICE_EVENTS, last - after), Turn.LONG):
                if not changes.add(recorded):
                    last = after
                    break
                after = recorded.position
        return Diff(
            since=since,
            until=after,
            tags=dict(sorted(changes.tags.items())),
            changes=list(changes.by_id.values()),
            next=after if after < until else None,
        )

    async def resolved(self, as_of: str | int, name: str = "as_of") -> PastMoment:
        """Find the moment that the parameter *name* names by a position, a time, or the id of an earlier
        answer.
        """
        log = self._services.log
        if isinstance(as_of, int) or (as_of.isascii() and as_of.isdigit() and len(as_of) <= POSITION_DIGITS):
            position = int(as_of)
            if position > log.head:
                raise Invalid(f"{name}: position {position} is beyond the end of the log, {log.head}")
            # When it was recorded; for 0 when the first was, or the present.
            events = await log.read_at([max(1, position)])
            now_us = events[0].recorded_at if events else self._services.clock.now_us()
            return PastMoment(position=position, now_us=now_us)
        if _YEAR.match(as_of) or _OF_DAY.match(as_of):
            at_us, now_us = parse_time(as_of, name), self._services.clock.now_us()
            if at_us > max(now_us, log.recorded_at):
                raise Invalid(f"{name}: {as_of} is yet to come")
            return PastMoment(position=await log.position_at(at_us, now_us), now_us=at_us)
        with suppress(OmegadError):  # a log that cannot be written is read all the same
            await log.settled()
        barrier = Barrier(names=VIEWS, acknowledged=log.head, wait_s=WAIT_S)
        at = await self._services.views.at(barrier, lambda connection, _: recorded_at(connection, as_of))
        earlier = (await log.read_at([at]))[0].event
        if not isinstance(earlier, Earlier):
            raise Invalid(
                f"{name}: what was recorded of the query {as_of} is erased",
                hint="name a position or a time",
            )
        return PastMoment(position=earlier.read_position, now_us=earlier.at, earlier=earlier)

    def _embedder_id(self, earlier: Earlier) -> str | None:
        if isinstance(earlier, QueryAged) and _first(earlier.embedder_id) in {
            one.embedder_id for one in self._services.near.embedders
        }:
            return earlier.embedder_id  # which of several is asked goes by words that are gone
        asked = earlier.text if isinstance(earlier, MemoryQueried) else earlier.subject
        return self._services.embedder_id_of(asked)

    def _index(self, of: PastFile) -> VectorIndexes | None:
        """Return the vectors of a file of views, None without a model."""
        near, index = self._services.near, self._indexes.get(of)
        ids = tuple(one.embedder_id for one in near.embedders)
        if not ids:
            return None
        if index is None or index.embedder_ids != ids:
            # There are several, and they are asked seldom.
            index = self._indexes[of] = near.new_index(is_whole=False)
        return index


def changed(
    earlier: Earlier, versions: Mapping[str, int], embedder_id: str | None
) -> dict[str, tuple[object, object]]:
    """Return what *earlier* was made with otherwise, as (then, now), by name."""
    compared: dict[str, tuple[object, object]] = {
        name: (earlier.versions[name], now) for name, now in versions.items() if name in earlier.versions
    }
    if isinstance(earlier, MemoryQueried):
        compared["ranking"] = (earlier.ranking_version, RANKING_VERSION)
        if earlier.mode not in BY_WORDS:
            # The first counts: whether another is asked besides depends on what was stored since.
            compared["embedder"] = (_first(earlier.embedder_id), _first(embedder_id))
    return {name: (then, now) for name, (then, now) in compared.items() if then != now}


def _first(embedder_id: str | None) -> str | None:
    return embedder_id and embedder_id.partition("+")[0]


METHODS = (
    ServiceMethod(
        params=DiffLog,
        answer=Diff,
        verb=Verb(
            "diff",
            by="log.diff",
            given=(),
            examples=("omegad diff --from 2026-01-31", "omegad diff --from 1200 --to 1300"),
        ),
    ),
)
