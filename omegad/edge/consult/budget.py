"""What may be asked of other models on a day, counted in a file of the home for all sessions.

A call is counted before it leaves, with the most tokens that it can take, and mended when it is known what it
took: sessions at once cannot spend more than there is, and neither can one that is killed.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from omegad.runtime.config import Consult
from omegad.runtime.errors import Refused, Unavailable

RECORD_BYTES = 128
COUNT_MAX = 10**15
TO_MORROW = (
    "go on without a second opinion; the budget begins anew tomorrow, or a person raises {} in config.toml"
)


class Spent(msgspec.Struct, kw_only=True):
    """What was asked on a day of the local calendar."""

    day: str
    calls: int = 0
    tokens: int = 0


def today() -> str:
    """Return the day that it is here."""
    return time.strftime("%Y-%m-%d")


class Budget:
    """The budget of a home; the file at *path* is made when it is first needed."""

    def __init__(self, path: Path, limits: Consult, day: Callable[[], str] = today) -> None:
        self._path = path
        self._limits = limits
        self._day = day
        self._reserved_on = ""

    def reserve(self, tokens: int) -> None:
        """Count a call that takes so many tokens at most. Raises `Refused` where there is not that much
        left, and `Unavailable` where it cannot be counted.
        """
        with self._spending() as spent:
            limits = self._limits
            if spent.calls >= limits.calls_per_day:
                raise Refused(
                    f"the budget of {spent.day} is used up: {spent.calls} of {limits.calls_per_day} calls",
                    hint=TO_MORROW.format("calls_per_day"),
                )
            if spent.tokens + tokens > limits.tokens_per_day:
                left = max(0, limits.tokens_per_day - spent.tokens)
                raise Refused(
                    f"it may take {tokens:,} tokens, and {left:,} of {limits.tokens_per_day:,} are left of"
                    f" the budget of {spent.day}",
                    hint="ask for less, or " + TO_MORROW.format("tokens_per_day"),
                )
            spent.calls += 1
            spent.tokens += tokens
            self._reserved_on = spent.day

    def settle(self, tokens: int, calls: int = 0) -> Spent:
        """Add what a call took beyond what was reserved for it, or less, if its day is not over; return what
        was spent.
        """
        with self._spending() as spent:
            if spent.day == self._reserved_on:
                spent.calls = min(max(0, spent.calls + calls), COUNT_MAX)
                spent.tokens = min(max(0, spent.tokens + tokens), COUNT_MAX)
        return spent

    def spent(self) -> Spent:
        """Return what was spent today, and count nothing."""
        return self.settle(0) if self._path.exists() else Spent(day=self._day())

    @contextmanager
    def _spending(self) -> Iterator[Spent]:
        """Hand out what is spent, which nobody else changes meanwhile, and write it at the end of the block
        in one piece. A clock that is set back begins no day anew.
        """
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                found = os.pread(descriptor, RECORD_BYTES, 0)
                spent = msgspec.json.decode(found, type=Spent) if found else Spent(day="")
                if spent.day < self._day():
                    spent = Spent(day=self._day())
                yield spent
                os.pwrite(descriptor, msgspec.json.encode(spent).ljust(RECORD_BYTES - 1) + b"\n", 0)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise Unavailable(
                f"what is asked cannot be counted: {self._path}: {error.strerror}", hint="run `omegad doctor`"
            ) from error
        except msgspec.MsgspecError:
            raise Unavailable(
                f"{self._path} does not say what was asked today", hint="it has to be removed, to begin anew"
            ) from None
