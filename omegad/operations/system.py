"""Questions about the service: its state, the log itself, and proof that the views equal it."""

import os
import shutil
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import anyio
import msgspec
import structlog

from omegad import __version__
from omegad.agents.hook_arrivals import REMEDY, HookArrivals
from omegad.embedding.embedder import EmbedderStatus
from omegad.log.verifying import LogReport
from omegad.memory.embedding import EmbeddingBacklog
from omegad.operations import clock, seal
from omegad.operations.clock import ShowClock
from omegad.operations.growth import Growth, MeasureGrowth
from omegad.operations.services import DaemonServices
from omegad.operations.status import (
    EmbeddingStatus,
    Ended,
    Exposition,
    FollowLog,
    Handler,
    LogPage,
    LogStatus,
    Metrics,
    ProgressToken,
    ReadLog,
    RebuildViews,
    RetentionStatus,
    SelfCheckStatus,
    ServiceStatus,
    SpoolStatus,
    Status,
    UpkeepStatus,
    VerifyLog,
    VerifyViews,
    ViewsReport,
    ViewStatus,
    exposition,
)
from omegad.reactions.contract import ReactionStatus
from omegad.requests.log_events import log_event
from omegad.requests.query import PAGE_BYTES_MAX
from omegad.rpc import endpoint
from omegad.rpc.peer import Call
from omegad.runtime import pausing
from omegad.runtime.allocator import resident_bytes
from omegad.runtime.concurrently import concurrently
from omegad.runtime.config import Paths
from omegad.runtime.errors import Invalid, OmegadError, Unavailable
from omegad.runtime.times import rfc3339
from omegad.sharing.standing import Standing
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

T = TypeVar("T")
ReactionStates = Callable[[], dict[str, ReactionStatus]]


PROGRESS_EVERY_S = 0.2
LOOK_S = 0.25  # for what the status has to read
SHARE_LOOK_S = 2.0  # for counting what waits to be told
_UPKEEP = """
SELECT at_us, by, undone_at IS NOT NULL, json_array_length(promoted), json_array_length(compacted),
  json_array_length(expired), json_array_length(stale) FROM upkeeps ORDER BY id DESC LIMIT 1
"""
SLICE_EVENTS = 200  # read at once; others are served in between

_log = structlog.get_logger(__name__)


def sizes(files: dict[str, Path]) -> dict[str, int]:
    """Return how many bytes each file has with its write-ahead log."""
    both = {part: (file, file.with_name(f"{file.name}-wal")) for part, file in files.items()}
    return {part: sum(file.stat().st_size for file in pair if file.exists()) for part, pair in both.items()}


def free_bytes(folder: Path) -> int:
    """Return what is free where *folder* is, 0 where nobody can say."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def _nobody(done: int, total: int) -> None:
    """Tell nobody of progress."""


async def while_telling(
    call: Call, token: ProgressToken | None, work: Callable[[Callable[[int, int], None]], Awaitable[T]]
) -> T:
    """Do *work*, which is given what notes how much is done of how much, and return what it comes to. A
    caller that gave a token is told of it meanwhile, and when it is done.
    """
    found, reached, is_done = list[T](), (0, 0), anyio.Event()

    def note(done: int, total: int) -> None:
        nonlocal reached
        reached = (done, total)

    async def do() -> None:
        found.append(await work(note))
        is_done.set()

    async def tell() -> None:
        told = -1
        while token is not None and not is_done.is_set():
            with anyio.move_on_after(PROGRESS_EVERY_S):
                await is_done.wait()
            done, total = reached
            if done <= told and not is_done.is_set():
                continue
            told = done
            with suppress(Unavailable):  # the caller is gone, and its request is about to be cancelled
                await call.notify("progress", {"progress_token": token, "progress": done, "total": total})

    await concurrently(do, tell)
    return found[0]


def last_upkeep(connection: Connection) -> UpkeepStatus | None:
    """Return what the last upkeep did."""
    row = connection.execute(_UPKEEP).fetchone()
    if row is None:
        return None
    at_us, by, undone, promoted, compacted, expired, stale = row
    return UpkeepStatus(
        at=rfc3339(at_us),
        by=by,
        promoted=promoted,
        compacted=compacted,
        expired=expired,
        stale=stale,
        undone=bool(undone),
    )


class Beside(NamedTuple):
    """What the service's other parts tell: connections now, requests so far, the last self-check."""

    connections: int
    requests: int
    checked: SelfCheckStatus | None


class SystemDispatch:
    """Answers for the service as a whole."""

    def __init__(  # noqa: PLR0913  whoever knows something
        self,
        services: DaemonServices,
        paths: Paths,
        *,
        reactions: ReactionStates,
        backlog: EmbeddingBacklog,
        beside: Callable[[], Beside],
        sharing: Callable[[], Awaitable[Standing]],
        retention: Callable[[], Awaitable[RetentionStatus | None]],
    ) -> None:
        """Take how the *reactions* are, the *backlog* of vectors, what is *beside*, how it stands with the
        team (*sharing*), and what is kept for how long (*retention*) from who knows them.
        """
        self._services = services
        self._paths = paths
        self._reactions = reactions
        self._backlog = backlog
        self._beside = beside
        self._sharing = sharing
        self._retention = retention
        told = seal.told(paths)
        self._sealed = told.place if told else None
        self._started = time.monotonic()
        self._followers: set[anyio.CancelScope] = set()

    def handlers(self) -> dict[type[msgspec.Struct], Handler]:
        """Return what answers each method about the service."""
        return {
            Status: self._status,
            Metrics: self._metrics,
            ShowClock: partial(clock.show, self._services),
            MeasureGrowth: Growth(self._services, self._paths.embeddings).measure,
            ReadLog: self.read_log,
            FollowLog: self.follow_log,
            VerifyLog: self.verify_log,
            RebuildViews: self.rebuild_views,
            VerifyViews: self.verify_views,
        }

    async def _status(self, _query: Status, _call: Call) -> ServiceStatus:
        stopped = await self._services[HookArrivals].stopped(self._services)
        status = self.status()
        share = await self._share()
        troubles = [
            *status.degraded,
            *(f"{one.line}: {REMEDY}" for one in stopped),
            *([share.in_words] if share is not None and share.trouble else []),
        ]
        return msgspec.structs.replace(
            status,
            upkeep=await self._upkeep(),
            retention=await self._retention(),
            share=share,
            degraded=troubles,
        )

    async def _share(self) -> Standing | None:
        """Return how it stands with the team, None where there is none or that cannot be said at once."""
        with anyio.move_on_after(SHARE_LOOK_S), suppress(OmegadError):
            standing = await self._sharing()
            return standing if standing.team else None
        return None

    async def _upkeep(self) -> UpkeepStatus | None:
        """Return what the last upkeep did, None where that cannot be read at once."""
        with anyio.move_on_after(LOOK_S), suppress(OmegadError):
            return await self._services.views.read(last_upkeep)
        return None

    async def _metrics(self, _query: Metrics, _call: Call) -> Exposition:
        return Exposition(text=exposition(self.status()))

    def status(self) -> ServiceStatus:
        """Say how everything is, from memory, waiting for nothing."""
        log, embedder = self._services.log, self._services.near.embedder
        embedding = embedder.status()
        index_vectors, index_bytes = self._services.near.size
        connections, requests, checked = self._beside()
        states, reactions = self._view_states(), self._reactions()
        return ServiceStatus(
            version=__version__,
            pid=os.getpid(),
            uptime_s=round(time.monotonic() - self._started, 3),
            home=str(self._paths.home),
            paused=pausing.of_home(str(self._paths.home)),
            sealed=self._sealed,
            socket=str(self._paths.socket),
            log=LogStatus(head=log.head, bytes=log.bytes_on_disk(), waiting=log.waiting),
            views=states,
            reactions=reactions,
            embedding=EmbeddingStatus(
                model=embedding.model,
                state=embedding.state,
                embedder_id=embedding.embedder_id,
                index_vectors=index_vectors,
                index_bytes=index_bytes,
                backlog=self._backlog.size,
                models={
                    one.model: one.state
                    for one in (there.status() for there in self._services.near.embedders)
                    if one.model
                },
            ),
            degraded=self._troubles(embedding, states, reactions),
            spool=SpoolStatus(waiting=self._services.spool.waiting, lost=self._services.spool.lost),
            self_check=checked,
            files=sizes(
                {
                    "log": self._paths.log,
                    "views": self._services.views.file,
                    "embeddings": self._paths.embeddings,
                }
            ),
            web_pid=endpoint.holder(self._paths.web_lock),
            disk_free_bytes=free_bytes(self._paths.home),
            rss_bytes=resident_bytes(),
            connections=connections,
            requests=requests,
        )

    async def read_log(self, query: ReadLog, _call: Call) -> LogPage:
        """Answer with a page of the log, read in slices; shorter than asked for where it would pass
        `PAGE_BYTES_MAX`.
        """
        events: list[msgspec.Raw] = []
        after, size = query.after, 0
        while len(events) < query.limit and size < PAGE_BYTES_MAX:
            recorded = await self._services.log.read(
                after, min(SLICE_EVENTS, query.limit - len(events)), Turn.LONG
            )
            if not recorded:
                break
            for one in recorded:
                event = msgspec.json.encode(log_event(one))
                size += len(event)
                if events and size > PAGE_BYTES_MAX:
                    break
                events.append(msgspec.Raw(event))
            after = recorded[-1].position
        return LogPage(events=events, head=self._services.log.head)

    async def follow_log(self, query: FollowLog, call: Call) -> Ended:
        """Send every event after a position to the caller until it cancels or goes, or the service stops."""
        after = self._services.log.head if query.after is None else query.after
        if after > self._services.log.head:
            raise Invalid(f"position {after} is beyond the end of the log, {self._services.log.head}")
        with anyio.CancelScope() as following:
            self._followers.add(following)
            try:
                async for recorded in self._services.log.follow(after):
                    await call.notify("log.event", log_event(recorded))
            finally:
                self._followers.discard(following)
        return Ended()

    def end_following(self) -> None:
        """Answer everyone who follows the log, because the service stops."""
        for following in self._followers:
            following.cancel()

    async def verify_log(self, query: VerifyLog, call: Call) -> LogReport:
        """Prove the chain, telling how far it has come."""
        return await while_telling(call, query.progress_token, self._services.prove_log)

    async def rebuild_views(self, query: RebuildViews, call: Call) -> ViewsReport:
        """Build views again and swap; with all of them, compare the decision state with the log, and make it
        anew where that says otherwise.

        Whoever decides waits for the latter alone. Raises `ViewFailed` where one could not be built.
        """
        views: dict[str, object] = {}
        problems: list[str] = []

        async def build() -> None:
            work = partial(self._services.views.rebuild, (query.name,) if query.name else ())
            views.update(await while_telling(call, query.progress_token, work))

        async def compare() -> None:
            problems.extend(await self._services.compare_state(_nobody))

        await concurrently(build, *([compare] if query.name is None else []))
        if problems:
            _log.warning("log.refolded", problems=problems)
            await self._services.log.refold()
        return ViewsReport(ok=True, views=views)

    async def verify_views(self, query: VerifyViews, call: Call) -> ViewsReport:
        """Compare views with a replay."""
        work = partial(self._services.views.verify, (query.name,) if query.name else ())
        views = await while_telling(call, query.progress_token, work)
        return ViewsReport(ok=all(report.equal for report in views.values()), views=dict(views))

    async def problems(self) -> list[str] | None:
        """Prove the log and the views; return what is wrong, in words, None where that cannot be said now."""
        try:
            log = await self._services.prove_log(_nobody)
            views = await self._services.views.verify((), _nobody)
        except OmegadError as error:
            _log.info("self_check.put_off", error=str(error))
            return None
        unequal = {
            name: view.problem or "does not equal the log" for name, view in views.items() if not view.equal
        }
        broken = [] if log.first_bad is None else [f"the log does not verify at position {log.first_bad}"]
        return [*broken, *log.problems, *(f"the view {name}: {problem}" for name, problem in unequal.items())]

    def _view_states(self) -> dict[str, ViewStatus]:
        head, views = self._services.log.head, self._services.views
        states, rebuilding = {}, views.rebuilding
        for name, checkpoint in views.checkpoints.items():
            lag = head - checkpoint.position
            state = "rebuilding" if name in rebuilding else "catching_up" if lag > 0 else "live"
            error = None
            if checkpoint.failed_position is not None:
                state, error = "failed", f"at position {checkpoint.failed_position}: {checkpoint.error}"
            states[name] = ViewStatus(
                position=checkpoint.position, lag=lag, state=state, version=checkpoint.version, error=error
            )
        return states

    def _troubles(
        self, embedding: EmbedderStatus, states: dict[str, ViewStatus], reactions: dict[str, ReactionStatus]
    ) -> list[str]:
        found = []
        if embedding.state == "absent" and self._services.near.embedder.is_wanted:
            found.append(
                "no embedding model is installed: search works on full text alone; run `omegad model install`"
            )
        if embedding.state == "failed":
            found.append(f"the embedding model fails: {embedding.failure}")
        if self._backlog.size and self._services.near.embedder.is_wanted:
            found.append(f"{self._backlog.size} memories wait for their vectors")
        found += [
            f"the view {name} failed {view.error}; run `omegad rebuild {name}`"
            for name, view in states.items()
            if view.state == "failed"
        ]
        if trouble := self._services.views.driver.trouble:
            found.append(f"the views cannot be written: {trouble}")
        log = self._services.log
        found += self._services.spool.troubles()
        found += filter(None, [clock.trouble(self._services), self._services.reaching.trouble])
        if trouble := log.trouble or log.in_place.trouble():
            found.append(f"the log cannot be written: {trouble}")
        if log.state_position < log.head:
            found.append(
                f"what changes something waits: the decision state is at position {log.state_position:,} of"
                f" {log.head:,}"
            )
        found += [
            f"the reaction {name}: {reaction.trouble}"
            for name, reaction in reactions.items()
            if reaction.trouble
        ]
        return found
