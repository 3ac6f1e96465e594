"""The cache of vectors holds on the disk what the log names, and nothing else: no hash and no vector of
what was refused, or is erased.
"""

from contextlib import suppress
from pathlib import Path
from zlib import crc32

import anyio
import structlog

from omegad.embedding.cache import VectorCache, identity
from omegad.log.codec import tag_of
from omegad.log.event_log import EventLog
from omegad.memory.events import MemoryEmbedded
from omegad.runtime.errors import Unavailable

EVENTS_AT_ONCE = 500
GATHER_S = 0.2  # for which vectors are gathered that are then written together
RETRY_S = 5.0

_log = structlog.get_logger(__name__)


class VectorSweep:
    """Has vectors written soon after an event names them, and rows removed that none does."""

    def __init__(self, log: EventLog, cache: VectorCache) -> None:
        """Follow *log* from where it ends now: what was appended before and is not in the file is computed
        again when it is needed.
        """
        self._log = log
        self._cache = cache
        self._position = log.head

    async def run(self) -> None:
        """Work for ever, and write in the end what an event names by then."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._sweep_if_needed)
            try:
                while True:
                    await self._log.wait_beyond(self._position)
                    await anyio.sleep(GATHER_S)
                    try:
                        await self.write()
                    except Unavailable as error:
                        _log.warning("vector_sweep.waits", error=str(error), retry_s=RETRY_S)
                        await anyio.sleep(RETRY_S)
            finally:
                with anyio.move_on_after(RETRY_S, shield=True), suppress(Unavailable):
                    await self.write()

    async def write(self) -> None:
        """Have the vectors written that events name by now. Raises storage errors of the log."""
        while self._position < self._log.head:
            events = await self._log.read(self._position, EVENTS_AT_ONCE)
            named = [one.event for one in events if isinstance(one.event, MemoryEmbedded)]
            if named:
                await self._cache.keep(
                    [(one.embedder_id, digest) for one in named for digest in one.text_hashes]
                )
            self._position = events[-1].position

    async def sweep(self) -> int:
        """Remove from the file what no event names; return how many vectors that were. Raises storage
        errors.
        """
        through = await self._cache.last()
        left = await self._log.tagged((tag_of(MemoryEmbedded),), 0)
        named = set[str]()
        while left:
            events = await self._log.read_at(left[:EVENTS_AT_ONCE])
            named.update(
                digest
                for one in events
                if isinstance(one.event, MemoryEmbedded)
                for digest in one.event.text_hashes
            )
            left = left[len(events) :]
        removed = await self._cache.sweep(named, through, _mark(self._log.path))
        _log.info("vector_sweep.swept", removed=removed)
        return removed

    async def _sweep_if_needed(self) -> None:
        while True:
            try:
                if not await self._cache.is_swept(_mark(self._log.path)):
                    await self.sweep()
            except Unavailable as error:
                _log.warning("vector_sweep.waits", error=str(error), retry_s=RETRY_S)
                await anyio.sleep(RETRY_S)
            else:
                return


def _mark(log: Path) -> int:
    """Return by what a log is told from another that takes its place, as when one is restored: the vectors
    that this one named are not its own.
    """
    return crc32(repr(identity(log)).encode()) >> 1 | 1
