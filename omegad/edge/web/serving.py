"""What is served over HTTP on one port of the loopback interface: parts, each some routes, under one set of
rules.
"""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from functools import partial
from typing import NamedTuple

import anyio
import anyio.lowlevel
import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omegad.edge.web import door, errors
from omegad.edge.web.asking import Asking
from omegad.edge.web.door import OWN_MAX, STRANGERS_MAX, STRANGERS_MIN, Connection, Door
from omegad.edge.web.rules import BODY_BYTES_MAX, HEADERS, TOO_LARGE, Asked, Refusal, Rules
from omegad.rpc.accepting import accept
from omegad.runtime.errors import OmegadError

CLOSING_S = 2

_log = structlog.get_logger(__name__)


class Part(NamedTuple):
    """Some of what is served."""

    routes: Sequence[BaseRoute]
    public: frozenset[str] = frozenset()
    """Paths, and folders with a / at their end, that need no token."""
    running: Callable[[Starlette], AbstractAsyncContextManager[object]] | None = None
    """What runs while it is served."""


class Web:
    """The process that speaks HTTP."""

    def __init__(
        self, listener: socket.socket, token: str, asking: Asking, parts: Sequence[Part], share: float = 1.0
    ) -> None:
        """Take a *listener* on the loopback interface, the *token* that is asked for, what *asking* the
        daemon goes through, and the parts.

        *share* of the connections that would be served there are descriptors for.
        """
        self._listener = listener
        self._asking = asking
        self._parts = parts
        self._routes = [route for part in parts for route in part.routes]
        public = frozenset().union(*(part.public for part in parts))
        self._rules = Rules(listener.getsockname()[1], token, public, self._is_served)
        strangers_max, own_max = max(STRANGERS_MIN, int(STRANGERS_MAX * share)), max(1, int(OWN_MAX * share))
        self._door = Door(self._rules, strangers_max, own_max)

    async def run(self, idle_s: float | None = None) -> None:
        """Serve until SIGTERM or SIGINT, or until the owner has asked nothing for so long. Signals that come
        while it ends change nothing.
        """
        loop, is_over, numbers = asyncio.get_running_loop(), asyncio.Event(), (signal.SIGTERM, signal.SIGINT)

        def end(_number: int, _frame: object) -> None:
            for number in numbers:
                signal.signal(number, signal.SIG_IGN)
            loop.call_soon_threadsafe(is_over.set)

        # Not by the loop, and not by a handler that stays: at the end of either a signal kills the process.
        for number in numbers:
            signal.signal(number, end)
        await self.serve(is_over, idle_s)

    async def serve(self, is_over: asyncio.Event, idle_s: float | None = None) -> None:
        """Serve until then, or until that long without a request; what goes on then is told that nobody
        serves it.
        """
        use = _Use(idle_s, is_over.set)
        settings = uvicorn.Config(
            self._guarded(self._application(), use),
            log_config=None,
            access_log=False,
            server_header=False,
            http="h11",
            ws="none",
            timeout_keep_alive=door.KEPT_S,
            timeout_graceful_shutdown=CLOSING_S,
        )
        server = _Server(settings)
        async with self._asking, anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [])
            await server.is_up.wait()
            async with anyio.create_task_group() as accepting:
                accepting.start_soon(accept, self._listener, partial(Connection, self._door, server))
                await is_over.wait()
                accepting.cancel_scope.cancel()
            self._listener.close()
            server.should_exit = True

    def _application(self) -> Starlette:
        @asynccontextmanager
        async def running(application: Starlette) -> AsyncIterator[None]:
            async with AsyncExitStack() as stack:
                for part in self._parts:
                    if part.running:
                        await stack.enter_async_context(part.running(application))
                yield

        application = Starlette(
            routes=self._routes,
            lifespan=running,
            exception_handlers={OmegadError: errors.refused, HTTPException: errors.not_served},
        )
        application.router.redirect_slashes = False
        application.state.ask = self._asking.ask
        application.state.begin = self._asking.begin
        application.state.follow = self._asking.follow
        application.state.asking = self._asking
        return application

    def _is_served(self, path: str) -> bool:
        scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": []}
        return any(route.matches(scope)[0] is not Match.NONE for route in self._routes)

    def _guarded(self, application: ASGIApp, use: "_Use") -> ASGIApp:
        """Return an application that answers by the rules, whatever its routes."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await application(scope, receive, send)
                return
            asked = Asked(scope["method"], scope["path"], scope["headers"])
            answer = partial(_with_headers, send)
            if refusal := self._rules.objection(asked):
                await _refuse(refusal, scope, receive, answer)
                return
            with use if self._rules.shows_token(asked) else nullcontext():
                await _Answering(receive, answer).run(application, scope)

        return serve


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    _log.warning("http.refused", status=refusal.status.phrase)
    answer = Response(refusal.body, refusal.status.value, {**refusal.headers, "Connection": "close"})
    await answer(scope, receive, send)


async def _with_headers(send: Send, message: Message) -> None:
    if message["type"] == "http.response.start":
        headers = MutableHeaders(scope=message)
        for name, value in HEADERS.items():
            headers[name] = value
    await send(message)


class _Answering:
    """An answer in the making, which is given up where more of the body comes than is taken, or where its
    client leaves, or is refused, in the middle of it: that is nobody's error.
    """

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._work = anyio.CancelScope()
        self._received = 0
        self._is_whole = False
        self._has_begun = False

    async def run(self, application: ASGIApp, scope: Scope) -> None:
        """Have an application answer."""
        with self._work:
            await application(scope, self._next, self._pass_on)
        if self._received > BODY_BYTES_MAX and not self._has_begun:
            await _refuse(TOO_LARGE, scope, self._receive, self._send)

    async def _next(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        is_left = message["type"] == "http.disconnect" and not self._is_whole
        if is_left or self._received > BODY_BYTES_MAX:
            self._work.cancel()
            await anyio.lowlevel.checkpoint()
        self._is_whole = self._is_whole or not message.get("more_body", False)
        return message

    async def _pass_on(self, message: Message) -> None:
        self._has_begun = True
        await self._send(message)


class _Use:
    """What the owner asks; calls back once nothing has been asked for so long."""

    def __init__(self, idle_s: float | None, done: Callable[[], object]) -> None:
        self._idle_s = idle_s
        self._done = done
        self._answering = 0
        self._timer: asyncio.TimerHandle | None = None
        self._wait()

    def __enter__(self) -> None:
        self._answering += 1
        if self._timer:
            self._timer.cancel()

    def __exit__(self, *unused: object) -> None:
        self._answering -= 1
        if not self._answering:
            self._wait()

    def _wait(self) -> None:
        if self._idle_s is not None:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._done)


class _Server(uvicorn.Server):
    """One that leaves signals and connections to `Web`."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Be ready for connections."""
        await super().startup(sockets)
        self.is_up.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield
