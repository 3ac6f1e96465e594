"""What agents did with their tools."""

from typing import Literal

from omegad.log.event import Event, Excerpt, GivenName
from omegad.session.events import Delivery

ToolStatus = Literal["ok", "error", "denied"]


class ToolCalled(Event, frozen=True, kw_only=True, tag="tool.called@1"):
    """An agent called a tool. `call_index` counts a session's calls from 1.

    `delivery` is that of the hook which told of it, where the host gave the call no id.
    """

    tool_name: GivenName
    status: ToolStatus
    call_index: int
    tool_use_id: GivenName | None = None
    duration_ms: float | None = None
    tool_input: Excerpt | None = None
    result: Excerpt | None = None
    delivery: Delivery | None = None
