"""What a method is: what it takes, what it answers, and what becomes of it. Each is declared beside the
Struct of its parameters.

A *command* is prepared (what deciding needs of the world is gathered) and decided (pure, in the transaction
of its append). A *query* is prepared, if it needs more than the views, and read from one moment of them. A
*service* method is about the running service itself, which answers it.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec

from omegad.embedding.passages import Embedded
from omegad.log.decision import Decision, Proposal, RequestKey
from omegad.log.event import Event, NewEvent, Position
from omegad.log.event_log import EventLog
from omegad.requests.command import Acknowledged, Command
from omegad.requests.query import Query
from omegad.requests.verb import OF_ITS_NAME, AgentTool, Verb
from omegad.runtime.clock import Clock
from omegad.runtime.digests import DigestKey
from omegad.runtime.errors import Refused
from omegad.runtime.precedence import HOOKS
from omegad.runtime.reaching import Reaching
from omegad.runtime.steadiness import Steadiness
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn
from omegad.text.ingestion.noise import NoiseRules
from omegad.text.ingestion.tagging import TagRules
from omegad.views.barrier import Barrier, Extent, Snapshot
from omegad.views.current import Views

T = TypeVar("T")

IN_EVERY = frozenset({*Command.__struct_fields__, *Query.__struct_fields__})
"""Parameters that every command, or every query, takes."""

EVERY_VIEW = ()
"""For a query whose asker says what is read."""

COMPUTING_MAX = 2

BEGUN_S = 20.0  # which leaves an agent, who waits for 30 s, the time to be answered
VIEWS_WAIT_S = 5.0  # for the views to show what a decision asks about, before it is made without


class RequestContext(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, from where, and what the answer has to show. Made once, at the edge, and free of any
    transport.

    `written` is the asker's own latest write, which an answer shows always; `acknowledged` the latest of
    anyone's, which it shows within a stated bound. `delivery` makes the same request the same, however often
    it comes. `is_again` says that it was prepared before and could not be decided on that, so that `written`
    is now what all had written then; `is_last_try` that a decision has to be made of what is there, though it
    changes all the time.
    """

    client: str | None = None
    delivery: RequestKey | None = None
    cause: Position | None = None
    trace: str | None = None
    written: Position = 0
    acknowledged: Position = 0
    is_again: bool = False
    is_last_try: bool = False


class Moment(Extent, frozen=True, kw_only=True):
    """What an answer is of: what the views show, and the time in microseconds since 1970.

    `index` holds the vectors that are searched, None without a model.
    """

    now_us: int
    index: object = None

    def index_as(self, kind: type[T]) -> T | None:
        """Return the index, whose room stands on this one, by its type."""
        assert isinstance(self.index, kind | None)
        return self.index


class Outdated(Refused):
    """What was prepared does not hold any more: it is prepared again."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What is noise, and which tags a text has by rule."""

    noise: NoiseRules
    tags: TagRules


@dataclass(frozen=True, kw_only=True)
class Skills:
    """The folders that hold skills, the first one first, and the language in which people are told of
    their improvement.
    """

    folders: tuple[Path, ...]
    language: str


@dataclass(frozen=True, kw_only=True)
class Services(ABC):
    """What preparing may ask of the world, and what requests are appended to and read from."""

    log: EventLog
    views: Views
    clock: Clock
    """The time, and randomness for ids."""
    rules: Rules
    skills: Skills
    claims: str
    """What becomes of an edit of what another session holds: deny, ask, warn or off."""
    task_guard: str
    """The same of an edit of a session without a task, where its project has some that are open."""
    git_sync: bool
    """Whether merges and pulls are recorded that git has kept."""
    digests: DigestKey
    steadiness: Steadiness
    """Whether the clock goes as time goes by."""
    reaching: Reaching
    of_nouns: Mapping[type, object]
    """What nouns keep in the daemon, by its type."""
    computing: anyio.CapacityLimiter = field(default_factory=partial(anyio.CapacityLimiter, COMPUTING_MAX))
    """How much is computed at once: threads share one interpreter."""

    def __getitem__(self, kind: type[T]) -> T:
        found = self.of_nouns[kind]
        assert isinstance(found, kind)
        return found

    @property
    def head(self) -> Position:
        """Where the log ends."""
        return self.log.head

    async def look(
        self,
        work: Callable[[Connection, Moment], T],
        *,
        at_least: Position,
        names: Sequence[str],
        wait_s: float | None = None,
        turn: Turn = Turn.USUAL,
    ) -> T:
        """Read the views for a decision, which is made without what they do not show in time:
        `VIEWS_WAIT_S`, or *wait_s*. Raises `ReadTooLong`, and `Stale` where an earlier version made the
        tables of one otherwise.
        """
        within_s = VIEWS_WAIT_S if wait_s is None else wait_s
        barrier = Barrier(names=tuple(names), acknowledged=at_least, wait_s=within_s, makes_do=True)
        return await self.views.at(
            barrier, lambda connection, snapshot: work(connection, self.moment(snapshot)), turn
        )

    async def in_time(self, work: Awaitable[T], within_s: float) -> T | None:
        """Return what *work* comes to, None where that takes longer."""
        with anyio.move_on_after(within_s):
            return await work
        return None

    async def compute(self, work: Callable[[], T]) -> T:
        """Do what takes long, beside the event loop: a few at once, which begin when no hook waits."""

        def giving_way() -> T:
            HOOKS.give_way()
            return work()

        return await anyio.to_thread.run_sync(giving_way, limiter=self.computing)

    async def reach(self, work: Callable[[], T], near: str | None) -> T:
        """Do what looks at files of a folder that an agent names. Raises `PathHangs` where they do not
        answer.
        """
        return await self.reaching.reach(work, near)

    def disk(self, path: str) -> str:
        """Return where the disk is mounted that a path lies on, nothing for that of the home."""
        return self.reaching.disk(path)

    @abstractmethod
    def moment(self, snapshot: Snapshot) -> Moment:
        """Return what is known of a moment of the views."""

    @abstractmethod
    def embedder_id_of(self, question: str) -> str | None:
        """Return the model that a question is embedded by, the ids of several joined by a plus; None without
        one.
        """

    @abstractmethod
    async def embed(
        self, content: str, *, is_backlog: bool = False, embedder_id: str | None = None
    ) -> Embedded | None:
        """Return the vectors of a content, by the model of its language or the one that is named; None where
        the model cannot be used now.
        """

    @abstractmethod
    def begin_embedding(self, content: str) -> Callable[[], Embedded] | None:
        """Begin to embed a content, and return what waits for its vector on another thread; None where it
        could take long. That raises what keeps the model from it, or TimeoutError; `hold` is for who waited
        to call, on the event loop.
        """

    @abstractmethod
    def hold(self, embedded: Embedded) -> None:
        """Have the vector of a content at hand for the event that is to name it."""

    @abstractmethod
    async def embed_question(
        self, text: str, *, within_s: float | None = None, turn: Turn = Turn.USUAL
    ) -> Mapping[str, bytes] | None:
        """Return the vectors of a question by embedder id, None where the model cannot be used now or takes
        too long: `query_timeout_s`, or *within_s*.
        """

    @abstractmethod
    async def index_begun(self) -> None:
        """Wait until what is searched was read into memory after a start, for `BEGUN_S` at most."""

    @abstractmethod
    def begin_question(self, text: str) -> Callable[[], Mapping[str, bytes] | None] | None:
        """Begin to embed a question, and return what waits for its vector on another thread, as
        `embed_question`; None where it could take long.
        """

    @abstractmethod
    def nearness(self, question: str) -> Callable[[str], float | None]:
        """Return what says on another thread how near a question is to a passage word by word, by the model
        for all languages; None where that cannot be told now.
        """

    @abstractmethod
    async def paused(self, names: Sequence[str]) -> str | None:
        """Say why nothing may be kept or told of folders and files, None where it may: all is paused, or
        one of these.
        """

    @abstractmethod
    async def spool_settled(self, within_s: float) -> bool:
        """Wait until what hooks left in the spool is taken in, before what comes after it, for so long at
        most; say whether it is.
        """

    def record(
        self, event: Event, context: RequestContext, *, session_id: str | None, project: str | None
    ) -> None:
        """Append an event that nobody waits for."""
        new = NewEvent(event=event, session_id=session_id, project=project, cause=context.cause)
        decision = Decision(events=(new,), answer=Acknowledged())
        self.behind(
            Proposal(decide=lambda _state, _now_us: decision, client=context.client, trace=context.trace)
        )

    @abstractmethod
    def behind(self, proposal: Proposal) -> None:
        """Have something appended that nobody waits for; a log that cannot take it is a warning."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """A row of the table of methods. The tag of *params* is its name, the first sentence of their
    docstring its summary.
    """

    params: type[msgspec.Struct]
    answer: type[msgspec.Struct]
    is_paged: bool = False
    """Whether its answers are cut to pages of `PAGE_BYTES_MAX`, which few others come near."""
    verb: Verb | None = OF_ITS_NAME
    """How people ask it on the command line; None where another verb asks it in its own way, or nobody
    does.
    """
    tool: AgentTool | None = None
    """How agents get it as a tool, or as an action of one; None where they do not, or by what asks several
    methods.
    """

    @property
    def name(self) -> str:
        """What it is called on the socket."""
        return str(self.params.__struct_config__.tag)

    @property
    def summary(self) -> str:
        """What it does, in one sentence without its full stop."""
        text = " ".join((self.params.__doc__ or "").split("\n\n")[0].split())
        return text.partition(". ")[0].removesuffix(".")


@dataclass(frozen=True, kw_only=True)
class PreparedMethod(Method):
    """Asks the world before it decides or reads: `prepare` takes (services, params, context)."""

    prepare: Callable[..., Awaitable[object]] | None = None

    async def prepared(
        self, services: Services, params: msgspec.Struct, context: RequestContext
    ) -> tuple[object, ...]:
        """Return what `prepare` returns, as the arguments that follow the params: none without it."""
        return (await self.prepare(services, params, context),) if self.prepare else ()


@dataclass(frozen=True, kw_only=True)
class CommandMethod(PreparedMethod):
    """Changes something. `decide` takes (params, state, now_us), with what `prepare` returned after the
    params where there is one.
    """

    decide: Callable[..., Decision]
    is_internal: bool = False
    """Whether it is for reactions alone, and not on the socket."""


@dataclass(frozen=True, kw_only=True)
class QueryMethod(PreparedMethod):
    """Reads the views named, or `EVERY_VIEW`.

    `read` takes (connection, params, moment), with what `prepare` returned after the params where there is
    one.

    `finish` takes (services, params, what was read, context) and makes the answer, where that takes more
    than the views.
    """

    views: tuple[str, ...]
    read: Callable[..., object]
    finish: Callable[..., Awaitable[msgspec.Struct]] | None = None
    shows_queries: bool = False
    """Whether what was asked a moment ago has to show."""
    turn: Turn = Turn.USUAL
    """`Turn.LONG` where it may go through all that there is."""
    tells: Callable[..., bool] | None = None
    """Takes (params, answer), and says whether an event of its own tells of them; of others the log is told
    that they were asked.
    """


@dataclass(frozen=True, kw_only=True)
class ServiceMethod(Method):
    """Is about the service itself. `writes` says that it may change something."""

    writes: bool = False
