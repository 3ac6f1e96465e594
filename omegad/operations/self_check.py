"""Once a week the log and the views are proved, and what was found is kept for the status, also by the
daemons to come.

It is kept beside the log, which may be what is broken.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from omegad.log.event import RecordedEvent
from omegad.operations.status import SelfCheckStatus

EVERY_US = 7 * 86_400 * 1_000_000
AFTER_S = 600.0  # of the daemon's life, which begins with other work
TRY_AGAIN_S = 3_600.0
PROBLEMS_MAX = 20

Prove = Callable[[], Awaitable[Sequence[str] | None]]
"""Returns what is wrong, in words; None where that cannot be said now."""


class SelfCheck:
    """The sweep that has the service prove itself."""

    NAME = "self_check"

    def __init__(
        self, file: Path, prove: Prove, now_us: Callable[[], int], *, after_s: float = AFTER_S
    ) -> None:
        """Keep what *prove* finds in *file*; begin *after_s* seconds from now at the earliest."""
        self._file = file
        self._prove = prove
        self._now_us = now_us
        self._not_before = time.monotonic() + after_s
        self.last = _read(file)
        """The last check, None before the first."""

    @property
    def trouble(self) -> str | None:
        """What the last check found, in words; None where all was well."""
        if self.last is None or not self.last.problems:
            return None
        return (
            f"the weekly check found {len(self.last.problems)} problems, first: {self.last.problems[0]}; run"
            " `omegad doctor --full`"
        )

    def concerns(self, _events: Sequence[RecordedEvent]) -> bool:
        """Say no: only time passes."""
        return False

    def is_due(self) -> bool:
        """Say whether the last check is a week ago, or of a clock that was set back since."""
        if time.monotonic() < self._not_before:
            return False
        return self.last is None or not self.last.at_us <= self._now_us() < self.last.at_us + EVERY_US

    async def sweep(self) -> bool:
        """Check, if it is time to."""
        if not self.is_due():
            return True
        self._not_before = time.monotonic() + TRY_AGAIN_S
        started = time.monotonic()
        problems = await self._prove()
        if problems is not None:
            took_s = round(time.monotonic() - started, 3)
            self.last = SelfCheckStatus(
                at_us=self._now_us(), took_s=took_s, problems=tuple(problems[:PROBLEMS_MAX])
            )
            self._file.write_bytes(msgspec.json.encode(self.last))
        return True


def _read(file: Path) -> SelfCheckStatus | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=SelfCheckStatus)
    except (OSError, msgspec.MsgspecError):
        return None
