"""Commands on the tasks that agents share. Who has which is decided on the log's own state, so that no two
sessions ever have the same.
"""

from typing import Annotated

from msgspec import Meta

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
from omegad.coordination.task_state import Tasks, TaskState
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Event, NewEvent, Position
from omegad.requests.command import Acknowledged, Command, Name, Reason
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.requests.verb import AgentTool, Verb
from omegad.runtime.errors import Invalid, NotFound, Refused
from omegad.runtime.times import rfc3339
from omegad.session.hook_state import Hooks

MINUTE = len("2026-01-31T09:30")

TaskId = Annotated[Name, Meta(description="the task's id")]
By = Annotated[
    Name, Meta(description="the session that takes it, and has to end before anybody else gets it")
]
As = Annotated[
    Name | None,
    Meta(description="the session that says so, which must be the one that has it; a person where left out"),
]
Some = Annotated[tuple[Name, ...], Meta(max_length=32)]
Text = Annotated[str, Meta(max_length=4_096)]


class CreateTask(Command, frozen=True, kw_only=True, tag="task.create"):
    """Put down a task for whichever agent takes it."""

    title: Annotated[str, Meta(min_length=1, max_length=200, description="what is to be done, in a line")]
    description: Annotated[Text | None, Meta(description="what one has to know to do it")] = None
    project: Annotated[Name | None, Meta(description="which project it is for; any where left out")] = None
    priority: Annotated[int, Meta(ge=1, le=5, description="what comes first: 5 before 1")] = 3
    depends_on: Annotated[Some, Meta(description="a task that must be completed before")] = ()
    capability: Annotated[
        Name | None,
        Meta(description="what only some agents can do and is needed for it, like write or browser"),
    ] = None
    session_id: Annotated[Name | None, Meta(description="the session that puts it down")] = None


class ClaimTask(Command, frozen=True, kw_only=True, tag="task.claim"):
    """Take a task, which nobody else then gets."""

    task_id: TaskId
    session_id: By
    version: Annotated[
        int | None, Meta(description="only if it has not changed since it had this version")
    ] = None
    force: Annotated[bool, Meta(description="take it from the session that has it, for a reason")] = False
    reason: Reason | None = None


class NextTask(Command, frozen=True, kw_only=True, tag="task.next"):
    """Take the task that comes first by priority, then age, of those that wait for nothing and that one is
    able to do.
    """

    session_id: By
    project: Annotated[Name | None, Meta(description="of this project or of none; of any where left out")] = (
        None
    )
    capabilities: Annotated[Some, Meta(description="what the session can do that not every agent can")] = ()


class ProgressTask(Command, frozen=True, kw_only=True, tag="task.progress"):
    """Say how far a task has come."""

    task_id: TaskId
    progress: Annotated[Text, Meta(min_length=1, description="what is done, and what is next")]
    session_id: As = None


class CompleteTask(Command, frozen=True, kw_only=True, tag="task.complete"):
    """Say that a task is done, which frees those that wait for it."""

    task_id: TaskId
    result: Annotated[Text | None, Meta(description="what came of it")] = None
    session_id: As = None


class TurnTask(Command, frozen=True, kw_only=True):
    """Base of what turns a task for a reason."""

    task_id: TaskId
    reason: Annotated[Reason, Meta(min_length=1)]
    session_id: As = None


class FailTask(TurnTask, frozen=True, kw_only=True, tag="task.fail"):
    """Say that a task cannot be done; those that depend on it go on waiting."""


class CancelTask(TurnTask, frozen=True, kw_only=True, tag="task.cancel"):
    """Say that a task is not wanted any more; those that depend on it go on waiting."""


class ReopenTask(TurnTask, frozen=True, kw_only=True, tag="task.reopen"):
    """Open a task again, that was claimed, completed, failed or cancelled."""


class ReleaseTasks(Command, frozen=True, kw_only=True, tag="task.release"):
    """Open the tasks again that a session claimed before a position, at which it ended."""

    session_id: Name
    before: Position
    reason: Reason


class DependTask(Command, frozen=True, kw_only=True, tag="task.depend"):
    """Let a task wait for another; refused where the other waits for it."""

    task_id: TaskId
    depends_on: Annotated[Name, Meta(description="the task that must be completed before")]
    drop: Annotated[bool, Meta(description="let it go ahead without")] = False
    session_id: As = None


class TaskAnswer(Acknowledged, frozen=True):
    """A task as it is from here on; `position`, that of its latest event, is its version. Without an id
    there was none to take.
    """

    task_id: str | None = None
    status: str | None = None
    owner: str | None = None


async def prepare(services: Services, _command: CreateTask, _context: RequestContext) -> str:
    """Return the id of a new task."""
    return f"task-{services.clock.random_bits(48):012x}"


def create(command: CreateTask, task_id: str, state: DecisionState, _now_us: int) -> Decision:
    """Decide a new task; raises `NotFound` for one that it should depend on and that there is not."""
    for other in command.depends_on:
        _known(state, other)
    event = TaskCreated(
        task_id=task_id,
        title=command.title,
        description=command.description,
        priority=command.priority,
        capability=command.capability,
        depends_on=tuple(dict.fromkeys(command.depends_on)),
    )
    new = NewEvent(event=event, session_id=command.session_id, project=command.project)
    return Decision(events=(new,), answer=TaskAnswer(task_id=task_id, status="open"))


def claim(command: ClaimTask, state: DecisionState, _now_us: int) -> Decision:
    """Decide who has a task; what a session has already it may claim again. Raises `Refused`, naming who
    has it or what it waits for.
    """
    task = _known(state, command.task_id)
    if command.version not in (None, task.version):
        raise Refused(
            f"task {task.task_id} has changed since: it is {task.status}, at version {task.version}",
            hint="look at it again",
        )
    if task.status == "claimed":
        if task.owner == command.session_id:
            return _as_it_is(task)
        if not command.force:
            hint = "take another one, or this one with force and a reason"
            raise Refused(f"task {task.task_id} is claimed by {_owner(task, state)}", hint=hint)
        if not command.reason:
            raise Invalid("force needs a reason")
    elif task.status != "open":
        raise Refused(f"task {task.task_id} is {task.status}", hint="`omegad task reopen` opens it again")
    if waits_for := state[Tasks].waits_for(task.task_id):
        raise Refused(
            f"task {task.task_id} waits for {', '.join(waits_for)}",
            hint="those come first; `omegad task depend --drop` lets it go ahead",
        )
    return _claimed(task, command.session_id, command.reason if task.status == "claimed" else None)


def take_next(command: NextTask, state: DecisionState, _now_us: int) -> Decision:
    """Decide which task a session gets."""
    task = state[Tasks].next(command.project, command.capabilities)
    return Decision(answer=TaskAnswer()) if task is None else _claimed(task, command.session_id, None)


def progress(command: ProgressTask, state: DecisionState, _now_us: int) -> Decision:
    """Decide a task's progress."""
    task = _held(state, command.task_id, command.session_id)
    return _changed(
        task, TaskProgressed(task_id=task.task_id, progress=command.progress), command.session_id, task.status
    )


def complete(command: CompleteTask, state: DecisionState, _now_us: int) -> Decision:
    """Decide that a task is done."""
    task = _held(state, command.task_id, command.session_id)
    return _changed(
        task, TaskCompleted(task_id=task.task_id, result=command.result), command.session_id, "completed"
    )


def fail(command: FailTask, state: DecisionState, _now_us: int) -> Decision:
    """Decide that a task cannot be done."""
    task = _held(state, command.task_id, command.session_id)
    return _changed(
        task, TaskFailed(task_id=task.task_id, reason=command.reason), command.session_id, "failed"
    )


def cancel(command: CancelTask, state: DecisionState, _now_us: int) -> Decision:
    """Decide that a task is not wanted any more; one that nobody has may be cancelled by anybody."""
    task = _known(state, command.task_id)
    if task.status != "open":
        task = _held(state, command.task_id, command.session_id)
    return _changed(
        task, TaskCancelled(task_id=task.task_id, reason=command.reason), command.session_id, "cancelled"
    )


def reopen(command: ReopenTask, state: DecisionState, _now_us: int) -> Decision:
    """Decide that a task is open again; one that is open already stays as it is."""
    task = _known(state, command.task_id)
    if task.status == "open":
        return _as_it_is(task)
    if task.status == "claimed":
        task = _held(state, command.task_id, command.session_id)
    return _changed(task, _reopened(task, command.reason, state), command.session_id, "open")


def release(command: ReleaseTasks, state: DecisionState, _now_us: int) -> Decision:
    """Decide which tasks a session leaves behind; those that it has claimed since are left alone."""
    events = (
        NewEvent(
            event=_reopened(task, command.reason, state), session_id=command.session_id, project=task.project
        )
        for task in state[Tasks].claimed_by(command.session_id, command.before)
    )
    return Decision(events=tuple(events), answer=TaskAnswer(status="open"))


def depend(command: DependTask, state: DecisionState, _now_us: int) -> Decision:
    """Decide what a task waits for. Raises `Refused`, naming the tasks that would wait for each other in a
    circle.
    """
    task, other = _known(state, command.task_id), _known(state, command.depends_on)
    if task.status == "claimed":
        task = _held(state, command.task_id, command.session_id)
    if state[Tasks].depends_on(task.task_id, other.task_id) is not command.drop:
        return _as_it_is(task)
    if not command.drop and (way := state[Tasks].way(other.task_id, task.task_id)):
        circle = " → ".join((task.task_id, *way))
        raise Refused(
            f"these would wait for each other: {circle}", hint="drop one of these dependencies first"
        )
    event = TaskDependencyChanged(task_id=task.task_id, depends_on=other.task_id, is_dropped=command.drop)
    return _changed(task, event, command.session_id, task.status)


def _known(state: DecisionState, task_id: str) -> TaskState:
    task = state[Tasks].get(task_id)
    if task is None:
        raise NotFound(f"there is no task {task_id[:80]}", hint="task.list shows the ones there are")
    return task


def _held(state: DecisionState, task_id: str, session_id: str | None) -> TaskState:
    """Return a task that a session has, or that is not settled where a person asks; raises `Refused`,
    naming who has it.
    """
    task = _known(state, task_id)
    if task.status not in {"open", "claimed"}:
        raise Refused(f"task {task_id} is {task.status}", hint="`omegad task reopen` opens it again")
    if session_id is not None and task.status == "open":
        raise Refused(f"task {task_id} is claimed by nobody", hint="claim it first: task.claim")
    if session_id not in (None, task.owner):
        raise Refused(
            f"task {task_id} is claimed by {_owner(task, state)}",
            hint="leave it to them, or take it with force and a reason: task.claim",
        )
    return task


def _owner(task: TaskState, state: DecisionState) -> str:
    session = state[Hooks].session(task.owner or "")
    host = f" of {session.host}" if session else ""
    return f"session {task.owner}{host} since {rfc3339(task.claimed_us or 0)[:MINUTE]}Z"


def _claimed(task: TaskState, session_id: str, reason: str | None) -> Decision:
    taken_from = task.owner if task.status == "claimed" else None
    event = TaskClaimed(task_id=task.task_id, owner=session_id, taken_from=taken_from, reason=reason)
    return _changed(task, event, session_id, "claimed", session_id)


def _reopened(task: TaskState, reason: str, state: DecisionState) -> TaskReopened:
    checkpoint_id = state[Tasks].checkpoint(task.owner) if task.owner else None
    return TaskReopened(task_id=task.task_id, reason=reason, owner=task.owner, checkpoint_id=checkpoint_id)


def _changed(
    task: TaskState, event: Event, session_id: str | None, status: str, owner: str | None = None
) -> Decision:
    return Decision(
        events=(NewEvent(event=event, session_id=session_id, project=task.project),),
        answer=TaskAnswer(task_id=task.task_id, status=status, owner=owner or task.owner),
    )


def _as_it_is(task: TaskState) -> Decision:
    return Decision(
        answer=TaskAnswer(task_id=task.task_id, status=task.status, owner=task.owner, position=task.version)
    )


BECAME = Verb(says="{task_id} is {status}")
SETTLING = {"task_id": "id", "session_id": "session.itself"}

METHODS = (
    CommandMethod(
        params=CreateTask,
        answer=TaskAnswer,
        prepare=prepare,
        decide=create,
        verb=Verb(
            says="created {task_id}",
            examples=('omegad task create "Move billing to PostgreSQL 17" --project shop --priority 4',),
        ),
    ),
    CommandMethod(
        params=ClaimTask,
        answer=TaskAnswer,
        decide=claim,
        verb=Verb(
            examples=("omegad task claim task-0f2c7f4e9a0b s-1",), says="{task_id} is claimed by {owner}"
        ),
    ),
    CommandMethod(
        params=NextTask,
        answer=TaskAnswer,
        decide=take_next,
        verb=Verb(
            examples=("omegad task next s-1",), says="{task_id|no task is ready}{owner: is claimed by %s}"
        ),
    ),
    CommandMethod(
        params=ProgressTask,
        answer=TaskAnswer,
        decide=progress,
        verb=BECAME._replace(
            examples=("omegad task progress task-0f2c7f4e9a0b 'tables are copied, indexes are next'",)
        ),
        tool=AgentTool(
            "omega_coord task_progress", by="coordinating.settled", takes=SETTLING | {"progress": "text"}
        ),
    ),
    CommandMethod(
        params=CompleteTask,
        answer=TaskAnswer,
        decide=complete,
        verb=BECAME._replace(examples=("omegad task complete task-0f2c7f4e9a0b --result 'runs on 17'",)),
        tool=AgentTool(
            "omega_coord task_done", by="coordinating.settled", takes=SETTLING | {"result": "text"}
        ),
    ),
    CommandMethod(
        params=FailTask,
        answer=TaskAnswer,
        decide=fail,
        verb=BECAME._replace(examples=("omegad task fail task-0f2c7f4e9a0b 'the migration needs a lock'",)),
        tool=AgentTool(
            "omega_coord task_fail", by="coordinating.settled", takes=SETTLING | {"reason": "text"}
        ),
    ),
    CommandMethod(
        params=CancelTask,
        answer=TaskAnswer,
        decide=cancel,
        verb=BECAME._replace(examples=("omegad task cancel task-0f2c7f4e9a0b 'no longer wanted'",)),
    ),
    CommandMethod(
        params=ReopenTask,
        answer=TaskAnswer,
        decide=reopen,
        verb=BECAME._replace(examples=('omegad task reopen task-0f2c7f4e9a0b "its agent is gone"',)),
    ),
    CommandMethod(
        params=DependTask,
        answer=TaskAnswer,
        decide=depend,
        verb=BECAME._replace(examples=("omegad task depend task-0f2c7f4e9a0b task-4d1e8c6d5a4b",)),
    ),
    CommandMethod(params=ReleaseTasks, answer=TaskAnswer, decide=release, is_internal=True),
)
