"""The client of the socket for programs without asyncio, which would be a tenth of what a verb of the command
line takes.

What the daemon refuses is raised as the catalogue's own exceptions; a connection that fails is `NoDaemon`.
"""

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from omegad.client.answers import ANSWER_BYTES_MAX, JSON, Inbox, Notification, decoded, result_of
from omegad.rpc import endpoint
from omegad.rpc.protocol import UNREADABLE, Incoming, Lines, LineTooLong, encode_request, parse_incoming
from omegad.runtime.errors import NoDaemon, Unavailable

if TYPE_CHECKING:
    import socket

PROTOCOL: Final = 1
READ_BYTES: Final = 256 * 1024


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
        *on_notice* gets its parameters at once.
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
        """Return what *method* answers; raise `Unavailable` when it does not in time."""
        number = next(self._ids)
        deadline = self._deadline()
        self._send(encode_request(number, method, params), deadline)
        while True:
            message = self._receive(deadline)
            if message.method and self._on_notice:
                self._on_notice(decoded(message.params))
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
            raise Unavailable(f"omegad did not read for {self._timeout_s} s") from None
        except ConnectionError:
            # A daemon that turns a client away says why before it closes.
            while True:
                result_of(self._receive(deadline))
        except OSError as error:
            raise NoDaemon(f"the connection was lost: {error}") from error

    def _receive(self, deadline: float | None) -> Incoming:
        try:
            while (line := self._lines.next()) is None:
                data = self._until(deadline).recv(READ_BYTES)
                if not data:
                    raise NoDaemon("the connection was closed")
                self._lines.feed(data)
            return parse_incoming(line)
        except TimeoutError:
            raise Unavailable(
                f"no answer within {self._timeout_s} s",
                hint="it may still be done; ask again with the same request_id",
            ) from None
        except OSError as error:
            raise NoDaemon(f"the connection was lost: {error}") from error
        except (*UNREADABLE, LineTooLong) as error:
            raise NoDaemon(f"what answers is no omegad: {error}") from error
