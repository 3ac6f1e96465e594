"""What a home keeps only for so long, by kind and policy: it is found, said before the first of it goes, and
replaced by what remains of it, batch by batch; each says so in one event.

Memories, and what a person told, are of no kind here but by a setting (`retention_prompts_days`). Nothing is
removed from the chain, and no position goes. Views show the events that say it, and need nothing else.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, NamedTuple

import anyio
import msgspec
import structlog
from msgspec import Meta

from omegad.log import aging
from omegad.log.aging import PayloadsAged
from omegad.log.codec import tag_of
from omegad.log.decision import Cursor, Decision, DecisionState, Proposal
from omegad.log.event import Event, NewEvent, Position, RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.reading import AGED
from omegad.memory.events import MemoryCountsCarried, MemoryErased, Proof, ProofsAged
from omegad.memory.upkeep import consolidation
from omegad.operations import clock
from omegad.operations.aged_batches import Aged, Batch, batch_of
from omegad.operations.freed_pages import FreedPages
from omegad.operations.quoting_memories import quoting
from omegad.operations.services import DaemonServices
from omegad.operations.status import ProgressToken, RetentionStatus
from omegad.operations.system import LOOK_S, while_telling
from omegad.requests.command import Acknowledged
from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request, RequestId
from omegad.requests.verb import Option, Verb
from omegad.rpc.peer import Call
from omegad.runtime.config import Config
from omegad.runtime.errors import OmegadError, Refused, Stale, Unavailable
from omegad.runtime.times import rfc3339
from omegad.search.events import MemoryQueried, MemoryRead
from omegad.session import aging as of_sessions
from omegad.session.events import MemorySurfaced
from omegad.storage.checkpointer import truncate
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn
from omegad.storage.wiping import BUSY_MS
from omegad.views import generation
from omegad.views.erasing import PausedViews

SHOWN_WAIT_S = 10.0  # for views that are a moment behind
CLEAN_WAIT_S = 10.0  # for who reads, rebuilds or verifies; the next run takes out what stays until then
SECOND_US, DAY_US = 1_000_000, 86_400_000_000
EVENTS_AT_ONCE = 500
"""Go in one append, which others wait for."""
LOOKED_THROUGH = 20_000  # positions at once
PAUSE_S = 0.02  # between two batches, at least: who waits to append goes first
EVERY_US = DAY_US - 1_800_000_000
NOTICE_US = 14 * DAY_US
"""How long before the first of anything goes the status says so."""
IDLE_US = 600_000_000
LOOK_EVERY_US = 300_000_000
QUERIES, PROMPTS = "queries", "prompts"
"""The kinds of what was found, of which the uses of memories are counted, and of what was said."""
RAN, SAID = "retention", "retention.said."
"""Cursors that have when it looked last, and, by kind, when it was first said that what is older than so many
days goes, in seconds since 1970; the version of such a one is the days.
"""

BARRIERS = (ClockMended, MemoryCountsCarried, MemoryErased)
"""What changes counts of memories otherwise: those that age together are all before one, or all after it."""

_USUAL = Config()
SETTINGS = f"""settings in config.toml, as they are where nothing is said (0 days are for ever):
  retention_tools_days = {_USUAL.retention_tools_days:<6} what tools were given and answered
  retention_queries_days = {_USUAL.retention_queries_days:<4} what was asked and found
  retention_prompts_days = {_USUAL.retention_prompts_days:<4} what was said in sessions
  retention = {str(_USUAL.retention).lower():<17} by itself, 14 days after `omegad status` says so"""

_HEARD = "SELECT max(last_us) FROM agent_sessions WHERE last_us <= ?"

_log = structlog.get_logger(__name__)


class Kind(NamedTuple):
    """A kind of event, of which the details age: what people call it, how many days it is kept (0: for ever),
    and its events.
    """

    name: str
    days: int
    events: tuple[type[Event], ...]
    barriers: tuple[type[Event], ...] = ()

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of its events."""
        return tuple(map(tag_of, self.events))

    @property
    def cursor(self) -> str:
        """The name of the cursor that has up to where it has gone."""
        return f"{AGED}{self.name}"

    def said_us(self, cursors: Mapping[str, Cursor], now_us: int) -> int | None:
        """Return when it was said that it goes after so many days, None where that was never, or by a clock
        that was ahead.
        """
        said = cursors.get(f"{SAID}{self.name}")
        if said is None or self.days < said.version or said.position * SECOND_US > now_us:
            return None
        return said.position * SECOND_US


def kinds(settings: Config) -> tuple[Kind, ...]:
    """Return what ages by the settings."""
    return (
        Kind("tools", settings.retention_tools_days, of_sessions.TOOLS),
        Kind(
            QUERIES,
            settings.retention_queries_days,
            (MemoryQueried, MemorySurfaced, MemoryRead),
            BARRIERS,
        ),
        Kind(PROMPTS, settings.retention_prompts_days, of_sessions.SAID),
    )


class ApplyRetention(Request, frozen=True, kw_only=True, tag="retention.apply"):
    """Let go of details whose time is over by the settings: what tools were given and
    answered, what was asked and found, and what was said where that is set. What remains is that each
    happened, when, and how often.
    """

    dry_run: Annotated[bool, Meta(description="say what would go, and let go of nothing")] = False
    request_id: RequestId | None = None
    progress_token: ProgressToken | None = None


class Retained(msgspec.Struct, frozen=True, kw_only=True):
    """What went, or would (`dry_run`), by kind; kinds that are kept for ever are not among them. `free_bytes`
    are free in the log's file, then: about, where it only would go. `quoted_in` quote what is over, and stay.
    """

    dry_run: bool
    aged: list[Aged]
    freed_bytes: int
    free_bytes: int = 0
    quoted_in: list[str] = []


class Retention:
    """Lets go, one run at a time: a sweep that runs once a day when nobody is at work, and what a command
    asks for.
    """

    NAME = "retention"

    def __init__(self, services: DaemonServices, settings: Config, paused_views: PausedViews) -> None:
        self.kinds = tuple(kind for kind in kinds(settings) if kind.days)
        self.trouble: str | None = None
        self._is_on = settings.retention
        self._recorded_us = services.log.recorded_at
        self._services = services
        self._paused_views = paused_views
        self._lock = anyio.Lock()
        self._looked_us = 0
        self._waiting: Retained | None = None
        self._cursors: Mapping[str, Cursor] = {}  # as they were read last
        self._read_us: int | None = None
        self._last: Position = 0  # the latest event that says what went
        self._cleaned = set[str]()  # kinds of which this service has left nothing behind

    # As a sweep

    def concerns(self, _events: Sequence[RecordedEvent]) -> bool:
        """Say no: only time passes."""
        return False

    def is_due(self) -> bool:
        """Say whether it is time to look again."""
        return abs(self._services.clock.now_us() - self._looked_us) >= LOOK_EVERY_US

    async def sweep(self) -> bool:
        """Let go of what is over, once a day, when no session is at work; of each kind it is said before,
        and waited for `NOTICE_US`: the first time, where it is kept for fewer days than was said, and
        where nobody looked for so long, or the clock says so.
        """
        if not (self._is_on and self.kinds and self.is_due()) or clock.trouble(self._services):
            return True
        now_us = self._looked_us = self._services.clock.now_us()
        cursors = await self._read()
        ran_us = cursors[RAN].position * SECOND_US if RAN in cursors else self._recorded_us
        is_told = self._waiting or all(kind.said_us(cursors, now_us) for kind in self.kinds)
        if RAN in cursors and 0 <= now_us - ran_us < EVERY_US and is_told:
            return True
        if not await self._is_idle(now_us):
            return True
        was_away = now_us - ran_us > NOTICE_US
        said = {kind: None if was_away else kind.said_us(cursors, now_us) for kind in self.kinds}
        over = tuple(kind for kind, at in said.items() if at is not None and now_us - at >= NOTICE_US)
        try:
            if over:
                await self.run(_nobody, over)
        except (Refused, Unavailable) as error:
            _log.info("retention.put_off", error=str(error))
            return True
        self._waiting = await self.due(_nobody, tuple(kind for kind in self.kinds if kind not in over))
        for kind, one in zip(
            (kind for kind in self.kinds if kind not in over), self._waiting.aged, strict=True
        ):
            if said[kind] is None and (one.freed_bytes or f"{SAID}{kind.name}" in cursors):
                _log.warning(
                    "retention.said", kind=kind.name, freed=one.freed_bytes, after_days=NOTICE_US // DAY_US
                )
                await self._services.log.advance(Cursor(f"{SAID}{kind.name}", now_us // SECOND_US, kind.days))
        await self._services.log.advance(Cursor(RAN, now_us // SECOND_US))
        await self._read()
        return True

    async def _is_idle(self, now_us: int) -> bool:
        def heard(connection: Connection) -> int:
            return int(connection.execute(_HEARD, (now_us,)).fetchone()[0] or 0)

        return now_us - await self._services.views.read(heard) >= IDLE_US

    async def status(self) -> RetentionStatus | None:
        """Say what is kept for how long, when it ran last, and when the first of what is over goes, as it was
        read last where it cannot be read at once; None where everything is kept for ever.
        """
        if not self.kinds:
            return None
        is_now = False
        with anyio.move_on_after(LOOK_S), suppress(OmegadError):
            await self._read()
            is_now = True
        return self._status(is_now=is_now)

    async def _read(self) -> Mapping[str, Cursor]:
        """Return what was said and done when, and keep it for when that cannot be read."""
        self._cursors = await self._services.log.cursors()
        self._read_us = self._services.clock.now_us()
        return self._cursors

    def _status(self, *, is_now: bool) -> RetentionStatus:
        cursors, now_us = self._cursors, self._services.clock.now_us()
        ran, read_us = cursors.get(RAN), self._read_us
        ends = [at + NOTICE_US for kind in self.kinds if (at := kind.said_us(cursors, now_us)) is not None]
        begins_us = min((at for at in ends if at > now_us), default=0)
        waits = self._is_on and begins_us > 0
        waiting = self._waiting if waits else None
        return RetentionStatus(
            days={kind.name: kind.days for kind in self.kinds},
            is_on=self._is_on,
            ran_at=rfc3339(ran.position * SECOND_US) if ran else None,
            begins_at=rfc3339(begins_us) if waits else None,
            waiting={one.kind: sum(one.counts.values()) for one in waiting.aged} if waiting else {},
            waiting_bytes=waiting.freed_bytes if waiting else 0,
            through={kind.name: _reached(cursors, kind) for kind in self.kinds},
            is_known=read_us is not None,
            known_at=None if read_us is None or is_now else rfc3339(read_us),
        )

    # As a command

    async def apply(self, request: ApplyRetention, call: Call) -> Retained:
        """Let go of what is over, or say what that is.

        Raises `Refused` while views are rebuilt or verified, or are behind, and where the clock is in doubt.
        """
        if trouble := clock.trouble(self._services):
            raise Refused(
                f"nobody can say how old anything is: {trouble}", hint="mend the clock, then ask again"
            )
        done = await while_telling(call, request.progress_token, self.due if request.dry_run else self.run)
        if not request.dry_run:
            call.peer.written = max(call.peer.written, self._last)
        through = max((one.through for one in done.aged if one.kind == PROMPTS), default=0)
        with suppress(OmegadError):  # what went is to be told in any case
            done.quoted_in.extend(await self._services.views.read(partial(quoting, through=through)))
        return done

    async def due(self, tell: Callable[[int, int], None], chosen: Sequence[Kind] | None = None) -> Retained:
        """Say what of the chosen kinds, or of all, is over and still there."""
        aged, pages = [], FreedPages()
        for kind in self.kinds if chosen is None else chosen:
            after, through = await self._span(kind)
            batches = pages.noted(kind.name, self._batches(kind, after, through))
            aged.append(await self._summed(kind, after, through, batches, tell))
        return await self._retained(aged, dry_run=True, more_free=await pages.bytes(self._services.log))

    async def run(self, tell: Callable[[int, int], None], chosen: Sequence[Kind] | None = None) -> Retained:
        """Let go of it. Raises `Refused`, and storage errors; what went until then is gone, and the next run
        goes on.
        """
        async with self._lock:
            async with self._paused_views:  # or it is refused, before anything has gone
                aged = list[Aged]()
            for kind in self.kinds if chosen is None else chosen:
                after, through = await self._span(kind)
                before = self._last
                try:
                    one = await self._summed(kind, after, through, self._done(kind, after, through), tell)
                finally:  # what went until it was broken off is nowhere else either
                    if self._last != before or kind.name not in self._cleaned:
                        with anyio.move_on_after(CLEAN_WAIT_S, shield=True):
                            await self._clean(kind)
                if one.counts:
                    _log.info("retention.aged", kind=kind.name, through=through, freed=one.freed_bytes)
                aged.append(one)
            return await self._retained(aged, dry_run=False)

    async def _retained(self, aged: list[Aged], *, dry_run: bool, more_free: int = 0) -> Retained:
        return Retained(
            dry_run=dry_run,
            aged=aged,
            freed_bytes=sum(one.freed_bytes for one in aged),
            free_bytes=await self._services.log.free_bytes() + more_free,
        )

    async def _clean(self, kind: Kind) -> None:
        """Leave no bytes of what went of a kind in copies of the views, in those that others took the place
        of, and in what was written ahead.
        """
        views = self._services.views
        self._cleaned.discard(kind.name)
        await self._age_copies(kind)
        await self._services.past.tidy()
        with suppress(Unavailable, Stale):
            await views.wait_for(self._last, ())
        generation.remove_previous(views.file)
        for on_writer in (self._services.log.on_writer, views.driver.generation.writer.run):
            while not await on_writer(  # noqa: ASYNC110  nothing tells of the end of a read
                partial(truncate, wait_ms=BUSY_MS)
            ):
                await anyio.sleep(BUSY_MS / 1e3)
        self._cleaned.add(kind.name)

    async def _age_copies(self, kind: Kind) -> None:
        """Take out of the copies of the views all that went of a kind, at once: also what a run that was
        killed left there.
        """
        copies, log = self._services.past.copies, self._services.log
        said = await log.tagged((tag_of(PayloadsAged),), 0) if copies.all() else []
        for position in reversed(said):
            (last,) = await log.read_at([position])
            if isinstance(last.event, PayloadsAged) and last.event.kind == kind.name:
                whole = msgspec.structs.replace(last.event, after=0)
                await copies.age(msgspec.structs.replace(last, event=whole))
                break

    async def _span(self, kind: Kind) -> tuple[Position, Position]:
        now_us = self._services.clock.now_us()
        through = await self._services.log.position_at(now_us - kind.days * DAY_US, now_us)
        after = _reached(await self._services.log.cursors(), kind)
        return after, max(after, through)

    async def _summed(
        self,
        kind: Kind,
        after: Position,
        through: Position,
        batches: AsyncIterator[Batch],
        tell: Callable[[int, int], None],
    ) -> Aged:
        counts, freed = Counter[str](), 0
        async for batch in batches:
            counts += batch.counts
            freed += batch.freed
            tell(batch.through - after, through - after)
        until_us = self._services.clock.now_us() - kind.days * DAY_US
        return Aged(
            kind=kind.name,
            days=kind.days,
            until=rfc3339(until_us),
            through=through,
            counts=dict(sorted(counts.items())),
            freed_bytes=freed,
        )

    async def _done(self, kind: Kind, after: Position, through: Position) -> AsyncIterator[Batch]:
        """Let go of a kind, batch by batch, and yield what went."""
        async for batch in self._batches(kind, after, through):
            with anyio.move_on_after(SHOWN_WAIT_S), suppress(Unavailable, Stale):
                await self._services.views.wait_for(batch.through, ())
            async with self._paused_views.at_last():  # the weekly check, too, may begin in the middle
                self._check_shown(batch.through)
                still = await self._still(batch)
                proposal = Proposal(
                    decide=partial(_decide, kind, still, await self._proofs(kind, still)),
                    cursor=Cursor(kind.cursor, still.through),
                )
                self._last = (await self._services.log.append(proposal)).position or self._last
            yield still
            await anyio.sleep(PAUSE_S)

    async def _still(self, batch: Batch) -> Batch:
        """Return a batch as it is now that nobody erases: what was erased since it was made stays so."""
        events = list[RecordedEvent]()
        while rest := batch.positions[len(events) :]:
            events += await self._services.log.read_at(rest, Turn.LONG)
        return batch_of(batch.after, batch.through, events, self._services.log.codec)

    async def _proofs(self, kind: Kind, batch: Batch) -> tuple[Proof, ...]:
        """Return what a batch says for memories on probation, which stays."""
        if kind.name != QUERIES or not batch.left:
            return ()
        found = partial(consolidation.proofs, after=batch.after, through=batch.through)
        return await self._services.views.read(found)

    def _check_shown(self, through: Position) -> None:
        """Raise `Refused` where a view has yet to be shown what is about to go."""
        for name, checkpoint in self._services.views.driver.checkpoints.items():
            if checkpoint.position < through:
                raise Refused(
                    f"the view {name} shows the log up to {checkpoint.position:,} only, and what is over goes"
                    f" up to {through:,}",
                    hint="`omegad status` says how far it is; ask again then",
                )

    async def _batches(self, kind: Kind, after: Position, through: Position) -> AsyncIterator[Batch]:
        """Yield what of a kind is over, in parts; the last may have nothing in it."""
        log, codec, began = self._services.log, self._services.log.codec, after
        while after < through:
            end = min(after + LOOKED_THROUGH, through)
            positions = await log.tagged(kind.tags, after, through=end, limit=EVENTS_AT_ONCE)
            if len(positions) == EVENTS_AT_ONCE:
                end = positions[-1]
            if positions and kind.barriers:
                stops = await log.tagged(
                    tuple(map(tag_of, kind.barriers)), positions[0], through=end, limit=1
                )
                if stops:
                    positions, end = [one for one in positions if one < stops[0]], stops[0]
            events = await log.read_at(positions, Turn.LONG) if positions else []
            if len(events) < len(positions):
                end = events[-1].position
            batch = batch_of(after, end, events, codec)
            if batch.left or (end == through and began < end):
                yield batch
            after = end


def _decide(
    kind: Kind, batch: Batch, proofs: tuple[Proof, ...], _state: DecisionState, _now_us: int
) -> Decision:
    """Decide that a batch goes, but for what proves memories."""
    if not batch.left:
        return Decision(answer=Acknowledged())
    steps, hashes = aging.written(batch.after, batch.left)
    event = PayloadsAged(
        kind=kind.name,
        days=kind.days,
        after=batch.after,
        through=batch.through,
        steps=steps,
        hashes=hashes,
        counts=batch.counts,
        freed=batch.freed,
    )
    proved = (NewEvent(event=ProofsAged(proofs=proofs)),) if proofs else ()
    return Decision(events=(*proved, NewEvent(event=event)), answer=Acknowledged(), aged=batch.left)


def _reached(cursors: Mapping[str, Cursor], kind: Kind) -> Position:
    found = cursors.get(kind.cursor)
    return found.position if found else 0


def _nobody(_done: int, _total: int) -> None:
    """Tell nobody."""


METHODS = (
    ServiceMethod(
        params=ApplyRetention,
        answer=Retained,
        writes=True,
        verb=Verb(
            "retention",
            by="retention.apply",
            about="Let go of details whose time is over, by the settings, or show what that would be",
            more=SETTINGS,
            options=(Option("yes", "let go without asking", "flag"),),
            examples=("omegad retention --dry-run", "omegad retention --yes"),
        ),
    ),
)
