"""The tasks that agents share, as the views show them.

Sessions that no hook tells of, that have a task, and of which nothing has been heard for hours are over: the
task is open again.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.coordination.session_end import IDLE_US, EndSession
from omegad.reactions.contract import Reader
from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import One, Query, ViewAnswer
from omegad.requests.verb import MORE, WATCH, AgentTool, Table, Verb
from omegad.runtime.errors import NotFound
from omegad.runtime.times import rfc3339
from omegad.storage.driver import Connection

Status = Literal["open", "claimed", "completed", "failed", "cancelled"]
UNSETTLED: tuple[Status, ...] = ("open", "claimed")

_COLUMNS = """
task_id, title, status, priority, capability, project, owner, progress, version, changed_at,
(SELECT json_group_array(depends_on) FROM (
    SELECT depends_on FROM coord_task_deps AS d JOIN coord_tasks AS o ON o.task_id = d.depends_on
    WHERE d.task_id = t.task_id AND o.status != 'completed' ORDER BY depends_on
))
"""
_LIST = f"""
SELECT {_COLUMNS} FROM coord_tasks AS t WHERE status IN (SELECT value FROM json_each(:statuses))
AND (:project IS NULL OR project IS NULL OR project = :project) AND (:owner IS NULL OR owner = :owner)
ORDER BY status != 'claimed', status != 'open', priority DESC, id LIMIT :limit
"""
_GET = f"""
SELECT {_COLUMNS}, description, outcome, checkpoint_id, created_by, created_at, claimed_at
  FROM coord_tasks AS t WHERE task_id = ?
"""
_SILENT_OWNERS = """
SELECT owner FROM coord_tasks WHERE status = 'claimed' GROUP BY owner HAVING max(changed_at) < :before
AND NOT EXISTS (SELECT 1 FROM coord_sessions WHERE session_id = owner AND ended_at IS NULL
  AND seen_us >= :before_us)
AND NOT EXISTS (SELECT 1 FROM agent_sessions WHERE session_id = owner AND ended_at IS NULL) ORDER BY owner
  LIMIT 500
"""


NAME = "silent_owners"
VERSION = 1
EVERY = 300
VIEWS = ("coord_claims", "coord_tasks", "conversations")
_DEPENDS = "SELECT depends_on FROM coord_task_deps WHERE task_id = ? ORDER BY depends_on"
_NEEDED = "SELECT task_id FROM coord_task_deps WHERE depends_on = ? ORDER BY task_id"


class ListTasks(Query, frozen=True, kw_only=True, tag="task.list"):
    """List tasks: those that are claimed, then the open ones, by priority and age."""

    project: Annotated[One | None, Meta(description="of this project or of none")] = None
    statuses: Annotated[
        tuple[Status, ...], Meta(max_length=5, description="which; open and claimed where left out")
    ] = UNSETTLED
    owner: Annotated[One | None, Meta(description="that this session has, or had last")] = None
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many at most")] = 100


class GetTask(Query, frozen=True, kw_only=True, tag="task.get"):
    """Show a task: all that is known of it, what it waits for, and what waits for it."""

    task_id: Annotated[One, Meta(description="the task's id")]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task; `waits_for` are those of its dependencies that are not completed, `version` the position of
    its latest event.
    """

    task_id: str
    title: str
    status: str
    priority: int
    capability: str | None
    project: str | None
    owner: str | None
    progress: str | None
    version: int
    changed_at: str
    waits_for: list[str]


class WholeTask(Task, frozen=True, kw_only=True):
    """A task, and all that is known of it; `checkpoint_id` is the memory that says where its last owner
    stood.
    """

    description: str | None
    outcome: str | None
    checkpoint_id: str | None
    created_by: str | None
    created_at: str
    claimed_at: str | None
    depends_on: list[str]
    needed_by: list[str]
    position: int
    stale_by: int


class TaskPage(ViewAnswer, frozen=True):
    """Tasks; `truncated` says that there are more."""

    tasks: list[Task]
    truncated: bool


def list_tasks(connection: Connection, query: ListTasks, moment: Moment) -> TaskPage:
    """Read tasks."""
    statuses = msgspec.json.encode(query.statuses).decode()
    values = {"statuses": statuses, "project": query.project, "owner": query.owner, "limit": query.limit + 1}
    rows = connection.execute(_LIST, values).fetchall()
    tasks = [msgspec.convert(_fields(row), Task) for row in rows[: query.limit]]
    return TaskPage(tasks=tasks, truncated=len(rows) > query.limit, **moment.shown)


def get(connection: Connection, query: GetTask, moment: Moment) -> WholeTask:
    """Read a task; raises `NotFound`, and `Stale` where it may be just that the views do not show it yet."""
    row = connection.execute(_GET, (query.task_id,)).fetchone()
    if row is None:
        moment.require_current(f"there is no task {query.task_id[:80]}")
        raise NotFound(f"there is no task {query.task_id[:80]}", hint="task.list shows the ones there are")
    known = len(Task.__struct_fields__)
    names = ("description", "outcome", "checkpoint_id", "created_by", "created_at", "claimed_at")
    found = _fields(row[:known]) | dict(zip(names, row[known:], strict=True)) | moment.shown
    found["depends_on"] = [one for (one,) in connection.execute(_DEPENDS, (query.task_id,))]
    found["needed_by"] = [one for (one,) in connection.execute(_NEEDED, (query.task_id,))]
    return msgspec.convert(found, WholeTask)


def due(_slot: int, reader: Reader) -> Iterator[EndSession]:
    """Name the sessions without hooks that have a task and did nothing for as long, as far as the log knows;
    whether the daemon has heard of them meanwhile is for the command to say.
    """
    before_us = reader.now_us - IDLE_US
    values = {"before": rfc3339(before_us), "before_us": before_us}
    for (owner,) in reader.connection.execute(_SILENT_OWNERS, values).fetchall():
        yield EndSession(session_id=owner, reason="idle")


def _fields(row: Sequence[object]) -> dict[str, object]:
    *known, waits_for = row
    return dict(zip(Task.__struct_fields__, (*known, msgspec.json.decode(str(waits_for))), strict=True))


METHODS = (
    QueryMethod(
        params=ListTasks,
        answer=TaskPage,
        views=("coord_tasks",),
        read=list_tasks,
        is_paged=True,
        verb=Verb(
            "tasks",
            table=Table(
                "tasks",
                (
                    ("TASK", "{task_id}"),
                    ("STATUS", "{status}"),
                    ("PRIORITY", "{priority}"),
                    ("PROJECT", "{project}"),
                    ("OWNER", "{owner}"),
                    ("WAITS FOR", "{waits_for}"),
                    ("TITLE", "{title}"),
                ),
                none="none",
                warns=MORE,
            ),
            options=(WATCH,),
            examples=("omegad tasks", "omegad tasks --status failed --project shop"),
        ),
        tool=AgentTool(
            "omega_coord task_list", by="coordinating.tasks", takes={"project": "session.project"}, limit=20
        ),
    ),
    QueryMethod(
        params=GetTask,
        answer=WholeTask,
        views=("coord_tasks",),
        read=get,
        verb=Verb(examples=("omegad task get task-0f2c7f4e9a0b",)),
    ),
)
