"""What methods may ask of the world, as the daemon has it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import anyio
import structlog

from omegad.agents.spool import Spool
from omegad.embedding.jobs import Job, Urgency
from omegad.embedding.passages import Embedded
from omegad.index.served import ServedIndex
from omegad.log.decision import Proposal
from omegad.log.event import Position
from omegad.log.verifying import LogReport
from omegad.requests.method import BEGUN_S, Moment, Services
from omegad.runtime import pausing
from omegad.runtime.errors import ModelFailed, ModelMissing, OmegadError, Overloaded, PathHangs
from omegad.search.question import compared
from omegad.session.projects import by_disk
from omegad.storage.readers import Turn
from omegad.views.barrier import Snapshot
from omegad.views.past import PastViews

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class DaemonServices(Services):
    """The services with the index, the past, the spool, and the processes that go through the log."""

    past: PastViews
    near: ServedIndex
    spool: Spool
    query_timeout_s: float
    """A question is embedded within so long, or not at all."""
    home: str
    compare_state: Callable[[Callable[[Position, Position], None]], Awaitable[Sequence[str]]]
    """Says in what the decision state is not what the log says, telling how many events of how many it has
    gone through.
    """
    prove_log: Callable[[Callable[[Position, Position], None]], Awaitable[LogReport]]
    """Says whether the log is as it was written, telling how far it is."""

    def embedder_id_of(self, question: str) -> str | None:
        """Return the models that a question is embedded by, None without one."""
        return "+".join(one.embedder_id for one in self.near.asked_of(question) if one.embedder_id) or None

    async def embed(
        self, content: str, *, is_backlog: bool = False, embedder_id: str | None = None
    ) -> Embedded | None:
        """Return the vectors of a content, None where the model cannot be used now."""
        return await self.near.embed(content, is_backlog=is_backlog, embedder_id=embedder_id)

    def begin_embedding(self, content: str) -> Callable[[], Embedded] | None:
        """Begin to embed a content, and return what waits for its vector on another thread; None where it
        could take long.
        """
        return self.near.begin(content)

    def hold(self, embedded: Embedded) -> None:
        """Have the vector of a content at hand that was begun to be embedded."""
        self.near.hold(embedded)

    async def embed_question(
        self, text: str, *, within_s: float | None = None, turn: Turn = Turn.USUAL
    ) -> Mapping[str, bytes] | None:
        """Return the vectors of a question, None where the model cannot be used now or takes too long.

        A question in the first other language that a home meets waits for the memories that are compared with
        it to be embedded, where they are few.
        """
        bound_s = self.query_timeout_s if within_s is None else within_s
        urgency = Urgency.HOOK if turn is Turn.FIRST else Urgency.QUERY
        try:
            with anyio.fail_after(bound_s):
                await self._know_languages()
                asked = self.near.asked_of(text)
                vectors = {
                    one.embedder_id or "": await one.embed_query(compared(text), urgency) for one in asked
                }
        except (TimeoutError, ModelMissing, ModelFailed, Overloaded) as error:
            # Without a model every query would say so, for ever; the answer and the status do.
            _tell_degraded(
                error,
                bound_s,
                _log.warning if self.near.embedder.embedder_id and within_s is None else _log.debug,
            )
            return None
        if turn is not Turn.FIRST and self.near.must_catch_up(asked):
            with anyio.move_on_after(bound_s):
                await self.near.catch_up()
        return vectors

    async def index_begun(self) -> None:
        """Wait until the index was read after a start."""
        await self.near.begun(BEGUN_S)

    def begin_question(self, text: str) -> Callable[[], Mapping[str, bytes] | None] | None:
        """Begin to embed a question, and return what waits for its vectors on another thread, as
        `embed_question`; None where it could take long.
        """
        if not self.near.is_known(self.views.file):
            return None
        asked, jobs = self.near.asked_of(text), dict[str, Job]()
        if self.near.must_catch_up(asked):
            return None
        for embedder in reversed(asked):
            job = embedder.begin_query(compared(text))
            if job is None:
                return None
            jobs[embedder.embedder_id or ""] = job

        def wait() -> Mapping[str, bytes] | None:
            try:
                return {name: jobs[name].wait(self.query_timeout_s) for name in reversed(jobs)}
            except (TimeoutError, ModelMissing, ModelFailed, Overloaded) as error:
                _tell_degraded(error, self.query_timeout_s, _log.warning)
                return None

        return wait

    def nearness(self, question: str) -> Callable[[str], float | None]:
        """Return what says how near a question is to a passage, by the model for all languages."""
        model, asked = self.near.multilingual or self.near.embedder, compared(question)
        return lambda passage: model.nearness(asked, passage, self.query_timeout_s)

    async def _know_languages(self) -> None:
        """Read which languages the memories are in, where that is not known; one that cannot be read now is
        asked for again.
        """
        file = self.views.file
        if not self.near.is_known(file):
            with suppress(OmegadError):
                await self.views.read(partial(self.near.learn, file=file))

    def moment(self, snapshot: Snapshot) -> Moment:
        """Return what is known of a moment of the views."""
        return Moment(
            position=snapshot.position,
            stale_by=snapshot.stale_by,
            now_us=self.clock.now_us(),
            versions=snapshot.versions,
            index=self.near.index(snapshot.file),
        )

    async def spool_settled(self, within_s: float) -> bool:
        """Wait until what hooks left in the spool is taken in, before what comes after it, for so long at
        most; say whether it is.
        """
        return await self.spool.settled(within_s)

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

    def behind(self, proposal: Proposal) -> None:
        """Have something appended that nobody waits for; a log that cannot take it is a warning."""
        try:
            self.log.append_later(proposal)
        except OmegadError as error:
            _log.warning("request.not_logged", error=str(error))


def _tell_degraded(error: Exception, bound_s: float, tell: Callable[..., object]) -> None:
    reason = f"the model took longer than {bound_s} s" if isinstance(error, TimeoutError) else str(error)
    tell("query.degraded", failure="RETRIEVAL", to="keyword", reason=reason)
