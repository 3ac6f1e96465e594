"""Memories whose time to live is over get that recorded.

Searches hide them from their own moment on; the event is for the books, and lets an index leave them out for good. Whether it was
recorded already, and whether a memory was renewed or kept meanwhile, is the log's to say.
"""

from collections.abc import Awaitable, Callable

import anyio
import structlog

from omegad.errors import OmegadError

LOOK_AGAIN_S = 60.0

_log = structlog.get_logger(__name__)

MemoryIds = tuple[str, ...]


class Expiry:
    """Looks again and again for what is over."""

    def __init__(self, due: Callable[[], Awaitable[MemoryIds]], expire: Callable[[MemoryIds], Awaitable[None]]) -> None:
        """*due* returns some memories whose time is over, no more once that is recorded; *expire* records it."""
        self._due = due
        self._expire = expire

    async def run(self) -> None:
        """Work for ever; what fails is tried again at the next look."""
        while True:
            try:
                await self.look()
            except OmegadError as error:
                _log.warning("expiry.failed", error=str(error))
            await anyio.sleep(LOOK_AGAIN_S)

    async def look(self) -> None:
        """Record all that is due now. Raises what reading and recording raise."""
        seen: MemoryIds = ()
        while (found := await self._due()) and found != seen:
            await self._expire(found)
            seen = found
