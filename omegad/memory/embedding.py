"""Memories that were stored without their vectors get them, and their relations, once the model can.

What is lacking is read from the views: memories stored while there was no model or without waiting for it,
memories embedded by another model, and vectors whose bytes the cache has lost. Whether it was recorded
already is the log's state to say.

A memory that cannot be embedded, though others can, is set aside: those after it go on, and it is tried again
after a while, when it says something else, and at the next start.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import anyio
import msgspec
import structlog

from omegad import index
from omegad.embedding.embedder import Embedder, TextFailed
from omegad.index.served import ServedIndex
from omegad.log.decision import Decision, DecisionState, Outcome
from omegad.log.event import NewEvent, RecordedEvent
from omegad.log.event_log import EventLog
from omegad.log.projection import to_json
from omegad.memory.content import vectors_of
from omegad.memory.events import (
    MemoryEdited,
    MemoryEmbedded,
    MemoryEvolved,
    MemoryRelated,
    MemoryStored,
    MemorySuperseded,
)
from omegad.memory.relating import effects, relations
from omegad.memory.state import Memories
from omegad.memory.store import PreparedStore, StoreMemory, look_around, still_valid
from omegad.requests.command import Acknowledged, Command
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.runtime.errors import Invalid, ModelFailed, ModelMissing, Overloaded, Refused
from omegad.storage.driver import Connection
from omegad.views.current import Views

BATCH = 64
TRY_AGAIN_S = 3_600.0  # after which what was set deferred is tried once more
T = TypeVar("T")
Key = tuple[str, str]
"""A memory's id and the hash of what it says."""


_COLUMNS = "m.node_id, m.content, m.content_hash, m.event_type, m.project, m.entity_id, m.session_id"
_OF_THESE = "v.embedder_id IN (SELECT value FROM json_each(?))"
_UNEMBEDDED = f"""
memories AS m WHERE m.id > ? AND m.status != 'deleted'
AND NOT EXISTS (SELECT 1 FROM memory_vectors AS v WHERE v.memory_id = m.node_id AND {_OF_THESE}
  AND v.chunk = 0)
"""
_MADE_BY = f"""
(SELECT min(v.embedder_id) FROM memory_vectors AS v WHERE v.memory_id = m.node_id AND {_OF_THESE}
  AND v.chunk = 0)
"""
_UNFILLED = f"""
deferred AS d CROSS JOIN memory_vectors AS v ON v.id = d.position * 1024 AND {_OF_THESE}
JOIN memories AS m ON m.node_id = v.memory_id WHERE d.name = 'vectors' AND d.position > ?
"""
_log = structlog.get_logger(__name__)


class EmbedMemory(Command, frozen=True, kw_only=True, tag="memory.embed"):
    """Give a memory that was stored without them its vectors and relations. `content_key` is that of the
    content which is embedded, `said` what was stored; `embedder_id` names a model where another has embedded
    it already, and nothing but the vectors of that one is lacking.
    """

    memory_id: str
    content_key: str
    said: StoreMemory
    embedder_id: str | None = None


class MemoryHasVectors(Acknowledged, frozen=True):
    """Whether the model could embed the memory."""

    is_done: bool


async def prepare(services: Services, command: EmbedMemory, context: RequestContext) -> PreparedStore:
    """Embed a memory's content, and look at what is near; without the model nothing of either."""
    content = command.said.content
    embedded = await services.embed(content, is_backlog=True, embedder_id=command.embedder_id)
    base = PreparedStore(memory_id=command.memory_id, content=content, read_position=0)
    if embedded is None:
        return base
    if command.embedder_id is not None:
        return msgspec.structs.replace(base, embedded=embedded)
    at_head = msgspec.structs.replace(context, written=services.head)
    return await look_around(services, command.said, base, embedded, at_head)


def embed(command: EmbedMemory, prepared: PreparedStore, state: DecisionState, now_us: int) -> Decision:
    """Decide what follows once a memory that was stored without the model has been embedded: its vectors, and
    its relations if pending.

    Where it then proves to say what an older one says, that one supersedes it. Does nothing where the
    embedder's vectors are recorded already, or the content is not the one of the command any more, so that it
    can be asked any number of times. Raises `Outdated` as `store` does.
    """
    if prepared.embedded is None:
        return Decision(answer=MemoryHasVectors(is_done=False))
    memory = state[Memories].get(prepared.memory_id)
    if (
        memory is None
        or memory.content_key != command.content_key
        or state[Memories].is_embedded(memory.memory_id, prepared.embedded.embedder_id)
    ):
        return Decision(answer=MemoryHasVectors(is_done=True))
    facts = vectors_of(memory.memory_id, prepared.embedded)
    if memory.pending and command.embedder_id is None:
        neighbours = still_valid(prepared, state, now_us)
        older = [
            n
            for n in neighbours
            if (other := state[Memories].get(n.memory_id)) and other.stored_at < memory.stored_at
        ]
        same = next((n.memory_id for n in older if n.duplicate), None)
        related, also_near = ((), ()) if same else relations(neighbours)
        facts.append(MemoryRelated(memory_id=memory.memory_id, related=related, also_near=also_near))
        if same and memory.state == "active":
            facts.append(
                MemorySuperseded(memory_id=memory.memory_id, superseded_by=same, reason="says the same")
            )
        elif memory.state == "active":
            # What it denied when it was stored stays as it is: somebody may have restored it since.
            undenied = [
                n
                for n in older
                if (other := state[Memories].get(n.memory_id)) and other.denied_by != memory.memory_id
            ]
            done = effects(memory.memory_id, memory.said_at, undenied, (), state, is_asked=False)
            facts.extend(new.event for new in done.events)
    events = tuple(NewEvent(event=fact, cause=memory.stored_at) for fact in facts)
    return Decision(events=events, answer=MemoryHasVectors(is_done=True))


class Lacking(msgspec.Struct, frozen=True):
    """A memory without vectors of an embedder, with what is needed to embed and relate it, and the
    position that it was stored at; or one whose vectors are recorded but not at hand, and that of the record.
    """

    position: int
    memory_id: str
    content: str
    content_hash: str
    event_type: str
    project: str | None
    entity_id: str | None
    session_id: str | None
    embedder_id: str | None
    """The model that has embedded it."""


class Wanted(NamedTuple):
    """The ids of the models that are used, and of those of which each memory is to have one's vectors."""

    used: Sequence[str]
    needed: Sequence[str]


def unembedded(connection: Connection, wanted: Wanted, after: int, limit: int) -> list[Lacking]:
    """Return memories after a position that have no vectors that they need, oldest first."""
    rows = connection.execute(
        f"SELECT m.id, {_COLUMNS}, {_MADE_BY} FROM {_UNEMBEDDED} ORDER BY m.id LIMIT ?",
        (to_json(wanted.used), after, to_json(wanted.needed), limit),
    )
    return [Lacking(*row) for row in rows]


def unfilled(connection: Connection, wanted: Wanted, after: int, limit: int) -> list[Lacking]:
    """Return memories after a position whose vectors are recorded but whose bytes are not at hand, in the
    order of the records.
    """
    rows = connection.execute(
        f"SELECT d.position, {_COLUMNS}, v.embedder_id FROM {_UNFILLED} ORDER BY d.position LIMIT ?",
        (to_json(wanted.used), after, limit),
    )
    return [Lacking(*row) for row in rows]


def count(connection: Connection, wanted: Wanted, after: int = 0, filled_to: int = 0) -> int:
    """Return how many memories cannot be found by meaning yet.

    Those are stored after *after* and have no vectors that they need, or have some recorded after
    *filled_to* whose bytes are not at hand.
    """
    return int(
        connection.execute(
            f"SELECT (SELECT count(*) FROM {_UNEMBEDDED}) + (SELECT count(*) FROM {_UNFILLED})",
            (after, to_json(wanted.needed), to_json(wanted.used), filled_to),
        ).fetchone()[0]
    )


class Deferred(NamedTuple):
    """Why a memory is set aside, and until when, in seconds of the event loop's clock."""

    problem: str
    until: float


class EmbeddingBacklog:
    """The sweep that works the backlog off, whenever there is one and a model."""

    NAME = "embedding_backlog"

    def __init__(
        self,
        log: EventLog,
        views: Views,
        near: ServedIndex,
        execute: Callable[[EmbedMemory, RequestContext], Awaitable[Outcome]],
    ) -> None:
        self.size = 0
        """How many memories wait, those set aside not among them."""
        self._views = views
        self._log = log
        self._near = near
        self._execute = execute
        self._deferred: dict[Key, Deferred] = {}
        self._ahead: set[Key] = set()
        """Those set aside that the present sweep has not come to; it forgets the ones that it never finds."""
        self._has_filled = False
        self._is_wanted = True
        self._turn = anyio.Lock()
        self._swept_with: Wanted | None = None
        """The models at the last sweep."""

    @property
    def _wanted(self) -> Wanted:
        used = tuple(one.embedder_id or "" for one in self._near.embedders)
        return Wanted(used, used[-1:] if self._near.meets_languages else used)

    @property
    def trouble(self) -> str | None:
        """How many memories are set aside, and why the first of them is, in words; None where none is."""
        if not self._deferred:
            return None
        (memory_id, _), first = next(iter(self._deferred.items()))
        return (
            f"{len(self._deferred)} memories cannot be embedded and are found by words alone; of {memory_id}:"
            f" {first.problem}"
        )

    def concerns(self, events: Sequence[RecordedEvent]) -> bool:
        """Say whether a memory says something from these events on and no vectors came after it, or they
        are about one that is set aside.
        """
        if {memory_id for memory_id, _ in self._deferred} & {
            getattr(one.event, "memory_id", None) for one in events
        }:
            return True
        last = {
            one.event.memory_id: one.event
            for one in events
            if isinstance(one.event, MemoryStored | MemoryEvolved | MemoryEdited | MemoryEmbedded)
        }
        if self._swept_with is not None and self._wanted != self._swept_with:
            return True
        needed = self._wanted.needed if self._near.meets_languages else None
        return not all(
            isinstance(event, MemoryEmbedded) and (needed is None or event.embedder_id in needed)
            for event in last.values()
        )

    def is_due(self) -> bool:
        """Say whether it was told to look, there are other models than at the last sweep, another language
        was met since, or it is time to try again what was set aside.
        """
        return (
            self._is_wanted
            or self._wanted != self._swept_with
            or any(deferred.until <= anyio.current_time() for deferred in self._deferred.values())
        )

    def look_again(self) -> None:
        """Look at the next occasion: vectors may be missing that were recorded."""
        self._is_wanted = True
        self.size = max(self.size, 1)  # until it is counted: what the status says holds from now on

    async def sweep(self) -> bool:
        """Embed what is lacking, oldest first; say whether that could be done."""
        async with self._turn:
            self._near.is_catching_up = True
            try:
                return await self._sweep()
            finally:
                self._near.is_catching_up = False

    async def catch_up(self) -> None:
        """Embed what questions in other languages are compared with, unless that is done."""
        async with self._turn:
            if self._near.lags:
                await self._sweep()

    async def _sweep(self) -> bool:
        if not self._near.is_known(self._views.file):
            await self._read(partial(self._near.learn, file=self._views.file))
        self._is_wanted, self._swept_with = False, self._wanted
        self._ahead = set(self._deferred)
        self._near.lags = False
        if not self._swept_with.used:
            await self._count(0, 0)
        else:
            try:
                embedded_to = await self._work_off(unembedded, self._embed, lambda position: (position, 0))
                await self._work_off(unfilled, self._fill, lambda position: (embedded_to, position))
            except (ModelMissing, ModelFailed, Overloaded):
                return False
            except BaseException:
                self._near.lags = True
                raise
            for key in self._ahead:
                del self._deferred[key]
        return True

    async def _work_off(
        self,
        find: Callable[..., list[Lacking]],
        work: Callable[[Lacking], Awaitable[str | None]],
        done_to: Callable[[int], tuple[int, int]],
    ) -> int:
        """Do *work* for all that *find* finds, whose positions are then behind; return that of the last."""
        position, wanted = 0, self._wanted
        while True:
            found = await self._read(partial(find, wanted=wanted, after=position, limit=BATCH))
            await self._count(*done_to(position))
            if not found:
                return position
            for memory in found:
                await self._try(memory, work)
            if self._has_filled:
                self._has_filled = False
                self._near.forget_index()
            position = found[-1].position

    async def _try(self, memory: Lacking, work: Callable[[Lacking], Awaitable[str | None]]) -> None:
        """Do *work* for a memory that is not set aside, or is so no longer. Set it aside where it cannot
        be done.
        """
        key = (memory.memory_id, memory.content_hash)
        self._ahead.discard(key)
        deferred = self._deferred.get(key)
        if deferred is not None and anyio.current_time() < deferred.until:
            return
        problem = await work(memory)
        if problem is not None:
            _log.warning(
                "backlog.set_aside", memory_id=memory.memory_id, problem=problem, retry_s=TRY_AGAIN_S
            )
            self._deferred[key] = Deferred(problem, anyio.current_time() + TRY_AGAIN_S)
        elif deferred is not None:
            del self._deferred[key]
        if deferred is None:
            self.size = max(0, self.size - 1)

    async def _embed(self, memory: Lacking) -> str | None:
        """Embed one and record what follows; return what is wrong with it, None once that is done. Raises
        what keeps the models from it.
        """
        made_by = memory.embedder_id
        for embedder in self._near.lacking(memory.content, is_embedded=made_by is not None):
            named = None if made_by is None else embedder.embedder_id
            problem = await self._compute(memory.content, embedder) or await self._record(memory, named)
            if problem is not None:
                return problem
            made_by = embedder.embedder_id
        return None

    async def _record(self, memory: Lacking, embedder_id: str | None) -> str | None:
        command = EmbedMemory(
            memory_id=memory.memory_id,
            content_key=memory.content_hash,
            said=StoreMemory(
                content=memory.content,
                event_type=memory.event_type,
                project=memory.project,
                entity_id=memory.entity_id,
                session_id=memory.session_id,
            ),
            embedder_id=embedder_id,
        )
        try:
            answer = (await self._execute(command, RequestContext(client=f"reaction:{self.NAME}"))).answer
        except (Invalid, Refused) as error:
            return str(error)
        if isinstance(answer, MemoryHasVectors) and not answer.is_done:
            raise ModelFailed("the embedding model failed a moment ago")
        return None

    async def _fill(self, memory: Lacking) -> str | None:
        """Compute the vectors of one again, and put them into the views; returns and raises as `_embed`
        does.
        """
        made_by = next(one for one in self._near.embedders if one.embedder_id == memory.embedder_id)
        if problem := await self._compute(memory.content, made_by):
            return problem
        for text in made_by.passages(memory.content):
            await made_by.keep(text)
        self._has_filled |= await self._views.driver.fill_at([memory.position]) > 0
        left = await self._read(
            partial(
                unfilled,
                wanted=self._wanted,
                after=memory.position - 1,
                limit=1,
            )
        )
        is_filled = not left or left[0].position != memory.position
        return None if is_filled else "the vectors that were recorded are of another text than it has"

    async def _compute(self, content: str, embedder: Embedder) -> str | None:
        """Have the vectors of a content in the cache; return what is wrong with the content, None where
        nothing is.
        """
        for text in embedder.passages(content):
            try:
                await embedder.embed_backlog(text)
            except TextFailed as error:
                return str(error)
        return None

    async def _count(self, embedded_to: int, filled_to: int) -> None:
        found = await self._read(partial(count, wanted=self._wanted, after=embedded_to, filled_to=filled_to))
        self.size = max(0, found - len(self._ahead))

    async def _read(self, work: Callable[[Connection], T]) -> T:
        """Read the views once they show what is in the log."""
        await self._views.wait_for(self._log.head, index.VIEWS)
        return await self._views.read(work)


METHODS = (
    CommandMethod(
        params=EmbedMemory, answer=MemoryHasVectors, prepare=prepare, decide=embed, is_internal=True
    ),
)
