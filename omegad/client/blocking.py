"""The client of the socket for programs without asyncio, which would be a tenth of what a verb of the command
line takes; and what both clients make of what the daemon sends: results, exceptions, notifications.

What the daemon refuses is raised as the catalogue's own exceptions; a connection that fails is `NoDaemon`.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

import msgspec

from omegad.rpc import endpoint
from omegad.rpc.protocol import (
    UNREADABLE,
    Incoming,
    InternalError,
    InvalidRequest,
    Lines,
    LineTooLong,
    MethodNotFound,
    ParseFailed,
    WireError,
    encode_request,
    parse_incoming,
)
from omegad.runtime.errors import (
    Conflict,
    Invalid,
    NoAnswer,
    NoDaemon,
    NotFound,
    OmegadError,
    Overloaded,
    Refused,
    ShuttingDown,
    Stale,
    Unavailable,
)

if TYPE_CHECKING:
    import socket

PROTOCOL: Final = 1
READ_BYTES: Final = 256 * 1024
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
UNREAD_NOTIFICATIONS_MAX: Final = 10_000
LOST_NOTIFICATIONS_FROM: Final = 2 * UNREAD_NOTIFICATIONS_MAX  # one read holds fewer than the difference

JSON: TypeAlias = Any
"""What a method answers: any JSON, as msgspec decodes it."""

_BY_CODE: Final = {
    error.code: error
    for error in (
        *(NotFound, Conflict, Refused, Invalid, Stale, Overloaded, Unavailable, ShuttingDown),
        *(ParseFailed, InvalidRequest, MethodNotFound, InternalError),
    )
}


class Notification(msgspec.Struct, frozen=True):
    """Something the daemon tells without being asked again."""

    method: str
    params: JSON


class Inbox:
    """Notifications that were not taken yet, a bounded number; says so when there were more."""

    def __init__(self) -> None:
        self._waiting: deque[Incoming] = deque()
        self._overran = False

    def is_full(self) -> bool:
        """Say whether the daemon should wait."""
        return len(self._waiting) >= UNREAD_NOTIFICATIONS_MAX

    def put(self, message: Incoming) -> None:
        """Keep *message*, or lose it when far too many are waiting."""
        if len(self._waiting) >= LOST_NOTIFICATIONS_FROM:
            self._overran = True
        else:
            self._waiting.append(message)

    def get(self) -> Notification | None:
        """Take the oldest, if any. Raises `Overloaded` once where some were lost."""
        if self._waiting:
            message = self._waiting.popleft()
            return Notification(message.method, decoded(message.params))
        if self._overran:
            self._overran = False
            raise Overloaded(
                "notifications were lost", hint=f"take them before {LOST_NOTIFICATIONS_FROM} are waiting"
            )
        return None


def result_of(message: Incoming) -> JSON:
    """Return the result that *message* brings, or raise the error."""
    if message.error:
        raise rebuild(message.error)
    return decoded(message.result)


def rebuild(wire: WireError) -> OmegadError:
    """Return the catalogue's exception for *wire*, with the kind and tag it came with."""
    error = _BY_CODE.get(wire.code, OmegadError)(wire.message, hint=wire.data.get("hint", ""))
    vars(error).update(
        code=wire.code, kind=wire.data.get("kind", error.kind), tag=wire.data.get("tag", error.tag)
    )
    return error


def decoded(text: msgspec.Raw) -> JSON:
    """Return what some JSON of the daemon's says, None where it is empty. Raises `NoDaemon`."""
    try:
        return msgspec.json.decode(text) if memoryview(text) else None
    except UNREADABLE as error:
        raise NoDaemon(f"what answers is no omegad: {error}") from error


class Client:
    """One connection, for one call at a time: `with Client(path) as client: client.call("system.ping")`."""

    def __init__(
        self,
        path: Path,
        *,
        name: str = "",
        timeout_s: float | None = 30.0,
        on_notice: Callable[[JSON], object] | None = None,
    ) -> None:
        """Connect to *path* on entering, or with the first call; no call takes longer than *timeout_s*.
        Say hello as *name* if there is one. What is notified during a call waits for `notifications`, unless
        *on_notice* gets its parameters at once: then the time of the call begins anew.
        """
        self._path = path
        self._name = name
        self._timeout_s = timeout_s
        self._on_notice = on_notice
        self._ids = count(1)
        self._lines = Lines(ANSWER_BYTES_MAX)
        self._inbox = Inbox()
        self._socket: socket.socket | None = None
        self.server_version: str | None = None
        """Which version answers; None to those who say no name."""

    def __enter__(self) -> Self:
        self._connected()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, method: str, /, **params: object) -> JSON:
        """Return what *method* answers; raise `NoAnswer` when it does not in time."""
        number = next(self._ids)
        deadline = self._deadline()
        self._send(encode_request(number, method, params), deadline)
        while True:
            message = self._receive(deadline)
            if message.method and self._on_notice:
                self._on_notice(decoded(message.params))
                deadline = self._deadline()
            elif message.method:
                self._inbox.put(message)
            elif message.id == number or (message.id is None and message.error):
                return result_of(message)
            # Anything else is the late answer to a call that was given up.

    def notify(self, method: str, /, **params: object) -> None:
        """Ask for *method* without an answer."""
        self._send(encode_request(None, method, params), self._deadline())

    def notifications(self) -> Iterator[Notification]:
        """Yield notifications, waiting for each as long as it takes; raise `NoDaemon` when the daemon
        goes.
        """
        while True:
            if (notification := self._inbox.get()) is not None:
                yield notification
            elif (message := self._receive(None)).method:
                self._inbox.put(message)

    def close(self) -> None:
        """Close the connection."""
        if self._socket:
            self._socket.close()

    def _connected(self) -> "socket.socket":
        if self._socket is None:
            self._socket = endpoint.connect(self._path, self._timeout_s)
            if self._name:
                try:
                    self.server_version = self.call("system.hello", protocol=PROTOCOL, client=self._name).get(
                        "version"
                    )
                except BaseException:
                    self.close()
                    self._socket = None  # so that who enters again connects again
                    raise
        return self._socket

    def _deadline(self) -> float | None:
        return None if self._timeout_s is None else time.monotonic() + self._timeout_s

    def _until(self, deadline: float | None) -> "socket.socket":
        """Return the connection, which waits no longer than that."""
        connection = self._connected()
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        return connection

    def _send(self, line: bytes, deadline: float | None) -> None:
        try:
            self._until(deadline).sendall(line + b"\n")
        except TimeoutError:
            self.close()  # half a line may have been sent
            raise NoAnswer(f"omegad did not read for {self._timeout_s:g} s") from None
        except ConnectionError:
            # A daemon that turns a client away says why before it closes.
            while True:
                result_of(self._receive(deadline))
        except OSError as error:
            raise NoDaemon(f"the connection was lost: {error.strerror or error}") from error

    def _receive(self, deadline: float | None) -> Incoming:
        try:
            while (line := self._lines.next()) is None:
                data = self._until(deadline).recv(READ_BYTES)
                if not data:
                    raise NoDaemon("the connection was closed")
                self._lines.feed(data)
            return parse_incoming(line)
        except TimeoutError:
            raise NoAnswer(f"no answer within {self._timeout_s:g} s") from None
        except OSError as error:
            raise NoDaemon(f"the connection was lost: {error.strerror or error}") from error
        except (*UNREADABLE, LineTooLong) as error:
            raise NoDaemon(f"what answers is no omegad: {error}") from error
