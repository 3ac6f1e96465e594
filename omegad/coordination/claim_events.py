"""Who holds which files and branches, so that sessions do not get in each other's way."""

from typing import Annotated, Literal

from msgspec import Meta

from omegad.log.event import Event, FreeText, GivenName

PATHS_MAX = 64

Ended = Literal["released", "expired", "taken_over"]
Contest = Literal["asked", "unguarded", "warned", "shell"]
Paths = Annotated[tuple[GivenName, ...], Meta(max_length=PATHS_MAX)]
"""Names, by which claims are found again, and so without credentials before they are decided on."""


class FilesClaimed(Event, frozen=True, kw_only=True, tag="files.claimed@1"):
    """A session claimed files of one work tree for itself, by editing them or because it asked to.

    `repository` is the common folder of git, and paths are relative to `worktree`; outside git both are empty, and paths are whole.
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
    """Claims of the envelope's session ended, and why: all that it had, or those on some files of one work tree and branches of its repository.

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
    """The envelope's session came upon what `holder` held: files of one work tree, or branches of its repository.

    `asked`: the person was asked whether it may edit them, in the call `tool_use_id` where its host names calls. `unguarded`: it edited them and
    was not stopped. `warned`: it edited them all the same. `shell`: they changed while it ran a shell command.
    """

    how: Contest
    holder: GivenName
    repository: GivenName
    worktree: GivenName
    paths: Paths = ()
    refs: Paths = ()
    tool_use_id: GivenName | None = None


class ClaimsReported(Event, frozen=True, kw_only=True, tag="claims.reported@1"):
    """A session was told of those of its claims that had ended without it, and of contested ones; `count` is how many."""

    count: int
