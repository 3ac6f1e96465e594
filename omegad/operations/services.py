"""What methods may ask of the world, as the daemon has it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec
import structlog

from omegad.agents.spool import Spool
from omegad.embedding.jobs import Urgency
from omegad.embedding.passages import Embedded
from omegad.index.served import ServedIndex
from omegad.log.decision import Decision, DecisionState, Proposal
from omegad.log.event import Event, NewEvent, Position, RecordedEvent
from omegad.log.event_log import EventLog
from omegad.log.mending import Ahead
from omegad.log.verifying import LogReport
from omegad.requests.method import VIEWS_WAIT_S, Moment, RequestContext, Rules, Skills
from omegad.runtime import pausing
from omegad.runtime.clock import Clock
from omegad.runtime.digests import DigestKey
from omegad.runtime.errors import ModelFailed, ModelMissing, OmegadError, Overloaded, PathHangs
from omegad.runtime.precedence import HOOKS
from omegad.runtime.reaching import Reaching
from omegad.runtime.steadiness import Steadiness
from omegad.session.liveness import Liveness
from omegad.session.projects import by_disk
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn
from omegad.views.barrier import Barrier, Snapshot
from omegad.views.current import Views
from omegad.views.past import PastViews

COMPUTING_MAX = 2

T = TypeVar("T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class DaemonServices:
    """The log, the views, the embedder with its vectors, the known types, the rules of ingestion, the
    skills and the clock, as `method.Services`.
    """

    log: EventLog
    views: Views
    past: PastViews
    near: ServedIndex
    spool: Spool
    rules: Rules
    skills: Skills
    clock: Clock
    query_timeout_s: float
    """A question is embedded within so long, or not at all."""
    digests: DigestKey
    of_nouns: Mapping[type, object]
    """What nouns keep in the daemon, by its type."""
    steadiness: Steadiness
    claims: str
    """What becomes of an edit of what another session holds."""
    home: str
    reaching: Reaching
    compare_state: Callable[[Callable[[Position, Position], None]], Awaitable[Sequence[str]]]
    """Says in what the decision state is not what the log says, telling how many events of how many it has
    gone through.
    """
    prove_log: Callable[[Callable[[Position, Position], None]], Awaitable[LogReport]]
    """Says whether the log is as it was written, telling how far it is."""
    computing: anyio.CapacityLimiter = field(default_factory=partial(anyio.CapacityLimiter, COMPUTING_MAX))
    """How much is computed at once: threads share one interpreter."""

    def __getitem__(self, kind: type[T]) -> T:
        """Return what a noun keeps in the daemon, by its type."""
        found = self.of_nouns[kind]
        assert isinstance(found, kind)
        return found

    def heard(self, session_id: str) -> None:
        """Note that a session is alive."""
        self[Liveness].hear(session_id)

    @property
    def head(self) -> Position:
        """Where the log ends."""
        return self.log.head

    @property
    def embedder_id(self) -> str | None:
        """The model in use, None without one."""
        return self.near.embedder.embedder_id

    def digest(self, data: bytes) -> bytes:
        """Return a digest that tells data apart in this home and says nothing of it to others."""
        return self.digests.of(data)

    async def stamped_ahead(self) -> Ahead | None:
        """Return what a clock stamped that was ahead of what it says now, None where none was."""
        return await self.log.stamped_ahead(self.clock.now_us())

    async def embed(self, content: str, *, is_backlog: bool = False) -> Embedded | None:
        """Return the vectors of a content, None where the model cannot be used now."""
        return await self.near.embed(content, is_backlog=is_backlog)

    async def embed_question(
        self, text: str, *, within_s: float | None = None, turn: Turn = Turn.USUAL
    ) -> bytes | None:
        """Return the vector of a question, None where the model cannot be used now or takes too long."""
        bound_s = self.query_timeout_s if within_s is None else within_s
        try:
            with anyio.fail_after(bound_s):
                return await self.near.embedder.embed_query(
                    text, Urgency.HOOK if turn is Turn.FIRST else Urgency.QUERY
                )
        except (TimeoutError, ModelMissing, ModelFailed, Overloaded) as error:
            # Without a model every query would say so, for ever; the answer and the status do.
            _tell_degraded(
                error, bound_s, _log.warning if self.embedder_id and within_s is None else _log.debug
            )
            return None

    def begin_question(self, text: str) -> Callable[[], bytes | None] | None:
        """Begin to embed a question, and return what waits for its vector on another thread, as
        `embed_question`; None where it could take long.
        """
        job = self.near.embedder.begin_query(text)
        if job is None:
            return None

        def wait() -> bytes | None:
            try:
                return job.wait(self.query_timeout_s)
            except (TimeoutError, ModelMissing, ModelFailed, Overloaded) as error:
                _tell_degraded(error, self.query_timeout_s, _log.warning)
                return None

        return wait

    def moment(self, snapshot: Snapshot) -> Moment:
        """Return what is known of a moment of the views."""
        return Moment(
            position=snapshot.position,
            stale_by=snapshot.stale_by,
            now_us=self.clock.now_us(),
            versions=snapshot.versions,
            index=self.near.index(snapshot.file),
        )

    async def look(
        self,
        work: Callable[[Connection, Moment], T],
        *,
        at_least: Position,
        names: Sequence[str],
        wait_s: float = VIEWS_WAIT_S,
        turn: Turn = Turn.USUAL,
    ) -> T:
        """Read the views for a decision, which is made without what they do not show in time. Raises
        `ReadTooLong`.
        """
        barrier = Barrier(names=tuple(names), acknowledged=at_least, wait_s=wait_s, makes_do=True)
        return await self.views.at(
            barrier, lambda connection, snapshot: work(connection, self.moment(snapshot)), turn
        )

    async def events_at(self, positions: Sequence[Position]) -> list[RecordedEvent]:
        """Return events of the log; fewer where they are large."""
        return await self.log.read_at(positions)

    async def in_time(self, work: Awaitable[T], within_s: float) -> T | None:
        """Return what *work* comes to, None where that takes longer."""
        with anyio.move_on_after(within_s):
            return await work
        return None

    async def spool_settled(self, within_s: float) -> bool:
        """Wait until what hooks left in the spool is taken in, before what comes after it, for so long at
        most; say whether it is.
        """
        return await self.spool.settled(within_s)

    async def reach(self, work: Callable[[], T], near: str | None) -> T:
        """Do what looks at files of a folder that an agent names. Raises `PathHangs` where they do not
        answer.
        """
        return await self.reaching.reach(work, near)

    async def paused(self, names: Sequence[str]) -> str | None:
        """Say why nothing may be kept or told of folders and files, None where it may. What does not answer
        says nothing.
        """
        if why := pausing.of_home(self.home):
            return why
        for near, paths in by_disk(names, None, self.disk):
            with suppress(PathHangs):
                if why := await self.reach(partial(pausing.of_folders, self.home, paths), near):
                    return why
        return None

    def disk(self, path: str) -> str:
        """Return where the disk is mounted that a path lies on, nothing for that of the home."""
        return self.reaching.disk(path)

    async def compute(self, work: Callable[[], T]) -> T:
        """Do what takes long, beside the event loop: a few at once, which begin when no hook waits."""

        def giving_way() -> T:
            HOOKS.give_way()
            return work()

        return await anyio.to_thread.run_sync(giving_way, limiter=self.computing)

    def remember(self, memory_id: str, project: str | None, vector: bytes) -> None:
        """Note a memory that is about to be stored, for those that are decided before the views show it."""
        self.near.recent.add(memory_id, project, vector)

    def recent(self, project: str | None, vector: bytes) -> Sequence[str]:
        """Return the ids of memories noted lately that are near a vector."""
        return self.near.recent.near(project, vector)

    def record(
        self, event: msgspec.Struct, context: RequestContext, *, session_id: str | None, project: str | None
    ) -> None:
        """Append an event that nobody waits for."""
        assert isinstance(event, Event)
        new = NewEvent(event=event, session_id=session_id, project=project, cause=context.cause)
        self.behind(Proposal(decide=partial(_as_it_is, new), client=context.client, trace=context.trace))

    def behind(self, proposal: Proposal) -> None:
        """Have something appended that nobody waits for; a log that cannot take it is a warning."""
        try:
            self.log.append_later(proposal)
        except OmegadError as error:
            _log.warning("request.not_logged", error=str(error))


def _tell_degraded(error: Exception, bound_s: float, tell: Callable[..., object]) -> None:
    reason = f"the model took longer than {bound_s} s" if isinstance(error, TimeoutError) else str(error)
    tell("query.degraded", failure="RETRIEVAL", to="keyword", reason=reason)


class _Nothing(msgspec.Struct, frozen=True):
    """Nobody waits for the answer."""


def _as_it_is(new: NewEvent, state: DecisionState, now_us: int) -> Decision:
    del state, now_us
    return Decision(events=(new,), answer=_Nothing())
