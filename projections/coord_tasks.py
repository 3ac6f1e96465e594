"""The tasks that agents share, each as it is, and what waits for what."""

from collections.abc import Iterator

from omegad.coordination.events import (
    TaskCancelled,
    TaskClaimed,
    TaskCompleted,
    TaskCreated,
    TaskDependencyChanged,
    TaskFailed,
    TaskProgressed,
    TaskReopened,
)
from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement
from omegad.runtime.times import rfc3339

NAME = "coord_tasks"
VERSION = 1
EVENTS = (
    TaskCreated,
    TaskClaimed,
    TaskProgressed,
    TaskCompleted,
    TaskFailed,
    TaskCancelled,
    TaskReopened,
    TaskDependencyChanged,
)

SCHEMA = """
CREATE TABLE coord_tasks (
    id            INTEGER PRIMARY KEY, -- position of task.created
    task_id       TEXT NOT NULL UNIQUE,
    title         TEXT NOT NULL,
    description   TEXT,
    status        TEXT NOT NULL,       -- open, claimed, completed, failed or cancelled
    priority      INTEGER NOT NULL,    -- 5 comes first
    capability    TEXT,
    project       TEXT,
    owner         TEXT,                -- the session that has it, or had it last
    progress      TEXT,                -- said last
    outcome       TEXT,                -- what came of it, or why it is as it is
    checkpoint_id TEXT,                -- the memory that says where the last owner stood
    created_by    TEXT,                -- session
    created_at    TEXT NOT NULL,
    claimed_at    TEXT,
    changed_at    TEXT NOT NULL,
    version       INTEGER NOT NULL     -- position of its latest event
) STRICT;
CREATE TABLE coord_task_deps (
    task_id    TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    PRIMARY KEY (task_id, depends_on)
) STRICT, WITHOUT ROWID;
"""
INDEXES = """
CREATE INDEX coord_tasks_by_status ON coord_tasks (status, priority DESC, id);
CREATE INDEX coord_tasks_by_owner ON coord_tasks (owner, status);
CREATE INDEX coord_task_deps_by_other ON coord_task_deps (depends_on);
"""
CANONICAL = (
    "SELECT * FROM coord_tasks ORDER BY id",
    "SELECT * FROM coord_task_deps ORDER BY task_id, depends_on",
)

_INSERT = (
    "INSERT INTO coord_tasks VALUES (?1, ?2, ?3, ?4, 'open', ?5, ?6, ?7, NULL, NULL, NULL, NULL, ?8, ?9,"
    " NULL, ?9, ?1)"
)
_DEPENDS = "INSERT OR IGNORE INTO coord_task_deps VALUES (?, ?)"
_CHANGED = "changed_at = ?, version = ? WHERE task_id = ?"
_CLAIMED = f"UPDATE coord_tasks SET status = 'claimed', owner = ?, outcome = ?, claimed_at = ?, {_CHANGED}"
_PROGRESSED = f"UPDATE coord_tasks SET progress = ?, {_CHANGED}"
_SETTLED = f"UPDATE coord_tasks SET status = ?, outcome = ?, {_CHANGED}"
_REOPENED = (
    "UPDATE coord_tasks SET status = 'open', outcome = ?, checkpoint_id = coalesce(?, checkpoint_id),"
    f" {_CHANGED}"
)
_WAITS = f"UPDATE coord_tasks SET {_CHANGED}"


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    at, position = rfc3339(recorded.occurred_at), recorded.position
    match recorded.event:
        case TaskCreated(task_id=task_id) as new:
            known = (position, task_id, new.title, new.description, new.priority, new.capability)
            yield Statement(_INSERT, (*known, recorded.project, recorded.session_id, at))
            for depends_on in new.depends_on:
                yield Statement(_DEPENDS, (task_id, depends_on))
        case TaskClaimed(task_id=task_id, owner=owner, reason=reason):
            yield Statement(_CLAIMED, (owner, reason, at, at, position, task_id))
        case TaskProgressed(task_id=task_id, progress=progress):
            yield Statement(_PROGRESSED, (progress, at, position, task_id))
        case TaskCompleted(task_id=task_id, result=result):
            yield Statement(_SETTLED, ("completed", result, at, position, task_id))
        case TaskFailed(task_id=task_id, reason=reason):
            yield Statement(_SETTLED, ("failed", reason, at, position, task_id))
        case TaskCancelled(task_id=task_id, reason=reason):
            yield Statement(_SETTLED, ("cancelled", reason, at, position, task_id))
        case TaskReopened(task_id=task_id, reason=reason, checkpoint_id=checkpoint_id):
            yield Statement(_REOPENED, (reason, checkpoint_id, at, position, task_id))
        case TaskDependencyChanged(task_id=task_id, depends_on=depends_on, is_dropped=is_dropped):
            yield Statement(
                "DELETE FROM coord_task_deps WHERE task_id = ? AND depends_on = ?"
                if is_dropped
                else _DEPENDS,
                (task_id, depends_on),
            )
            yield Statement(_WAITS, (at, position, task_id))
