"""What happens to the tasks that agents share. Who did it is the session of the event, and whose work it is its project."""

from omegad.log.event import Event, FreeText, GivenName, MadeId


class TaskCreated(Event, frozen=True, kw_only=True, tag="task.created@1"):
    """A task was put down, open to whoever has its `capability`, once those that it depends on are completed. `priority` 5 comes first."""

    task_id: MadeId
    title: FreeText
    description: FreeText | None
    priority: int
    capability: FreeText | None
    depends_on: tuple[MadeId, ...]


class TaskClaimed(Event, frozen=True, kw_only=True, tag="task.claimed@1"):
    """A session took a task; from the session `taken_from`, for a reason, where another had it."""

    task_id: MadeId
    owner: GivenName
    taken_from: GivenName | None
    reason: FreeText | None


class TaskProgressed(Event, frozen=True, kw_only=True, tag="task.progressed@1"):
    """Its owner said how far a task has come."""

    task_id: MadeId
    progress: FreeText


class TaskCompleted(Event, frozen=True, kw_only=True, tag="task.completed@1"):
    """A task was done."""

    task_id: MadeId
    result: FreeText | None


class TaskFailed(Event, frozen=True, kw_only=True, tag="task.failed@1"):
    """A task could not be done."""

    task_id: MadeId
    reason: FreeText


class TaskCancelled(Event, frozen=True, kw_only=True, tag="task.cancelled@1"):
    """A task was not wanted any more."""

    task_id: MadeId
    reason: FreeText


class TaskReopened(Event, frozen=True, kw_only=True, tag="task.reopened@1"):
    """A task is open again. `owner` had it last; `checkpoint_id` is the memory that says where that session stood."""

    task_id: MadeId
    reason: FreeText
    owner: GivenName | None
    checkpoint_id: MadeId | None


class TaskDependencyChanged(Event, frozen=True, kw_only=True, tag="task.dependency_changed@1"):
    """A task waits for another from here on, or does not (`is_dropped`)."""

    task_id: MadeId
    depends_on: MadeId
    is_dropped: bool
