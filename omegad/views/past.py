"""The views as they stood at earlier positions: files beside the live one, made from the log when they are
asked for.

A process beside the daemon makes one at a time, of the nearest earlier one that is kept, or a copy of the
live views, and what the log says between the two. Whoever asks waits for `WAIT_S` at most; it is made all the
same, for who asks again. `FILES_MAX` are kept, of `BYTES_MAX` together but for the latest; the least recently
asked for is removed first, and none outlives the service, an hour without questions, or an erasure in the
log.
"""

import re
import shutil
import time
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import structlog

from omegad.log.checkpoint import Checkpoint
from omegad.log.event import Position
from omegad.log.event_log import EventLog
from omegad.log.folding import Progress
from omegad.log.projection import Projection
from omegad.runtime.errors import OmegadError, Stale, StorageFailed, StorageFull
from omegad.storage import own_files, readers
from omegad.storage.readers import LIMITS, Limits, Readers
from omegad.views import checkpoints, generation
from omegad.views.copies import Copies
from omegad.views.current import Views
from omegad.views.past_building import PastOrder

FOLDER = "asof"
FILES_MAX = 4
BYTES_MAX = 1024**3
WAIT_S = 10.0  # for what is asked for to be made
IDLE_S = 3_600.0
TIDY_EVERY_S = 60.0
_NAME = re.compile(rf"[1-9][0-9]*\.db{generation.BELONGING}")
ROOM = 3  # times the size of the log, that has to be free before another is made

_log = structlog.get_logger(__name__)


class PastFile:
    """A file of views that stops at one position, and changes no more."""

    def __init__(
        self, path: Path, position: Position, erased: int, reading_from: Readers, stack: AsyncExitStack
    ) -> None:
        """Use `opened`; *erased* is how many payloads the log had lost then: with more, the file shows
        what the log does not.
        """
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
            found.checkpoints = await reading_from.read(checkpoints.load)
            found._stack = stack.pop_all()
            return found
        raise AssertionError

    def failure(self, names: Collection[str]) -> Checkpoint | None:
        """Return the checkpoint of one of the projections named that has failed before, if one has."""
        return next(
            (self.checkpoints[name] for name in names if self.checkpoints[name].failed_position is not None),
            None,
        )

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
        """Use `opened`."""
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
                with _translated():
                    await self._tidy()
                    await self.copies.take()
            except OmegadError as error:
                _log.warning("asof.not_tidied", error=str(error))

    async def forget(self) -> None:
        """Remove what shows what was erased since, as soon as nobody reads it."""
        if (making := self._making) and making.is_begun:
            making.scope.cancel()
            await making.is_over.wait()
        self.copies.remove_all()
        while (erased := await self._tidy()) and any(  # noqa: ASYNC110  nothing tells of the end of a read
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
                erased = await self._tidy()
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
            with _translated(), making.scope:
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
        with _translated():
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
            await self._views.workers.make_past(
                PastOrder(log=self._log.path, target=target, position=position, source=source), tell
            )
            return await PastFile.opened(target, position, erased, self._limits)
        except BaseException:
            generation.remove(target)
            raise

    async def _tidy(self) -> int:
        """Remove what shows what was erased since, and what nobody asks for; return how many payloads of
        the log are erased.
        """
        erased = await self._log.erased(self._log.head)
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
    folder = home / FOLDER
    with _translated():
        for left in own_files.named(folder, _NAME):
            left.unlink()
    past = PastViews(folder, log, views, projections, limits)
    await past.copies.check()
    try:
        yield past
    finally:
        with anyio.CancelScope(shield=True):
            await past.close()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"{error.filename}: {error.strerror}",
            hint="move away what has its name; `omegad doctor` checks the disk",
        ) from error
