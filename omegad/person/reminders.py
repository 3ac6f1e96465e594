"""Reminders by when they are due, and which of them an agent is still to be told of."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.requests.filters import One
from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import Query
from omegad.requests.verb import Verb
from omegad.runtime.times import rfc3339
from omegad.storage.driver import Connection

_STANDING = "m.status = 'active' AND (:project IS NULL OR m.project IS NULL OR m.project = :project)"
_FOUND = f"""
SELECT m.node_id, m.content, m.project, r.due_us, r.told_at FROM reminders AS r JOIN memories AS m ON m.node_id = r.memory_id
WHERE {{condition}} AND {_STANDING} ORDER BY r.due_us, r.id LIMIT :limit
"""
_ALL = _FOUND.format(condition="1")
_DUE = _FOUND.format(condition="r.due_us <= :now_us")
_UNTOLD = _FOUND.format(condition="r.told_at IS NULL AND r.due_us <= :now_us")


class ListReminders(Query, frozen=True, kw_only=True, tag="reminder.list"):
    """List the reminders that stand, those that are due first."""

    project: Annotated[One | None, Meta(description="those of this project and of none; all where none is named")] = None
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many at most")] = 100


class Reminder(msgspec.Struct, frozen=True, kw_only=True):
    """A reminder: from when on it is due, whether it is, and when an agent was told of that, None before."""

    memory_id: str
    content: str
    project: str | None
    due: str
    is_due: bool
    told_at: str | None


class ReminderList(msgspec.Struct, frozen=True, kw_only=True):
    """Reminders by when they are due."""

    reminders: list[Reminder]
    position: int
    stale_by: int


def list_reminders(connection: Connection, query: ListReminders, moment: Moment) -> ReminderList:
    """Read those that stand."""
    found = _read(connection, _ALL, query.project, moment.now_us, query.limit)
    return ReminderList(reminders=found, position=moment.position, stale_by=moment.stale_by)


def due(connection: Connection, project: str | None, now_us: int, limit: int, *, is_told: bool) -> list[Reminder]:
    """Return reminders whose time has come, the oldest first: of a project and of none, of all where it is None; *is_told*: those told of, too."""
    return _read(connection, _DUE if is_told else _UNTOLD, project, now_us, limit)


def _read(connection: Connection, sql: str, project: str | None, now_us: int, limit: int) -> list[Reminder]:
    rows = connection.execute(sql, {"project": project, "now_us": now_us, "limit": limit})
    return [
        Reminder(memory_id=memory_id, content=content, project=of, due=rfc3339(due_us), is_due=due_us <= now_us, told_at=told_at)
        for memory_id, content, of, due_us, told_at in rows
    ]


METHODS = (
    QueryMethod(
        params=ListReminders,
        answer=ReminderList,
        views=("memories", "reminders"),
        read=list_reminders,
        verb=Verb(by="looking_back.reminders"),
    ),
)
