"""When each session was heard of last, and what that means for what it holds.

Hooks tell of a session at every tool, before it and after it; the log keeps the half of that. What this
process has heard is added to what the log knows, so that a tool that runs for long is not taken for silence.
After a start, and when the machine's clock has gone on while the machine did not, nobody is taken for gone
until there was time to be heard.
"""

import time
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from omegad.runtime.clock import STEP_US, Clock

MINUTE_US = 60_000_000
LIVE_US = 5 * MINUTE_US
LEASE_US = 30 * MINUTE_US
"""How long what a session holds outlives its last sign of life."""
GRACE_US = 5 * MINUTE_US
SESSIONS_MAX = 1_000

SessionStatus = Literal["live", "quiet", "gone"]


class Activity(msgspec.Struct, frozen=True):
    """What this process has heard of sessions up to a moment, and since when its clock has been steady;
    microseconds since 1970.
    """

    seen: Mapping[str, int]
    steady_us: int

    def seen_us(self, session_id: str, recorded_us: int, now_us: int) -> int:
        """Return when a session was heard of last; a moment that is yet to come was told by another clock."""
        found = (self.seen.get(session_id, 0), recorded_us)
        return max(seen_us if seen_us <= now_us else min(self.steady_us, now_us) for seen_us in found)

    def status(self, session_id: str, recorded_us: int, now_us: int) -> SessionStatus:
        """Say whether a session is at work, has been quiet for a while, or is gone, so that what it holds
        is held no longer.
        """
        seen_us = self.seen_us(session_id, recorded_us, now_us)
        if now_us - seen_us < LIVE_US:
            return "live"
        return "quiet" if now_us < max(seen_us + LEASE_US, self.steady_us + GRACE_US) else "gone"


class Liveness:
    """Hears of sessions."""

    def __init__(self, clock: Clock, elapsed_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """Take the clock, and what counts the time that goes by while the machine is awake."""
        self._clock = clock
        self._elapsed_ns = elapsed_ns
        self._seen: dict[str, int] = {}
        self._running: dict[str, dict[str, int]] = {}
        self._steady_us = clock.now_us()
        self._ahead_us = self._steady_us - elapsed_ns() // 1_000

    def hear(self, session_id: str) -> None:
        """Note a sign of life."""
        self._seen.pop(session_id, None)
        self._seen[session_id] = self._now_us()
        if len(self._seen) > SESSIONS_MAX:
            self.forget(next(iter(self._seen)))

    def begin(self, session_id: str, use_id: str, within_us: int) -> None:
        """Note that a tool begins to run, which takes *within_us* at most."""
        self.hear(session_id)
        self._running.setdefault(session_id, {})[use_id] = self._seen[session_id] + within_us

    def end(self, session_id: str, use_id: str) -> None:
        """Note that a tool has ended."""
        self.hear(session_id)
        running = self._running.get(session_id, {})
        running.pop(use_id, None)
        if not running:
            self._running.pop(session_id, None)

    def forget(self, session_id: str) -> None:
        """Note that a session is over."""
        self._seen.pop(session_id, None)
        self._running.pop(session_id, None)

    def heard_us(self, session_id: str) -> int | None:
        """Return when a session was heard of last, whatever it runs since; None for one that was not."""
        return self._seen.get(session_id)

    def activity(self) -> Activity:
        """Return what has been heard; a tool that runs is heard of all the time."""
        now_us = self._now_us()
        heard = {session_id: min(now_us, max(ends.values())) for session_id, ends in self._running.items()}
        return Activity(
            {
                session_id: max(seen_us, heard.get(session_id, 0))
                for session_id, seen_us in self._seen.items()
            },
            self._steady_us,
        )

    def _now_us(self) -> int:
        now_us = self._clock.now_us()
        ahead_us = now_us - self._elapsed_ns() // 1_000
        if abs(ahead_us - self._ahead_us) > STEP_US:
            self._ahead_us, self._steady_us = ahead_us, now_us
        return now_us
