"""The views that are served now: opened and checked at the start, kept in step, rebuilt beside themselves and swapped."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec
import structlog
from anyio import to_thread

from omegad.errors import Invalid, NotFound, Refused, Stale, StorageCorrupt, Unavailable, ViewFailed
from omegad.log.event import Position
from omegad.log.event_log import EventLog
from omegad.projection import Projection
from omegad.storage.driver import Connection
from omegad.storage.readers import ReadersClosed
from omegad.views import barrier as barriers
from omegad.views import generation, log_check, replay
from omegad.views.applying import Lookup
from omegad.views.barrier import Barrier, Snapshot
from omegad.views.driver import Driver
from omegad.views.generation import Generation
from omegad.views.replay import Progress, ViewReport

T = TypeVar("T")

LIVE_CACHE_KIB = 2_000
REBUILD_CACHE_KIB = 16_384  # what a batch touches is all over the file; where it does not fit, it is written twice

_log = structlog.get_logger(__name__)


class RebuiltView(msgspec.Struct, frozen=True, kw_only=True):
    """A view that was built again: how many canonical rows it has at its position, and their digest."""

    rows: int
    position: Position
    digest: str


class Views:
    """The projections of one home, as one consistent file at a time. Make it with `opened`; `run` keeps it in step."""

    def __init__(self, home: Path, log: EventLog, projections: Sequence[Projection], lookup: Lookup, reader_count: int) -> None:
        """Use `opened`."""
        self._home = home
        self._log = log
        self._projections = tuple(projections)
        self._lookup = lookup
        self._reader_count = reader_count
        self._serving = anyio.CancelScope()
        self._proving = anyio.Lock()
        self._is_damaged = False
        self._latest: Path | None = None
        self.rebuilding: Collection[str] = ()
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

    async def run(self) -> None:
        """Keep the views in step with the log for ever, on whichever generation is current."""
        while True:
            with anyio.CancelScope() as self._serving:
                try:
                    await self.driver.run()
                except StorageCorrupt as error:
                    self._note_damage(self.driver.generation, error)
            if self._is_damaged:
                await self._start_over()

    async def at(self, barrier: Barrier, work: Callable[[Connection, Snapshot], T]) -> T:
        """Do *work* on views that show what *barrier* asks for; all its reads see the one moment that the snapshot describes.

        A `NotFound` of *work* is `Stale` where what was acknowledged is not shown yet. Raises `Invalid` for a position that is not in the
        log, `Stale`, `ViewFailed`, `StorageCorrupt` where the file is damaged (it is then built again), and what *work* raises.
        """
        await self._pass(barrier)

        def at_one_moment(connection: Connection, target: Generation) -> T:
            snapshot = barriers.taken(connection, target.path, barrier)
            if not barrier.makes_do:
                barriers.check_whole(snapshot, target.whole_from)
            try:
                return work(connection, snapshot)
            except NotFound as error:
                snapshot.require_current(str(error))
                raise

        return await self._on_current(at_one_moment)

    async def _pass(self, barrier: Barrier) -> None:
        """Wait as *barrier* says."""
        if barrier.min_position is not None and barrier.min_position > self._log.head:
            raise Invalid(f"min_position {barrier.min_position} is beyond the end of the log, {self._log.head}")
        with anyio.move_on_after(barriers.OWN_WRITES_S) as patience:
            await self.wait_for(barrier.must, barrier.names)
        if patience.cancelled_caught:
            raise Stale(f"the views did not reach position {barrier.must} within {barriers.OWN_WRITES_S:.0f} s")
        if barrier.makes_do and self.driver.trouble:
            return
        with anyio.move_on_after(barrier.wait_s):
            try:
                await self.wait_for(max(barrier.wanted, self.driver.generation.whole_from), barrier.names)
            except Unavailable:
                if not barrier.makes_do:
                    raise

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Do *work* on the views as they are, all of whose reads see one moment. Raises `StorageCorrupt` as `at` does."""
        return await self._on_current(lambda connection, _: work(connection))

    async def _on_current(self, work: Callable[[Connection, Generation], T]) -> T:
        """Do *work* on a reading connection; on the new file where the file is being replaced."""
        while True:
            target = self.driver.generation
            try:
                return await target.readers.read(partial(_given, target, work))
            except ReadersClosed:
                if target is self.driver.generation:
                    raise
            except StorageCorrupt as error:
                self._note_damage(target, error)
                raise

    async def wait_for(self, position: Position, names: Collection[str]) -> None:
        """Return when the projections named show everything up to a position.

        Raises `ViewFailed` where one of them has failed before it.
        """
        while (driver := self.driver).position(names) < position:
            if failed := driver.failure(names):
                raise ViewFailed(f"the view {failed.name!r} failed at position {failed.failed_position}: {failed.error}")
            await driver.moved()

    async def rebuild(self, names: Collection[str], progress: Progress) -> dict[str, RebuiltView]:
        """Build the projections named (all, when none is) anew beside the live ones, check them, and swap.

        Raises `Invalid` for an unknown name, `Refused` while another rebuild runs. Where a rebuilt projection fails, the live views stay.
        """
        self._check_names(names)
        if self.rebuilding:
            raise Refused("a rebuild is running already", hint="wait for it to end; `omegad status` shows it")
        self.rebuilding = tuple(names) or self.names
        try:
            async with self._proving:
                return await self._rebuild_beside(progress)
        finally:
            self.rebuilding = ()

    async def verify(self, names: Collection[str], progress: Progress) -> dict[str, ViewReport]:
        """Replay the log into a scratch file and compare the projections named (all, when none is) with it."""
        self._check_names(names)
        chosen = [projection for projection in self._projections if not names or projection.NAME in names]
        scratch = self._home / "views-verify.tmp"
        async with self._proving:
            return await replay.compare(self._log, self.driver.generation, chosen, self._lookup, scratch=scratch, progress=progress)

    def _check_names(self, names: Collection[str]) -> None:
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise Invalid(f"there is no view {unknown[0]!r}", hint=f"the views are {', '.join(self.names)}")

    async def _rebuild_beside(self, progress: Progress) -> dict[str, RebuiltView]:
        path = self._next_path()
        fresh: Generation | None = None
        try:
            with anyio.CancelScope(shield=True):  # a copy goes on in its thread, whoever is cancelled
                fresh = await self._fresh(path)
            assert fresh is not None
            driver = self._driver(fresh)
            await driver.catch_up(progress)
            await self._check(driver)
            built = [projection for projection in self._projections if projection.NAME in self.rebuilding]
            await fresh.writer.run(lambda connection: generation.finished(connection, built, LIVE_CACHE_KIB))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await (fresh.discard() if fresh else to_thread.run_sync(generation.remove, path))
            raise
        with anyio.CancelScope(shield=True):
            await self._swap(driver)
        return await self._rebuilt(tuple(self.rebuilding))

    async def _fresh(self, path: Path) -> Generation:
        """Make the file of a rebuild: a copy of the live one without what is built anew, or an empty one."""
        if set(self.rebuilding) != set(self.names):
            await self.driver.generation.writer.run(lambda connection: generation.copy_to(connection, path))
        fresh = await self._open(path)
        await fresh.writer.run(lambda connection: generation.being_built(connection, REBUILD_CACHE_KIB))
        fresh.checkpoints = await fresh.writer.run(lambda connection: generation.reset(connection, self.rebuilding, self._projections, bare=True))
        return fresh

    def _note_damage(self, target: Generation, error: StorageCorrupt) -> None:
        _log.error("views.corrupt", file=target.path.name, error=str(error))
        if target is self.driver.generation:
            self._is_damaged = True
            self._serving.cancel()

    async def _check(self, driver: Driver) -> None:
        failed = driver.failure(self.rebuilding)
        if failed:
            raise ViewFailed(f"the rebuilt view {failed.name!r} failed at position {failed.failed_position}: {failed.error}")
        problem = await replay.check_integrity(driver.generation, self._projections)
        if problem:
            raise ViewFailed(f"a rebuilt view is damaged: {problem}")

    async def _swap(self, driver: Driver) -> None:
        old = self.driver
        generation.point_at(driver.generation.path)
        self.driver = driver
        self._serving.cancel()
        old.retire()
        await old.generation.discard()
        self.on_deferred()

    async def _rebuilt(self, names: Collection[str]) -> dict[str, RebuiltView]:
        built = [projection for projection in self._projections if projection.NAME in names]
        marks, digests = await self.read(lambda connection: replay.state(connection, built))
        return {name: RebuiltView(rows=d.rows, position=marks[name].position, digest=d.digest) for name, d in digests.items()}

    async def _start(self) -> None:
        await log_check.check(self._home, self._log)
        path = generation.current(self._home)
        opened = await self._open_checked(path) if path else None
        if opened is None:
            path = self._next_path()
            opened = await self._open(path)
            generation.point_at(path)
        generation.remove_others(self._home, opened.path)
        self._serve(opened)

    def _serve(self, opened: Generation) -> None:
        """Answer from *opened*, once it shows what is in the log now."""
        opened.whole_from = self._log.head
        self.driver = self._driver(opened)

    def _driver(self, of: Generation) -> Driver:
        driver = Driver(self._log, of, self._projections, self._lookup)
        driver.on_deferred = self._tell_deferred
        return driver

    def _tell_deferred(self) -> None:
        self.on_deferred()

    async def _open_checked(self, path: Path) -> Generation | None:
        """Open the views left by an earlier run, unless they are damaged; then they are built again."""
        try:
            opened = await self._open(path)
        except StorageCorrupt as error:
            _log.warning("views.refused", file=path.name, reason=str(error))
            return None
        outdated = [p.NAME for p in self._projections if not opened.checkpoints[p.NAME].belongs_to(p)]
        retried = [c.name for c in opened.checkpoints.values() if c.failed_position is not None and c.name in self.names]
        if outdated:
            _log.info("views.outdated", views=outdated)
            opened.checkpoints = await opened.writer.run(lambda connection: generation.reset(connection, outdated, self._projections))
        for name in set(retried) - set(outdated):
            opened.checkpoints[name] = msgspec.structs.replace(opened.checkpoints[name], failed_position=None, error=None)
        return opened

    def _next_path(self) -> Path:
        """Return the file for another generation, which neither the home nor anyone here has had."""
        self._latest = generation.next_path(self._home, self._latest)
        return self._latest

    async def _open(self, path: Path) -> Generation:
        return await Generation.opened(path, self._projections, self._reader_count)

    async def _start_over(self) -> None:
        old = self.driver
        path = self._next_path()
        self._serve(await self._open(path))
        generation.point_at(path)
        self._is_damaged = False
        old.retire()
        await old.generation.discard()


def _given(target: Generation, work: Callable[[Connection, Generation], T], connection: Connection) -> T:
    return work(connection, target)


@asynccontextmanager
async def opened(home: Path, log: EventLog, projections: Sequence[Projection], lookup: Lookup, reader_count: int) -> AsyncIterator[Views]:
    """Open the current views of *home*, or make them anew where they are damaged. Raises `LogLost` where they have seen another log."""
    views = Views(home, log, projections, lookup, reader_count)
    await views._start()  # noqa: SLF001  the second half of making it
    try:
        yield views
    finally:
        await views.driver.generation.close()
