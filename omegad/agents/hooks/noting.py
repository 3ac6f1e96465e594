"""That a hook came of which no other event tells: before a tool, or of a kind that nothing follows from."""

from omegad.agents.hooks import hosts
from omegad.agents.hooks.prepared import PreparedHook
from omegad.requests.method import RequestContext, Services
from omegad.session.events import HookNoted
from omegad.session.hook_state import AGAIN_US

KNOWN_MAX = 4_096


class Noted:
    """Which hooks were noted lately, so that what is told twice is noted once: a host may run a hook twice,
    and one that is answered too late lies in the spool as well.
    """

    def __init__(self, *, is_on: bool) -> None:
        """Where it is not on, none is noted."""
        self._is_on = is_on
        self._at_us: dict[object, int] = {}

    def is_new(self, prepared: PreparedHook) -> bool:
        """Say whether a hook is to be noted, and take it for noted from now on."""
        hook, delivery, at_us = prepared.hook, prepared.delivery, prepared.occurred_at
        said = (hook.session_id, hook.fired, delivery.digest)
        known = self._at_us
        is_told_twice = abs(at_us - known.get(said, -AGAIN_US - 1)) <= AGAIN_US
        if not self._is_on or delivery.delivery_id in known or is_told_twice:
            return False
        known[delivery.delivery_id] = known[said] = at_us
        while len(known) > KNOWN_MAX:
            del known[next(iter(known))]
        return True


def note(services: Services, prepared: PreparedHook, context: RequestContext) -> None:
    """Have it in the log, behind the answer, that a hook came."""
    hook = prepared.hook
    if hook.kind not in {"before_tool", "subagent_start", "other"} or not services[Noted].is_new(prepared):
        return
    event = HookNoted(
        host=hook.host,
        fired=hosts.name(hook.fired),
        tool_name=hook.tool_name if hook.kind == "before_tool" else None,
        tool_use_id=hook.tool_use_id,
        about=hook.text if hook.kind == "other" else None,
    )
    services.record(event, context, session_id=hook.session_id, project=prepared.project)
