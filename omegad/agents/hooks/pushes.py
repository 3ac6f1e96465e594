"""What the push guard, which runs in the hook's own process, tells of the pushes it looked at."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.agents.hooks.hosts import Hook
from omegad.session.events import Delivery
from omegad.session.git_events import CheckedRef, GitPushChecked, Verdict


class CheckedPush(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A push that was looked at before it ran."""

    remote: Annotated[str, Meta(max_length=1_024)]
    verdict: Verdict
    reason: Annotated[str, Meta(max_length=65_536)] | None
    refs: Annotated[tuple[CheckedRef, ...], Meta(max_length=64)]


def checked(pushes: Sequence[CheckedPush], hook: Hook, delivery: Delivery) -> Iterator[GitPushChecked]:
    """Return the event of each push; the first says which delivery told of them."""
    for place, push in enumerate(pushes):
        yield GitPushChecked(
            how="hook" if hook.kind == "push" else "command",
            host=hook.host,
            remote=push.remote,
            verdict=push.verdict,
            reason=push.reason,
            refs=push.refs,
            delivery=None if place else delivery,
        )
