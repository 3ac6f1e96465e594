"""What happens in git repositories, as far as omegad looks."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.log.event import Event, FreeText, GivenName
from omegad.session.events import Delivery

Verdict = Literal["allowed", "warned", "asked", "denied"]
Found = Literal["new", "same", "ahead", "stale", "unknown", "unasked"]
ObjectId = Annotated[FreeText, Meta(max_length=64)]


class CheckedRef(msgspec.Struct, frozen=True, kw_only=True):
    """A branch of a remote, what was to be pushed to it, and what was found: `ahead` of what is there, or `stale`, lacking commits that are there.

    `unknown` is a branch whose commit the clone does not have, `unasked` one whose remote did not answer. `lacks` counts the commits that are
    lacking; `commits` are the latest of them in a line each.
    """

    ref: Annotated[FreeText, Meta(max_length=1_024)]
    local_sha: ObjectId
    remote_sha: ObjectId | None
    found: Found
    is_forced: bool = False
    lacks: Annotated[int, Meta(ge=0)] = 0
    commits: Annotated[tuple[FreeText, ...], Meta(max_length=16)] = ()


class GitPushChecked(Event, frozen=True, kw_only=True, tag="git.push_checked@1"):
    """A push was looked at before it ran: of an agent's command, or by git's own hook (`how`). `reason` is why it was not just allowed."""

    how: Literal["command", "hook"]
    host: GivenName
    remote: FreeText
    verdict: Verdict
    reason: FreeText | None
    refs: tuple[CheckedRef, ...]
    delivery: Delivery | None
