"""The views that are served now: opened and checked at the start, kept in step, rebuilt beside themselves
and swapped.
"""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import structlog
from anyio import lowlevel, to_thread

from omegad.log.checkpoint import Checkpoint, failed
from omegad.log.event import Position
from omegad.log.event_log import EventLog
from omegad.log.folding import Progress
from omegad.log.projection import Projection
from omegad.runtime.errors import (
    Invalid,
    NotFound,
    OmegadError,
    Refused,
    Stale,
    StorageCorrupt,
    Unavailable,
    ViewFailed,
)
from omegad.runtime.precedence import READS
from omegad.storage.checkpointer import checkpoint_quietly
from omegad.storage.driver import Connection
from omegad.storage.readers import ReadersClosed, Reading, Turn
from omegad.views import barrier as barriers
from omegad.views import generation, kept, log_check
from omegad.views.applying import Lookup
from omegad.views.barrier import Barrier, Snapshot
from omegad.views.building import Order, RebuiltView, Verification, ViewReport
from omegad.views.driver import RETRY_SECONDS, Driver
from omegad.views.generation import Generation
from omegad.views.workers import Workers

T = TypeVar("T")

RETRY_SECONDS_MAX = 600.0
FAR_BEHIND = 5_000  # events, which take a driver longer than the start of a process
SHOWN_WAIT_S = 10.0  # for views that are a moment behind what is to be verified

_log = structlog.get_logger(__name__)


class Views:
    """The projections of one home, as one consistent file at a time. Make it with `opened`; `run` keeps it in
    step. *workers* build another generation, and compare one with the log.
    """

    def __init__(
        self,
        home: Path,
        log: EventLog,
        projections: Sequence[Projection],
        lookup: Lookup,
        reading: Reading,
        *,
        workers: Workers,
    ) -> None:
        self.workers = workers
        self._home = home
        self._log = log
        self._projections = tuple(projections)
        self._lookup = lookup
        self._reading = reading
        self._serving = anyio.CancelScope()
        self.proving = anyio.Lock()
        self._is_damaged = False
        self._latest: Path | None = None
        self._building: set[str] = set()
        self._built: tuple[Position, Position] = (0, 0)
        self.on_deferred: Callable[[], None] = lambda: None
        """Called when the views may lack vectors that were recorded."""
        self.driver: Driver

    @property
    def names(self) -> tuple[str, ...]:
        """The projections' names."""
        return tuple(projection.NAME for projection in self._projections)

    @property
    def file(self) -> Path:
        """The file that is served."""
        return self.driver.generation.path

    @property
    def rebuilding(self) -> tuple[str, ...]:
        """The projections that are being built again, or have to be: until then, what they show is of an
        earlier version.
        """
        return tuple(filter({*self._building, *self._outdated()}.__contains__, self.names))

    @property
    def checkpoints(self) -> dict[str, Checkpoint]:
        """Where each projection stands, those included that cannot be read before they are built again."""
        return {name: self.driver.generation.checkpoints[name] for name in self.names}

    async def run(self) -> None:
        """Keep the views in step with the log for ever, on whichever generation is current, and bring
        those of earlier versions up to date.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._bring_up_to_date)
            while True:
                with anyio.CancelScope() as self._serving:
                    try:
                        await self._fill_at_once()
                        # A swap has cancelled this; a driver that began would be stopped in its first step.
                        await lowlevel.checkpoint()
                        await self.driver.run()
                    except StorageCorrupt as error:
                        self._note_damage(self.driver.generation, error)
                while self._is_damaged:
                    try:
                        await self._start_over()
                    except Unavailable as error:  # as a full disk; the damaged file refuses its readers
                        self.driver.trouble = str(error)
                        _log.error("views.not_made", error=str(error), retry_s=RETRY_SECONDS)
                        await anyio.sleep(RETRY_SECONDS)

    async def _fill_at_once(self) -> None:
        """Have views that show nothing of a long log built beside; where that fails, they follow it from
        its first event.
        """
        if self.driver.position() or self._log.head < FAR_BEHIND:
            return
        try:
            await self._rebuild(self.names, lambda _done, _total: None, is_failed_accepted=True)
        except OmegadError as error:
            _log.warning("views.not_built_at_once", error=str(error))

    async def _bring_up_to_date(self) -> None:
        """Build the projections whose version has changed anew beside the old ones, which answer until
        they are swapped.
        """
        wait_s = RETRY_SECONDS
        while outdated := self._outdated():
            try:
                await self._rebuild(outdated, lambda _done, _total: None, is_failed_accepted=True)
            except OmegadError as error:
                _log.error("views.not_brought_up_to_date", views=outdated, error=str(error), retry_s=wait_s)
                await anyio.sleep(wait_s)
                wait_s = min(2 * wait_s, RETRY_SECONDS_MAX)

    def _outdated(self) -> list[str]:
        return [
            one.NAME
            for one, stands in zip(self._projections, self.checkpoints.values(), strict=True)
            if not stands.belongs_to(one)
        ]

    async def at(
        self, barrier: Barrier, work: Callable[[Connection, Snapshot], T], turn: Turn = Turn.USUAL
    ) -> T:
        """Do *work* on views that show what *barrier* asks for; all its reads see the one moment that the
        snapshot describes.

        A `NotFound` of *work* is `Stale` where what was acknowledged is not shown yet. Raises `Invalid` for a
        position that is not in the log, `Stale`, `ViewFailed`, `StorageCorrupt` where the file is damaged (it
        is then built again), `ReadTooLong`, and what *work* raises.
        """
        await self._pass(barrier)

        def at_one_moment(target: Generation, connection: Connection) -> T:
            snapshot = barriers.taken(connection, target.path, barrier)
            if not barrier.makes_do:
                barriers.check_whole(
                    snapshot, target.whole_from, self._built[0] if self._building else snapshot.position
                )
            try:
                return work(connection, snapshot)
            except NotFound as error:
                snapshot.require_current(str(error))
                raise

        with nullcontext() if turn is Turn.LONG else READS.held():
            return await self._on_current(at_one_moment, turn)

    async def _pass(self, barrier: Barrier) -> None:
        """Wait as *barrier* says."""
        if barrier.min_position is not None and barrier.min_position > self._log.head:
            raise Invalid(
                f"min_position {barrier.min_position} is beyond the end of the log, {self._log.head}"
            )
        if self._unserved(barrier.names):
            with anyio.move_on_after(barrier.wait_s):
                while self._unserved(barrier.names):
                    await self.driver.moved()
        elif self._shows(barrier):
            return  # as nearly always
        self._check_served(barrier.names)
        if barrier.must:
            with anyio.move_on_after(barriers.OWN_WRITES_S) as patience:
                await self.wait_for(barrier.must, barrier.names)
            if patience.cancelled_caught:
                raise Stale(
                    f"the views did not reach position {barrier.must} within {barriers.OWN_WRITES_S:.0f} s"
                )
        if self._shows(barrier) or (barrier.makes_do and self.driver.trouble):
            return
        with anyio.move_on_after(barrier.wait_s):
            try:
                await self.wait_for(max(barrier.wanted, self.driver.generation.whole_from), barrier.names)
            except Unavailable:
                if not barrier.makes_do:
                    raise

    def _shows(self, barrier: Barrier) -> bool:
        """Say whether the views show all that is worth waiting for."""
        whole_from = self.driver.generation.whole_from
        return self.driver.position(barrier.names) >= max(barrier.wanted, whole_from)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Do *work* on the views as they are, all of whose reads see one moment, beside those who ask
        something. Raises as `at` does.
        """
        return await self._on_current(lambda _, connection: work(connection), Turn.LONG)

    async def _on_current(self, work: Callable[[Generation, Connection], T], turn: Turn) -> T:
        """Do *work* on a reading connection; on the new file where the file is being replaced."""
        while True:
            target = self.driver.generation
            try:
                return await target.readers.read(partial(work, target), turn)
            except ReadersClosed:
                if target is self.driver.generation:
                    raise
            except StorageCorrupt as error:
                self._note_damage(target, error)
                raise

    async def keep(self, name: str, head: bytes, arrays: Sequence[memoryview]) -> None:
        """Keep under a name what was computed of the file that is served, for the next start. Whoever does
        holds `proving` from before it was computed, so that nothing is erased meanwhile.
        """
        served = self.driver.generation

        async def write(work: Callable[[Connection], None]) -> None:
            def on_thread(connection: Connection) -> None:
                work(connection)
                checkpoint_quietly(served.checkpointer, connection)

            await served.writer.run(on_thread)

        await write(partial(kept.begin, name=name))
        for number, part in enumerate(kept.cut(arrays), 1):
            await write(partial(kept.add, name=name, part=number, value=part))
        digest = await anyio.to_thread.run_sync(kept.digest_of, head, arrays)
        await write(partial(kept.finish, name=name, head=head, digest=digest))

    async def wait_for(self, position: Position, names: Collection[str]) -> None:
        """Return when the projections named show everything up to a position.

        Raises `ViewFailed` where one of them has failed before it, and `Stale` where one cannot be read
        before it is built again.
        """
        self._check_served(names)
        while (driver := self.driver).position(names) < position:
            if mark := failed(driver.checkpoints, names):
                raise ViewFailed(
                    f"the view {mark.name!r} failed at position {mark.failed_position}: {mark.error}"
                )
            await driver.moved()

    async def rebuild(self, names: Collection[str], progress: Progress) -> dict[str, RebuiltView]:
        """Build the projections named (all, when none is) anew beside the live ones, check them, and swap.

        Raises `Invalid` for an unknown name, `Refused` while another rebuild runs. Where a rebuilt projection
        fails, the live views stay.
        """
        self._check_names(names)
        built = await self._rebuild(names or self.names, progress, is_failed_accepted=False)
        return {name: view for name, view in built.items() if not names or name in names}

    async def _rebuild(
        self, names: Collection[str], progress: Progress, *, is_failed_accepted: bool
    ) -> dict[str, RebuiltView]:
        if self._building:
            raise Refused("a rebuild is running already", hint="wait for it to end; `omegad status` shows it")
        self._building, self._built = {*names, *self._outdated()}, (0, self._log.head)
        try:
            async with self.proving:
                return await self._rebuild_apart(progress, is_failed_accepted=is_failed_accepted)
        finally:
            self._building = set()

    async def verify(self, names: Collection[str], progress: Progress) -> dict[str, ViewReport]:
        """Replay the log into a scratch file and compare the projections named (all, when none is) with
        it.
        """
        self._check_names(names)
        async with self.proving:
            self._check_served(chosen := tuple(names or self.names))
            # Payloads go from the log before the views show it; whatever lets go of more waits from here on.
            with anyio.move_on_after(SHOWN_WAIT_S), suppress(ViewFailed, Stale):
                await self.wait_for(self._log.head, chosen)
            async with generation.scratch(self._home) as scratch:
                wanted = Verification(log=self._log.path, live=self.file, target=scratch, names=chosen)
                return await self.workers.done(wanted, dict[str, ViewReport], progress)

    def _check_names(self, names: Collection[str]) -> None:
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise Invalid(f"there is no view {unknown[0]!r}", hint=f"the views are {', '.join(self.names)}")

    def _unserved(self, names: Collection[str]) -> list[str]:
        served = self.driver.checkpoints
        return [name for name in names if name not in served]

    def _check_served(self, names: Collection[str]) -> None:
        """Refuse to read tables that an earlier version made otherwise."""
        if unserved := self._unserved(names):
            done, total = self._built
            raise Stale(
                f"the view {unserved[0]!r} is being built again: {100 * done // max(1, total)} %",
                hint="ask again; `omegad status` shows it",
            )

    async def _rebuild_apart(self, progress: Progress, *, is_failed_accepted: bool) -> dict[str, RebuiltView]:
        live, path = self.driver.generation.path, self._next_path()
        source = None if self._building == set(self.names) else live
        names, target = tuple(self._building), generation.unfinished(path)
        order = Order(
            log=self._log.path,
            source=source,
            target=target,
            names=names,
            is_failed_accepted=is_failed_accepted,
        )

        def tell(done: Position, total: Position) -> None:
            self._built = done, total
            progress(done, total)

        fresh: Generation | None = None
        try:
            generation.remove_previous(live)
            said = await self.workers.done(order, dict[str, RebuiltView], tell)
            generation.finish(path)
            with anyio.CancelScope(shield=True):
                fresh = await self._open(path)
            assert fresh is not None
            fresh.check_versions(self._projections)
            driver = self._driver(fresh)
            await driver.catch_up(tell)
        except BaseException:
            with anyio.CancelScope(shield=True):
                if fresh:
                    await fresh.discard()
                else:
                    await to_thread.run_sync(generation.remove, path)
                    await to_thread.run_sync(generation.remove, generation.unfinished(path))
            raise
        with anyio.CancelScope(shield=True):
            old = self.driver
            generation.point_at(path)
            self.driver = driver
            self._serving.cancel()
            old.retire()
            await old.generation.close()
            self.on_deferred()
        return said

    def _note_damage(self, target: Generation, error: StorageCorrupt) -> None:
        if target is self.driver.generation and not self._is_damaged:
            _log.error("views.corrupt", file=target.path.name, error=str(error))
            self._is_damaged = True
            self._serving.cancel()

    async def _start(self) -> None:
        await log_check.check(self._home, self._log)
        path = generation.current(self._home)
        opened, kept = None, list[Path]()
        if path:
            try:
                opened = await self._open(path)
            except StorageCorrupt as error:  # what an earlier run has left is built again
                _log.warning("views.refused", file=path.name, reason=str(error))
            else:
                opened.try_again(self._projections)
                kept = generation.previous(path)
        if opened is None:
            path = self._next_path()
            opened = await self._open(path)
            generation.point_at(path)
        generation.remove_others(self._home, opened.path, *kept)
        self._serve(opened)

    def _serve(self, opened: Generation) -> None:
        """Answer from *opened*, once it shows what is in the log now."""
        opened.whole_from = self._log.head
        self.driver = self._driver(opened)

    def _driver(self, of: Generation) -> Driver:
        """Return the driver of the projections whose tables in *of* are those of this version."""
        readable = [
            projection
            for projection in self._projections
            if of.checkpoints[projection.NAME].can_be_read(projection)
        ]
        driver = Driver(self._log, of, readable, self._lookup)
        driver.on_deferred = lambda: self.on_deferred()  # noqa: PLW0108  which may be set later
        return driver

    def _next_path(self) -> Path:
        """Return the file for another generation, which neither the home nor anyone here has had."""
        self._latest = generation.next_path(self._home, self._latest)
        return self._latest

    async def _open(self, path: Path) -> Generation:
        return await Generation.opened(path, self._projections, self._reading)

    async def _start_over(self) -> None:
        old = self.driver
        path = self._next_path()
        try:
            generation.point_at(path)
            fresh = await self._open(path)
        except BaseException:
            generation.remove(path)
            raise
        self._serve(fresh)
        self._is_damaged = False
        old.retire()
        await old.generation.discard()


@asynccontextmanager
async def opened(
    home: Path,
    log: EventLog,
    projections: Sequence[Projection],
    lookup: Lookup,
    reading: Reading,
    *,
    workers: Workers,
) -> AsyncIterator[Views]:
    """Open the current views of *home*, or make them anew where they are damaged. Raises `LogLost` where
    they have seen another log.
    """
    views = Views(home, log, projections, lookup, reading, workers=workers)
    await views._start()  # noqa: SLF001  the second half of making it
    try:
        yield views
    finally:
        await views.driver.generation.close()
