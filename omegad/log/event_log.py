"""The log as the rest of the daemon uses it: append with group commit, read, follow, verify.

Proposals that arrive while a commit waits for the disk share the next one: the wait is the batching window,
and nothing is delayed to fill a batch. While an inline projection is made from the log, proposals wait and
reads go on.
"""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import anyio
import structlog

from omegad.log import chain, requests
from omegad.log.aging import PayloadsAged
from omegad.log.appending import Appender, Committed, Head, InPlace, create
from omegad.log.decision import Cursor, Outcome, Proposal, RequestKey, decide_nothing
from omegad.log.erasure import PayloadErased
from omegad.log.event import Position, RecordedEvent
from omegad.log.inline import CatchingUp, ProjectionFailed, Vocabulary
from omegad.log.reading import LogReader, Tail
from omegad.log.verifying import ChainCheck
from omegad.runtime.clock import Clock
from omegad.runtime.errors import (
    LogBroken,
    Overloaded,
    ShuttingDown,
    StorageCorrupt,
    StorageFailed,
    Unavailable,
)
from omegad.storage import readers
from omegad.storage.checkpointer import Checkpointer, checkpoint_quietly
from omegad.storage.database import Database
from omegad.storage.driver import Connection

WAITING_MAX = 10_000
BATCH_MAX = 512
LATER_S = 0.2
TAIL_VERIFIED_AT_START = 200
FOLLOW_CHUNK = 500
CATCH_UP_WAIT_S = 10.0
RETRY_S = 1.0

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class EventLog(LogReader):
    """The append-only log of one home. Make it with `opened`; `run` must be running for `append` to
    answer.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        vocabulary: Vocabulary,
        writer: Database,
        reading_from: readers.Readers,
    ) -> None:
        super().__init__(path, vocabulary.codec, reading_from)
        self._clock = clock
        self._vocabulary = vocabulary
        self._writer = writer
        self._checkpointer = Checkpointer(path)
        self._waiting: deque[tuple[Proposal, asyncio.Future[Outcome]]] = deque()
        self._work = asyncio.Event()
        self._later: asyncio.TimerHandle | None = None
        self._grown = asyncio.Event()
        self._drained = asyncio.Event()
        self._tail = Tail()
        self._closing = asyncio.Event()
        self._head = Head(0, chain.GENESIS, 0, 0)
        self._appender = Appender(vocabulary, "", clock)
        self._catching_up: CatchingUp | None = None
        self._catch_up_wait_s = CATCH_UP_WAIT_S
        self._is_writer_lost = False
        self.in_place = InPlace(path)
        self.trouble: str | None = None
        """What keeps the log from being appended to, in words, until it works again; None where nothing
        does.
        """

    @property
    def head(self) -> Position:
        """The position of the latest committed event, 0 in an empty log."""
        return self._head.position

    @property
    def recorded_at(self) -> int:
        """When the latest event was recorded; a clock that was set back is behind it."""
        return self._head.recorded_at

    @property
    def origin(self) -> str:
        """The name of the installation, which stands in every event that it records."""
        return self._appender.origin

    @property
    def state_position(self) -> Position:
        """The position up to which the inline projections show the log: its head, but while one of them is
        made.
        """
        return self._catching_up.position if self._catching_up else self.head

    @property
    def waiting(self) -> int:
        """How many proposals wait to be appended."""
        return len(self._waiting)

    async def on_writer(self, work: Callable[[Connection], T]) -> T:
        """Do *work* between two commits, on the thread and the connection that write."""
        return await self._writer.run(work)

    async def writer_answers(self) -> None:
        """Return when the thread that writes has come to it, or is gone: one that hangs in the disk never
        does.
        """
        with suppress(Unavailable):
            await self.on_writer(lambda _: None)

    def bytes_on_disk(self) -> int:
        """Size of the log and its write-ahead log."""
        return self.in_place.bytes() + self._checkpointer.wal_bytes()

    async def append(self, proposal: Proposal) -> Outcome:
        """Decide *proposal* and append its events; return when they are on the disk.

        Raises what the decision raises; `Overloaded` when too many wait; a storage error when nothing could
        be written; `Unavailable` when the inline projections stay behind for 10 s. The proposal of a caller
        that is cancelled is settled all the same.
        """
        while self._catching_up:
            await self._catching_up.wait(self.head, self._catch_up_wait_s)
        answered = self._enqueue(proposal)
        self._work.set()
        return await answered

    async def append_all(self, proposals: Sequence[Proposal]) -> list[Outcome | Exception]:
        """Decide and append proposals one after the other, with one wait for the disk; return what each came
        to, or what `append` would raise.

        Raises `Overloaded` and `ShuttingDown` where none of them is taken, and `Unavailable` as `append`
        does.
        """
        while self._catching_up:
            await self._catching_up.wait(self.head, self._catch_up_wait_s)
        self._check_room(len(proposals))
        waiting = [self._enqueue(proposal) for proposal in proposals]
        self._work.set()
        return [await _settled(answered) for answered in waiting]

    def append_later(self, proposal: Proposal) -> None:
        """Have *proposal* appended with the next commit, within `LATER_S`, without waiting; a failure is
        logged.

        Nobody waits for it, so it shares a commit and a step of the views with whatever comes meanwhile.
        Raises `Overloaded`, `ShuttingDown`.
        """
        self._enqueue(proposal).add_done_callback(_log_failure)
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(LATER_S, self._begin)

    def _begin(self) -> None:
        self._later = None
        self._work.set()

    def _enqueue(self, proposal: Proposal) -> asyncio.Future[Outcome]:
        self._check_room(1)
        answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((proposal, answered))
        return answered

    def _check_room(self, count: int) -> None:
        if self._closing.is_set():
            raise ShuttingDown
        if self._catching_up:
            self._catching_up.check()
        if len(self._waiting) + count > WAITING_MAX:
            raise Overloaded(f"{WAITING_MAX} appends are waiting already")

    async def run(self) -> None:
        """Commit what waits, batch after batch, until `drain` is called."""
        while True:
            if self._catching_up:
                await self._catch_up(self._catching_up)
            elif self._waiting:
                await self._commit(
                    [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
                )
            elif self._closing.is_set():
                break
            else:
                await self._work.wait()
                self._work.clear()
        self._drained.set()

    async def drain(self) -> None:
        """Refuse further appends, and wait until those that wait are settled; `run` then ends."""
        self._closing.set()
        self._work.set()
        await self._drained.wait()

    async def refold(self) -> None:
        """Make every inline projection anew from the log; return when they are in step. Appends wait
        meanwhile.

        Raises `ProjectionFailed`, `ShuttingDown` or a storage error.
        """
        await self.settled()
        making = self._catching_up = self._catching_up or CatchingUp(0, anew=True)
        self._work.set()
        await making.wait(self.head, math.inf)
        if self._closing.is_set():
            raise ShuttingDown

    async def _catch_up(self, making: CatchingUp) -> None:
        """Show the log to the inline projections that are behind, until they are in step or the log
        closes.
        """
        _log.info("log.catching_up", position=making.position, head=self.head)

        def on_thread(connection: Connection) -> bool:
            is_in_step = making.step(connection, self._vocabulary.inline, self._vocabulary.codec)
            checkpoint_quietly(self._checkpointer, connection)
            return is_in_step

        is_in_step = False
        while not (is_in_step or self._closing.is_set()):
            try:
                is_in_step = await self._writer.run(on_thread)
                self.trouble = None
            except (StorageCorrupt, ProjectionFailed) as error:
                _log.error("log.cannot_catch_up", error=str(error))
                self.trouble = str(error)
                making.end(error)
                self._fail_waiting(error)
                await self._closing.wait()
            except Unavailable as error:
                _log.warning("log.catching_up_failed", error=str(error))
                await self._note_trouble(error)
                with anyio.move_on_after(RETRY_S):
                    await self._closing.wait()
        self._catching_up = None
        making.end()
        if not is_in_step:
            self._fail_waiting(ShuttingDown())

    async def read(
        self, after: Position, limit: int, turn: readers.Turn = readers.Turn.USUAL
    ) -> list[RecordedEvent]:
        """Return up to *limit* events after a position, in order; empty at the head. Raises `LogBroken`
        where they cannot be read.
        """
        if after >= self.head:
            return []
        return self._tail.after(after, limit) or await super().read(after, limit, turn)

    async def settled(self) -> None:
        """Return when everything proposed before is appended, or refused. Raises `Overloaded`,
        `ShuttingDown` or a storage error.
        """
        await self.append(Proposal(decide=decide_nothing))

    async def advance(self, cursor: Cursor) -> None:
        """Move a cursor without appending anything; make it where there is none of that name."""
        await self.append(Proposal(decide=decide_nothing, cursor=cursor))

    async def answered(self, request: RequestKey) -> Outcome | None:
        """Return the first answer to a request, as `LogReader.answered`; raises `LogReplaced` where it
        stands in files that no start finds.
        """
        try:
            found = await super().answered(request)
        except Unavailable:
            self.in_place.check()
            raise
        self.in_place.check()
        return found

    async def kept_from(self) -> Position:
        """Return the first position of what is kept to be known again, as answers to requests are."""
        head, now_us = self.head, self._clock.now_us()
        return await self._readers.read(lambda connection: requests.kept_from(connection, head, now_us))

    async def wait_beyond(self, position: Position) -> None:
        """Return when the log holds an event after *position*."""
        while self.head <= position:
            await self._grown.wait()

    async def follow(self, after: Position) -> AsyncIterator[RecordedEvent]:
        """Yield every event after a position, for ever: those there are, then each as it comes, none twice
        and none left out.
        """
        while True:
            await self.wait_beyond(after)
            for recorded in await self.read(after, FOLLOW_CHUNK):
                yield recorded
                after = recorded.position

    async def _commit(self, batch: list[tuple[Proposal, asyncio.Future[Outcome]]]) -> None:
        proposals, loop = [proposal for proposal, _ in batch], asyncio.get_running_loop()

        def on_thread(connection: Connection) -> None:
            committed = self._appender.commit(connection, proposals, self._head)
            # Or what was written is where no start finds it, and must not be acknowledged
            self.in_place.check()
            loop.call_soon_threadsafe(
                self._settle, batch, committed
            )  # at once: nobody waits for what follows
            self._appender.requests.after_commit(connection, committed.head.position)
            checkpoint_quietly(self._checkpointer, connection)

        try:
            if self._is_writer_lost:
                await self._reopen()
            await self._writer.run(on_thread)
        except Exception as error:  # noqa: BLE001  whoever waits is told, whatever it was
            _log.error("log.commit_failed", proposals=len(batch), error=repr(error))
            if not isinstance(error, Unavailable) and len(batch) > 1:
                # One of them writes what the tables refuse; each gets a transaction of its own, so that only
                # that one fails.
                for one in batch:
                    await self._commit([one])
                return
            for _, answered in batch:
                _fail(answered, error)
            if isinstance(error, Unavailable):
                await self._note_trouble(error)

    def _settle(self, batch: list[tuple[Proposal, asyncio.Future[Outcome]]], committed: Committed) -> None:
        """Tell those of *batch*, and take them from it."""
        if committed.head.position > self._head.position:  # what writes nothing shows nothing of the disk
            self.trouble = None
        for (_, answered), outcome in zip(batch, committed.outcomes, strict=True):
            if isinstance(outcome, Exception):
                _fail(answered, outcome)
            elif not answered.done():
                answered.set_result(outcome)
        batch.clear()
        self._advance(committed)

    async def _note_trouble(self, error: Unavailable) -> None:
        self.trouble = str(error)
        if isinstance(error, StorageFailed):
            self._is_writer_lost = True
            with suppress(Unavailable):  # the next commit tries again
                await self._reopen()

    def _advance(self, committed: Committed) -> None:
        has_grown = committed.head.position > self.head
        self._head = committed.head
        self._tail.extend(committed.events)
        if any(isinstance(recorded.event, PayloadErased | PayloadsAged) for recorded, _ in committed.events):
            self._tail.clear()  # it may hold what they name
        if committed.is_state_stale:
            self._catching_up = CatchingUp(0, anew=True)
        if has_grown:  # soon: whoever was answered goes first, and then those who follow
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        """Have those go on who wait for the log to grow."""
        self._grown.set()
        self._grown = asyncio.Event()

    async def _reopen(self) -> None:
        """Start over with a new connection: after a failed fsync nobody knows what the old one believes."""
        self.in_place.check()
        await self._writer.close()
        self._writer = await Database.writer(self.path, durable=True)
        self._tail.clear()
        self._advance(Committed([], [], await self._writer.run(self.in_place.load_head)))
        self._is_writer_lost = False

    async def _prepare(self) -> None:
        origin, behind = await self._writer.run(
            lambda connection: create(connection, self._clock, self._vocabulary.inline)
        )
        self._appender = Appender(self._vocabulary, origin, self._clock)
        behind, is_stale = (0, True) if await self.is_erasing() else (behind, False)
        self._catching_up = None if behind is None else CatchingUp(behind, anew=is_stale)
        self._head = await self._writer.run(self.in_place.load_head)
        start = max(0, self.head - TAIL_VERIFIED_AT_START)
        check = ChainCheck(start, await self.chain_at(start) or b"")
        while await self._readers.read(lambda connection: check.verify(connection, TAIL_VERIFIED_AT_START)):
            pass
        if not check.report.ok:
            raise LogBroken(f"{self.path}: the hash chain breaks at position {check.report.first_bad}")

    async def key_imports(self, named: Callable[[str], str]) -> None:
        """Replace the ids of imports' requests that were made without a key, as `requests.key_imports`
        does.
        """
        await self._writer.run(lambda connection: requests.key_imports(connection, named))

    async def _close(self) -> None:
        self._fail_waiting(ShuttingDown())
        try:
            await self._writer.run(self._checkpointer.truncate)
        except (
            Unavailable
        ) as error:  # nothing is lost: what the WAL holds is read from there at the next start
            _log.warning("log.not_checkpointed", error=str(error))
        await self._writer.close()

    def _fail_waiting(self, error: Exception) -> None:
        while self._waiting:
            _fail(self._waiting.popleft()[1], error)


def _log_failure(answered: asyncio.Future[Outcome]) -> None:
    """Log why a proposal that nobody waits for was not appended."""
    if not answered.cancelled() and (error := answered.exception()):
        _log.warning("log.not_appended", error=repr(error))


def _fail(answered: asyncio.Future[Outcome], error: Exception) -> None:
    """Raise *error* where somebody still waits."""
    if not answered.done():
        answered.set_exception(error)


async def _settled(answered: asyncio.Future[Outcome]) -> Outcome | Exception:
    try:
        return await answered
    except Exception as error:  # noqa: BLE001  whoever waits is told, whatever it was
        return error


@asynccontextmanager
async def opened(
    path: Path,
    clock: Clock,
    vocabulary: Vocabulary,
    *,
    catch_up_wait_s: float = CATCH_UP_WAIT_S,
    limits: readers.Limits = readers.LIMITS,
) -> AsyncIterator[EventLog]:
    """Open the log at *path*, making it if there is none; verify the end of its chain.

    `append` waits for at most *catch_up_wait_s* seconds where inline projections are made from the log.
    Raises `LogBroken` where the chain does not verify, and storage errors.
    """
    await anyio.Path(path).touch(mode=0o600)
    writer = await Database.writer(path, durable=True)
    async with readers.opened(path, 1, limits, own=(readers.Turn.FIRST, readers.Turn.LONG)) as reading_from:
        log = EventLog(path, clock, vocabulary, writer, reading_from)
        log._catch_up_wait_s = catch_up_wait_s  # noqa: SLF001
        try:
            await log._prepare()  # noqa: SLF001  the second half of making it
            yield log
        finally:
            await log._close()  # noqa: SLF001
