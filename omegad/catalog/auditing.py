"""What the log is told of requests beside the events that they make: calls of omegad's own tools,
coordination, and reads. All is told behind the answer, so that it neither slows nor fails one.
"""

import asyncio
import os
import re
from collections.abc import Callable
from functools import partial

import msgspec

from omegad.log.decision import Decision, DecisionState, Proposal
from omegad.log.event import NewEvent
from omegad.requests.command import Acknowledged
from omegad.requests.method import IN_EVERY, Method, QueryMethod, Services
from omegad.requests.verb import WATCHING
from omegad.runtime.errors import OmegadError
from omegad.search.events import MemoryRead, Read
from omegad.session.events import OWN, Delivery
from omegad.session.tool_calls import OwnCall, RecordToolCall, cut, own_call_data, record, record_own

COORDINATING = frozenset({"claim", "intent", "message", "task"})
"""What methods begin with by which agents coordinate themselves: their commands' `session_id` is the session
that asks; that of others may be one that was long ago.
"""
WHO = "session.who"
READS_MAX, IDS_MAX = 128, 128  # of one event, and of one read
EVERY_S = 1.0
"""Who reads often leaves one event in so long."""
LOOK_US = 60_000_000
"""What `--watch` asks every second is told once in so long."""
_MEMORY = re.compile(rb'"(mem-[0-9a-f]{8,32})"')

_Reader = tuple[str, str | None, str | None]  # client, session, project


class Auditing:
    """Tells the log of requests."""

    def __init__(self, services: Services, paused: Callable[[], str | None], *, is_whole: bool) -> None:
        """*paused* says why nothing may be kept, None where it may. Of reads and coordination the log is
        told where it *is_whole*.
        """
        self._services = services
        self._paused = paused
        self._is_whole = is_whole
        self._reads: dict[_Reader, list[Read]] = {}
        """What was read lately and is not told yet, by who read."""
        self._told: set[_Reader] = set()
        """Who has left an event within the last `EVERY_S`."""
        self._watched: dict[str, int] = {}
        """When what is watched was told last, in microseconds since 1970, by method."""

    def called(self, told: RecordToolCall, client: str, *, is_again: bool) -> None:
        """Tell of a call of an own tool, before whatever a hook says of it; of one that *is_again* what was
        done before unless that is told.
        """
        data = own_call_data(told.tool_name, told.tool_input)
        digest = "" if data is None else self._services.digests.of(data).hex()
        delivery = Delivery(delivery_id=f"{OWN}{os.urandom(16).hex()}", digest=digest)
        self._append(partial(record_own, OwnCall(told, delivery, is_again=is_again)), client)

    def answered(
        self, method: Method, request: msgspec.Struct, client: str, answer: object, error: OmegadError | None
    ) -> None:
        """Tell of a request that was answered, or refused with an error, unless other events do."""
        is_query = isinstance(method, QueryMethod)
        is_coordination = method.name == WHO or method.name.partition(".")[0] in COORDINATING
        if not self._is_whole or not (is_query or is_coordination) or self._is_watched(method, client):
            return
        loop = asyncio.get_running_loop()
        if isinstance(answer, msgspec.Raw) and not is_query:
            return  # as it was answered before, and told then
        if is_coordination:
            loop.call_soon(self._coordinated, method, request, client, error)
        elif error is not None or not _is_told(method, request, answer):
            loop.call_soon(self._read, method, request, client, answer, error)

    def _is_watched(self, method: Method, client: str) -> bool:
        if client != WATCHING:
            return False
        now_us = self._services.clock.now_us()
        if abs(now_us - self._watched.get(method.name, -LOOK_US)) < LOOK_US:
            return True
        self._watched[method.name] = now_us
        return False

    def _coordinated(
        self, method: Method, request: msgspec.Struct, client: str, error: OmegadError | None
    ) -> None:
        if self._paused():
            return
        given = {
            name: value
            for name, value in msgspec.to_builtins(request).items()
            if name not in {*IN_EVERY, "type"} and value not in (None, (), [], {})
        }
        whose = None if isinstance(method, QueryMethod) else getattr(request, "session_id", None)
        told = RecordToolCall(
            session_id=whose or "",
            tool_name=method.name,
            status="ok" if error is None else "denied" if error.kind == "refused" else "error",
            tool_input=given,
            result=None if error is None else str(error),
            project=getattr(request, "project", None),
        )
        self._append(partial(record, told, cut(told)), client)

    def _read(
        self,
        method: Method,
        request: msgspec.Struct,
        client: str,
        answer: object,
        error: OmegadError | None,
    ) -> None:
        asked = getattr(request, "memory_id", None)
        ids = dict.fromkeys([asked] if asked and error is None else [])
        for shown in _MEMORY.finditer(msgspec.json.encode(answer)):
            ids[shown[1].decode()] = None
            if len(ids) == IDS_MAX:
                break
        read = Read(
            method=method.name,
            memory_ids=tuple(ids),
            at=self._services.clock.now_us(),
            failed=None if error is None else error.kind,
        )
        who = (client, getattr(request, "asked_in", None), getattr(request, "project", None))
        reads = self._reads.setdefault(who, [])
        reads.append(read)
        if len(reads) == READS_MAX or who not in self._told:
            self._tell(who)
        if who not in self._told:
            self._told.add(who)
            asyncio.get_running_loop().call_later(EVERY_S, self._tell, who)

    def _tell(self, who: _Reader) -> None:
        """Append what somebody has read, if anything."""
        self._told.discard(who)
        reads = self._reads.pop(who, None)
        if reads and not self._paused():
            client, session_id, project = who
            event = NewEvent(
                event=MemoryRead(reads=tuple(reads)), session_id=session_id or None, project=project
            )
            self._append(partial(_told, event), client)

    def end(self) -> None:
        """Tell what is not told yet."""
        for who in tuple(self._reads):
            self._tell(who)

    def _append(self, decide: Callable[[DecisionState, int], Decision], client: str) -> None:
        self._services.behind(Proposal(decide=decide, client=client or None))


def _is_told(method: Method, request: msgspec.Struct, answer: object) -> bool:
    """Say whether an event of the query's own tells of it; of the past nothing but a read does."""
    return (
        isinstance(method, QueryMethod)
        and method.tells is not None
        and getattr(request, "as_of", None) is None
        and method.tells(request, answer)
    )


def _told(event: NewEvent, _state: DecisionState, _now_us: int) -> Decision:
    return Decision(events=(event,), answer=Acknowledged())
