"""Keeps every projection of one generation in step with the log.

Projections at the head go forward together. One that lags behind (it is new, or was reset) catches up in turns with them, so that
it never holds them back, and joins them when it has.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

import anyio
import structlog

from omegad.log.event import Position, RecordedEvent
from omegad.log.event_log import EventLog
from omegad.log.projection import Embedding, Projection
from omegad.runtime.errors import LogBroken, StorageCorrupt, Unavailable
from omegad.storage.checkpointer import checkpoint_quietly
from omegad.storage.driver import Connection
from omegad.views import applying
from omegad.views.applying import Lookup
from omegad.views.checkpoints import Checkpoint
from omegad.views.generation import Generation

BATCH_EVENTS = 500
CATCH_UP_EVENTS = 2_000  # where nobody waits for the latest: larger batches write fewer pages twice
RETRY_SECONDS = 1.0

_log = structlog.get_logger(__name__)


class Driver:
    """Shows the log's events to the projections of a generation, batch by batch."""

    def __init__(self, log: EventLog, generation: Generation, projections: Sequence[Projection], lookup: Lookup) -> None:
        """Take everything from outside; *lookup* finds vectors on the writer's thread."""
        self.generation = generation
        self.trouble: str | None = None
        self._log = log
        self._projections = {projection.NAME: projection for projection in projections}
        self._lookup = lookup
        self._moved = asyncio.Event()
        self.on_deferred: Callable[[], None] = lambda: None
        """Called when events were shown without their vectors."""
        self._is_retired = False
        self._ahead: tuple[Position, list[RecordedEvent]] = (0, [])

    @property
    def checkpoints(self) -> dict[str, Checkpoint]:
        """Where each projection stands, as committed."""
        return {name: self.generation.checkpoints[name] for name in self._projections}

    def position(self, names: Collection[str] = ()) -> Position:
        """Return the position that all projections named have reached; without names, all that have not failed."""
        found = [self.checkpoints[name] for name in names] or list(self._healthy().values())
        return min((checkpoint.position for checkpoint in found), default=0)

    def failure(self, names: Collection[str]) -> Checkpoint | None:
        """Return the checkpoint of one of the projections named that has failed, if one has."""
        return next((self.checkpoints[name] for name in names if self.checkpoints[name].failed_position is not None), None)

    async def run(self) -> None:
        """Follow the log for ever. A full or failing disk is waited out; damaged views are raised as `StorageCorrupt`."""
        while True:
            if not self._lagging():
                await self._log.wait_beyond(self._front())
            await self._step_or_wait()

    async def catch_up(self, progress: Callable[[Position, Position], None]) -> None:
        """Show each projection everything up to the present head, and return."""
        target = self._log.head
        while behind := {name: checkpoint for name, checkpoint in self._healthy().items() if checkpoint.position < target}:
            after = min(checkpoint.position for checkpoint in behind.values())
            await self._apply(after, min(CATCH_UP_EVENTS, target - after), behind)
            progress(self.position(), target)

    async def moved(self) -> None:
        """Return after the next step, or when the driver is retired."""
        await self._moved.wait()

    def retire(self) -> None:
        """Stop for good: another generation is served now. Wakes everyone who waits for a step."""
        self._is_retired = True
        self._announce()

    def _announce(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def step(self) -> None:
        """Take one batch forward in the projections at the front, and one in those that lag."""
        front = self._front()
        leading = {name: c for name, c in self._healthy().items() if c.position == front}
        lagging = self._lagging()
        if leading and self._log.head > front:
            await self._apply(front, BATCH_EVENTS, leading)
        if lagging:
            last = min(c.position for c in lagging.values())
            await self._apply(last, min(BATCH_EVENTS, front - last), lagging)

    async def fill_at(self, positions: Sequence[Position]) -> int:
        """Run the statements of the deferred events at *positions*; return how many are complete."""
        wanted = str(list(positions))
        filled = 0
        for name, position in await self.generation.readers.read(lambda connection: _deferred_at(connection, wanted)):
            if not self._is_retired and name in self._projections:
                filled += await self._fill(name, position)
        return filled

    async def _fill(self, name: str, position: Position) -> bool:
        recorded = (await self._log.read(position - 1, 1))[0]
        projection = self._projections[name]
        return await self.generation.writer.run(lambda connection: applying.fill(connection, projection, recorded, self._lookup))

    async def _step_or_wait(self) -> None:
        try:
            await self.step()
            self.trouble = None
        except Unavailable as error:
            if isinstance(error, StorageCorrupt) and not isinstance(error, LogBroken):
                raise
            self.trouble = str(error)
            _log.error("views.not_written", error=str(error), retry_s=RETRY_SECONDS)
            await anyio.sleep(RETRY_SECONDS)

    async def _apply(self, after: Position, limit: int, states: Mapping[str, Checkpoint]) -> None:
        ahead, batch = self._ahead
        batch = batch[:limit] if batch and ahead == after else await self._log.read(after, limit)
        work = {name: (self._projections[name], checkpoint) for name, checkpoint in states.items()}

        missed: list[Embedding] = []

        def look_up(wanted: Embedding) -> bytes | None:
            found = self._lookup(wanted)
            if found is None:
                missed.append(wanted)
            return found

        def on_thread(connection: Connection) -> dict[str, Checkpoint]:
            changed = applying.apply(connection, batch, work, look_up)
            checkpoint_quietly(self.generation.checkpointer, connection)
            return changed

        self._ahead = (0, [])
        applied = self.generation.writer.run(on_thread)
        # Where there is more to come, it is read meanwhile.
        changed = await applied if len(batch) < limit else (await asyncio.gather(applied, self._read_ahead(batch[-1].position, limit)))[0]
        self.generation.checkpoints.update(changed)
        for name, checkpoint in changed.items():
            if checkpoint.failed_position is not None:
                _log.error("views.projection_failed", view=name, position=checkpoint.failed_position, error=checkpoint.error)
        self._announce()
        if missed:
            self.on_deferred()

    async def _read_ahead(self, after: Position, limit: int) -> None:
        with suppress(Unavailable):  # it is read again when its turn comes
            self._ahead = (after, await self._log.read(after, limit))

    def _healthy(self) -> dict[str, Checkpoint]:
        return {name: checkpoint for name, checkpoint in self.checkpoints.items() if checkpoint.failed_position is None}

    def _lagging(self) -> dict[str, Checkpoint]:
        front = self._front()
        return {name: checkpoint for name, checkpoint in self._healthy().items() if checkpoint.position < front}

    def _front(self) -> Position:
        return max((checkpoint.position for checkpoint in self._healthy().values()), default=self._log.head)


def _deferred_at(connection: Connection, positions: str) -> list[tuple[str, Position]]:
    sql = "SELECT name, position FROM deferred WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position"
    return connection.execute(sql, (positions,)).fetchall()
