"""What remains of tool calls, of what was shown unasked, and of what was said, once their time is over."""

from enum import Enum
from typing import Final, Literal

import msgspec

from omegad.log.event import Event, Excerpt
from omegad.session.call_facts import facts
from omegad.session.events import (
    HookNoted,
    MemorySurfaced,
    PromptSubmitted,
    SubagentEnded,
    SurfacingAged,
    ToolCallAged,
    ToolCalled,
    TurnEnded,
)


class Kept(Enum):
    """That all of an event stays."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT

TOOLS = (ToolCalled, HookNoted)
SAID = (PromptSubmitted, TurnEnded, SubagentEnded)
LASTING = ("briefing", "review", "reminder", "warning")
"""Ways of being shown of which it is known for ever what was shown, so that it is not told again."""


def remaining(event: object) -> Event | Literal[Kept.KEPT] | None:
    """Return what remains of an event of a session, None for nothing; all that is not one stays."""
    match event:
        case ToolCalled():
            return of_call(event)
        case HookNoted():
            return None
        case MemorySurfaced(how=how) if how not in LASTING:
            return of_surfacing(event)
        case PromptSubmitted() | TurnEnded() | SubagentEnded():
            said = of_said(event)
            return KEPT if said == event else said
        case _:
            return KEPT


def of_call(call: ToolCalled) -> ToolCallAged:
    """Return what remains of a tool call."""
    found = facts(call)
    return ToolCallAged(
        tool_name=call.tool_name,
        status=call.status,
        call_index=call.call_index,
        duration_ms=call.duration_ms,
        input_bytes=None if call.tool_input is None else call.tool_input.bytes,
        result_bytes=None if call.result is None else call.result.bytes,
        **found._asdict(),
    )


def of_surfacing(shown: MemorySurfaced) -> SurfacingAged:
    """Return what remains of what was shown."""
    return SurfacingAged(
        query_id=shown.query_id,
        how=shown.how,
        read_position=shown.read_position,
        at=shown.at,
        embedder_id=shown.embedder_id,
        returned=len(shown.results),
    )


def of_said(said: PromptSubmitted | TurnEnded | SubagentEnded) -> Event:
    """Return what remains of a prompt, or of an answer: how long it was."""
    if isinstance(said, PromptSubmitted):
        return msgspec.structs.replace(said, prompt=_gone(said.prompt))
    message = None if said.message is None else _gone(said.message)
    return msgspec.structs.replace(said, message=message)


def _gone(part: Excerpt) -> Excerpt:
    return Excerpt(head="", bytes=part.bytes, sha256="")
