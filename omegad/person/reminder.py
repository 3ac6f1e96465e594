"""Reminders: memories that come due. What they say can be searched like any other; here is what only they have."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent, Position
from omegad.memory import lives as lifecycle
from omegad.memory import storing
from omegad.memory.content import content_key
from omegad.memory.events import MemoryEdited
from omegad.memory.ids import MemoryId
from omegad.memory.lives import DeleteMemory
from omegad.memory.state import Memories, known
from omegad.memory.store import PreparedStore, StoreMemory, store
from omegad.requests.command import Acknowledged, Command, Name, Text
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.requests.verb import Verb
from omegad.runtime.errors import NotFound
from omegad.runtime.times import parse_time, rfc3339

EVENT_TYPE = "reminder"


class SetReminder(Command, frozen=True, kw_only=True, tag="reminder.set"):
    """Have agents reminded of something once its time has come. Set again in its session, it is due at the new time."""

    content: Annotated[Text, Meta(description="what to be reminded of")]
    due: Annotated[str, Meta(description="from when on, like 2026-01-31 or 2026-01-31T09:30:00Z")]
    project: Annotated[Name | None, Meta(description="in which project; in every one where none is named")] = None
    session_id: Annotated[Name | None, Meta(description="which session it is from")] = None


class DismissReminder(Command, frozen=True, kw_only=True, tag="reminder.dismiss"):
    """End a reminder: it is done, or not wanted any more."""

    memory_id: MemoryId
    reason: Annotated[str, Meta(max_length=4_096, description="why")] = "done"


class ReminderSet(msgspec.Struct, frozen=True, kw_only=True):
    """The memory that holds a reminder, and from when on it is due."""

    memory_id: str
    due: str
    position: Position = 0


async def prepare(services: Services, command: SetReminder, context: RequestContext) -> PreparedStore:
    """Check and clean a reminder; its vectors follow. Raises `Invalid`, and `Refused` for the noise of a system."""
    parse_time(command.due, "due")  # refused by the name that it was given under
    return msgspec.structs.replace(storing.begun(services, _as_store(command), context), pending=True)


def set_reminder(command: SetReminder, prepared: PreparedStore, state: DecisionState, now_us: int) -> Decision:
    """Decide a reminder; one that is set already is due at the new time."""
    asked, due_us = _as_store(command), parse_time(command.due, "due")
    holder = state[Memories].holder(content_key(prepared.content, EVENT_TYPE, command.project, None, command.session_id), now_us)
    if holder is None:
        events = store(asked, prepared, state, now_us).events
    else:
        edited = MemoryEdited(
            memory_id=holder.memory_id, content=prepared.content, content_key=holder.content_key, reason="set again", referenced_at=due_us
        )
        events = (NewEvent(event=edited, session_id=command.session_id, project=command.project),)
    answer = ReminderSet(memory_id=holder.memory_id if holder else prepared.memory_id, due=rfc3339(due_us))
    return Decision(events=events, answer=answer)


def dismiss(command: DismissReminder, state: DecisionState, now_us: int) -> Decision:
    """Decide a reminder's end. Raises `NotFound` for what is no reminder, `Refused` where it has ended already."""
    if known(state, command.memory_id).event_type != EVENT_TYPE:
        raise NotFound(f"{command.memory_id} is no reminder", hint="reminder.list names them")
    return lifecycle.delete(DeleteMemory(memory_id=command.memory_id, reason=command.reason), (), state, now_us)


def _as_store(command: SetReminder) -> StoreMemory:
    return StoreMemory(
        content=command.content,
        event_type=EVENT_TYPE,
        project=command.project,
        session_id=command.session_id,
        referenced_date=command.due,
    )


METHODS = (
    CommandMethod(
        params=SetReminder,
        answer=ReminderSet,
        prepare=prepare,
        decide=set_reminder,
        verb=Verb(
            says="{memory_id} is due from {due} on",
            examples=('omegad reminder set "Rotate the keys" 2026-12-01 --project shop',),
        ),
    ),
    CommandMethod(
        params=DismissReminder,
        answer=Acknowledged,
        decide=dismiss,
        verb=Verb(says="dismissed {memory_id} at position {position}"),
    ),
)
