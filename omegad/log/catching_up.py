"""How inline projections that are behind come into step, while those who would append wait."""

import asyncio
import math
import time

import anyio

from omegad.log.codec import Codec
from omegad.log.event import Position
from omegad.log.inline import Inline
from omegad.runtime.errors import Unavailable
from omegad.storage.driver import Connection
from omegad.storage.transaction import writing

CATCH_UP_EVENTS = 2_000


class CatchingUp:
    """One making of inline projections from the log, part by part."""

    def __init__(self, position: Position, *, anew: bool = False) -> None:
        """Begin after *position*; *anew*, with the tables emptied first."""
        self.position = position
        self.failure: Unavailable | None = None
        self._is_anew = anew
        self._over = asyncio.Event()
        self._began = (time.monotonic(), position)

    def step(self, connection: Connection, inline: Inline, codec: Codec) -> bool:
        """Show some more events, on the writer's thread; return whether all projections are in step.
        Raises as `Inline.catch_up` does.
        """
        if self._is_anew:
            with writing(connection):
                inline.reset(connection)
            self._is_anew = False
        reached = inline.catch_up(connection, codec, CATCH_UP_EVENTS)
        self.position = self.position if reached is None else reached
        return reached is None

    def end(self, failure: Unavailable | None = None) -> None:
        """Let those who wait go on, or tell them why they cannot."""
        self.failure = failure
        self._over.set()

    def check(self) -> None:
        """Raise what it has failed on, if it has."""
        if self.failure:
            raise type(self.failure)(str(self.failure))

    async def wait(self, head: Position, patience_s: float) -> None:
        """Return when it is over, be it because the log closes. Raises what it fails on, and `Unavailable`
        after *patience_s* seconds.
        """
        with anyio.move_on_after(patience_s) as waiting:
            await self._over.wait()
        if waiting.cancelled_caught:
            raise Unavailable(
                self._words(head),
                hint="ask again then; reading goes on meanwhile, and `omegad status` says how far it is",
            )
        self.check()

    def _words(self, head: Position) -> str:
        seconds, shown = time.monotonic() - self._began[0], self.position - self._began[1]
        left = (
            f", about {math.ceil(seconds * (head - self.position) / shown)} s are left" if shown > 0 else ""
        )
        return (
            f"what decisions rely on is being made from the log: it shows {self.position} of {head}"
            f" events{left}"
        )
