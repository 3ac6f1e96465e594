"""What decisions know of tasks: who has which, what waits for what, and where each session said that it
stood last.
"""

from collections.abc import Iterator, Sequence

import msgspec

from omegad.coordination.events import TaskClaimed, TaskMissed
from omegad.coordination.folding import in_state, of_state
from omegad.log.decision import Tables
from omegad.log.event import Position, RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, set_right, to_json
from omegad.memory.events import MemoryErased, MemoryStored
from projections import coord_snapshots, coord_tasks

NAME = "tasks"
VERSION = 4
EVENTS = (*coord_tasks.EVENTS, TaskMissed, MemoryStored, MemoryErased, ClockMended)

SCHEMA = (
    of_state(coord_tasks.SCHEMA)
    + """
CREATE INDEX state_tasks_open ON state_tasks (priority DESC, id) WHERE status = 'open';
CREATE INDEX state_tasks_owner ON state_tasks (owner) WHERE status = 'claimed';
CREATE TABLE state_task_claims ( -- the latest of each task
    task_id    TEXT PRIMARY KEY,
    position   INTEGER NOT NULL, -- of task.claimed
    claimed_us INTEGER NOT NULL  -- microseconds since 1970
) STRICT, WITHOUT ROWID;
CREATE TABLE state_missed_tasks ( -- which sessions were told of their project's tasks
    session_id TEXT PRIMARY KEY,
    position   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE state_checkpoints ( -- the latest of each session
    session_id TEXT PRIMARY KEY,
    memory_id  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
)
CANONICAL = (
    *map(of_state, coord_tasks.CANONICAL),
    "SELECT * FROM state_task_claims ORDER BY task_id",
    "SELECT * FROM state_missed_tasks ORDER BY session_id",
    "SELECT * FROM state_checkpoints ORDER BY session_id",
)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryStored(memory_id=memory_id, event_type=event_type):
            if event_type in coord_snapshots.STATES and recorded.session_id:
                yield Statement(
                    "INSERT OR REPLACE INTO state_checkpoints VALUES (?, ?)", (recorded.session_id, memory_id)
                )
        case MemoryErased(memory_id=memory_id):
            yield Statement("DELETE FROM state_checkpoints WHERE memory_id = ?", (memory_id,))
        case TaskMissed():
            yield Statement(
                "INSERT OR IGNORE INTO state_missed_tasks VALUES (?, ?)",
                (recorded.session_id or "", recorded.position),
            )
        case ClockMended() as mended:
            yield from set_right(mended, "state_task_claims", "claimed_us")
        case _:
            yield from in_state(coord_tasks.project(recorded))
            if isinstance(recorded.event, TaskClaimed):
                yield Statement(
                    "INSERT OR REPLACE INTO state_task_claims VALUES (?, ?, ?)",
                    (recorded.event.task_id, recorded.position, recorded.recorded_at),
                )


class TaskState(msgspec.Struct, frozen=True):
    """What the log knows of a task: who has it, or had it last, and since when, in microseconds since 1970;
    `version` is the position of its latest event.
    """

    task_id: str
    status: str
    owner: str | None
    project: str | None
    version: Position
    claimed_us: int | None


_TASKS = """
SELECT task_id, status, owner, project, version, claimed_us
FROM state_tasks AS t LEFT JOIN state_task_claims AS c USING (task_id)
"""
_IS_READY = """
status = 'open' AND NOT EXISTS (
    SELECT 1 FROM state_task_deps AS d JOIN state_tasks AS o ON o.task_id = d.depends_on
    WHERE d.task_id = t.task_id AND o.status != 'completed'
)
"""
_NEXT = f"""
{_TASKS} WHERE {_IS_READY} AND (?1 IS NULL OR project IS NULL OR project = ?1)
AND (capability IS NULL OR capability IN (SELECT value FROM json_each(?2)))
ORDER BY priority DESC, id LIMIT 1
"""
_READY_OF = f"{_TASKS} WHERE {_IS_READY} AND project = ? ORDER BY priority DESC, id LIMIT 1"
_CLAIMED_BY = f"""
{_TASKS} WHERE owner = ?1 AND status = 'claimed' AND (?2 IS NULL OR position < ?2) ORDER BY position
"""


class Tasks(Tables):
    """Reads the tables."""

    def get(self, task_id: str) -> TaskState | None:
        """Return what is known of a task, None where there is none by this id."""
        return next(self._found(f"{_TASKS} WHERE task_id = ?", (task_id,)), None)

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
        return self._has(sql, task_id, other)

    def next(self, project: str | None, capabilities: Sequence[str]) -> TaskState | None:
        """Return the open task that is to be done first by who has these capabilities: of a project or of
        none, of any where it is None.
        """
        return next(self._found(_NEXT, (project, to_json(capabilities))), None)

    def claimed_by(self, session_id: str, before: Position | None) -> list[TaskState]:
        """Return the tasks that a session has, and claimed before a position where one is named, first
        claimed first.
        """
        return list(self._found(_CLAIMED_BY, (session_id, before)))

    def ready_of(self, project: str) -> str | None:
        """Return the open task of a project that is to be done first, whoever can; None where none is that
        waits for no other.
        """
        found = next(self._found(_READY_OF, (project,)), None)
        return found.task_id if found else None

    def has_missed(self, session_id: str) -> bool:
        """Say whether a session was told that its project has tasks."""
        return self._has("SELECT 1 FROM state_missed_tasks WHERE session_id = ?", session_id)

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
            for (depends_on,) in self._connection.execute(
                "SELECT depends_on FROM state_task_deps WHERE task_id = ?", (task_id,)
            ).fetchall():
                if depends_on not in came_from:
                    came_from[depends_on] = task_id
                    waiting.append(depends_on)
        return None

    def checkpoint(self, session_id: str) -> str | None:
        """Return the memory that says where a session stood last."""
        row = self._connection.execute(
            "SELECT memory_id FROM state_checkpoints WHERE session_id = ?", (session_id,)
        ).fetchone()
        return row[0] if row else None

    def _found(self, sql: str, values: tuple[object, ...]) -> Iterator[TaskState]:
        return (TaskState(*row) for row in self._connection.execute(sql, values).fetchall())
