"""What MCP over HTTP asks of the daemon: the tools, as the official SDK has them.

The SDK is dear to import and to hold, so sessions on standard input and output do without it (`pipe`). To the
daemon the gateway is a client like any other.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self, cast
from uuid import uuid4

import anyio
import anyio.to_thread
import mcp.types as mcp
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from omegad import __version__
from omegad.agents.tools.protocol import INSTRUCTIONS
from omegad.client.asynchronous import AsyncClient
from omegad.edge.mcp.messages import CLIENT_CHARACTERS
from omegad.edge.mcp.pipe import CALL_S, ID_CHARACTERS, LATE, TOOL_USE, advice, unreachable
from omegad.runtime.errors import NoDaemon, NotFound, OmegadError, ShuttingDown
from omegad.runtime.json_types import Fields, Json
from omegad.runtime.repository import project_of

Context = ServerRequestContext[dict[str, object]]


def serving(session_of: Callable[[Context], "Session"]) -> Server[dict[str, object]]:
    """Return the server of the SDK, which asks *session_of* whose each request is."""

    async def list_tools(context: Context, _params: mcp.PaginatedRequestParams | None) -> mcp.ListToolsResult:
        return await session_of(context).list_tools(context)

    async def call_tool(context: Context, params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
        return await session_of(context).call_tool(context, params)

    return Server(
        "omegad",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


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

    async def ask(self, client: str, method: str, /, **params: object) -> Json:
        """Return what the daemon answers to a *client*; where it ends meanwhile the next one is asked, so
        a call that changes something has an id.
        """
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
    """One session: the tools of the daemon as MCP has them."""

    def __init__(self, bridge: str | None, project: str | None, session_id: str | None, link: Link) -> None:
        """*bridge* tells its calls from those of all others; project and session are what its host names."""
        self._bridge = bridge
        self._project = project_of(project)
        self._folder = project if project and project.startswith("/") else None  # or it is a name
        self._own_id = session_id
        self._link = link

    async def list_tools(self, context: Context) -> mcp.ListToolsResult:
        """List what the daemon lists."""
        try:
            answer = await self._link.ask(name_of(context), "tools.list")
        except (OmegadError, TimeoutError) as error:
            raise MCPError(mcp.INTERNAL_ERROR, _explained(error)) from error
        return mcp.ListToolsResult(tools=[_tool(one) for one in answer["tools"]])

    async def call_tool(self, context: Context, params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
        """Have the daemon call a tool; where it cannot, the answer says what to do."""
        said = cast("dict[str, object]", context.meta or {})
        session_id, use = said.get("sessionId"), said.get(TOOL_USE)
        number = f"{self._bridge}/{context.request_id}" if self._bridge else uuid4().hex
        try:
            answer = await self._link.ask(
                name_of(context),
                "tools.call",
                name=params.name,
                arguments=params.arguments or {},
                session_id=session_id[:ID_CHARACTERS] if isinstance(session_id, str) else self._own_id,
                project=self._project,
                folder=self._folder,
                request_id=(use if isinstance(use, str) else number)[:ID_CHARACTERS],
            )
        except NotFound as error:
            raise MCPError(mcp.INVALID_PARAMS, _explained(error)) from error
        except (OmegadError, TimeoutError) as error:
            return mcp.CallToolResult(
                content=[mcp.TextContent(type="text", text=_explained(error))], is_error=True
            )
        content: list[mcp.ContentBlock] = [
            mcp.TextContent(type="text", text=part["text"]) for part in answer["content"]
        ]
        if answer["structured"] is None:
            return mcp.CallToolResult(content=content, is_error=answer["is_error"])
        return mcp.CallToolResult(
            content=content, structured_content=answer["structured"], is_error=answer["is_error"]
        )


def name_of(context: Context) -> str:
    """Return what the host calls itself."""
    client = context.session.client_params
    return client.client_info.name[:CLIENT_CHARACTERS] if client and client.client_info.name else "mcp"


def _tool(described: Fields) -> mcp.Tool:
    hints = mcp.ToolAnnotations(read_only_hint=described["read_only"], destructive_hint=False)
    return mcp.Tool(
        name=described["name"],
        description=described["description"],
        input_schema=described["input_schema"],
        annotations=hints,
    )


def _explained(error: OmegadError | TimeoutError) -> str:
    match error:
        case TimeoutError():
            return LATE
        case NoDaemon():
            return unreachable(error, error.hint)
        case _:
            return advice(str(error), error.hint)
