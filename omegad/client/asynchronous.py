"""The client of the socket for asyncio: any number of concurrent calls on one connection, and notifications
beside them.

What the daemon refuses is raised as the catalogue's own exceptions; a connection that fails is `NoDaemon`.
"""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Final, Self, cast

from omegad.client.blocking import (
    ANSWER_BYTES_MAX,
    JSON,
    PROTOCOL,
    Inbox,
    Notification,
    rebuild,
    result_of,
)
from omegad.rpc import endpoint
from omegad.rpc.protocol import UNREADABLE, Incoming, Lines, LineTooLong, encode_request, parse_incoming
from omegad.runtime.errors import NoAnswer, NoDaemon, OmegadError

CLOSING_S: Final = 1.0


class AsyncClient:
    """One connection, for any number of concurrent calls: `async with AsyncClient(path) as client: await
    client.call("system.ping")`.
    """

    def __init__(self, path: Path, *, name: str = "", timeout_s: float = 10.0) -> None:
        """Connect to *path* on entering, within *timeout_s*; say hello as *name* if there is one."""
        self._path = path
        self._name = name
        self._timeout_s = timeout_s
        self._ids = count(1)
        self._wire: _ClientWire

    async def __aenter__(self) -> Self:
        connection = await asyncio.to_thread(endpoint.connect, self._path, self._timeout_s)
        connection.settimeout(0)
        _, self._wire = await asyncio.get_running_loop().create_unix_connection(_ClientWire, sock=connection)
        if self._name:
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self.call("system.hello", protocol=PROTOCOL, client=self._name)
            except BaseException as error:
                await self.close()
                if isinstance(error, TimeoutError):
                    raise NoAnswer(f"no answer within {self._timeout_s:g} s") from None
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def is_open(self) -> bool:
        """Whether the daemon has not closed the connection, as far as is known."""
        return not self._wire.closed.is_set()

    async def call(self, method: str, /, **params: object) -> JSON:
        """Return what *method* answers. A call that is cancelled is cancelled in the daemon too."""
        wire, number = self._wire, next(self._ids)
        line = encode_request(number, method, params)
        await wire.room.wait()
        wire.check()
        future: asyncio.Future[JSON] = asyncio.get_running_loop().create_future()
        wire.waiting[number] = future
        wire.regulate()
        wire.send(line)
        try:
            return await future
        except asyncio.CancelledError:
            wire.send(encode_request(None, "rpc.cancel", {"id": number}))
            raise
        finally:
            wire.waiting.pop(number, None)
            wire.regulate()

    async def notify(self, method: str, /, **params: object) -> None:
        """Ask for *method* without an answer."""
        self._wire.check()
        self._wire.send(encode_request(None, method, params))
        await self._wire.room.wait()

    async def notifications(self) -> AsyncIterator[Notification]:
        """Yield notifications as they come, until the client is closed; raise `NoDaemon` when the daemon
        goes first.
        """
        while True:
            if (notification := self._wire.inbox.get()) is not None:
                self._wire.regulate()
                yield notification
            elif self._wire.is_leaving:
                return
            else:
                self._wire.check()
                self._wire.news.clear()
                await self._wire.news.wait()

    async def close(self) -> None:
        """Close the connection once the daemon has read what was sent, or will not; calls that are waiting
        raise `NoDaemon`.
        """
        self._wire.is_leaving = True
        self._wire.transport.close()
        try:
            await asyncio.wait_for(self._wire.closed.wait(), CLOSING_S)
        except TimeoutError:
            self._wire.transport.abort()


class _ClientWire(asyncio.Protocol):
    """The asynchronous client's end of the connection."""

    def __init__(self) -> None:
        self.room = asyncio.Event()
        """Set while the daemon reads what is sent to it."""
        self.closed = asyncio.Event()
        self.transport: asyncio.Transport
        self._lines = Lines(ANSWER_BYTES_MAX)
        self.waiting: dict[int, asyncio.Future[JSON]] = {}
        self.inbox = Inbox()
        self.news = asyncio.Event()
        self._failure: OmegadError | None = None
        self.is_leaving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.room.set()

    def data_received(self, data: bytes) -> None:
        self._lines.feed(data)
        try:
            while (line := self._lines.next()) is not None:
                self._take(parse_incoming(line))
        except (*UNREADABLE, LineTooLong) as error:
            self._failure = NoDaemon(f"what answers is no omegad: {error}")
            self.transport.abort()
        self.regulate()

    def regulate(self) -> None:
        """Let the daemon wait while notifications pile up here, unless an answer may lie behind them."""
        if self.inbox.is_full() and not self.waiting:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _take(self, message: Incoming) -> None:
        if message.method:
            self.inbox.put(message)
            self.news.set()
        elif message.id is not None:
            future = self.waiting.pop(message.id, None)
            if future and not future.done():
                try:
                    future.set_result(result_of(message))
                except OmegadError as error:
                    future.set_exception(error)
        elif message.error:
            self._failure = rebuild(message.error)  # about the connection, not about one call

    def pause_writing(self) -> None:
        self.room.clear()

    def resume_writing(self) -> None:
        self.room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._failure = self._failure or NoDaemon(
            f"the connection was lost: {getattr(exc, 'strerror', None) or exc}"
            if exc
            else "the connection was closed"
        )
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(self._failure)
        self.waiting.clear()
        self.room.set()
        self.news.set()
        self.closed.set()

    def check(self) -> None:
        """Raise why the connection cannot be used any more, if so."""
        if self.closed.is_set():
            raise self._failure or NoDaemon()

    def send(self, line: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(line + b"\n")
