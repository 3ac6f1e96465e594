"""Readings: memories by their ids, their relations and histories, and lists; from one moment of views that are fresh enough."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import anyio
import msgspec

from omegad.dispatch.commands import Origin
from omegad.dispatch.parts import Parts
from omegad.errors import OmegadError
from omegad.log.event import Position
from omegad.queries import Reading, graph, history, lessons, memory, receipts, search, timeline
from omegad.queries.graph import Graph, SimilarAnswer, SimilarMemories, TraverseMemories
from omegad.queries.history import History, MemoryHistory
from omegad.queries.lessons import Lessons, LessonsAnswer
from omegad.queries.log import told
from omegad.queries.memory import Found, GetMemory, ListMemories, MemoryPage, Moment
from omegad.queries.receipts import ListReceipts, ReceiptPage
from omegad.queries.search.mirror import Mirror
from omegad.queries.timeline import Timeline, TimelinePage
from omegad.storage.driver import Connection
from omegad.views.barrier import Barrier, Snapshot

T = TypeVar("T")

Read = Callable[[Connection, Moment], T]


class Asker(msgspec.Struct, frozen=True):
    """What an answer has to show at least, the asker's own latest write, and should show: what was acknowledged to anyone."""

    written: Position
    acknowledged: Position


class ReadingDispatch:
    """Takes readings to their answers."""

    def __init__(self, parts: Parts, *, fresh_wait_s: float) -> None:
        """Wait *fresh_wait_s* for what other clients wrote."""
        self._log = parts.log
        self._views = parts.views
        self._near = parts.near
        self._types = parts.types
        self._clock = parts.clock
        self._fresh_wait_s = fresh_wait_s

    async def answer(self, query: Reading, origin: Origin, acknowledged: Position) -> msgspec.Struct:
        """Answer a reading. Raises `NotFound`, `Invalid`, `Stale` or `ViewFailed`."""
        asker = Asker(origin.written, acknowledged)
        match query:
            case GetMemory() | SimilarMemories() | TraverseMemories() | MemoryHistory():
                return await self._of_one(query, asker)
            case _:
                return await self._of_many(query, asker)

    async def _of_one(self, query: GetMemory | SimilarMemories | TraverseMemories | MemoryHistory, asker: Asker) -> msgspec.Struct:
        match query:
            case GetMemory():
                return await self.get(query, asker)
            case SimilarMemories():
                return await self.similar(query, asker)
            case TraverseMemories():
                return await self.traverse(query, asker)
            case MemoryHistory():
                return await self.history(query, asker)

    async def _of_many(self, query: ListMemories | Timeline | Lessons | ListReceipts, asker: Asker) -> msgspec.Struct:
        match query:
            case ListMemories():
                return await self.list_memories(query, asker)
            case Timeline():
                return await self.timeline(query, asker)
            case Lessons():
                return await self.lessons(query, asker)
            case ListReceipts():
                return await self.receipts(query, asker)

    async def get(self, query: GetMemory, asker: Asker) -> Found:
        """Answer with one memory."""

        def read(connection: Connection, moment: Moment) -> Found:
            found = memory.get(connection, query, moment.position, moment.now_us)
            return msgspec.structs.replace(found, stale_by=moment.stale_by)

        return await self._read(("memories", "edges"), asker, read)

    async def list_memories(self, query: ListMemories, asker: Asker) -> MemoryPage:
        """Answer with a page of memories."""
        self._check_types(query.event_types)

        def read(connection: Connection, moment: Moment) -> MemoryPage:
            page = memory.list_memories(connection, query, moment.position, moment.now_us)
            return msgspec.structs.replace(page, stale_by=moment.stale_by)

        return await self._read(("memories",), asker, read)

    async def similar(self, query: SimilarMemories, asker: Asker) -> SimilarAnswer:
        """Answer with the memories nearest to one. No model is needed where its vectors are stored."""
        self._check_types(query.event_types)
        mirror = self._near.mirror(self._views.file)

        def mirror_of(embedder_id: str) -> Mirror:
            """Return the mirror in use; one for this question alone where the vectors are another embedder's, or there is no model."""
            return mirror if mirror is not None and mirror.embedder_id == embedder_id else Mirror(embedder_id)

        def read(connection: Connection, moment: Moment) -> SimilarAnswer:
            embedder_id = None if mirror is None else mirror.embedder_id
            return graph.similar(connection, query, moment, embedder_id=embedder_id, mirror_of=mirror_of)

        return await self._read(search.VIEWS, asker, read)

    async def traverse(self, query: TraverseMemories, asker: Asker) -> Graph:
        """Answer with what the edges of a memory lead to."""
        return await self._read(("memories", "edges"), asker, lambda connection, moment: graph.traverse(connection, query, moment))

    async def history(self, query: MemoryHistory, asker: Asker) -> History:
        """Answer with the events of a memory's life: the view says which they are, the log what they say."""
        found = await self._read(history.VIEWS, asker, lambda connection, moment: history.places(connection, query, moment))
        recorded = await self._log.read_at(found.positions)
        return history.history(found, [told(one) for one in recorded])

    async def timeline(self, query: Timeline, asker: Asker) -> TimelinePage:
        """Answer with the memories of the last days."""
        self._check_types(query.event_types)
        return await self._read(("memories",), asker, lambda connection, moment: timeline.timeline(connection, query, moment))

    async def lessons(self, query: Lessons, asker: Asker) -> LessonsAnswer:
        """Answer with the best proved lessons."""
        self._check_types(query.event_types)
        return await self._read(("memories",), asker, lambda connection, moment: lessons.lessons(connection, query, moment))

    async def receipts(self, query: ListReceipts, asker: Asker) -> ReceiptPage:
        """Answer with what was shown, by the queries that are being logged as well."""
        with anyio.move_on_after(self._fresh_wait_s), suppress(OmegadError):  # a log that cannot be written is read all the same
            await self._log.settled()
        asker = Asker(asker.written, max(asker.acknowledged, self._log.head))
        return await self._read(("memories", "retrievals"), asker, lambda connection, moment: receipts.list_receipts(connection, query, moment))

    def _check_types(self, event_types: tuple[str, ...]) -> None:
        for event_type in event_types:
            self._types.check(event_type)

    async def _read(self, names: tuple[str, ...], asker: Asker, read: Read[T]) -> T:
        """Do *read* on views that are fresh enough; what they do not show yet is not called missing."""
        barrier = Barrier(names=names, own=asker.written, acknowledged=asker.acknowledged, wait_s=self._fresh_wait_s)

        def at_one_moment(connection: Connection, snapshot: Snapshot) -> T:
            return read(connection, Moment(position=snapshot.position, stale_by=snapshot.stale_by, now_us=self._clock.now_us()))

        return await self._views.at(barrier, at_one_moment)
