"""What decisions know of tasks: who has which, what waits for what, and where each session said that it stood last."""

from collections.abc import Iterator, Sequence

import msgspec

from omegad.coordination.task_events import (
    TaskCancelled,
    TaskClaimed,
    TaskCompleted,
    TaskCreated,
    TaskDependencyChanged,
    TaskFailed,
    TaskProgressed,
    TaskReopened,
)
from omegad.log.event import Position, RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, set_right, to_json
from omegad.memory.events import MemoryErased, MemoryStored
from omegad.storage.driver import Connection

NAME = "tasks"
VERSION = 2
EVENTS = (
    *(TaskCreated, TaskClaimed, TaskProgressed, TaskCompleted, TaskFailed, TaskCancelled, TaskReopened, TaskDependencyChanged),
    MemoryStored,
    MemoryErased,
    ClockMended,
)
STATES = ("checkpoint", "handoff")
"""The types of memories that say where a session stands."""

SCHEMA = """
CREATE TABLE state_tasks (
    task_id    TEXT PRIMARY KEY,
    status     TEXT NOT NULL CHECK (status IN ('open', 'claimed', 'completed', 'failed', 'cancelled')),
    owner      TEXT,             -- the session that has it, or had it last
    project    TEXT,
    capability TEXT,
    priority   INTEGER NOT NULL,
    created_at INTEGER NOT NULL, -- position of task.created
    changed_at INTEGER NOT NULL, -- position of its latest event: its version
    claimed_at INTEGER,          -- position of its latest task.claimed
    claimed_us INTEGER           -- microseconds since 1970
) STRICT, WITHOUT ROWID;
CREATE INDEX state_tasks_open ON state_tasks (priority DESC, created_at) WHERE status = 'open';
CREATE INDEX state_tasks_owner ON state_tasks (owner) WHERE status = 'claimed';
CREATE TABLE state_task_deps (
    task_id    TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    PRIMARY KEY (task_id, depends_on)
) STRICT, WITHOUT ROWID;
CREATE TABLE state_checkpoints ( -- the latest of each session
    session_id TEXT PRIMARY KEY,
    memory_id  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
CANONICAL = (
    "SELECT * FROM state_tasks ORDER BY task_id",
    "SELECT * FROM state_task_deps ORDER BY task_id, depends_on",
    "SELECT * FROM state_checkpoints ORDER BY session_id",
)

_INSERT = "INSERT INTO state_tasks VALUES (?, 'open', NULL, ?, ?, ?, ?, ?, NULL, NULL)"
_DEPENDS = "INSERT OR IGNORE INTO state_task_deps VALUES (?, ?)"
_FREE = "DELETE FROM state_task_deps WHERE task_id = ? AND depends_on = ?"
_CLAIM = "UPDATE state_tasks SET status = 'claimed', owner = ?1, changed_at = ?2, claimed_at = ?2, claimed_us = ?3 WHERE task_id = ?4"
_STATUS = "UPDATE state_tasks SET status = ?, changed_at = ? WHERE task_id = ?"
_CHANGED = "UPDATE state_tasks SET changed_at = ? WHERE task_id = ?"
_CHECKPOINT = "INSERT OR REPLACE INTO state_checkpoints VALUES (?, ?)"


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    position = recorded.position
    match recorded.event:
        case TaskCreated() as created:
            known = (created.task_id, recorded.project, created.capability, created.priority, position, position)
            yield Statement(_INSERT, known)
            for depends_on in created.depends_on:
                yield Statement(_DEPENDS, (created.task_id, depends_on))
        case TaskClaimed(task_id=task_id, owner=owner):
            yield Statement(_CLAIM, (owner, position, recorded.recorded_at, task_id))
        case TaskProgressed(task_id=task_id):
            yield Statement(_CHANGED, (position, task_id))
        case TaskDependencyChanged(task_id=task_id, depends_on=depends_on, is_dropped=is_dropped):
            yield Statement(_FREE if is_dropped else _DEPENDS, (task_id, depends_on))
            yield Statement(_CHANGED, (position, task_id))
        case TaskCompleted() | TaskFailed() | TaskCancelled() | TaskReopened() as settled:
            yield Statement(_STATUS, (_SETTLED[type(settled)], position, settled.task_id))
        case ClockMended() as mended:
            yield from set_right(mended, "state_tasks", "claimed_us")
        case _:
            yield from _checkpoints(recorded)


def _checkpoints(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryStored(memory_id=memory_id, event_type=event_type):
            if event_type in STATES and recorded.session_id:
                yield Statement(_CHECKPOINT, (recorded.session_id, memory_id))
        case MemoryErased(memory_id=memory_id):
            yield Statement("DELETE FROM state_checkpoints WHERE memory_id = ?", (memory_id,))
        case _:
            pass


_SETTLED = {TaskCompleted: "completed", TaskFailed: "failed", TaskCancelled: "cancelled", TaskReopened: "open"}


class TaskState(msgspec.Struct, frozen=True):
    """What the log knows of a task; `changed_at`, the position of its latest event, is its version."""

    task_id: str
    status: str
    owner: str | None
    project: str | None
    capability: str | None
    priority: int
    created_at: Position
    changed_at: Position
    claimed_at: Position | None
    claimed_us: int | None


class Tasks:
    """Reads the tables."""

    def __init__(self, connection: Connection) -> None:
        """Read through *connection*, whatever transaction is open there."""
        self._connection = connection

    def get(self, task_id: str) -> TaskState | None:
        """Return what is known of a task, None where there is none by this id."""
        return next(self._found("SELECT * FROM state_tasks WHERE task_id = ?", (task_id,)), None)

    def waits_for(self, task_id: str) -> list[str]:
        """Return the tasks that one depends on and that are not completed."""
        sql = """
        SELECT depends_on FROM state_task_deps JOIN state_tasks ON state_tasks.task_id = depends_on
        WHERE state_task_deps.task_id = ? AND status != 'completed' ORDER BY depends_on
        """
        return [depends_on for (depends_on,) in self._connection.execute(sql, (task_id,))]

    def depends_on(self, task_id: str, other: str) -> bool:
        """Say whether a task depends on another, completed or not."""
        sql = "SELECT 1 FROM state_task_deps WHERE task_id = ? AND depends_on = ?"
        return self._connection.execute(sql, (task_id, other)).fetchone() is not None

    def next(self, project: str | None, capabilities: Sequence[str]) -> TaskState | None:
        """Return the open task that is to be done first by who has these capabilities: of a project or of none, of any where it is None."""
        sql = """
        SELECT * FROM state_tasks AS t WHERE status = 'open' AND (?1 IS NULL OR project IS NULL OR project = ?1)
        AND (capability IS NULL OR capability IN (SELECT value FROM json_each(?2)))
        AND NOT EXISTS (
            SELECT 1 FROM state_task_deps AS d JOIN state_tasks AS o ON o.task_id = d.depends_on
            WHERE d.task_id = t.task_id AND o.status != 'completed'
        )
        ORDER BY priority DESC, created_at LIMIT 1
        """
        return next(self._found(sql, (project, to_json(capabilities))), None)

    def claimed_by(self, session_id: str, before: Position | None) -> list[TaskState]:
        """Return the tasks that a session has, and claimed before a position where one is named, first claimed first."""
        sql = "SELECT * FROM state_tasks WHERE owner = ?1 AND status = 'claimed' AND (?2 IS NULL OR claimed_at < ?2) ORDER BY claimed_at"
        return list(self._found(sql, (session_id, before)))

    def way(self, start: str, end: str) -> list[str] | None:
        """Return the tasks from one to another, each depending on the next; None where none leads there."""
        came_from: dict[str, str] = {start: ""}
        waiting = [start]
        for task_id in waiting:
            if task_id == end:
                found = [end]
                while before := came_from[found[-1]]:
                    found.append(before)
                return found[::-1]
            for (depends_on,) in self._connection.execute("SELECT depends_on FROM state_task_deps WHERE task_id = ?", (task_id,)).fetchall():
                if depends_on not in came_from:
                    came_from[depends_on] = task_id
                    waiting.append(depends_on)
        return None

    def checkpoint(self, session_id: str) -> str | None:
        """Return the memory that says where a session stood last."""
        row = self._connection.execute("SELECT memory_id FROM state_checkpoints WHERE session_id = ?", (session_id,)).fetchone()
        return row[0] if row else None

    def _found(self, sql: str, values: tuple[object, ...]) -> Iterator[TaskState]:
        return (TaskState(*row) for row in self._connection.execute(sql, values).fetchall())
