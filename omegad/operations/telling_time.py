"""Answers what the clock says, and in what it does not agree with the log, or with the time that went by."""

from omegad.operations.clock import ClockStatus, ShowClock
from omegad.operations.services import DaemonServices
from omegad.rpc.peer import Call
from omegad.runtime.clock import STEP_US
from omegad.runtime.steadiness import SECOND_US, in_words
from omegad.runtime.times import rfc3339


class TellingTime:
    """Answers for the clock."""

    def __init__(self, services: DaemonServices) -> None:
        """Take what the service has."""
        self._services = services

    async def show(self, query: ShowClock, call: Call) -> ClockStatus:
        """Say what the clock says, and what does not agree with it."""
        del query, call
        services = self._services
        ahead = await services.stamped_ahead()
        return ClockStatus(
            now=rfc3339(services.clock.now_us()),
            latest=rfc3339(services.log.recorded_at) if services.head else None,
            events=ahead.last - ahead.first + 1 if ahead else 0,
            first=ahead.first if ahead else 0,
            ahead_s=ahead.ahead_us // SECOND_US if ahead else 0,
            jumped_s=services.steadiness.jumped_us // SECOND_US,
            trouble=self.trouble(),
        )

    def trouble(self) -> str | None:
        """Say in what the clock does not agree with the log, or with the time that went by, and what to do; None where it does."""
        services = self._services
        services.steadiness.look()
        behind_us = services.log.recorded_at - services.clock.now_us()
        if behind_us <= STEP_US:
            return services.steadiness.trouble()
        return (
            f"the clock is {in_words(behind_us)} behind the log: if it is wrong, set it right; if the log was written by one that was ahead,"
            " run `omegad clock mend`"
        )
