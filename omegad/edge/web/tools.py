"""MCP over HTTP, by the SDK's streamable transport at /mcp: the tools, as the daemon has them. Sessions name
their project and themselves by the headers Omegad-Project and Omegad-Session.

The SDK is dear to import and to hold, so sessions on standard input and output do without it
(`omegad.edge.mcp.pipe`).
"""

import os
from collections.abc import Mapping
from functools import partial
from typing import cast
from uuid import uuid4

import anyio
import anyio.to_thread
import mcp.types as mcp
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.datastructures import Headers

from omegad import __version__
from omegad.agents.tools.protocol import INSTRUCTIONS
from omegad.edge.consult import offering
from omegad.edge.mcp import messages
from omegad.edge.mcp.messages import CLIENT_CHARACTERS
from omegad.edge.mcp.pipe import ID_CHARACTERS, LATE, TOOL_USE, advice, unreachable
from omegad.edge.web.asking import Asking, Link
from omegad.edge.web.serving import Part
from omegad.runtime.errors import NoDaemon, NotFound, OmegadError
from omegad.runtime.json_types import Fields
from omegad.runtime.repository import project_of

Context = ServerRequestContext[dict[str, object]]


PATH = "/mcp"
CONSULTED_AT_ONCE_MAX = 4
CHECKED_BEFORE = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""Host and origin are for the rules of all routes."""


def part(asking: Asking, environ: Mapping[str, str]) -> Part:
    """Return what serves MCP, by *asking* the daemon; other models are consulted by processes that are given
    *environ*.
    """
    home = os.fsencode(environ["OMEGAD_HOME"])
    consulting = anyio.CapacityLimiter(CONSULTED_AT_ONCE_MAX)

    def session_of(context: Context) -> Session:
        """Return whose a request is; a session of the transport is what the ids of its messages count in."""
        headers = Headers() if context.request is None else context.request.headers
        bridge, project = headers.get("mcp-session-id"), headers.get("omegad-project")
        return Session(bridge, project, headers.get("omegad-session"), asking.link(name_of(context)))

    async def list_tools(context: Context, _params: mcp.PaginatedRequestParams | None) -> mcp.ListToolsResult:
        listed = await session_of(context).list_tools()
        own = map(mcp.Tool.model_validate, offering.tools(messages.consulting(home)).values())
        return mcp.ListToolsResult(tools=[*listed.tools, *own])

    async def call_tool(context: Context, params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
        session, configured = session_of(context), messages.consulting(home)
        if params.name in offering.tools(configured):
            asked = session.asked(context, params) | {"client": name_of(context)}
            consult = partial(offering.consulted, asked, configured, environ)
            return _result(
                await anyio.to_thread.run_sync(consult, abandon_on_cancel=True, limiter=consulting)
            )
        return await session.call_tool(context, params)

    server = Server[dict[str, object]](
        "omegad",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    application = server.streamable_http_app(streamable_http_path=PATH, transport_security=CHECKED_BEFORE)
    return Part(tuple(application.routes), running=application.router.lifespan_context)


class Session:
    """One session: the tools of the daemon as MCP has them."""

    def __init__(self, bridge: str | None, project: str | None, session_id: str | None, link: Link) -> None:
        """*bridge* tells its calls from those of all others; project and session are what its host names."""
        self._bridge = bridge
        self._project = project_of(project)
        self._folder = project if project and project.startswith("/") else None  # or it is a name
        self._own_id = session_id
        self._link = link

    async def list_tools(self) -> mcp.ListToolsResult:
        """List what the daemon lists."""
        try:
            answer = await self._link.ask("tools.list", {})
        except (OmegadError, TimeoutError) as error:
            raise MCPError(mcp.INTERNAL_ERROR, _explained(error)) from error
        return mcp.ListToolsResult(tools=[_tool(one) for one in answer["tools"]])

    async def call_tool(self, context: Context, params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
        """Have the daemon call a tool; where it cannot, the answer says what to do."""
        try:
            answer = await self._link.ask("tools.call", self.asked(context, params))
        except NotFound as error:
            raise MCPError(mcp.INVALID_PARAMS, _explained(error)) from error
        except (OmegadError, TimeoutError) as error:
            return mcp.CallToolResult(
                content=[mcp.TextContent(type="text", text=_explained(error))], is_error=True
            )
        return _result(answer)

    def asked(self, context: Context, params: mcp.CallToolRequestParams) -> Fields:
        """Return a call as `tools.call` takes it; the same for one that is made again."""
        said = cast("dict[str, object]", context.meta or {})
        session_id, use = said.get("sessionId"), said.get(TOOL_USE)
        number = f"{self._bridge}/{context.request_id}" if self._bridge else uuid4().hex
        return {
            "name": params.name,
            "arguments": params.arguments or {},
            "session_id": session_id[:ID_CHARACTERS] if isinstance(session_id, str) else self._own_id,
            "project": self._project,
            "folder": self._folder,
            "request_id": (use if isinstance(use, str) else number)[:ID_CHARACTERS],
        }


def _result(answer: Fields) -> mcp.CallToolResult:
    """Return an answer of `tools.call` as MCP has it."""
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
