"""Commands on what tells hooks and tool calls that come again."""

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent, Position
from omegad.requests.command import Acknowledged, Command
from omegad.requests.method import CommandMethod
from omegad.session.events import DeliveriesExpired
from omegad.session.hook_state import Hooks
from omegad.session.tool_state import ToolCalls

POSITIONS_AT_ONCE = 1_000
"""Of how many events the rows go with one, so that none keeps others waiting; an event has two at most."""


class ExpireDeliveries(Command, frozen=True, kw_only=True, tag="deliveries.expire"):
    """Let go of the oldest of what came in before a position."""

    before: Position


class DeliveriesLetGo(Acknowledged, frozen=True):
    """Up to which position, and whether nothing is left before the one that was asked for."""

    before: Position
    is_done: bool


def expire(command: ExpireDeliveries, state: DecisionState, _now_us: int) -> Decision:
    """Decide how much of it goes now; where nothing is left of it, nothing happens."""
    first = min(state[Hooks].kept_from(), state[ToolCalls].kept_from(), command.before)
    before = min(first + POSITIONS_AT_ONCE, command.before)
    events = (NewEvent(event=DeliveriesExpired(before=before)),) if first < before else ()
    return Decision(events=events, answer=DeliveriesLetGo(before=before, is_done=before == command.before))


METHODS = (CommandMethod(params=ExpireDeliveries, answer=DeliveriesLetGo, decide=expire, is_internal=True),)
