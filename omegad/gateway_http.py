"""MCP over HTTP, by the SDK's streamable transport: at /mcp of 127.0.0.1, for who knows the home's token.

Whatever else comes to be served over HTTP is a route of the same application. A page of another origin, or of a name that was made to lead here,
is refused whatever it knows.
"""

import asyncio
import hmac
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager

import anyio
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.datastructures import Headers

from omegad.gateway import Context, Link, Opening, Session, name_of, serving

LINKS_MAX = 32  # connections to the daemon: one for each name that clients give themselves
ANY_OTHER = "mcp"
CLOSING_S = 2


class Http:
    """What the gateway serves over HTTP; sessions name their project and themselves by the headers Omegad-Project and Omegad-Session."""

    def __init__(self, listener: socket.socket, token: str, link: Callable[[], Link]) -> None:
        """Take a *listener* on the loopback interface, the *token* that is asked for, and what makes a *link* to the daemon."""
        self._listener = listener
        self._token = token.encode()
        self._link = link
        self._links: dict[str, Link] = {}

    async def serve(self, is_over: asyncio.Event) -> None:
        """Serve until then; sessions that go on then are told that there are none."""
        settings = uvicorn.Config(
            self._application(), log_config=None, access_log=False, server_header=False, ws="none", timeout_graceful_shutdown=CLOSING_S
        )
        server = _Server(settings)
        async with AsyncExitStack() as links, anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [self._listener])
            await is_over.wait()
            server.should_exit = True
            for link in self._links.values():
                links.push_async_exit(link)

    def _application(self) -> Starlette:
        names = [f"{host}:{self._listener.getsockname()[1]}" for host in ("127.0.0.1", "localhost")]
        origins = [f"http://{name}" for name in names]
        return serving(self._session).streamable_http_app(
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
        opening = Opening(bridge=headers.get("mcp-session-id"), project=headers.get("omegad-project"), session_id=headers.get("omegad-session"))
        name = name_of(context)
        if name not in self._links and len(self._links) >= LINKS_MAX:
            name = ANY_OTHER
        return Session(opening, self._links.setdefault(name, self._link()))


class _Server(uvicorn.Server):
    """One that leaves signals to the gateway."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield
