"""Whether the clock goes as time goes by: compared with what counts the time since the machine began, asleep
or awake.

A laptop that slept is no jump. What jumped is told, and nothing is done of it: only a person knows which of
the two times is right.
"""

import time
from collections.abc import Callable

import anyio
import structlog

from omegad.runtime.clock import STEP_US, Clock

SECOND_US = 1_000_000
HOUR_US, DAY_US = 3_600 * SECOND_US, 86_400 * SECOND_US
GAP_US = 366 * DAY_US
"""How long nothing may have happened before a start asks whether the clock is right."""
TOLD_US = DAY_US
"""How long a jump is told of."""
LOOK_EVERY_S = 30.0

_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # which on macOS goes on while it sleeps

_log = structlog.get_logger(__name__)


def since_boot_ns() -> int:
    """Return how long ago the machine began, the time that it slept included."""
    return time.clock_gettime_ns(_SINCE_BOOT)


def in_words(span_us: int) -> str:
    """Write how long something is, roughly: `3.0 h`, `9.9 years`."""
    for unit_us, name in ((365 * DAY_US, "years"), (DAY_US, "days"), (HOUR_US, "h"), (60 * SECOND_US, "min")):
        if abs(span_us) >= (2 if name in {"years", "days"} else 1) * unit_us:
            return f"{abs(span_us) / unit_us:,.1f} {name}"
    return f"{abs(span_us) // SECOND_US} s"


class Steadiness:
    """Notices jumps of the clock, and a start that is long after all that the log knows (its latest event at
    *latest_us*, 0 for none), or before omegad was installed; *elapsed_ns* counts the time that goes by.
    """

    def __init__(
        self, clock: Clock, latest_us: int, installed_us: int, elapsed_ns: Callable[[], int] = since_boot_ns
    ) -> None:
        self._clock = clock
        self._elapsed_ns = elapsed_ns
        self._offset_us = self._now_offset_us()
        now_us = clock.now_us()
        self._odd: str | None = None
        """What is odd of the time of the start."""
        if latest_us and now_us - latest_us > GAP_US:
            self._odd = f"the clock is {in_words(now_us - latest_us)} after the latest event"
        elif installed_us - now_us > DAY_US:
            self._odd = f"the clock is {in_words(installed_us - now_us)} before omegad was installed"
        self._jumped_at_us = 0
        self.jumped_us = 0
        """By how much the clock is ahead of where it would be had it gone steadily since the start, or
        since somebody said that it is right.
        """

    async def run(self) -> None:
        """Look now and then, for ever."""
        while True:
            self.look()
            await anyio.sleep(LOOK_EVERY_S)

    def look(self) -> None:
        """Compare the clock with the time that went by since the last look."""
        offset_us = self._now_offset_us()
        step_us, self._offset_us = offset_us - self._offset_us, offset_us
        if abs(step_us) <= STEP_US:
            return
        self.jumped_us += step_us
        self._jumped_at_us = self._elapsed_ns() // 1_000
        if abs(self.jumped_us) <= STEP_US:
            self.jumped_us = 0
        _log.warning("clock.jumped", by_s=step_us // SECOND_US, in_all_s=self.jumped_us // SECOND_US)

    def accept(self) -> None:
        """Take the clock for right as it is."""
        self.look()
        self.jumped_us, self._odd = 0, None

    def trouble(self) -> str | None:
        """Say what is odd, None where nothing is."""
        if self.jumped_us and self._elapsed_ns() // 1_000 - self._jumped_at_us < TOLD_US:
            where = "ahead" if self.jumped_us > 0 else "back"
            what = f"the clock jumped {in_words(self.jumped_us)} {where} while omegad ran"
        elif self._odd:
            what = self._odd
        else:
            return None
        return f"{what}: if it is wrong, set it right; once it is right, run `omegad clock mend`"

    def _now_offset_us(self) -> int:
        return self._clock.now_us() - self._elapsed_ns() // 1_000
