"""Texts waiting for the model, the most urgent first and within one urgency the oldest first."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import anyio

from omegad.errors import OmegadError, Overloaded, ShuttingDown

WAITING_MAX = 1024  # of each urgency, so that a backlog never keeps a query out


class Urgency(IntEnum):
    """Who is waiting: lower goes first."""

    QUERY = 0
    STORE = 1
    BACKLOG = 2


class Job:
    """A text, and in the end its vector or the reason why there is none."""

    def __init__(self, text: str) -> None:
        """Take the text exactly as the model shall read it."""
        self.text = text
        self._done = anyio.Event()
        self._outcome: bytes | OmegadError | None = None

    async def result(self) -> bytes:
        """Wait for the vector; raises the error where that is the outcome."""
        await self._done.wait()
        assert self._outcome is not None
        if isinstance(self._outcome, OmegadError):
            raise self._outcome
        return self._outcome

    def finish(self, outcome: bytes | OmegadError) -> None:
        """Wake who waits."""
        self._outcome = outcome
        self._done.set()

    @contextmanager
    def certain_to_finish(self) -> Iterator[None]:
        """Finish the job even where the block, which should, is cancelled."""
        try:
            yield
        finally:
            if self._outcome is None:
                self.finish(ShuttingDown())


class JobQueue:
    """Bounded; for one consumer, on one event loop."""

    def __init__(self) -> None:
        """Start empty."""
        self._waiting: dict[Urgency, deque[Job]] = {urgency: deque() for urgency in Urgency}
        self._arrival = anyio.Event()

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @contextmanager
    def waiting(self, job: Job, urgency: Urgency) -> Iterator[None]:
        """Queue *job* for the block's duration: who leaves early takes the job along. Raises `Overloaded`."""
        jobs = self._waiting[urgency]
        if len(jobs) >= WAITING_MAX:
            raise Overloaded(f"{WAITING_MAX} texts are waiting for the embedding model already")
        jobs.append(job)
        self._arrival.set()
        try:
            yield
        finally:
            if job in jobs:
                jobs.remove(job)

    def pop(self) -> Job | None:
        """Take the next job out; None where nothing waits."""
        for jobs in self._waiting.values():
            if jobs:
                return jobs.popleft()
        return None

    async def next(self) -> Job:
        """Wait for a job and take it out."""
        while (job := self.pop()) is None:
            self._arrival = anyio.Event()
            await self._arrival.wait()
        return job
