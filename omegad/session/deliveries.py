"""What tells hooks and tool calls that come again is kept for a while, as answers to requests are, and
then let go of, bit by bit.
"""

from collections.abc import Awaitable, Callable, Sequence

import anyio

from omegad.log.decision import Decision, DecisionState, Outcome
from omegad.log.event import NewEvent, Position, RecordedEvent
from omegad.log.event_log import EventLog
from omegad.requests.command import Acknowledged, Command
from omegad.requests.method import CommandMethod, RequestContext
from omegad.session.events import DeliveriesExpired
from omegad.session.hook_state import Hooks
from omegad.session.tool_state import ToolCalls

EVERY = 5_000  # events
PAUSE_S = 0.1  # between two bits, so that who waits to append meanwhile goes first

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


class DeliveriesExpiry:
    """The sweep that lets go of them: at the start, and whenever so many events came since."""

    NAME = "deliveries"
    trouble: str | None = None

    def __init__(
        self, log: EventLog, execute: Callable[[ExpireDeliveries, RequestContext], Awaitable[Outcome]]
    ) -> None:
        self._log = log
        self._execute = execute
        self._next: Position = 0

    def concerns(self, _events: Sequence[RecordedEvent]) -> bool:
        """Say no: it goes by how many there are."""
        return False

    def is_due(self) -> bool:
        """Say whether enough events came since the last time."""
        return self._log.head >= self._next

    async def sweep(self) -> bool:
        """Let go of all whose time is over."""
        before, self._next = await self._log.kept_from(), self._log.head + EVERY
        while before > 1:
            answer = (
                await self._execute(
                    ExpireDeliveries(before=before), RequestContext(client=f"reaction:{self.NAME}")
                )
            ).answer
            if not isinstance(answer, DeliveriesLetGo) or answer.is_done:
                break
            await anyio.sleep(PAUSE_S)
        return True


METHODS = (CommandMethod(params=ExpireDeliveries, answer=DeliveriesLetGo, decide=expire, is_internal=True),)
