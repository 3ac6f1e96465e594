"""Queries: wait until the views are fresh enough, read one moment of them, answer, and log what was answered."""

import time
from functools import partial

import anyio
import msgspec
import structlog

from omegad.clock import uuid7
from omegad.dispatch.commands import Origin
from omegad.dispatch.parts import Parts
from omegad.errors import ModelFailed, ModelMissing, OmegadError, Overloaded
from omegad.events.retrieval import MemoryQueried, Returned
from omegad.log.decision import Decision, Proposal
from omegad.log.event import NewEvent
from omegad.queries import memory, search
from omegad.queries.search import Answer, Matches, QueryMemory, Sources
from omegad.queries.search.ranking import RANKING_VERSION
from omegad.state import DecisionState
from omegad.storage.driver import Connection
from omegad.views.barrier import Barrier, Snapshot

_log = structlog.get_logger(__name__)


class QueryDispatch:
    """Takes questions about memories to their answers."""

    def __init__(self, parts: Parts, *, fresh_wait_s: float, timeout_s: float) -> None:
        """Wait *fresh_wait_s* for what other clients wrote; fall back to keywords when the model takes longer than *timeout_s*."""
        self._log = parts.log
        self._views = parts.views
        self._near = parts.near
        self._types = parts.types
        self._clock = parts.clock
        self._fresh_wait_s = fresh_wait_s
        self._timeout_s = timeout_s

    async def find(self, query: QueryMemory, origin: Origin, acknowledged: int) -> Answer:
        """Answer a search, and log it without waiting for the disk."""
        started = time.perf_counter()
        for event_type in query.event_types:
            self._types.check(event_type)
        vector, degraded = await self._vector(query)

        def read(connection: Connection, snapshot: Snapshot) -> tuple[Matches, str | None, Snapshot, int]:
            now_us = self._clock.now_us()
            mirror = self._near.mirror(snapshot.file) if vector else None
            found, lacking = search.search(connection, query, Sources(vector, mirror, self._types), now_us), degraded
            if mirror is not None and len(mirror) == 0 and memory.are_there_any(connection):
                # No vector is at hand yet: the backlog is computing them.
                found, lacking = search.search(connection, query, Sources(None, None, self._types), now_us), "keyword"
            if not found.results:
                snapshot.require_current()
            return found, lacking, snapshot, now_us

        barrier = Barrier(
            names=search.VIEWS,
            own=origin.written,
            min_position=query.min_position,
            acknowledged=acknowledged,
            wait_s=self._fresh_wait_s,
        )
        found, lacking, snapshot, now_us = await self._views.at(barrier, read)
        answer = Answer(
            results=found.results,
            abstained=not found.results,
            confidence=found.confidence,
            degraded=lacking,
            unembedded=found.unembedded,
            query_id=uuid7(self._clock),
            position=snapshot.position,
            stale_by=snapshot.stale_by,
            took_ms=round((time.perf_counter() - started) * 1e3, 3),
        )
        self._record(query, answer, origin, now_us)
        return answer

    async def _vector(self, query: QueryMemory) -> tuple[bytes | None, str | None]:
        """Return the question's vector and, where there is none though one is wanted, what the answer is degraded to."""
        if query.mode in {"keyword", "phrase"}:
            return None, None
        try:
            with anyio.fail_after(self._timeout_s):
                return await self._near.embedder.embed_query(query.text), None
        except TimeoutError:
            reason = f"the model took longer than {self._timeout_s} s"
        except (ModelMissing, ModelFailed, Overloaded) as error:
            reason = str(error)
        # Without a model every query would say so, for ever; the answer and the status do.
        tell = _log.warning if self._near.embedder.embedder_id else _log.debug
        tell("query.degraded", failure="RETRIEVAL", to="keyword", reason=reason)
        return None, "keyword"

    def _record(self, query: QueryMemory, answer: Answer, origin: Origin, at: int) -> None:
        event = MemoryQueried(
            query_id=answer.query_id,
            text=query.text,
            mode=query.mode,
            limit=query.limit,
            filters=query.named() | ({"widen": True} if query.widen else {}),
            results=tuple(Returned(memory_id=result.memory_id, score=result.score) for result in answer.results),
            read_position=answer.position,
            at=at,
            ranking_version=RANKING_VERSION,
            embedder_id=None if answer.degraded or query.mode in {"keyword", "phrase"} else self._near.embedder.embedder_id,
            abstained=answer.abstained,
            degraded=answer.degraded,
            took_us=round(answer.took_ms * 1e3),
        )
        new = NewEvent(event=event, session_id=query.asked_in or query.session_id, project=query.project)
        try:
            self._log.append_later(Proposal(decide=partial(_as_is, new), client=origin.client or None))
        except OmegadError as error:
            _log.warning("query.not_logged", error=str(error))


class _Nothing(msgspec.Struct, frozen=True):
    """Nobody waits for the answer."""


def _as_is(new: NewEvent, state: DecisionState, now_us: int) -> Decision:
    del state, now_us
    return Decision(events=(new,), answer=_Nothing())
