"""One connection's requests: which are being served, which wait for room, and how each gets its one answer.

Invariant: what a connection's answers take is bounded, whether they are being made, collected for a batch, or
not read yet.
"""

import asyncio
import socket
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from omegad.rpc.peer import Call, Peer
from omegad.rpc.protocol import (
    Batch,
    Fault,
    Id,
    InvalidRequest,
    Message,
    Request,
    encode_error,
    encode_result,
    parse_cancel,
)
from omegad.rpc.turns import Client, Lane, Turns
from omegad.rpc.wire import SMALL_BYTES, Intake, Limits, Wire
from omegad.runtime.errors import Invalid, OmegadError, Overloaded, Refused, ShuttingDown

CANCEL = "rpc.cancel"
ANSWER_BYTES = 512  # what an answer is expected to take, unless those to its method were longer
LEARNED_FROM_BYTES = 8 * 1024  # no refusal is so long, so that only methods there are can be learned of
FADING = 63 / 64  # how soon a long answer is forgotten, with each shorter one to the same method
EXCESS = 4  # times a connection's bound: large answers beyond it, which nobody could foresee, are withheld
RETRY_S = 0.02  # nothing tells when the clients have read
RETRIES_MAX = 250

Reply = Callable[[bytes], None]


class Host(Protocol):
    """What a session needs of its server."""

    limits: Limits
    stopping: anyio.Event
    requests: int
    refused: int
    long_answers: Mapping[str, int]
    brief: Collection[str]
    turns: Turns
    intake: Intake

    @property
    def held_bytes(self) -> int:
        """What the answers of all connections take."""
        ...

    def admit(self, session: "Session", connection: socket.socket) -> OmegadError | None:
        """Count *session* among those being served, or say why it is not."""
        ...

    def may_linger(self) -> bool:
        """Say whether one more refused connection may stay for a moment."""
        ...

    def dismiss(self, session: "Session") -> None:
        """Forget *session*."""

    def start(self, job: "Job") -> None:
        """Run *job*, and finish it, whatever happens."""


class Job:
    """A request on its way to its answer."""

    __slots__ = (
        "_reply",
        "_session",
        "expected_bytes",
        "id",
        "is_in_batch",
        "lane",
        "request",
        "request_bytes",
        "scope",
        "why_cancelled",
    )

    def __init__(self, session: "Session", request: Request, reply: Reply, *, is_in_batch: bool) -> None:
        self.request = request
        self.id: Id = None if request.id is UNSET else request.id
        self.is_in_batch = is_in_batch
        self.request_bytes = memoryview(request.params).nbytes
        self.lane: Lane | None = None
        """What it has a place in, once it runs."""
        self.expected_bytes = 0
        """What is set aside for its answer while it is served."""
        self.scope: anyio.CancelScope | None = None
        """What it runs in, once it does."""
        self.why_cancelled: OmegadError | None = None
        self._session = session
        self._reply = reply

    def call(self) -> Call:
        """Return what the handler is given."""
        return Call(self.request.method, self.request.params, self._session.peer, self._session.notify)

    def cancel(self, reason: OmegadError) -> None:
        """Stop serving it; what it is answered is *reason*, unless it ends with an answer all the same."""
        self.why_cancelled = reason
        if self.scope:
            self.scope.cancel()

    def finish(self, answer: bytes | None) -> None:
        """Send *answer*, or for want of one say why it was cancelled, and make room for another."""
        answer_bytes = len(answer or b"")
        if not answer:
            answer = encode_error(self.id, self.why_cancelled or ShuttingDown())
        elif answer_bytes > SMALL_BYTES and self._session.is_in_excess():
            answer = encode_error(
                self.id,
                Overloaded(
                    "too many answers of this connection are unread",
                    hint="read answers before asking for more",
                ),
            )
        self.reply(answer)
        self._session.finished(self, answer_bytes)

    def reply(self, answer: bytes) -> None:
        """Send *answer*, unless nobody asked for one."""
        if self.request.id is not UNSET:
            self._reply(answer)


class Together:
    """Collects the answers of a batch and sends them in one line."""

    def __init__(self, session: "Session", batch: Batch) -> None:
        self._session = session
        self._answers: list[bytes] = []
        self._missing = sum(isinstance(entry, Fault) or entry.id is not UNSET for entry in batch.entries)

    def reply(self, answer: bytes) -> None:
        """Add *answer*; the last one sends them all."""
        self._answers.append(answer)
        self._session.collected_bytes += len(answer)
        self._missing -= 1
        if not self._missing:
            self._session.collected_bytes -= sum(map(len, self._answers))
            self._session.send(b"[" + b",".join(self._answers) + b"]")


class Session(Wire):
    """What the server knows of one connection."""

    client: Client
    client_key: object
    """What its client is known by: its process, else the connection itself."""

    def __init__(self, host: Host, peer: Peer) -> None:
        super().__init__(host.limits, host.intake)
        self.peer = peer
        self._host = host
        self._waiting: deque[Job] = deque()
        self._running: set[Job] = set()
        self._in_lane: Counter[str] = Counter()
        self.is_queued = False
        self._granted = 0
        self._expected_bytes = 0
        self._learned: dict[str, float] = {}
        self.collected_bytes = 0
        """Answers that wait for the others of their batch."""
        self._retry: asyncio.TimerHandle | None = None
        self._retries = 0
        self._by_id: dict[Id | UnsetType, Job] = {}

    @property
    def held_bytes(self) -> int:
        """What its answers take, those that are being made among them."""
        return self._expected_bytes + self.collected_bytes + self.unread_bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Introduce the connection, which may be refused."""
        super().connection_made(transport)
        if refusal := self._host.admit(self, transport.get_extra_info("socket")):
            self.turn_away(refusal, may_linger=self._host.may_linger())

    def closed(self) -> None:
        """Cancel everything: nobody is there for the answers."""
        self._waiting.clear()
        if self._retry:
            self._retry.cancel()
        self.cancel_all(Refused("the client is gone"))
        self._host.dismiss(self)

    def is_full(self) -> bool:
        """Say whether something waits for room already."""
        return bool(self._waiting)

    def has_turn(self) -> bool:
        """Say whether a message may be taken at once."""
        if self._granted:
            self._granted -= 1
            return True
        return self._host.turns.has_turn(self)

    def go_on(self, messages: int) -> int:
        """Take so many messages at most, and return how many there were."""
        self._granted = messages
        self.wake()
        taken = messages - self._granted
        self._granted = 0
        return taken

    def wake(self) -> None:
        """Start what waits for a place, if there is one, and take more."""
        self.proceed()
        self.pump()

    def is_idle(self) -> bool:
        """Say whether nothing is left to be answered."""
        return not self._running and not self._waiting

    def take(self, message: Message) -> None:
        """Serve *message*, now or when there is room."""
        if isinstance(message, Batch):
            reply = Together(self, message).reply
            for entry in message.entries:
                self._take(entry, reply, is_in_batch=True)
        else:
            self._take(message, self.send, is_in_batch=False)

    def _take(self, entry: Request | Fault, reply: Reply, *, is_in_batch: bool) -> None:
        self._host.requests += 1
        if isinstance(entry, Fault):
            self._host.refused += 1
            reply(encode_error(entry.id, entry.error))
        elif entry.method == CANCEL:
            self._cancel(entry, reply)
        else:
            if memoryview(entry.params).nbytes > SMALL_BYTES:
                entry = msgspec.structs.replace(
                    entry, params=entry.params.copy()
                )  # without the line that they were in
            job = Job(self, entry, reply, is_in_batch=is_in_batch)
            if refusal := self._objection(entry):
                self._refuse(job, refusal)
                return
            if entry.id is not UNSET:
                self._by_id[entry.id] = job
            self._waiting.append(job)
            self._waiting_bytes += job.request_bytes
            self.proceed()

    def _objection(self, request: Request) -> OmegadError | None:
        if self._host.stopping.is_set():
            return ShuttingDown()
        if request.id in self._by_id:
            return InvalidRequest(
                "a request with this id is being served already", hint="give each request an id of its own"
            )
        if request.method in self._host.brief and memoryview(request.params).nbytes > SMALL_BYTES:
            return Invalid(
                f"{request.method}: its params take more than {SMALL_BYTES} bytes",
                hint="leave out what it does not take",
            )
        return None

    def _refuse(self, job: Job, error: OmegadError) -> None:
        self._host.refused += 1
        job.reply(encode_error(job.id, error))

    def proceed(self) -> None:
        """Start what waits, as far as there is room."""
        while self._waiting:
            job = self._waiting[0]
            method = job.request.method
            longest = max(
                self._host.long_answers.get(method, ANSWER_BYTES), int(self._learned.get(method, 0))
            )
            # Never so long that there would be no room for it
            job.expected_bytes = min(longest, self._limits.answer_bytes_in_all_max // 2)
            refusal: OmegadError | None = None
            bytes_max = self._limits.answer_bytes_max
            collected_bytes = self.collected_bytes if job.is_in_batch else 0
            if collected_bytes and collected_bytes + job.expected_bytes > bytes_max:
                # It cannot wait for room, which is taken by answers that wait for its own.
                refusal = Overloaded(
                    f"the answers to the batch take more than {bytes_max} bytes",
                    hint="ask for less in one batch",
                )
            elif not self._has_place(job):
                return  # until one that is served has ended
            if not refusal and not self._has_room(job):
                if self._retries < RETRIES_MAX:
                    self._retry = self._retry or asyncio.get_running_loop().call_later(
                        RETRY_S, self._try_again
                    )
                    return
                refusal = Overloaded(
                    "clients leave too many answers unread", hint="ask again soon, or for less at once"
                )
            if job.is_in_batch and not refusal and not self.has_turn():
                return  # a batch is many requests, which have as many turns
            self._waiting.popleft()
            self._waiting_bytes -= job.request_bytes
            self._retries = 0
            if refusal:
                self._by_id.pop(job.request.id, None)
                self._refuse(job, refusal)
            else:
                self._start(job)

    def _try_again(self) -> None:
        self._retry = None
        self.wake()

    def _has_place(self, job: Job) -> bool:
        if (
            len(self._running) >= self._limits.requests_in_flight_max
            or self._running_bytes > self._limits.line_bytes_max
        ):
            return False
        lane = self._host.turns.lanes.get(job.request.method)
        if lane and self.client.running[lane.name] >= lane.of_client:
            self.client.waiting[self] = None
            return False
        return not lane or self._in_lane[lane.name] < lane.of_connection

    def _has_room(self, job: Job) -> bool:
        held = self._expected_bytes + self.unread_bytes
        if held + self.collected_bytes + job.expected_bytes <= SMALL_BYTES:
            return True
        if held and held + job.expected_bytes > self._limits.answer_bytes_max:
            return False  # which is for its own client to mend
        in_all = self._limits.answer_bytes_in_all_max // (
            2 if held else 1
        )  # those that read are not to wait for those that do not
        has_room = self._host.held_bytes + job.expected_bytes <= in_all
        self._retries += not has_room
        return has_room

    def is_in_excess(self) -> bool:
        """Say whether answers take far more than was foreseen."""
        return self.collected_bytes + self.unread_bytes > EXCESS * self._limits.answer_bytes_max

    def _start(self, job: Job) -> None:
        self._running.add(job)
        self._running_bytes += job.request_bytes
        if lane := self._host.turns.lanes.get(job.request.method):
            job.lane = lane
            self._in_lane[lane.name] += 1
            self.client.running[lane.name] += 1
        self._expected_bytes += job.expected_bytes
        self._host.start(job)

    def finished(self, job: Job, answer_bytes: int) -> None:
        """Forget *job*, and start what waited for its place."""
        self._running.discard(job)
        self._running_bytes -= job.request_bytes
        self._expected_bytes -= job.expected_bytes
        method = job.request.method
        if method in self._learned or answer_bytes > LEARNED_FROM_BYTES:
            self._learned[method] = max(answer_bytes, self._learned.get(method, 0) * FADING)
        if job.request.id is not UNSET:
            self._by_id.pop(job.id, None)
        if job.lane:
            self._in_lane[job.lane.name] -= 1
            self.client.leave(job.lane)
        self.wake()

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
