"""Commands on what agents do with their tools."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Excerpt, NewEvent, Position
from omegad.log.sanitise import excerpt
from omegad.requests.command import Command, Name
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.session.events import ToolCalled, ToolStatus
from omegad.session.tool_state import ToolCalls


class RecordToolCall(Command, frozen=True, kw_only=True, tag="tool.record"):
    """Record that an agent called a tool. The same tool_use_id in the same session counts once, for 30
    days at least.
    """

    session_id: Annotated[Name, Meta(description="which session called it")]
    tool_name: Annotated[Name, Meta(description="which tool")]
    status: Annotated[ToolStatus, Meta(description="how it ended")] = "ok"
    tool_input: Annotated[Any, Meta(description="what it was given; any JSON")] = None
    result: Annotated[Any, Meta(description="what it gave back; any JSON")] = None
    tool_use_id: Annotated[
        Name | None, Meta(description="the host's id of the call, which counts once, for 30 days at least")
    ] = None
    duration_ms: Annotated[float, Meta(ge=0, description="how long it took")] | None = None
    project: Annotated[Name | None, Meta(description="which project it was for")] = None


class ToolCallRecorded(msgspec.Struct, frozen=True, kw_only=True):
    """Where the call stands in the log, and as which of its session's calls, counted from 1."""

    position: Position = 0
    call_index: int


class Excerpts(msgspec.Struct, frozen=True):
    """What is kept of a call's input and result."""

    tool_input: Excerpt | None
    result: Excerpt | None


async def prepare(_services: Services, command: RecordToolCall, _context: RequestContext) -> Excerpts:
    """Cut a call's input and result before it is decided."""
    return cut(command)


def cut(command: RecordToolCall) -> Excerpts:
    """Cut a call's input and result to what is kept, free of secrets. Anything but a string is cut as its
    JSON.
    """
    return Excerpts(excerpt_of(command.tool_input), excerpt_of(command.result))


def record(command: RecordToolCall, excerpts: Excerpts, state: DecisionState, _now_us: int) -> Decision:
    """Decide a call's number in its session; a tool use that is recorded already keeps its own."""
    if command.tool_use_id is not None and (
        known := state[ToolCalls].get(command.session_id, command.tool_use_id)
    ):
        return Decision(answer=ToolCallRecorded(position=known.position, call_index=known.call_index))
    call_index = state[ToolCalls].count(command.session_id) + 1
    event = ToolCalled(
        tool_name=command.tool_name,
        status=command.status,
        call_index=call_index,
        tool_use_id=command.tool_use_id,
        duration_ms=command.duration_ms,
        tool_input=excerpts.tool_input,
        result=excerpts.result,
    )
    new = NewEvent(event=event, session_id=command.session_id, project=command.project)
    return Decision(events=(new,), answer=ToolCallRecorded(call_index=call_index))


def excerpt_of(value: object) -> Excerpt | None:
    """Cut what a tool took or gave to what is kept, free of secrets; None for nothing."""
    if value is None:
        return None
    return excerpt(value if isinstance(value, str) else msgspec.json.encode(value).decode())


METHODS = (CommandMethod(params=RecordToolCall, answer=ToolCallRecorded, prepare=prepare, decide=record),)
