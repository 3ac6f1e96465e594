"""Commands on what agents do with their tools."""

import re
import unicodedata
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Excerpt, NewEvent
from omegad.log.sanitise import excerpt, excerpt_of
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.requests.verb import Verb
from omegad.session.call_facts import MEMORY_ID
from omegad.session.events import Delivery, ToolCalled, ToolStatus
from omegad.session.hook_state import ANYBODY, Hooks
from omegad.session.tool_state import ToolCalls
from omegad.text.redaction import redact

DONE_CHARACTERS, ERROR_CHARACTERS = 200, 1_000
"""So much is kept of what a tool of omegad's own was given and answered where it did what it was asked to,
since the events of that, and memories, say the rest; and so much of why it did not, beside all it was given.
The ids in the rest are kept, too.
"""
ID_CHARACTERS = 36  # of the longest
_NAMED_LAST = re.compile(r"(?:^|[^0-9A-Za-z])(omega_[a-z_]+)$")


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


class ToolCallRecorded(Acknowledged, frozen=True, kw_only=True):
    """Where the call stands in the log, and as which of its session's calls, counted from 1."""

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
    return _recorded(command, excerpts, state)


def _recorded(
    command: RecordToolCall, excerpts: Excerpts, state: DecisionState, delivery: Delivery | None = None
) -> Decision:
    call_index = state[ToolCalls].count(command.session_id) + 1
    event = ToolCalled(
        tool_name=command.tool_name,
        status=command.status,
        call_index=call_index,
        tool_use_id=command.tool_use_id,
        duration_ms=command.duration_ms,
        tool_input=excerpts.tool_input,
        result=excerpts.result,
        delivery=delivery,
    )
    new = NewEvent(event=event, session_id=command.session_id or None, project=command.project)
    return Decision(events=(new,), answer=ToolCallRecorded(call_index=call_index))


class OwnCall(NamedTuple):
    """A call of one of omegad's own tools, by whatever way its host makes calls; `command.session_id` is ""
    where nobody says whose it is.
    """

    command: RecordToolCall
    delivery: Delivery
    """Its id begins with `OWN`, its digest is of what `own_call_data` returns."""
    is_again: bool = False
    """Whether it is known to be the call that its id names, sent again."""


def record_own(call: OwnCall, state: DecisionState, now_us: int) -> Decision:
    """Decide the number of an own tool's call, told by the tool itself: a hook that tells of it later does
    not count.
    """
    command = call.command
    if command.tool_use_id is not None and state[ToolCalls].get(command.session_id, command.tool_use_id):
        if call.is_again or state[Hooks].has_come(ANYBODY, call.delivery, now_us):
            return record(command, Excerpts(None, None), state, now_us)
        command = msgspec.structs.replace(command, tool_use_id=None)  # another call, whatever its id
    given = excerpt_of(command.tool_input)
    is_done = command.status == "ok"
    if given is not None and is_done:
        given = _beginning("\n".join(filter(None, (given.head, given.tail))), given.bytes, DONE_CHARACTERS)
    result = redact(str(command.result))[0]
    most = DONE_CHARACTERS if is_done else ERROR_CHARACTERS
    excerpts = Excerpts(given, _beginning(result, len(result.encode()), most))
    return _recorded(command, excerpts, state, call.delivery)


def _beginning(text: str, size: int, characters: int) -> Excerpt:
    """Cut a text without secrets, which is that of *size* bytes, to its beginning and the ids of memories in
    the rest.
    """
    rest = dict[str, None]()
    if len(text) > characters:
        for found in MEMORY_ID.finditer(text, max(0, characters - ID_CHARACTERS)):
            if found.end() > characters:
                characters = min(characters, found.start())
                rest[found.group()] = None
        text = " ".join((text[:characters], *rest))
    return msgspec.structs.replace(excerpt(text), bytes=size)


def own_call_data(tool_name: str, arguments: object) -> bytes | None:
    """Return what a call of one of omegad's own tools is told again by, whatever a host calls the tool;
    None for other tools.
    """
    named = _NAMED_LAST.search(tool_name)
    if named is None:
        return None
    given = msgspec.json.encode(arguments, order="deterministic").decode()
    return unicodedata.normalize("NFC", f"{named.group(1)} {given}").encode()


METHODS = (
    CommandMethod(
        params=RecordToolCall,
        answer=ToolCallRecorded,
        prepare=prepare,
        decide=record,
        verb=Verb(examples=("omegad tool record s-1 Bash --status error",)),
    ),
)
