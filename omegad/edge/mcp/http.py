"""MCP over HTTP, by the SDK's streamable transport: at /mcp of 127.0.0.1, for who knows the home's token.

Whatever else comes to be served over HTTP is a route of the same application. A page of another origin, or of
a name that was made to lead here, is refused whatever it knows.

Anybody on the machine can connect. Whoever has not shown the token is a stranger, of whom there are few at
once: one more takes the place of the one that has been there longest. What a stranger says is not parsed but
searched for the token, and nothing is read of it beyond its head.
"""

import asyncio
import hmac
import json
import re
import signal
import socket
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import cache, partial
from http import HTTPStatus

import anyio
import anyio.lowlevel
import h11
import structlog
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from omegad.edge.mcp.gateway import Context, Link, Session, name_of, serving
from omegad.rpc.accepting import AT_ONCE, accept

LINKS_MAX = 32  # connections to the daemon: one for each name that clients give themselves
ANY_OTHER = "mcp"
CLOSING_S = 2
PATH = "/mcp"

STRANGERS_MAX = 256
STRANGERS_MIN = (
    4 * AT_ONCE
)  # so that one whose request has come with its connection is read before so many others come
OWN_MAX = 256
HEAD_S = 10.0
BODY_S = 30.0
KEPT_S = 60  # between two requests
LINGERING_S = 1.0  # for a client that is refused to read why
HEAD_BYTES_MAX = 16 * 1024
HEAD_LINES_MAX = 100

HEAD_END = re.compile(rb"\n\r?\n")
REQUEST_LINE = re.compile(rb"[A-Z]+ ([^ \r\n]+) HTTP/1\.[01]\r?\n")
BEARER = re.compile(rb"^authorization:[ \t]*bearer[ \t]+([^\s]+)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)

NO_TOKEN = {"error": "invalid_token", "error_description": "Authentication required"}  # the SDK's words
CHALLENGE = (
    f'WWW-Authenticate: Bearer error="{NO_TOKEN["error"]}",'
    f' error_description="{NO_TOKEN["error_description"]}"\r\n'
)

_log = structlog.get_logger(__name__)


class Http:
    """What the gateway serves over HTTP; sessions name their project and themselves by the headers
    Omegad-Project and Omegad-Session.
    """

    def __init__(self, listener: socket.socket, token: str, link: Callable[[], Link], share: float) -> None:
        """Take a *listener* on the loopback interface, the *token* that is asked for, and what makes a *link*
        to the daemon.

        *share* of the connections that would be served there are descriptors for.
        """
        self._listener = listener
        self._token = token.encode()
        self._link = link
        self._links: dict[str, Link] = {}
        self._door = Door(
            self._token, max(STRANGERS_MIN, int(STRANGERS_MAX * share)), max(1, int(OWN_MAX * share))
        )

    async def run(self) -> None:
        """Serve until SIGTERM."""
        is_over = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, is_over.set)
        await self.serve(is_over)

    async def serve(self, is_over: asyncio.Event) -> None:
        """Serve until then; sessions that go on then are told that there are none."""
        settings = uvicorn.Config(
            _until_left(self._application()),
            log_config=None,
            access_log=False,
            server_header=False,
            http="h11",
            ws="none",
            timeout_keep_alive=KEPT_S,
            timeout_graceful_shutdown=CLOSING_S,
        )
        server = _Server(settings)
        async with AsyncExitStack() as links, anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [])
            await server.is_up.wait()
            async with anyio.create_task_group() as accepting:
                accepting.start_soon(accept, self._listener, partial(_Connection, self._door, server))
                await is_over.wait()
                accepting.cancel_scope.cancel()
            self._listener.close()
            server.should_exit = True
            for link in self._links.values():
                links.push_async_exit(link)

    def _application(self) -> Starlette:
        names = [f"{host}:{self._listener.getsockname()[1]}" for host in ("127.0.0.1", "localhost")]
        origins = [f"http://{name}" for name in names]
        return serving(self._session).streamable_http_app(
            streamable_http_path=PATH,
            transport_security=TransportSecuritySettings(allowed_hosts=names, allowed_origins=origins),
            auth=AuthSettings(issuer_url=AnyHttpUrl(origins[0]), resource_server_url=None),
            token_verifier=self,
        )

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose token it is, as the SDK asks: the owner's of the home, or nobody's."""
        if not hmac.compare_digest(token.encode(), self._token):
            return None
        return AccessToken(token="", client_id="owner", scopes=[])

    def _session(self, context: Context) -> Session:
        """Return whose a request is; a session of the transport is what the ids of its messages count in."""
        headers = Headers() if context.request is None else context.request.headers
        name = name_of(context)
        if name not in self._links and len(self._links) >= LINKS_MAX:
            name = ANY_OTHER
        link = self._links.setdefault(name, self._link())
        bridge, project = headers.get("mcp-session-id"), headers.get("omegad-project")
        return Session(bridge, project, headers.get("omegad-session"), link)


class Door:
    """Who is connected: strangers, the one that goes first when one more comes at the front, and those who
    have shown the token.
    """

    def __init__(self, token: bytes, strangers_max: int, own_max: int) -> None:
        self._token = token
        self._strangers_max = strangers_max
        self._own_max = own_max
        self._strangers: OrderedDict[_Connection, None] = OrderedDict()
        self._own: set[_Connection] = set()

    def enter(self, connection: "_Connection") -> None:
        """Let a stranger in."""
        if len(self._strangers) >= self._strangers_max:
            self._strangers.popitem(last=False)[0].turn_out("another has come")
        self._strangers[connection] = None

    def recognise(self, connection: "_Connection", head: bytes) -> bool:
        """Say whether the head of a request shows the token, or one before did."""
        return connection in self._own or any(
            hmac.compare_digest(shown, self._token) for shown in BEARER.findall(head)
        )

    def admit(self, connection: "_Connection") -> bool:
        """Take the owner's connection from among the strangers, if there are not too many of his."""
        if connection not in self._own and len(self._own) >= self._own_max:
            return False
        self._strangers.pop(connection, None)
        self._own.add(connection)
        return True

    def refused(self, connection: "_Connection") -> None:
        """Note that a stranger was answered, and has no need of a place any more."""
        if connection in self._strangers:
            self._strangers.move_to_end(connection, last=False)

    def leave(self, connection: "_Connection") -> None:
        """Forget a connection."""
        self._strangers.pop(connection, None)
        self._own.discard(connection)


class _Connection(H11Protocol):
    """A connection that has so long for the head of a request and for the rest, and whose heads are
    checked before anything is made of them.
    """

    def __init__(self, door: Door, server: "_Server") -> None:
        super().__init__(server.config, server.server_state, server.lifespan.state)
        self._door = door
        self._head = bytearray()
        self._is_refused = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin as a stranger."""
        super().connection_made(transport)
        self._door.enter(self)
        self._await("head", HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything."""
        self._await("nothing")
        self._door.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Gather the head of a request, and pass on the rest as it comes."""
        if self._is_refused:
            return
        if self.conn.their_state is not h11.IDLE:
            self._pass_on(data)
            return
        if not self._head and self.cycle is not None:  # the request before is over
            self._unset_keepalive_if_required()
            self._await("head", HEAD_S)
        searched = max(0, len(self._head) - 2)
        self._head += data
        end = HEAD_END.search(self._head, searched)
        if objection := self._objection(end.end() if end else 0):
            self._refuse(*objection)
        elif end:
            gathered = bytes(self._head)
            self._head.clear()
            self._pass_on(gathered)

    def _objection(self, end: int) -> tuple[HTTPStatus, str] | None:
        """Return how a head is refused, which has come as far as *end*, or not to its end where that is 0."""
        head = bytes(self._head[: end or HEAD_BYTES_MAX + 1])
        if len(head) > HEAD_BYTES_MAX or head.count(b"\n") > HEAD_LINES_MAX:
            said = f"the head of a request may have {HEAD_BYTES_MAX} bytes and {HEAD_LINES_MAX} lines"
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, said
        if not head[:1].isupper() or (end and not REQUEST_LINE.match(head)):
            return HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1.1"
        if not end:
            return None
        if not self._door.recognise(self, head):
            line = REQUEST_LINE.match(head)
            is_served = line and line[1].partition(b"?")[0] == PATH.encode()
            return (HTTPStatus.UNAUTHORIZED, "") if is_served else (HTTPStatus.NOT_FOUND, "Not Found")
        if not self._door.admit(self):
            return (
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too many connections are open; close some, or use them again",
            )
        return None

    def _pass_on(self, data: bytes) -> None:
        if self.conn.their_state is h11.IDLE:
            self._await("nothing")
        super().data_received(data)
        self._mind_rest()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in place of whatever would have answered the request that it is a part
        of.
        """
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.turn_out("what came is no HTTP")
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, msg)

    def on_response_complete(self) -> None:
        """Go on to the next request, which may have come in part."""
        super().on_response_complete()
        self._mind_rest()

    def _mind_rest(self) -> None:
        if self.conn.their_state is not h11.SEND_BODY:
            self._await("nothing")
        elif not self._deadline:
            self._await("rest", BODY_S)

    def _await(self, what: str, within_s: float = 0.0) -> None:
        """Have so long for what comes next, none where nothing has to come."""
        if self._deadline:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(within_s, self._be_late, what, within_s) if within_s else None

    def _be_late(self, what: str, after_s: float) -> None:
        if self.conn.their_state is h11.SEND_BODY and self.cycle.response_started:
            self.turn_out("the rest did not come")
        else:
            self._refuse(
                HTTPStatus.REQUEST_TIMEOUT, f"the {what} of the request did not come within {after_s:.0f} s"
            )

    def _refuse(self, status: HTTPStatus, said: str) -> None:
        """Answer, take nothing more, and close as soon as that can have been read."""
        _log.warning("http.refused", status=status.phrase)
        self._is_refused = True
        self._head.clear()
        self._door.refused(self)
        if self.cycle is not None:  # whoever waits for the rest, or would answer
            self.cycle.disconnected = True
            self.cycle.waiting_for_100_continue = (
                False  # or it would be told to go on, past the end of what is written
            )
            self.cycle.message_event.set()
        self._await("nothing")
        self.transport.write(_answer(status, said))
        try:
            self.transport.write_eof()
        except OSError:  # it has left already
            self.transport.abort()
        else:
            self._deadline = self.loop.call_later(LINGERING_S, self.transport.abort)

    def turn_out(self, why: str) -> None:
        """Close at once."""
        if not self._is_refused:
            _log.warning("http.closed", reason=why)
        self._is_refused = True
        self.transport.abort()


@cache
def _answer(status: HTTPStatus, said: str) -> bytes:
    """Return an answer that is the last on its connection."""
    is_challenge = status is HTTPStatus.UNAUTHORIZED
    body = json.dumps(NO_TOKEN) if is_challenge else said
    kind = "application/json" if is_challenge else "text/plain; charset=utf-8"
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"{CHALLENGE if is_challenge else ''}Connection: close\r\n\r\n{body}"
    ).encode()


def _until_left(application: ASGIApp) -> ASGIApp:
    """Return an application whose work on a request ends where its client leaves, or is refused, in the
    middle of the body: it is nobody's error.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        has_body = False

        async def receive_whole() -> Message:
            nonlocal has_body
            message = await receive()
            if message["type"] == "http.disconnect" and not has_body:
                _log.debug("http.left")
                work.cancel()
                await anyio.lowlevel.checkpoint()
            has_body = has_body or not message.get("more_body", False)
            return message

        with anyio.CancelScope() as work:
            await application(scope, receive_whole, send)

    return serve


class _Server(uvicorn.Server):
    """One that leaves signals and connections to the gateway."""

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
