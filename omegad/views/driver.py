"""Keeps every projection of one generation in step with the log.

Projections at the head go forward together. One that lags behind (it is new, or was reset) catches up in
turns with them, so that it never holds them back, and joins them when it has.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic

import anyio
import structlog

from omegad.log.checkpoint import Checkpoint
from omegad.log.event import Position, RecordedEvent
from omegad.log.event_log import EventLog
from omegad.log.folding import BATCH_EVENTS as CATCH_UP_EVENTS
from omegad.log.folding import Part
from omegad.log.projection import Projection
from omegad.runtime.errors import LogBroken, StorageCorrupt, Unavailable
from omegad.storage.checkpointer import checkpoint_quietly
from omegad.storage.driver import Connection
from omegad.views.applying import Lookup, ViewFold
from omegad.views.generation import Generation

BATCH_EVENTS = 500
STEP_S = 0.025
"""From one step to the next where nobody waits for it: it costs a millisecond and more, however few events it
shows.
"""
RETRY_SECONDS = 1.0

_DEFERRED_AT = (
    "SELECT name, position FROM deferred WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position"
)

_log = structlog.get_logger(__name__)


class Driver:
    """Shows the log's events to the projections of a generation, batch by batch; *lookup* finds vectors, on
    the writer's thread.
    """

    def __init__(
        self, log: EventLog, generation: Generation, projections: Sequence[Projection], lookup: Lookup
    ) -> None:
        self.generation = generation
        self.trouble: str | None = None
        self._log = log
        self._fold = ViewFold(projections, generation.checkpoints, lookup)
        self._moved, self._is_awaited = asyncio.Event(), asyncio.Event()
        self._next_s = 0.0
        self.on_deferred: Callable[[], None] = lambda: None
        """Called when events were shown without their vectors."""
        self._is_retired = False
        self._ahead: tuple[Position, list[RecordedEvent]] = (0, [])

    @property
    def checkpoints(self) -> dict[str, Checkpoint]:
        """Where each projection stands, as committed."""
        return {name: self.generation.checkpoints[name] for name in self._fold.projections}

    def position(self, names: Collection[str] = ()) -> Position:
        """Return the position that all projections named have reached; without names, all that have not
        failed.
        """
        checkpoints = self.checkpoints
        found = [checkpoints[name] for name in names] or list(self._healthy().values())
        return min((checkpoint.position for checkpoint in found), default=0)

    async def run(self) -> None:
        """Follow the log for ever. A full or failing disk is waited out; damaged views are raised as
        `StorageCorrupt`.
        """
        while True:
            if not self._lagging():
                await self._log.wait_beyond(self._front())
                if (wait_s := self._next_s - monotonic()) > 0:
                    with anyio.move_on_after(wait_s):
                        await self._is_awaited.wait()
                self._next_s = monotonic() + STEP_S
            try:
                await self.step()
                self.trouble = None
            except Unavailable as error:
                if isinstance(error, StorageCorrupt) and not isinstance(error, LogBroken):
                    raise
                self.trouble = str(error)
                _log.error("views.not_written", error=str(error), retry_s=RETRY_SECONDS)
                await anyio.sleep(RETRY_SECONDS)

    async def catch_up(self, progress: Callable[[Position, Position], None]) -> None:
        """Show each projection everything up to the present head, and return."""
        target = self._log.head
        ends = dict.fromkeys(self._fold.projections, target)
        while part := self._fold.next(ends, CATCH_UP_EVENTS):
            await self._apply(part)
            progress(self.position(), target)

    async def moved(self) -> None:
        """Return after the next step, which is taken at once, or when the driver is retired."""
        self._is_awaited.set()
        await self._moved.wait()

    def retire(self) -> None:
        """Stop for good: another generation is served now. Wakes everyone who waits for a step."""
        self._is_retired = True
        self._announce()

    def _announce(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
        self._is_awaited.clear()  # whoever needs more says so again

    async def step(self) -> None:
        """Take one batch forward in the projections at the front, and one in those that lag."""
        healthy, front = self._healthy(), self._front()
        leading = [name for name, one in healthy.items() if one.position == front]
        lagging = [name for name, one in healthy.items() if one.position < front]
        for names, end in ((leading, self._log.head), (lagging, front)):
            if part := self._fold.next(dict.fromkeys(names, end), BATCH_EVENTS):
                await self._apply(part)

    async def fill_at(self, positions: Sequence[Position]) -> int:
        """Run the statements of the deferred events at *positions*; return how many are complete."""
        filled = 0
        deferred = await self.generation.readers.read(
            lambda connection: connection.execute(_DEFERRED_AT, (str(list(positions)),)).fetchall()
        )
        for name, position in deferred:
            if not self._is_retired and name in self._fold.projections:
                recorded = (await self._log.read(position - 1, 1))[0]
                filled += await self.generation.writer.run(
                    partial(self._fold.fill, name=name, recorded=recorded)
                )
        return filled

    async def _apply(self, part: Part) -> None:
        ahead, batch = self._ahead
        if not batch or ahead != part.after:
            batch = await self._log.read(part.after, part.limit)
        batch = batch[: part.limit]

        def on_thread(connection: Connection) -> dict[str, Checkpoint]:
            changed = self._fold.show(connection, batch, part.names)
            checkpoint_quietly(self.generation.checkpointer, connection)
            return changed

        self._ahead = (0, [])
        applied = self.generation.writer.run(on_thread)
        # Where there is more to come, it is read meanwhile.
        changed = (
            (await asyncio.gather(applied, self._read_ahead(batch[-1].position, part.limit)))[0]
            if part.after + part.limit < part.through
            else await applied
        )
        self.generation.checkpoints.update(changed)
        for name, checkpoint in changed.items():
            if checkpoint.failed_position is not None:
                _log.error(
                    "views.projection_failed",
                    view=name,
                    position=checkpoint.failed_position,
                    error=checkpoint.error,
                )
        self._announce()
        if self._fold.has_missed:
            self._fold.has_missed = False
            self.on_deferred()

    async def _read_ahead(self, after: Position, limit: int) -> None:
        with suppress(Unavailable):  # it is read again when its turn comes
            self._ahead = (after, await self._log.read(after, limit))

    def _healthy(self) -> dict[str, Checkpoint]:
        return {
            name: checkpoint
            for name, checkpoint in self.checkpoints.items()
            if checkpoint.failed_position is None
        }

    def _lagging(self) -> dict[str, Checkpoint]:
        front = self._front()
        return {
            name: checkpoint for name, checkpoint in self._healthy().items() if checkpoint.position < front
        }

    def _front(self) -> Position:
        return max((checkpoint.position for checkpoint in self._healthy().values()), default=self._log.head)
