"""The gateway: one process that serves MCP, by its official SDK, to every session of the home's owner.

The SDK is dear to import and to hold, so no session has it to itself: each is a connection to the gateway's socket, made by `mcp_bridge`, and
opens with one line that says where it is from. To the daemon the gateway is a client like any other, with a connection for each session.
"""

import asyncio
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import anyio
import anyio.to_thread
import mcp.types as mcp
import msgspec
import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from omegad import __version__
from omegad.agents.tools.protocol import INSTRUCTIONS
from omegad.rpc import endpoint
from omegad.rpc.accepting import accept
from omegad.rpc.async_client import AsyncClient
from omegad.rpc.protocol import WHITESPACE, InvalidRequest, Lines, LineTooLong, ParseFailed
from omegad.runtime.errors import NoDaemon, NotFound, OmegadError, Overloaded, ShuttingDown
from omegad.runtime.json_text import id_in, mended
from omegad.runtime.versions import is_older
from omegad.session.projects import project_of

LINE_BYTES_MAX = 16 * 1024 * 1024
READ_BYTES = 64 * 1024
CALL_S = 30.0  # hosts give up after a minute, and say less
OPENING_S = 10.0
SESSIONS_MAX = 512
NO_REQUEST = "the line is no request of JSON-RPC 2.0"
SESSION_DESCRIPTORS = 2  # its own and that of its connection to the daemon
ROOTS_S = 2.0
SESSION_ID_CHARACTERS = 256
TOOL_USE = "claudecode/toolUseId"  # of Claude Code, with each call

Context = ServerRequestContext[dict[str, Any]]

_log = structlog.get_logger(__name__)


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session is from: the project and the session that its host names, if it does, and the directory that it was started in.

    `bridge` is what tells its calls from those of all others, `version` that of omegad where it was started.
    """

    bridge: str | None = None
    version: str = __version__
    project: str | None = None
    session_id: str | None = None
    directory: str | None = None


class Gateway:
    """Serves a listening socket until nobody has been connected for a while, or another gateway is to take its place."""

    def __init__(self, daemon: Path, ensure: Callable[[], object], idle_s: float, sessions_max: int = SESSIONS_MAX) -> None:
        """Take the *daemon's* socket, and *ensure*, which starts the daemon unless it runs, and blocks; serve *sessions_max* at once."""
        self._daemon = daemon
        self._ensure = ensure
        self._idle_s = idle_s
        self._sessions_max = sessions_max
        self._connected = 0
        self._left = time.monotonic()
        self._leaving = asyncio.Event()
        self._gone = asyncio.Event()

    def link(self) -> "Link":
        """Return a connection to the daemon that is yet to be made."""
        return Link(self._daemon, self._ensure)

    async def serve(self, listener: socket.socket, let_go: Callable[[], object], http: Callable[[asyncio.Event], Awaitable[None]] | None) -> None:
        """Serve sessions, and *http* if there is any until it is told to end; then *let_go* of the home, and finish what sessions there are.

        It ends when it is idle and not asked over HTTP, at SIGTERM, and when a session is of a newer version.
        """
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._leaving.set)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(accept, listener, lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader(limit=LINE_BYTES_MAX), self._session))
            if http is None:
                while not self._leaving.is_set() and (self._connected or time.monotonic() < self._left + self._idle_s):
                    with anyio.move_on_after(min(self._idle_s, 1.0) / 4):
                        await self._leaving.wait()
            else:
                await http(self._leaving)
            tasks.cancel_scope.cancel()
        let_go()
        self._gone.set()
        while self._connected:  # noqa: ASYNC110  what is awaited is that nothing happens
            await anyio.sleep(0.25)

    async def _session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connected += 1
        try:
            if endpoint.peer_uid(writer.get_extra_info("socket")) != os.geteuid():
                _log.warning("gateway.refused", reason="another user")
            elif self._connected > self._sessions_max:
                _log.warning("gateway.refused", reason="too many sessions", sessions_max=self._sessions_max)
                writer.write(refusal(b"null", Overloaded(f"{self._sessions_max} sessions of MCP are open", hint="close some")))
            else:
                await self._serve_session(reader, writer)
        except (OSError, ValueError, msgspec.DecodeError, TimeoutError):
            pass  # it left, or speaks something else
        finally:
            self._connected -= 1
            self._left = time.monotonic()
            writer.close()

    async def _serve_session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with anyio.fail_after(OPENING_S):
            opening = msgspec.json.decode(await reader.readline(), type=Opening)
        if is_older(__version__, opening.version):
            self._leaving.set()
            await self._gone.wait()  # the bridge, which then finds no gateway, starts that of its own version
            return
        async with self.link() as link:
            session = Session(opening, link)
            server = serving(lambda _: session)
            wire = cast("anyio.AsyncFile[str]", Wire(reader, writer))
            async with stdio_server(wire, wire) as (received, sent):
                await server.run(received, sent, server.create_initialization_options())


def serving(session_of: Callable[[Context], "Session"]) -> Server[dict[str, Any]]:
    """Return the server of the SDK, which asks *session_of* whose each request is."""

    async def list_tools(context: Context, params: mcp.PaginatedRequestParams | None) -> mcp.ListToolsResult:
        del params
        return await session_of(context).list_tools(context)

    async def call_tool(context: Context, params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
        return await session_of(context).call_tool(context, params)

    return Server("omegad", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)


def refusal(number: bytes, error: OmegadError) -> bytes:
    """Return the line that answers a message of that *number* (JSON) with an *error*."""
    told = msgspec.json.encode({"code": error.code, "message": _told(error)})
    return b'{"jsonrpc":"2.0","id":%s,"error":%s}\n' % (number, told)


class Wire:
    """The part of a text file that the SDK's transport uses, over a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield lines that the SDK can read, until the other end has no more; answer the others."""
        lines = Lines(LINE_BYTES_MAX)
        try:
            while data := await self._reader.read(READ_BYTES):
                lines.feed(data)
                while (line := self._next(lines)) is not None:
                    if line:
                        yield line
                    await self.flush()
        except OSError:  # it is gone
            return

    def _next(self, lines: Lines) -> str | None:
        """Return the next line, an empty one where it is answered, None where there is none yet."""
        try:
            line = lines.next()
        except LineTooLong as error:
            self._writer.write(refusal(b"null", error))
            return ""
        if line is None:
            return None
        for text, errors in ((line, "strict"), (mended(line), "replace")):
            with suppress(ValueError, RecursionError):
                read = text.decode("utf-8", errors)
                mcp.jsonrpc_message_adapter.validate_json(read, by_name=False)
                return read
        if line.strip(WHITESPACE):
            self._diagnose(line)
        return ""

    def _diagnose(self, line: bytes) -> None:
        """Answer what cannot be read, unless it is an answer itself."""
        try:
            said = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        except msgspec.ValidationError:
            self._writer.write(refusal(b"null", InvalidRequest(NO_REQUEST)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._writer.write(refusal(id_in(line), ParseFailed("the line is no JSON, or nested too deeply")))
        else:
            if not {"result", "error"} & set(said):
                self._writer.write(refusal(id_in(b'{"id":%s}' % bytes(said.get("id", b"null"))), InvalidRequest(NO_REQUEST)))

    async def write(self, text: str) -> None:
        """Send text."""
        self._writer.write(text.encode("utf-8", "surrogatepass"))

    async def flush(self) -> None:
        """Wait until there is room for more; what a session that is gone would have read is lost."""
        try:
            await self._writer.drain()
        except OSError:
            self._reader.feed_eof()


class Link:
    """A session's connection to the daemon, made when it is needed and again when it is lost."""

    def __init__(self, path: Path, ensure: Callable[[], object]) -> None:
        self._path = path
        self._ensure = ensure
        self._client: AsyncClient | None = None
        self._connecting = asyncio.Lock()
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *unused: object) -> None:
        await self._open.aclose()

    async def ask(self, client: str, method: str, /, **params: object) -> Any:  # noqa: ANN401  any JSON
        """Return what the daemon answers to a *client*; where it ends meanwhile the next one is asked, so a call that changes something has an id."""
        with anyio.fail_after(CALL_S):
            connection = await self._connection(client)
            try:
                return await connection.call(method, **params)
            except (NoDaemon, ShuttingDown):
                await connection.close()
            return await (await self._connection(client)).call(method, **params)

    async def _connection(self, name: str) -> AsyncClient:
        async with self._connecting:
            if self._client is not None and self._client.is_open:
                return self._client
            await self._open.aclose()
            try:
                self._client = await self._open.enter_async_context(AsyncClient(self._path, name=name))
            except (NoDaemon, ShuttingDown):
                await anyio.to_thread.run_sync(self._ensure)
                self._client = await self._open.enter_async_context(AsyncClient(self._path, name=name))
            return self._client


class Session:
    """One session of a host: the tools of the daemon as MCP has them."""

    def __init__(self, opening: Opening, link: Link) -> None:
        self._opening = opening
        self._link = link
        self._project: str | None = project_of(opening.project)
        self._folder = opening.project if opening.project and opening.project.startswith("/") else None  # or it is a name
        self._is_placed = self._project is not None

    async def list_tools(self, context: Context) -> mcp.ListToolsResult:
        """List what the daemon lists."""
        try:
            answer = await self._link.ask(name_of(context), "tools.list")
        except (OmegadError, TimeoutError) as error:
            raise MCPError(mcp.INTERNAL_ERROR, _told(error)) from error
        return mcp.ListToolsResult(tools=[_tool(one) for one in answer["tools"]])

    async def call_tool(self, context: Context, params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
        """Have the daemon call a tool; where it cannot, the answer says what to do."""
        try:
            await self._place(context)
            where = {"session_id": self._session_id(context), "project": self._project, "folder": self._folder}
            fields = {**where, "request_id": self._request_id(context)}
            answer = await self._link.ask(name_of(context), "tools.call", name=params.name, arguments=params.arguments or {}, **fields)
        except NotFound as error:
            raise MCPError(mcp.INVALID_PARAMS, _told(error)) from error
        except (OmegadError, TimeoutError) as error:
            return mcp.CallToolResult(content=[mcp.TextContent(type="text", text=_told(error))], is_error=True)
        content: list[mcp.ContentBlock] = [mcp.TextContent(type="text", text=part["text"]) for part in answer["content"]]
        if answer["structured"] is None:
            return mcp.CallToolResult(content=content, is_error=answer["is_error"])
        return mcp.CallToolResult(content=content, structured_content=answer["structured"], is_error=answer["is_error"])

    def _session_id(self, context: Context) -> str | None:
        """Return the host's name for the session, which it also has in its hooks: said with each call, or once in the environment."""
        said = cast("dict[str, object]", context.meta or {}).get("sessionId")
        return said[:SESSION_ID_CHARACTERS] if isinstance(said, str) else self._opening.session_id

    def _request_id(self, context: Context) -> str:
        """Return what names a call however often it comes: the host's id of the tool's use, else that of the message in its session."""
        said = cast("dict[str, object]", context.meta or {}).get(TOOL_USE)
        if isinstance(said, str):
            return said[:SESSION_ID_CHARACTERS]
        return f"{self._opening.bridge}/{context.request_id}"[:SESSION_ID_CHARACTERS] if self._opening.bridge else uuid4().hex

    async def _place(self, context: Context) -> None:
        """Find the project and its folder: the one that the host names, else its first root, else where it was started."""
        if not self._is_placed:
            self._folder = await _first_root(context) or _project_directory(self._opening.directory)
            self._project = project_of(self._folder)
            self._is_placed = True


async def _first_root(context: Context) -> str | None:
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.roots is None or not context.session.can_send_request or context.request is not None:
        return None  # over HTTP it is a header that names the project
    try:
        with anyio.fail_after(ROOTS_S):
            answer = await context.session.send_request(mcp.ListRootsRequest(), mcp.ListRootsResult)
    except (MCPError, TimeoutError):
        return None
    paths = (urlsplit(str(root.uri)) for root in answer.roots)
    return next((unquote(uri.path) for uri in paths if uri.scheme == "file"), None)


def _project_directory(directory: str | None) -> str | None:
    """Return a directory that can be a project: neither the root of the file system nor anybody's home."""
    return None if directory in {None, "/", str(Path.home())} else directory


def name_of(context: Context) -> str:
    """Return what the host calls itself."""
    client = context.session.client_params
    return f"{client.client_info.name[:200]}" if client and client.client_info.name else "mcp"


def _tool(described: dict[str, Any]) -> mcp.Tool:
    hints = mcp.ToolAnnotations(read_only_hint=described["read_only"], destructive_hint=False)
    return mcp.Tool(name=described["name"], description=described["description"], input_schema=described["input_schema"], annotations=hints)


def _told(error: OmegadError | TimeoutError) -> str:
    match error:
        case TimeoutError():
            return f"omegad did not answer within {CALL_S:.0f} s; it may still be done. What to do: ask omega_query for it, or call again"
        case NoDaemon():
            return f"omegad cannot be reached ({error}); whether the call was done is not known. What to do: call again, or {error.hint}"
        case _:
            return f"{str(error).removesuffix('.')}. What to do: {error.hint}"
