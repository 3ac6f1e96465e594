"""Where a session begins or goes on, the merges are recorded that git has kept of its work tree: those of
people and scripts too, of which no hook tells.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from omegad.agents.hooks.hosts import Hook
from omegad.agents.hooks.prepared import PreparedHook
from omegad.log.decision import DecisionState
from omegad.log.event import NewEvent
from omegad.requests.method import Services
from omegad.runtime.errors import PathHangs
from omegad.session import merges
from omegad.session.events import GitMerged
from omegad.session.hook_state import Hooks
from omegad.text.redaction import redact_name

AT = ("session_start", "prompt")
MERGES_US = 7 * 86_400_000_000
"""How far back merges are recorded of a work tree that none is known of."""


async def kept(services: Services, hook: Hook) -> tuple[merges.Merge, ...]:
    """Return what git has kept of merges; nothing where that does not answer."""
    if services.git_sync and hook.kind in AT and hook.folder is not None:
        with suppress(PathHangs):
            return await services.reach(partial(merges.merges, hook.folder), hook.folder)
    return ()


def recorded(prepared: PreparedHook, state: DecisionState, now_us: int) -> Iterator[NewEvent]:
    """Yield the merges that are not recorded yet; whose they were git does not keep."""
    if not prepared.merges:
        return
    worktree = redact_name(prepared.merges[0].worktree)
    latest = state[Hooks].merged(worktree)
    for one in merges.after(prepared.merges, latest, now_us - MERGES_US):
        event = GitMerged(worktree=worktree, ref=one.ref, before=one.before, after=one.after, what=one.what)
        yield NewEvent(event=event, project=prepared.project, occurred_at=min(one.at_us, now_us))
