"""Texts waiting for the model: the most urgent first, within one urgency the oldest first, and nobody
passed over for ever.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from enum import IntEnum

import anyio

from omegad.runtime.errors import OmegadError, Overloaded
from omegad.runtime.precedence import HOOKS

WAITING_MAX = 1024  # of each urgency, so that a backlog never keeps a query out


class Urgency(IntEnum):
    """Who is waiting: lower goes first."""

    HOOK = 0
    QUERY = 1
    STORE = 2
    BACKLOG = 3


PASSED_OVER_MAX = {Urgency.HOOK: 0, Urgency.QUERY: 4, Urgency.STORE: 4, Urgency.BACKLOG: 16}
"""How many texts that are more urgent may go before the oldest of each urgency."""


class Job:
    """A text, and in the end its vector or the reason why there is none; or how near it is to another."""

    def __init__(
        self, text: str, known: Callable[[], bytes | None] = lambda: None, *, beside: str | None = None
    ) -> None:
        """Take the text exactly as the model shall read it, and what returns its vector where it was computed
        before; that is asked on the thread that embeds. With a text *beside* it the outcome is how near the
        two are word by word, as a float64.
        """
        self.text = text
        self.known = known
        self.beside = beside
        self._done = anyio.Event()
        self._outcome = Future[bytes]()

    async def result(self) -> bytes:
        """Wait for the vector; raises the error where that is the outcome."""
        await self._done.wait()
        return self._outcome.result()

    def wait(self, timeout_s: float) -> bytes:
        """As `result`, for another thread; raises TimeoutError."""
        return self._outcome.result(timeout_s)

    def settle(self, outcome: bytes | OmegadError) -> None:
        """Wake the threads that wait, on whichever thread; the first outcome stays."""
        with suppress(InvalidStateError):
            if isinstance(outcome, OmegadError):
                self._outcome.set_exception(outcome)
            else:
                self._outcome.set_result(outcome)

    def finish(self, outcome: bytes | OmegadError) -> None:
        """Wake all who wait, on the event loop; the first outcome stays."""
        self.settle(outcome)
        self._done.set()


class JobQueue:
    """Bounded; for one consumer, on one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[Urgency, deque[Job]] = {urgency: deque() for urgency in Urgency}
        self._passed_over = dict.fromkeys(Urgency, 0)
        self._arrival = anyio.Event()

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @contextmanager
    def waiting(self, job: Job, urgency: Urgency) -> Iterator[None]:
        """Queue *job* for the block's duration: who leaves early takes the job along. Raises `Overloaded`."""
        self.put(job, urgency)
        try:
            yield
        finally:
            with suppress(ValueError):
                self._waiting[urgency].remove(job)

    def put(self, job: Job, urgency: Urgency) -> None:
        """Queue *job*. Raises `Overloaded`."""
        jobs = self._waiting[urgency]
        if len(jobs) >= WAITING_MAX:
            raise Overloaded(f"{WAITING_MAX} texts are waiting for the embedding model already")
        jobs.append(job)
        self._arrival.set()

    def pop(self) -> Job | None:
        """Take the next job out; None where nothing waits, or all that does gives way."""
        waiting = [
            urgency
            for urgency, jobs in self._waiting.items()
            if jobs and (urgency is Urgency.HOOK or not HOOKS.is_held)
        ]
        if not waiting:
            return None
        # The least urgent of those who have waited long enough goes first, since it waited for the others as
        # well.
        chosen = max(
            (one for one in waiting if self._passed_over[one] >= PASSED_OVER_MAX[one] > 0), default=waiting[0]
        )
        self._passed_over[chosen] = 0
        for urgency in waiting:
            self._passed_over[urgency] += urgency > chosen
        return self._waiting[chosen].popleft()

    async def next(self) -> Job:
        """Wait for a job and take it out."""
        while (job := self.pop()) is None:
            self._arrival = anyio.Event()
            if len(self):
                HOOKS.afterwards(self._arrival.set)
            await self._arrival.wait()
        return job
