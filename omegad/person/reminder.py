"""Reminders: memories that come due. What they say can be searched like any other; here is what only they
have.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.memory.content import content_key
from omegad.memory.events import MemoryEdited
from omegad.memory.lifecycle import deleted
from omegad.memory.state import Memories, MemoryId, known
from omegad.memory.store import PreparedStore, StoreMemory, begun, store
from omegad.requests.command import Acknowledged, Command, Name, Text
from omegad.requests.method import CommandMethod, Moment, QueryMethod, RequestContext, Services
from omegad.requests.query import One, Query, ViewAnswer
from omegad.requests.verb import AgentTool, Table, Verb
from omegad.runtime.errors import NotFound
from omegad.runtime.times import parse_time, rfc3339
from omegad.storage.driver import Connection

EVENT_TYPE = "reminder"


class SetReminder(Command, frozen=True, kw_only=True, tag="reminder.set"):
    """Have agents reminded of something once its time has come. Set again in its session, it is due at the
    new time.
    """

    content: Annotated[Text, Meta(description="what to be reminded of")]
    due: Annotated[str, Meta(description="from when on, like 2026-01-31 or 2026-01-31T09:30:00Z")]
    project: Annotated[
        Name | None, Meta(description="in which project; in every one where none is named")
    ] = None
    session_id: Annotated[Name | None, Meta(description="which session it is from")] = None


class DismissReminder(Command, frozen=True, kw_only=True, tag="reminder.dismiss"):
    """End a reminder: it is done, or not wanted any more."""

    memory_id: MemoryId
    reason: Annotated[str, Meta(max_length=4_096, description="why")] = "done"


class ReminderSet(Acknowledged, frozen=True):
    """The memory that holds a reminder, and from when on it is due."""

    memory_id: str
    due: str


async def prepare(services: Services, command: SetReminder, context: RequestContext) -> PreparedStore:
    """Check and clean a reminder; its vectors follow. Raises `Invalid`, and `Refused` for the noise of a
    system.
    """
    parse_time(command.due, "due")  # refused by the name that it was given under
    return msgspec.structs.replace(begun(services, _as_store(command), context), pending=True)


def set_reminder(
    command: SetReminder, prepared: PreparedStore, state: DecisionState, now_us: int
) -> Decision:
    """Decide a reminder; one that is set already is due at the new time."""
    asked, due_us = _as_store(command), parse_time(command.due, "due")
    holder = state[Memories].holder(
        content_key(prepared.content, EVENT_TYPE, command.project, None, command.session_id), now_us
    )
    if holder is None:
        events = store(asked, prepared, state, now_us).events
    else:
        edited = MemoryEdited(
            memory_id=holder.memory_id,
            content=prepared.content,
            content_key=holder.content_key,
            reason="set again",
            referenced_at=due_us,
        )
        events = (NewEvent(event=edited, session_id=command.session_id, project=command.project),)
    answer = ReminderSet(memory_id=holder.memory_id if holder else prepared.memory_id, due=rfc3339(due_us))
    return Decision(events=events, answer=answer)


def dismiss(command: DismissReminder, state: DecisionState, _now_us: int) -> Decision:
    """Decide a reminder's end. Raises `NotFound` for what is no reminder, `Refused` where it has ended
    already.
    """
    memory = known(state, command.memory_id)
    if memory.event_type != EVENT_TYPE:
        raise NotFound(f"{command.memory_id} is no reminder", hint="reminder.list names them")
    return deleted(memory, command.reason)


def _as_store(command: SetReminder) -> StoreMemory:
    return StoreMemory(
        content=command.content,
        event_type=EVENT_TYPE,
        project=command.project,
        session_id=command.session_id,
        referenced_date=command.due,
    )


_STANDING = "m.status = 'active' AND (:project IS NULL OR m.project IS NULL OR m.project = :project)"
_FOUND = f"""
SELECT m.node_id, m.content, m.project, r.due_us, r.told_at FROM reminders AS r
  JOIN memories AS m ON m.node_id = r.memory_id
WHERE {{condition}} AND {_STANDING} ORDER BY r.due_us, r.id LIMIT :limit
"""


class ListReminders(Query, frozen=True, kw_only=True, tag="reminder.list"):
    """List the reminders that stand, those that are due first."""

    project: Annotated[
        One | None, Meta(description="those of this project and of none; all where none is named")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many at most")] = 100


class Reminder(msgspec.Struct, frozen=True, kw_only=True):
    """A reminder: from when on it is due, whether it is, and when an agent was told of that, None before."""

    memory_id: str
    content: str
    project: str | None
    due: str
    is_due: bool
    told_at: str | None


class ReminderList(ViewAnswer, frozen=True):
    """Reminders by when they are due."""

    reminders: list[Reminder]


def list_reminders(connection: Connection, query: ListReminders, moment: Moment) -> ReminderList:
    """Read those that stand."""
    found = _read(connection, "1", query.project, moment.now_us, query.limit)
    return ReminderList(reminders=found, **moment.shown)


def due(
    connection: Connection, project: str | None, now_us: int, limit: int, *, is_told: bool
) -> list[Reminder]:
    """Return reminders whose time has come, the oldest first: of a project and of none, of all where it is
    None; *is_told*: those told of, too.
    """
    condition = "r.due_us <= :now_us" if is_told else "r.told_at IS NULL AND r.due_us <= :now_us"
    return _read(connection, condition, project, now_us, limit)


def _read(
    connection: Connection, condition: str, project: str | None, now_us: int, limit: int
) -> list[Reminder]:
    return [
        Reminder(
            memory_id=memory_id,
            content=content,
            project=of,
            due=rfc3339(due_us),
            is_due=due_us <= now_us,
            told_at=told_at,
        )
        for memory_id, content, of, due_us, told_at in connection.execute(
            _FOUND.format(condition=condition), {"project": project, "now_us": now_us, "limit": limit}
        )
    ]


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
        tool=AgentTool("omega_remind add", by="remembering.will_remind"),
    ),
    CommandMethod(
        params=DismissReminder,
        answer=Acknowledged,
        decide=dismiss,
        verb=Verb(
            examples=("omegad reminder dismiss mem-0123456789abcdef",),
            says="dismissed {memory_id} at position {position}",
        ),
        tool=AgentTool("omega_remind done", by="remembering.dismissed"),
    ),
    QueryMethod(
        params=ListReminders,
        answer=ReminderList,
        views=("memories", "reminders"),
        read=list_reminders,
        verb=Verb(
            examples=("omegad reminder list --project shop",),
            table=Table(
                "reminders",
                (
                    ("FROM", "{due:moment}"),
                    ("", "{is_due:due}"),
                    ("ID", "{memory_id}"),
                    ("PROJECT", "{project}"),
                    ("CONTENT", "{content}"),
                ),
                none="no reminders",
            ),
        ),
        tool=AgentTool("omega_remind list", by="remembering.reminders"),
    ),
)
