"""A request on its way to its one answer, alone or in a batch."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from msgspec import UNSET

from omegad.rpc.intake import SMALL_BYTES
from omegad.rpc.peer import Call, Peer
from omegad.rpc.protocol import Batch, Fault, Id, Request, encode_error
from omegad.rpc.wire import Wire
from omegad.runtime.errors import OmegadError, Overloaded, ShuttingDown

if TYPE_CHECKING:
    import anyio

    from omegad.rpc.turns import Lane

Reply = Callable[[bytes], None]


class Asked(Protocol):
    """What a request needs of the session that it came in."""

    peer: Peer
    wire: Wire
    collected_bytes: int

    def is_in_excess(self) -> bool:
        """Say whether answers take far more than was foreseen."""
        ...

    def finished(self, job: "Job", answer_bytes: int) -> None:
        """Forget *job*, and start what waited for its place."""
        ...


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

    def __init__(self, session: Asked, request: Request, reply: Reply, *, is_in_batch: bool) -> None:
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
        return Call(self.request.method, self.request.params, self._session.peer, self._session.wire.notify)

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

    def __init__(self, session: Asked, batch: Batch) -> None:
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
            self._session.wire.send(b"[" + b",".join(self._answers) + b"]")
