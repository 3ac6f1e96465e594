"""The views as they stood at earlier positions: files beside the live one, made from the log when they are
asked for.

A process beside the daemon makes one at a time, of the nearest earlier one that is kept, or a copy of the
live views, and what the log says between the two. Whoever asks waits for `WAIT_S` at most; it is made all the
same, for who asks again. `FILES_MAX` are kept, of `BYTES_MAX` together but for the latest; the least recently
asked for is removed first, and none outlives the service, an hour without questions, or an erasure in the
log.

Copies of the live views are kept now and then, so that a moment is not made from the first event of the log.
One is taken when the log has grown by `COPY_EVERY` events since the last. There are `COPIES_MAX` at most,
together no larger than `COPIES_TIMES` the latest; where there are more, that one goes whose neighbours are
nearest to each other, so that those that stay are spread over the log. They outlive the service. An erasure
and a restore remove them all, and one that was made by another version of the views, or of another log, is
never used.
"""

import re
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from hashlib import sha256
from pathlib import Path

import anyio
import structlog
from anyio import to_thread

from omegad.log.checkpoint import Checkpoint, failed, start_of
from omegad.log.event import Position, RecordedEvent
from omegad.log.event_log import EventLog
from omegad.log.folding import Progress
from omegad.log.projection import Projection
from omegad.runtime import alone
from omegad.runtime.errors import OmegadError, Stale, StorageFull
from omegad.storage import own_files, readers
from omegad.storage.database import leave_wal, open_reader, open_writer, translated
from omegad.storage.readers import LIMITS, Limits, Readers
from omegad.storage.transaction import writing
from omegad.views import generation
from omegad.views.building import PastOrder, take_out
from omegad.views.current import Views

COPY_EVERY = 25_000
COPIES_MAX = 8
COPIES_TIMES = 3
UNFINISHED_COPY = f"{generation.COPY_PREFIX}new"
FILES_MAX = 4
BYTES_MAX = 1024**3
WAIT_S = 10.0  # for what is asked for to be made
IDLE_S = 3_600.0
TIDY_EVERY_S = 60.0
_NAME = re.compile(rf"[1-9][0-9]*\.db{generation.BELONGING}")
ROOM = 3  # times the size of the log, that has to be free before another is made
_NAMED_SO = "move away what has its name; `omegad doctor` checks the disk"

_log = structlog.get_logger(__name__)


class Copies:
    """The copies in one folder, named `copy-<position>-<what made it>.db`."""

    def __init__(self, folder: Path, log: EventLog, views: Views, projections: Sequence[Projection]) -> None:
        self._folder = folder
        self._log = log
        self._views = views
        self._projections = projections
        self._versions = repr([start_of(projection) for projection in projections])

    async def check(self) -> None:
        """Remove the copies that another log or another version of the projections was shown in, and all
        where an erasure was broken off.
        """
        is_erasing = await self._log.is_erasing()
        for position, path in self.all():
            if is_erasing or path != self._path(position, await self._log.chain_at(position)):
                generation.remove(path)

    def all(self) -> list[tuple[Position, Path]]:
        """Return what the copies show, and where they are, the earliest first."""
        return sorted(
            (int(path.name.split("-")[1]), path) for path in own_files.named(self._folder, generation.COPY)
        )

    async def take(self) -> None:
        """Copy the live views, if it is time to. Raises storage errors, and then there is no further copy."""
        driver, views = self._views.driver, self._views
        latest = max((position for position, _ in self.all()), default=0)
        is_whole = not (views.rebuilding or failed(driver.checkpoints, views.names))
        if not is_whole or driver.position() - latest < COPY_EVERY:
            return
        async with views.proving:  # whoever rebuilds or erases waits for the end of it
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._take, views.file)

    def _take(self, live: Path) -> None:
        own_files.make(self._folder)
        files = (live.with_name(live.name + suffix) for suffix in generation.SUFFIXES)
        needed = COPIES_TIMES * sum(path.stat().st_size for path in files if path.exists())
        if shutil.disk_usage(self._folder).free < needed:
            return
        unfinished = self._folder / UNFINISHED_COPY
        generation.remove(unfinished)
        try:
            with translated():
                with closing(open_reader(live)) as source:
                    generation.copy_to(source, unfinished)
                with closing(open_reader(unfinished)) as copy:
                    marks = generation.load_checkpoints(copy).values()
            alone.sync(unfinished)
            if not any(mark.failed_position for mark in marks):
                latest = max(marks, key=lambda mark: mark.position)
                unfinished.rename(self._path(latest.position, latest.chain))
        finally:
            generation.remove(unfinished)

        kept = self.all()
        bytes_max = COPIES_TIMES * kept[-1][1].stat().st_size if kept else 0
        while len(kept) > COPIES_MAX or sum(path.stat().st_size for _, path in kept) > bytes_max:
            places = [0, *(position for position, _ in kept)]
            _, path = kept.pop(min(range(len(kept) - 1), key=lambda place: places[place + 2] - places[place]))
            generation.remove(path)

    async def age(self, aged: RecordedEvent) -> None:
        """Take out of every copy what was let go of. Where one is broken off before that, what stays is taken
        out of whatever is made of it.
        """
        for _, path in self.all():
            async with self._views.proving:
                await to_thread.run_sync(self._age, path, aged)

    def _age(self, path: Path, aged: RecordedEvent) -> None:
        with translated(), closing(open_writer(path, durable=False)) as connection:
            with writing(connection):
                take_out(connection, self._projections, aged)
            leave_wal(connection)

    def remove_all(self) -> None:
        """Remove every copy."""
        if own_files.is_own(self._folder):
            for path in (*(path for _, path in self.all()), self._folder / UNFINISHED_COPY):
                generation.remove(path)

    def _path(self, position: Position, chain: bytes | None) -> Path:
        """Return the name of a copy of these projections as of a position of a log with that chain there."""
        made_by = sha256(self._versions.encode() + (chain or b"")).hexdigest()[:16]
        return self._folder / f"{generation.COPY_PREFIX}{position}-{made_by}.db"


class PastFile:
    """A file of views that stops at one position, and changes no more. It is of a log that had lost *erased*
    payloads: where that has lost more, the file shows what the log does not.
    """

    def __init__(
        self, path: Path, position: Position, erased: int, reading_from: Readers, stack: AsyncExitStack
    ) -> None:
        self.path = path
        self.position = position
        self.erased = erased
        self.readers = reading_from
        self.checkpoints: dict[str, Checkpoint] = {}
        self.reads = 0
        self.asked_at = time.monotonic()
        self._stack = stack

    @classmethod
    async def opened(cls, path: Path, position: Position, erased: int, limits: Limits) -> "PastFile":
        """Open what was made."""
        async with AsyncExitStack() as stack:
            reading_from = await stack.enter_async_context(readers.opened(path, 1, limits))
            found = cls(path, position, erased, reading_from, stack)
            found.checkpoints = await reading_from.read(generation.load_checkpoints)
            found._stack = stack.pop_all()
            return found
        raise AssertionError

    @property
    def bytes(self) -> int:
        """How large it is on the disk."""
        return self.path.stat().st_size if self.path.exists() else 0

    async def discard(self) -> None:
        """Close it and remove it."""
        await self.readers.drain()
        await self._stack.aclose()
        generation.remove(self.path)


class _Making:
    """What is being made: *done* of *position* events are shown, until it *is_over*, with or without a
    *failure*.
    """

    def __init__(self, position: Position, erased: int) -> None:
        self.position = position
        self.erased = erased
        self.done = 0
        self.is_over = anyio.Event()
        self.failure: OmegadError | None = None
        self.scope = anyio.CancelScope()
        self.is_begun = False

    def tell(self, done: Position, _total: Position) -> None:
        self.done = done


class PastViews:
    """The files that are kept. Make it with `opened`; `run` makes them."""

    def __init__(
        self, folder: Path, log: EventLog, views: Views, projections: Sequence[Projection], limits: Limits
    ) -> None:
        self._limits = limits
        self.copies = Copies(folder, log, views, projections)
        self._folder = folder
        self._log = log
        self._views = views
        self._kept: list[PastFile] = []  # the least recently asked for first
        self._making: _Making | None = None
        self._asked = anyio.Event()
        self._count = 0

    @asynccontextmanager
    async def at(self, position: Position) -> AsyncIterator[PastFile]:
        """Give the views as of a position of the log; they stay as they are until the end of the block.

        Raises `Stale`, saying how far they are, where they are not made within `WAIT_S`; `StorageFull` where
        there is no room for them.
        """
        found = await self._held(position)
        try:
            yield found
        finally:
            found.reads -= 1

    async def run(self) -> None:
        """Make what is asked for; now and then, copy the live views, and remove what nobody has asked for
        in a while.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._look_after)
            while True:
                await self._asked.wait()
                self._asked = anyio.Event()
                if self._making:
                    await self._make(self._making)

    async def _look_after(self) -> None:
        while True:
            await anyio.sleep(TIDY_EVERY_S)
            try:
                with generation.translated(_NAMED_SO):
                    await self.tidy()
                    await self.copies.take()
            except OmegadError as error:
                _log.warning("asof.not_tidied", error=str(error))

    async def forget(self) -> None:
        """Remove what shows what was erased since, as soon as nobody reads it."""
        if (making := self._making) and making.is_begun:
            making.scope.cancel()
            await making.is_over.wait()
        self.copies.remove_all()
        while (erased := await self.tidy()) and any(  # noqa: ASYNC110  nothing tells of the end of a read
            one.erased != erased for one in self._kept
        ):
            await anyio.sleep(0.01)

    async def close(self) -> None:
        """Remove all but copies."""
        for one in self._kept:
            await one.discard()

    async def _held(self, position: Position) -> PastFile:
        making: _Making | None = None
        with anyio.move_on_after(WAIT_S):
            while True:
                erased = await self.tidy()
                if found := next(
                    (one for one in self._kept if (one.erased, one.position) == (erased, position)), None
                ):
                    self._kept.remove(found)
                    self._kept.append(found)
                    found.asked_at = time.monotonic()
                    found.reads += 1
                    return found
                if self._making is None:
                    self._making = _Making(position, erased)
                    self._asked.set()
                making = self._making
                await making.is_over.wait()
                if making.failure and making.position == position:
                    raise making.failure
        done, position = (making.done, making.position) if making else (0, position)
        percent = 100 * done // max(1, position)
        raise Stale(
            f"the views as of position {position:,} are being made: {percent} %",
            hint="ask again in a moment; it goes on meanwhile",
        )

    async def _make(self, making: _Making) -> None:
        making.is_begun = True
        try:
            with generation.translated(_NAMED_SO), making.scope:
                self._kept.append(await self._made(making.position, making.erased, making.tell))
                for one in self._kept[:-1]:  # the latest stays
                    if len(self._kept) > FILES_MAX or sum(kept.bytes for kept in self._kept[:-1]) > BYTES_MAX:
                        await self._remove(one)
            if making.scope.cancelled_caught:
                making.failure = Stale("the log has lost what they would show", hint="ask again")
        except OmegadError as error:
            making.failure = error
        finally:
            self._making = None
            making.is_over.set()

    async def _made(self, position: Position, erased: int, tell: Progress) -> PastFile:
        with generation.translated(_NAMED_SO):
            own_files.make(self._folder)
            has_room = shutil.disk_usage(self._folder).free >= ROOM * self._log.bytes_on_disk()
        if not has_room:
            raise StorageFull(
                "there is no room to put the past together", hint="free some space on the disk of the home"
            )
        self._count += 1
        target = self._folder / f"{self._count}.db"
        known = [(one.position, one.path) for one in self._kept if one.erased == erased] + self.copies.all()
        source = max(((shown, path) for shown, path in known if shown <= position), default=(0, None))[1]
        try:
            order = PastOrder(log=self._log.path, target=target, position=position, source=source)
            await self._views.workers.done(order, int, tell)
            return await PastFile.opened(target, position, erased, self._limits)
        except BaseException:
            generation.remove(target)
            raise

    async def tidy(self) -> int:
        """Remove what shows what was taken out since, and what nobody asks for; return the number that
        says how much the log has lost.
        """
        erased = await self._log.taken_out()
        for one in list(self._kept):
            if one.erased != erased or time.monotonic() - one.asked_at > IDLE_S:
                await self._remove(one)
        return erased

    async def _remove(self, one: PastFile) -> None:
        """Remove a file that nobody reads."""
        if one in self._kept and not one.reads:
            self._kept.remove(one)
            with anyio.CancelScope(shield=True):
                await one.discard()


@asynccontextmanager
async def opened(
    home: Path, log: EventLog, views: Views, projections: Sequence[Projection], limits: Limits = LIMITS
) -> AsyncIterator[PastViews]:
    """Have the past of a home's views put together where it is asked for. Only copies are kept from an
    earlier run, and after the block.
    """
    folder = home / generation.PAST
    with generation.translated(_NAMED_SO):
        for left in own_files.named(folder, _NAME):
            left.unlink()
    past = PastViews(folder, log, views, projections, limits)
    await past.copies.check()
    try:
        yield past
    finally:
        with anyio.CancelScope(shield=True):
            await past.close()
