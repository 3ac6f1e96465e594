"""What tells hooks and tool calls that come again is kept for a while, as answers to requests are, and
then let go of, bit by bit.
"""

from collections.abc import Awaitable, Callable, Sequence

import anyio

from omegad.log.decision import Outcome
from omegad.log.event import Position, RecordedEvent
from omegad.log.event_log import EventLog
from omegad.requests.method import RequestContext
from omegad.session.deliveries import DeliveriesLetGo, ExpireDeliveries

EVERY = 5_000  # events
PAUSE_S = 0.1  # between two bits, so that who waits to append meanwhile goes first


class DeliveriesExpiry:
    """The sweep that lets go of them: at the start, and whenever so many events came since."""

    NAME = "deliveries"
    trouble: str | None = None

    def __init__(
        self, log: EventLog, execute: Callable[[ExpireDeliveries, RequestContext], Awaitable[Outcome]]
    ) -> None:
        """Take everything from outside."""
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
