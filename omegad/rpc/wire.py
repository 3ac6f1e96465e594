"""One connection's bytes: lines in and lines out, neither without bound; and what may come of all together.

`asyncio.Protocol`, because streams cost a task per connection and twice the time per request.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, cast

import anyio
import msgspec
import structlog
from anyio.lowlevel import checkpoint
from msgspec import Meta

from omegad.rpc.protocol import Message, Receiver, encode_error, encode_request
from omegad.runtime.errors import OmegadError, Unavailable

if TYPE_CHECKING:
    import socket

LINGER_S = 1.0
PROBE_S = 1.0  # how soon a client is missed while it is not read from
SMALL_BYTES = 64 * 1024  # that a connection may have, whatever the others have
LOOK_EVERY_S = 0.25
FLUSH_BYTES = 64 * 1024  # answers of one turn of the loop are written together, up to so many bytes

log = structlog.get_logger()

Positive = Annotated[int, Meta(ge=1)]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much clients may ask of the server at once."""

    line_bytes_max: Positive = 16 * 1024 * 1024
    connections_max: Positive = 512
    requests_in_flight_max: Positive = 64
    """Requests of one connection being served; when one more has come, no more are read until one is
    answered.
    """
    unread_bytes_max: Positive = 1024 * 1024
    """Answers that a client may leave unread before no more requests are read from it."""
    unread_s: Annotated[float, Meta(gt=0)] = 30.0
    """A client that then reads nothing at all for so long is disconnected."""
    answer_bytes_max: Positive = 4 * 1024 * 1024
    """What one connection's answers may take, those that are being made or collected for a batch among
    them, before no more are begun.
    """
    answer_bytes_in_all_max: Positive = 64 * 1024 * 1024
    incoming_bytes_in_all_max: Positive = 64 * 1024 * 1024
    """What has come from all connections and is not answered yet, before those wait that have sent more
    than a little.
    """
    line_s: Annotated[float, Meta(gt=0)] = 30.0
    """A client that does not end a long line within so long, while others wait for room, is disconnected."""


class Intake:
    """What has come from all connections and is not answered yet: one budget of *bytes_max*, so that many
    long lines take no more memory than a few.

    Each connection may have a little, whatever the others have. Who would have more, while there is no room,
    waits; but the one that has waited longest goes on alone, so that lines come to their end, and who sends
    nothing more of one for *line_s* while others wait is disconnected.
    """

    def __init__(self, bytes_max: int, line_s: float) -> None:
        self.bytes = 0
        self._bytes_max = bytes_max
        self._line_s = line_s
        self._sending: set[Wire] = set()
        """Those who have more than a little."""
        self.waiting: dict[Wire, None] = {}
        """Who waits for room, the one that goes on alone first."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_admitting = False

    def changed(self, sending: "Wire", by: int) -> None:
        """Note that a connection has more or less than before."""
        self.bytes += by
        if sending.incoming_bytes > SMALL_BYTES:
            self._sending.add(sending)
        else:
            self._sending.discard(sending)
            if self.waiting:
                self.waiting.pop(sending, None)
        if by < 0 and self.waiting and not self._is_admitting:
            self._is_admitting = True
            asyncio.get_running_loop().call_soon(self._admit)

    def may_read(self, sending: "Wire") -> bool:
        """Say whether more may be read from a connection, which is called when it may if not."""
        if sending.incoming_bytes <= SMALL_BYTES or self.bytes <= self._bytes_max:
            self.waiting.pop(sending, None)
            return True
        self.waiting.setdefault(sending)
        self._timer = self._timer or asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)
        return self._is_first(sending)

    def is_waiting(self, sending: "Wire") -> bool:
        """Say whether a connection is not read from for want of room."""
        return sending in self.waiting and not self._is_first(sending)

    def _is_first(self, sending: "Wire") -> bool:
        return next(iter(self.waiting), None) is sending

    def _admit(self) -> None:
        self._is_admitting = False
        for sending in [*self.waiting]:
            if self.bytes <= self._bytes_max or self._is_first(sending):
                sending.pump()

    def _look(self) -> None:
        """Hang up on those who keep others waiting."""
        self._timer = None
        if self.waiting:
            for sending in [*self._sending]:
                if not self.is_waiting(sending) and self.waiting.keys() - {sending}:
                    sending.hang_up_if_stalled(self._line_s)
            self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)


class Wire(asyncio.Protocol, ABC):
    """Hands on messages while there is room for them and the client reads; stops reading otherwise."""

    def __init__(self, limits: Limits, intake: Intake) -> None:
        self._limits = limits
        self._intake = intake
        self._receiver = Receiver(limits.line_bytes_max)
        self._transport: asyncio.Transport
        self._loop = asyncio.get_running_loop()
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0
        self._written_bytes = 0
        self._refused = False
        self._ended = False
        self._read: anyio.Event | None = None
        """Set when the client has read what it had left unread; None while it reads."""
        self._slow_reader: asyncio.TimerHandle | None = None
        self._probe: asyncio.TimerHandle | None = None
        self._line_since: float | None = None
        """When a long line began to be read that has not come to its end."""
        self._waiting_bytes = 0
        """What the messages take that were taken and wait to be served."""
        self._running_bytes = 0
        """What those take that are being served."""
        self._accounted_bytes = 0
        self._is_closed = False

    @abstractmethod
    def take(self, message: Message) -> None:
        """Serve *message*."""

    @abstractmethod
    def is_full(self) -> bool:
        """Say whether no more messages can be taken now; `pump` is called when they can."""

    @abstractmethod
    def has_turn(self) -> bool:
        """Say whether it is this connection's turn; `pump` is called when it is."""

    @abstractmethod
    def is_idle(self) -> bool:
        """Say whether nothing is left to be answered."""

    @abstractmethod
    def proceed(self) -> None:
        """Start what waits for the client to read."""

    @abstractmethod
    def closed(self) -> None:
        """Forget the connection, refused or not."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with the connection."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=self._limits.unread_bytes_max)

    def turn_away(self, refusal: OmegadError, *, may_linger: bool) -> None:
        """Say why the connection is refused, and end it, in a moment where it *may_linger*."""
        self.send(encode_error(None, refusal))
        self.flush()
        self._refused = True
        if may_linger:
            # To close on what a client has just sent would reset the connection, and it might never see why.
            self._transport.write_eof()
            self._loop.call_later(LINGER_S, self._transport.abort)
        else:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Take bytes from the client."""
        if not self._refused:
            self._receiver.feed(data)
            self.pump()
            if self._line_since is None and self._receiver.held_bytes > SMALL_BYTES:
                self._line_since = self._loop.time()

    def eof_received(self) -> bool:
        """Serve what a client asked before it closed its half, if it is still there for the answers."""
        self._receiver.end()
        self._ended = True
        if self._refused or not self._is_anyone_there():
            return False
        self.pump()
        return True

    # It makes no difference what went wrong
    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Let go of everything."""
        for timer in (self._slow_reader, self._probe):
            if timer:
                timer.cancel()
        if self._read:
            self._read.set()
            self._read = None
        self._outgoing.clear()
        self._is_closed = True
        self.account()
        self.closed()

    def pump(self) -> None:
        """Hand on messages until there are no more, or no room or turn for them."""
        needs_more = self._take_messages()
        self.account()
        if self._transport.is_closing():
            return
        if needs_more and self._ended:
            if self.is_idle():
                self.close()
        elif needs_more and self._intake.may_read(self):
            if self._line_since and not self._transport.is_reading():
                self._line_since = self._loop.time()
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
            if not self._probe:
                self._probe = self._loop.call_later(PROBE_S, self._miss)

    @property
    def incoming_bytes(self) -> int:
        """What has come and is not answered yet."""
        return 0 if self._is_closed else self._receiver.held_bytes + self._waiting_bytes + self._running_bytes

    def account(self) -> None:
        """Note what has come, and what of it is done."""
        incoming_bytes = self.incoming_bytes
        if change := incoming_bytes - self._accounted_bytes:
            self._accounted_bytes = incoming_bytes
            self._intake.changed(self, change)

    def _take_messages(self) -> bool:
        """Hand on messages; say whether there are no more."""
        while not (self._read or self.is_full() or self._transport.is_closing()):
            if not self._receiver.held_bytes:
                return True
            if not self.has_turn():
                return False
            message = self._receiver.next_message()
            if message is None:
                return True
            self._line_since = None
            self.take(message)
        return False

    def hang_up_if_stalled(self, after_s: float) -> None:
        """Disconnect a client that has not ended a long line for so long."""
        if self._line_since and self._loop.time() - self._line_since > after_s:
            log.warning("rpc.client_does_not_end_its_line", incoming_bytes=self._receiver.held_bytes)
            self.abort()

    def _miss(self) -> None:
        """Hang up on a client that went while it was not read from, which nothing else would tell."""
        self._probe = None
        if not self._is_anyone_there():
            self.abort()
        elif not self._transport.is_reading():
            self._probe = self._loop.call_later(PROBE_S, self._miss)

    @property
    def unread_bytes(self) -> int:
        """What was sent and did not fit into the operating system's buffers yet."""
        return self._outgoing_bytes + self._transport.get_write_buffer_size()

    def send(self, line: bytes) -> None:
        """Send *line* and a newline, soon; nothing when the connection is closed."""
        if self._transport.is_closing():
            return
        if not self._outgoing:
            self._loop.call_soon(self.flush)
        self._outgoing += (line, b"\n")
        self._outgoing_bytes += len(line) + 1
        if self._outgoing_bytes >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand what is to be sent to the operating system."""
        if self._outgoing and not self._transport.is_closing():
            data = b"".join(self._outgoing)
            self._written_bytes += len(data)
            self._transport.write(data)
        self._outgoing.clear()
        self._outgoing_bytes = 0

    async def notify(self, method: str, params: object) -> None:
        """Send a notification; wait first while the client leaves much unread. Raises `Unavailable` when
        it is gone.
        """
        while self._read:
            await self._read.wait()
        if self._transport.is_closing():
            raise Unavailable("the client is gone")
        self.send(encode_request(None, method, params))
        if not self._outgoing:
            await checkpoint()  # it filled a buffer; others want to be served too

    def close(self) -> None:
        """Send what is left to be sent, then close."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def pause_writing(self) -> None:
        """The client leaves too much unread: take no more of its requests, and mind whether it ever reads."""
        self._read = anyio.Event()
        self._watch()

    def resume_writing(self) -> None:
        """The client has read."""
        assert self._read
        assert self._slow_reader
        self._slow_reader.cancel()
        self._read.set()
        self._read = None
        if not self._transport.is_closing():
            self.proceed()
            self.pump()

    def _watch(self) -> None:
        self._slow_reader = self._loop.call_later(
            self._limits.unread_s, self._check_reader, self._read_bytes()
        )

    def _check_reader(self, read_before: int) -> None:
        if self._read_bytes() > read_before:
            self._watch()
        else:
            log.warning("rpc.client_does_not_read", unread_bytes=self._transport.get_write_buffer_size())
            self.abort()

    def _read_bytes(self) -> int:
        return self._written_bytes - self._transport.get_write_buffer_size()

    def _is_anyone_there(self) -> bool:
        """Tell a client that only stopped writing from one that is gone: writing nothing fails only for
        the latter.
        """
        connection: socket.socket = self._transport.get_extra_info("socket")
        try:
            with connection.dup() as probe:
                probe.send(b"")
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True
