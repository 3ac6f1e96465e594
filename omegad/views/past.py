"""The views as they stood at earlier positions: files beside the live one, made from the log when they are asked for.

Each is made of the nearest earlier one that is kept and what the log says between the two. One that is not finished in time is kept as far as
it is, and goes on from there when it is asked for again. A few are kept, the least recently asked for is removed first; none outlives the
service, an hour without questions, or an erasure in the log.
"""

import shutil
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import anyio
import structlog

from omegad.errors import OmegadError, Stale, StorageFailed, StorageFull, ViewFailed
from omegad.log.codec import tag_of
from omegad.log.event import Position, RecordedEvent
from omegad.log.event_log import EventLog
from omegad.projection import Projection
from omegad.storage.driver import Connection
from omegad.storage.transaction import writing
from omegad.views import generation
from omegad.views.applying import Lookup
from omegad.views.driver import CATCH_UP_EVENTS, Driver
from omegad.views.generation import Generation

FOLDER = "asof"
FILES_MAX = 4
BYTES_MAX = 1024**3  # of all of them together, but for the one that was asked for last
WAIT_S = 10.0  # for another to be made
MAKING_S = 10.0  # then it is answered how far it is
IDLE_S = 3_600.0
TIDY_EVERY_S = 60.0
ROOM = 3  # times the size of the log, that has to be free before another is made

_log = structlog.get_logger(__name__)


class PastFile:
    """A file of views that stops at one position."""

    def __init__(self, driver: Driver, *, erased: int, is_indexed: bool) -> None:
        """Take a file that is being made; *is_indexed* says that it has the indexes that only readers need.

        *erased* is how many payloads the log had lost then: with more, the file shows what the log does not.
        """
        self.driver = driver
        self.erased = erased
        self.is_indexed = is_indexed
        self.is_whole = False
        self.reads = 0
        self.asked_at = time.monotonic()

    @property
    def generation(self) -> Generation:
        """The file and its connections."""
        return self.driver.generation

    @property
    def position(self) -> Position:
        """What every projection shows that has not failed."""
        return self.driver.position()

    @property
    def bytes(self) -> int:
        """How large it is on the disk."""
        return sum(path.stat().st_size for path in self.generation.path.parent.glob(f"{self.generation.path.name}*"))


class PastViews:
    """The files that are kept. Make it with `opened`."""

    def __init__(self, folder: Path, log: EventLog, projections: Sequence[Projection], lookup: Lookup) -> None:
        """Use `opened`."""
        self._folder = folder
        self._log = log
        self._projections = tuple(projections)
        self._lookup = lookup
        self._kept: list[PastFile] = []  # the least recently asked for first
        self._making = anyio.Lock()
        self._count = 0

    @asynccontextmanager
    async def at(self, position: Position) -> AsyncIterator[PastFile]:
        """Give the views as of a position of the log; they stay as they are until the end of the block.

        Raises `Stale`, saying how far they are, where they are not made within `MAKING_S`; `StorageFull` where there is no room for them.
        """
        with anyio.move_on_after(WAIT_S) as patience:
            await self._making.acquire()
        if patience.cancelled_caught:
            raise Stale("another moment of the past is being put together", hint="ask again in a moment")
        found = await self._held(position)
        try:
            yield found
        finally:
            found.reads -= 1

    async def run(self) -> None:
        """Remove, now and then, what nobody has asked for in a while, and what shows what was erased since."""
        while True:
            await anyio.sleep(TIDY_EVERY_S)
            try:
                async with self._making:
                    await self._tidy()
            except OmegadError as error:
                _log.warning("asof.not_tidied", error=str(error))

    async def forget(self) -> None:
        """Remove what shows what was erased since, as soon as nobody reads it."""
        async with self._making:
            while (erased := await self._tidy()) and any(one.erased != erased for one in self._kept):  # noqa: ASYNC110
                await anyio.sleep(0.01)  # nothing tells of the end of a read

    async def _held(self, position: Position) -> PastFile:
        try:
            with anyio.CancelScope(shield=True):  # a step goes on in its thread, whoever is cancelled
                found = await self._made(position)
                found.reads += 1
                return found
        finally:
            self._making.release()
        raise AssertionError

    async def _made(self, position: Position) -> PastFile:
        erased = await self._tidy()
        kept = [one for one in self._kept if one.erased == erased and one.position <= position]
        found = next((one for one in kept if one.is_whole and one.position == position), None) or await self._begun(kept, erased)
        self._kept.remove(found)
        self._kept.append(found)
        found.asked_at = time.monotonic()
        try:
            await self._carry_on(found, position)
        except OmegadError:
            await self._remove(found)
            raise
        await self._make_room()
        if not found.is_whole:
            done = 100 * found.position // max(1, position)
            raise Stale(f"the views as of position {position:,} are being made: {done} %", hint="ask again in a moment; it goes on from there")
        return found

    async def _begun(self, kept: Sequence[PastFile], erased: int) -> PastFile:
        """Return an unfinished file to carry on with: the furthest of those *kept*, a copy of it where it is finished, or an empty one."""
        base = max(kept, key=lambda one: one.position, default=None)
        if base is not None and not base.is_whole:
            return base
        with _translated():
            self._folder.mkdir(mode=0o700, exist_ok=True)
            has_room = shutil.disk_usage(self._folder).free >= ROOM * self._log.bytes_on_disk()
        if not has_room:
            raise StorageFull("there is no room to put the past together", hint="free some space on the disk of the home")
        self._count += 1
        path = self._folder / f"{self._count}.db"
        try:
            if base is not None:
                await base.generation.writer.run(partial(generation.copy_to, target=path))
            opened = await Generation.opened(path, self._projections, reader_count=1)
            names = () if base is not None else tuple(projection.NAME for projection in self._projections)
            opened.checkpoints = await opened.writer.run(partial(generation.begin, names=names, projections=self._projections))
        except OmegadError:
            generation.remove(path)
            raise
        begun = PastFile(Driver(self._log, opened, self._projections, self._lookup), erased=erased, is_indexed=base is not None)
        self._kept.append(begun)
        return begun

    async def _carry_on(self, one: PastFile, position: Position) -> None:
        """Show *one* the log up to a position, as far as it comes in time, but something."""
        until = time.monotonic() + MAKING_S
        while (reached := one.position) < position:
            through = min(reached + CATCH_UP_EVENTS, position)
            await one.driver.catch_up(_nobody, {projection.NAME: through for projection in self._projections})
            if one.position == reached and (failed := one.driver.failure(list(one.driver.checkpoints))):
                raise ViewFailed(f"no view can be shown position {position}: {failed.name!r} fails at {failed.failed_position}: {failed.error}")
            if time.monotonic() > until:
                break
        if not one.is_whole and one.position == position:
            await self._take_out_erased(one, position)
            await one.generation.writer.run(partial(_finish, projections=() if one.is_indexed else self._projections))
            one.is_whole = one.is_indexed = True

    async def _take_out_erased(self, one: PastFile, position: Position) -> None:
        """Show the projections that know them the erasures since: what was erased is not shown as of an earlier moment either."""
        kinds = {kind for projection in self._projections for kind in getattr(projection, "ERASED_BY", ())}
        if not one.erased or not (since := await self._log.tagged([tag_of(kind) for kind in kinds], position)):
            return
        erasures = await self._log.read_at(since)
        await one.generation.writer.run(partial(_show_erasures, erasures=erasures, projections=self._projections))

    async def _tidy(self) -> int:
        """Remove what shows what was erased since, and what nobody asks for; return how many payloads of the log are erased."""
        erased = await self._log.erased(self._log.head)
        for one in list(self._kept):
            if not one.reads and (one.erased != erased or time.monotonic() - one.asked_at > IDLE_S):
                await self._remove(one)
        return erased

    async def _make_room(self) -> None:
        """Remove the least recently asked for until the others are few and small enough; the latest stays, and what is being read."""
        for one in self._kept[:-1]:
            if not one.reads and (len(self._kept) > FILES_MAX or sum(other.bytes for other in self._kept[:-1]) > BYTES_MAX):
                await self._remove(one)

    async def _remove(self, one: PastFile) -> None:
        self._kept.remove(one)
        await one.generation.discard()

    async def _close(self) -> None:
        while self._kept:
            await self._remove(self._kept[0])


@asynccontextmanager
async def opened(home: Path, log: EventLog, projections: Sequence[Projection], lookup: Lookup) -> AsyncIterator[PastViews]:
    """Have the past of a home's views put together where it is asked for. Nothing is kept from an earlier run, and nothing after the block."""
    folder = home / FOLDER
    with _translated():
        for left in folder.glob("*.db*"):
            left.unlink()
    past = PastViews(folder, log, projections, lookup)
    try:
        yield past
    finally:
        with anyio.CancelScope(shield=True):
            await past._close()  # noqa: SLF001


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"{error.filename}: {error.strerror}", hint="move away what has its name; `omegad doctor` checks the disk") from error


def _finish(connection: Connection, projections: Sequence[Projection]) -> None:
    generation.make_indexes(connection, projections)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.execute(f"PRAGMA cache_size=-{generation.LIVE_CACHE_KIB}")


def _show_erasures(connection: Connection, erasures: Sequence[RecordedEvent], projections: Sequence[Projection]) -> None:
    with writing(connection):
        for projection in projections:
            for recorded in erasures:
                if isinstance(recorded.event, getattr(projection, "ERASED_BY", ())):
                    for sql, values in projection.project(recorded):
                        connection.execute(sql, values)


def _nobody(_done: Position, _total: Position) -> None:
    """Nobody is told of each step."""
