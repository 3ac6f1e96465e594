"""What happens between agents: to the tasks that they share, the files and branches that they hold, and what
they say to each other. Who did it is the session of the event, and whose work it is its project.
"""

from typing import Annotated, Literal

from msgspec import Meta

from omegad.log.event import Event, FreeText, GivenName, MadeId


class TaskCreated(Event, frozen=True, kw_only=True, tag="task.created@1"):
    """A task was put down, open to whoever has its `capability`, once those that it depends on are
    completed. `priority` 5 comes first.
    """

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


class TaskMissed(Event, frozen=True, kw_only=True, tag="task.missed@1"):
    """A session without a task began to edit while its project had open ones, and was told; `task_id` is the
    one that was to be done first.
    """

    task_id: MadeId


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
    """A task is open again. `owner` had it last; `checkpoint_id` is the memory that says where that
    session stood.
    """

    task_id: MadeId
    reason: FreeText
    owner: GivenName | None
    checkpoint_id: MadeId | None


class TaskDependencyChanged(Event, frozen=True, kw_only=True, tag="task.dependency_changed@1"):
    """A task waits for another from here on, or does not (`is_dropped`)."""

    task_id: MadeId
    depends_on: MadeId
    is_dropped: bool


PATHS_MAX = 64

Ended = Literal["released", "expired", "taken_over"]
Contest = Literal["asked", "unguarded", "warned", "shell"]
Paths = Annotated[tuple[GivenName, ...], Meta(max_length=PATHS_MAX)]
"""Names, by which claims are found again, and so without credentials before they are decided on."""


class FilesClaimed(Event, frozen=True, kw_only=True, tag="files.claimed@1"):
    """A session claimed files of one work tree for itself, by editing them or because it asked to.

    `repository` is the common folder of git, and paths are relative to `worktree`; outside git both are
    empty, and paths are whole.
    """

    repository: GivenName
    worktree: GivenName
    paths: Paths
    how: Literal["edit", "asked"]
    intent: FreeText | None = None


class BranchClaimed(Event, frozen=True, kw_only=True, tag="branch.claimed@1"):
    """A session claimed a branch of a repository for itself."""

    repository: GivenName
    ref: GivenName
    intent: FreeText | None = None


class ClaimsReleased(Event, frozen=True, kw_only=True, tag="claims.released@1"):
    """Claims of the envelope's session ended, and why: all that it had, or those on some files of one work
    tree and branches of its repository.

    `by` is who ended them, where that was not the session or the time.
    """

    how: Ended
    reason: FreeText
    is_all: bool = False
    repository: GivenName = ""
    worktree: GivenName = ""
    paths: Paths = ()
    refs: Paths = ()
    by: GivenName | None = None


class ClaimsContested(Event, frozen=True, kw_only=True, tag="claims.contested@1"):
    """The envelope's session came upon what `holder` held: files of one work tree, or branches of its
    repository.

    `asked`: the person was asked whether it may edit them, in the call `tool_use_id` where its host names
    calls. `unguarded`: it edited them and was not stopped. `warned`: it edited them all the same. `shell`:
    they changed while it ran a shell command.
    """

    how: Contest
    holder: GivenName
    repository: GivenName
    worktree: GivenName
    paths: Paths = ()
    refs: Paths = ()
    tool_use_id: GivenName | None = None


class ClaimsReported(Event, frozen=True, kw_only=True, tag="claims.reported@1"):
    """A session was told of those of its claims that had ended without it, and of contested ones; `count`
    is how many.
    """

    count: int


class MessagePosted(Event, frozen=True, kw_only=True, tag="message.posted@1"):
    """A message was left for a session, or for every other session of a project, until `expires_at`
    (microseconds since 1970).

    `memory_id` is the memory that it hands over.
    """

    message_id: MadeId
    text: FreeText
    to_session: GivenName | None
    to_project: GivenName | None
    memory_id: MadeId | None
    expires_at: int


class MessageDelivered(Event, frozen=True, kw_only=True, tag="message.delivered@1"):
    """A session was shown messages, and the intents of other sessions, in the order in which they stand
    here.
    """

    message_ids: tuple[MadeId, ...]
    intents_of: tuple[GivenName, ...]


class IntentAnnounced(Event, frozen=True, kw_only=True, tag="intent.announced@1"):
    """A session said what it is about to do, and to which files; it holds until `expires_at`, its next
    one, or its end.
    """

    text: FreeText
    paths: tuple[FreeText, ...]
    expires_at: int
