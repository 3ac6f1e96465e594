"""What comes first in this process: while a hook is being answered nothing else that computes is begun, or
goes on where it can wait; while anything is read for an answer, nothing goes on that comes in bulk.

Threads share one interpreter and few processors. It is for moments: after each the others have as long for
themselves, so that whoever sends hooks without end takes half of the time and no more.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio

HOLD_S = 0.1


class Precedence:
    """Says whether others give way. Held from the event loop; threads wait for its end. *monotonic* is for
    tests to replace.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._under_way = 0
        self.is_held = False
        """Whether others are to give way; asked so often that it is no call."""
        self._is_over = threading.Event()
        self._is_over.set()
        self._began_s = self._next_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._after: list[Callable[[], object]] = []

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have the others give way for the block's duration, or as long as they may be asked to."""
        self._under_way += 1
        if not self.is_held and self._monotonic() >= self._next_s:
            self._began_s = self._monotonic()
            self._is_over.clear()
            self.is_held = True
            self._timer = asyncio.get_running_loop().call_later(HOLD_S, self._release)
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._release()

    def give_way(self) -> None:
        """Wait on a thread until others need not give way."""
        if self.is_held:
            self._is_over.wait(HOLD_S)

    async def given(self) -> None:
        """Wait on the event loop until others need not give way."""
        if self.is_held:
            is_over = anyio.Event()
            self.afterwards(is_over.set)
            await is_over.wait()

    def afterwards(self, do: Callable[[], object]) -> None:
        """Call *do* once others need not give way, on the event loop."""
        self._after.append(do)

    def _release(self) -> None:
        if not self.is_held:
            return
        if self._timer:
            self._timer.cancel()
        self.is_held = False
        self._is_over.set()
        now_s = self._monotonic()
        self._next_s = now_s + (now_s - self._began_s)
        after, self._after = self._after, []
        for do in after:
            do()


HOOKS = Precedence()
"""That of hooks: one for the process, as there is one interpreter."""
READS = Precedence()
"""That of what is read for an answer, before what is written of much that comes at once. A read waits for no
writer, so that a writer may wait for it in the middle of a transaction.
"""
BULK = 25
"""How many events come at once that others wait for; more are bulk."""


def bulk_gives_way(number: int) -> None:
    """Wait on a thread until nobody reads, at every `BULK`-th but the first of what is done one by one."""
    if READS.is_held and number and number % BULK == 0:
        READS.give_way()
