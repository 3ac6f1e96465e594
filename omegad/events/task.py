"""What happens to the tasks that agents share. Who did it is the session of the event, and whose work it is its project."""

from omegad.log.event import Event, FreeText


class TaskCreated(Event, frozen=True, kw_only=True, tag="task.created@1"):
    """A task was put down, open to whoever has its `capability`, once those that it depends on are completed. `priority` 5 comes first."""

    task_id: str
    title: FreeText
    description: FreeText | None
    priority: int
    capability: FreeText | None
    depends_on: tuple[str, ...]


class TaskClaimed(Event, frozen=True, kw_only=True, tag="task.claimed@1"):
    """A session took a task; from the session `taken_from`, for a reason, where another had it."""

    task_id: str
    owner: str
    taken_from: str | None
    reason: FreeText | None


class TaskProgressed(Event, frozen=True, kw_only=True, tag="task.progressed@1"):
    """Its owner said how far a task has come."""

    task_id: str
    progress: FreeText


class TaskCompleted(Event, frozen=True, kw_only=True, tag="task.completed@1"):
    """A task was done."""

    task_id: str
    result: FreeText | None


class TaskFailed(Event, frozen=True, kw_only=True, tag="task.failed@1"):
    """A task could not be done."""

    task_id: str
    reason: FreeText


class TaskCancelled(Event, frozen=True, kw_only=True, tag="task.cancelled@1"):
    """A task was not wanted any more."""

    task_id: str
    reason: FreeText


class TaskReopened(Event, frozen=True, kw_only=True, tag="task.reopened@1"):
    """A task is open again. `owner` had it last; `checkpoint_id` is the memory that says where that session stood."""

    task_id: str
    reason: FreeText
    owner: str | None
    checkpoint_id: str | None


class TaskDependencyChanged(Event, frozen=True, kw_only=True, tag="task.dependency_changed@1"):
    """A task waits for another from here on, or does not (`is_dropped`)."""

    task_id: str
    depends_on: str
    is_dropped: bool
