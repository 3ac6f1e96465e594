"""One connection's requests: which are being served, which wait for room, and how each gets its one answer."""

import socket
from collections import deque
from collections.abc import Callable
from typing import Protocol

import anyio
from msgspec import UNSET, UnsetType

from omegad.errors import Invalid, OmegadError, Refused, ShuttingDown
from omegad.rpc.peer import Call, Peer
from omegad.rpc.protocol import Batch, Fault, Id, InvalidRequest, Message, Request, encode_error, encode_result, parse_cancel
from omegad.rpc.wire import Limits, Wire

CANCEL = "rpc.cancel"

Reply = Callable[[bytes], None]


class Host(Protocol):
    """What a session needs of its server."""

    limits: Limits
    stopping: anyio.Event
    requests: int
    refused: int

    def admit(self, session: "Session", connection: socket.socket) -> OmegadError | None:
        """Count *session* among those being served, or say why it is not."""
        ...

    def may_linger(self) -> bool:
        """Say whether one more refused connection may stay for a moment."""
        ...

    def dismiss(self, session: "Session") -> None:
        """Forget *session*."""
        ...

    def start(self, job: "Job") -> None:
        """Run *job*, and finish it, whatever happens."""
        ...


class Job:
    """A request on its way to its answer."""

    __slots__ = ("_reply", "_session", "id", "request", "scope", "why_cancelled")

    def __init__(self, session: "Session", request: Request, reply: Reply) -> None:
        self.request = request
        self.id: Id = None if request.id is UNSET else request.id
        self.scope: anyio.CancelScope | None = None
        """What it runs in, once it does."""
        self.why_cancelled: OmegadError | None = None
        self._session = session
        self._reply = reply

    def call(self) -> Call:
        """Return what the handler is given."""
        return Call(self.request.method, self.request.params, self._session.peer, self._session.wire.notify)

    def cancel(self, reason: OmegadError) -> None:
        """Stop serving it; what it is answered is *reason*, unless it ends with an answer all the same."""
        self.why_cancelled = reason
        if self.scope:
            self.scope.cancel()

    def finish(self, answer: bytes | None) -> None:
        """Send *answer*, or for want of one say why it was cancelled, and make room for another."""
        if self.request.id is not UNSET:
            self._reply(answer or encode_error(self.id, self.why_cancelled or ShuttingDown()))
        self._session.finished(self)


class Together:
    """Collects the answers of a batch and sends them in one line."""

    def __init__(self, send: Reply, batch: Batch) -> None:
        self._send = send
        self._answers: list[bytes] = []
        self._missing = sum(isinstance(entry, Fault) or entry.id is not UNSET for entry in batch.entries)

    def reply(self, answer: bytes) -> None:
        """Add *answer*; the last one sends them all."""
        self._answers.append(answer)
        self._missing -= 1
        if not self._missing:
            self._send(b"[" + b",".join(self._answers) + b"]")


class Session:
    """What the server knows of one connection."""

    wire: Wire

    def __init__(self, host: Host, peer: Peer) -> None:
        self.peer = peer
        self._host = host
        self._limits = host.limits
        self._waiting: deque[Job] = deque()
        self._running: set[Job] = set()
        self._running_bytes = 0
        self._by_id: dict[Id | UnsetType, Job] = {}

    def opened(self, connection: socket.socket) -> OmegadError | None:
        """Say why the connection is refused, or None."""
        return self._host.admit(self, connection)

    def may_linger(self) -> bool:
        """Say whether a refused connection may stay for a moment."""
        return self._host.may_linger()

    def closed(self) -> None:
        """Cancel everything: nobody is there for the answers."""
        self._waiting.clear()
        self.cancel_all(Refused("the client is gone"))
        self._host.dismiss(self)

    def is_full(self) -> bool:
        """Say whether something waits for room already."""
        return bool(self._waiting)

    def is_idle(self) -> bool:
        """Say whether nothing is left to be answered."""
        return not self._running and not self._waiting

    def take(self, message: Message) -> None:
        """Serve *message*, now or when there is room."""
        if isinstance(message, Batch):
            reply = Together(self.wire.send, message).reply
            for entry in message.entries:
                self._take(entry, reply)
        else:
            self._take(message, self.wire.send)

    def _take(self, entry: Request | Fault, reply: Reply) -> None:
        self._host.requests += 1
        if isinstance(entry, Fault):
            self._host.refused += 1
            reply(encode_error(entry.id, entry.error))
        elif entry.method == CANCEL:
            self._cancel(entry, reply)
        elif refusal := self._objection(entry):
            self._host.refused += 1
            if entry.id is not UNSET:
                reply(encode_error(entry.id, refusal))
        else:
            job = Job(self, entry, reply)
            if entry.id is not UNSET:
                self._by_id[entry.id] = job
            if self._has_room():
                self._start(job)
            else:
                self._waiting.append(job)

    def _objection(self, request: Request) -> OmegadError | None:
        if self._host.stopping.is_set():
            return ShuttingDown()
        if request.id in self._by_id:
            return InvalidRequest("a request with this id is being served already", hint="give each request an id of its own")
        return None

    def _has_room(self) -> bool:
        return len(self._running) < self._limits.requests_in_flight_max and self._running_bytes <= self._limits.line_bytes_max

    def _start(self, job: Job) -> None:
        self._running.add(job)
        self._running_bytes += memoryview(job.request.params).nbytes
        self._host.start(job)

    def finished(self, job: Job) -> None:
        """Forget *job*, and start what waited for its place."""
        self._running.discard(job)
        self._running_bytes -= memoryview(job.request.params).nbytes
        if job.request.id is not UNSET:
            self._by_id.pop(job.id, None)
        if self._waiting and self._has_room():
            self._start(self._waiting.popleft())
        self.wire.pump()

    def _cancel(self, request: Request, reply: Reply) -> None:
        try:
            job = self._by_id.get(parse_cancel(request.params))
        except Invalid as error:
            answer = encode_error(None if request.id is UNSET else request.id, error)
        else:
            if job:
                job.cancel(Refused("cancelled"))
            answer = encode_result(None if request.id is UNSET else request.id, {"ok": job is not None})
        if request.id is not UNSET:
            reply(answer)

    def cancel_all(self, reason: OmegadError) -> None:
        """Cancel every request, running or waiting."""
        for job in (*self._running, *self._waiting):
            job.cancel(reason)
