"""The log as the rest of the daemon uses it: append with group commit, read, follow, verify.

Proposals that arrive while a commit waits for the disk share the next one: the wait is the batching window, and nothing is delayed
to fill a batch.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib import resources
from pathlib import Path

import anyio
import msgspec
import structlog

from omegad import state as inline
from omegad.clock import Clock, uuid7
from omegad.errors import LogBroken, Overloaded, ShuttingDown, StorageCorrupt, StorageFailed, Unavailable
from omegad.log import appending, chain, reading
from omegad.log.appending import Committed, Head
from omegad.log.decision import Cursor, Decision, Outcome, Proposal
from omegad.log.event import Position, RecordedEvent
from omegad.log.tail import Tail
from omegad.log.verifying import Erasures, LogReport, verify_part
from omegad.state import DecisionState
from omegad.storage import readers
from omegad.storage.checkpointer import Checkpointer, checkpoint_quietly
from omegad.storage.database import Database
from omegad.storage.driver import Connection
from omegad.storage.transaction import writing

FORMAT = 2
WAITING_MAX = 10_000
BATCH_MAX = 512
LATER_S = 0.2
VERIFY_CHUNK = 5_000
TAIL_VERIFIED_AT_START = 200
FOLLOW_CHUNK = 500

_log = structlog.get_logger(__name__)


class EventLog:
    """The append-only log of one home. Make it with `opened`; `run` must be running for `append` to answer."""

    def __init__(self, path: Path, clock: Clock, writer: Database, reading_from: readers.Readers) -> None:
        """Use `opened`."""
        self._path = path
        self._clock = clock
        self._writer = writer
        self._readers = reading_from
        self._checkpointer = Checkpointer(path)
        self._waiting: deque[tuple[Proposal, asyncio.Future[Outcome]]] = deque()
        self._work = asyncio.Event()
        self._later: asyncio.TimerHandle | None = None
        self._grown = asyncio.Event()
        self._drained = asyncio.Event()
        self._tail = Tail()
        self._closing = False
        self._head = Head(0, chain.GENESIS, 0, 0)
        self.origin = ""

    @property
    def head(self) -> Position:
        """The position of the latest committed event, 0 in an empty log."""
        return self._head.position

    @property
    def waiting(self) -> int:
        """How many proposals wait to be appended."""
        return len(self._waiting)

    def bytes_on_disk(self) -> int:
        """Size of the log and its write-ahead log."""
        return self._path.stat().st_size + self._checkpointer.wal_bytes()

    async def append(self, proposal: Proposal) -> Outcome:
        """Decide *proposal* and append its events; return when they are on the disk.

        Raises what the decision raises; `Overloaded` when too many wait; a storage error when nothing could be written. A caller
        that is cancelled stops waiting; the proposal is settled all the same.
        """
        answered = self._enqueue(proposal)
        self._work.set()
        return await answered

    def append_later(self, proposal: Proposal) -> None:
        """Have *proposal* appended with the next commit, within `LATER_S`, without waiting; a failure is logged.

        Nobody waits for it, so it shares a commit and a step of the views with whatever comes meanwhile. Raises `Overloaded`, `ShuttingDown`.
        """
        self._enqueue(proposal).add_done_callback(_log_failure)
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(LATER_S, self._begin)

    def _begin(self) -> None:
        self._later = None
        self._work.set()

    def _enqueue(self, proposal: Proposal) -> asyncio.Future[Outcome]:
        if self._closing:
            raise ShuttingDown
        if len(self._waiting) >= WAITING_MAX:
            raise Overloaded(f"{WAITING_MAX} appends are waiting already")
        answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((proposal, answered))
        return answered

    async def run(self) -> None:
        """Commit what waits, batch after batch, until `drain` is called."""
        while not (self._closing and not self._waiting):
            await self._work.wait()
            self._work.clear()
            while self._waiting:
                await self._commit([self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))])
        self._drained.set()

    async def drain(self) -> None:
        """Refuse further appends, and wait until those that wait are settled; `run` then ends."""
        self._closing = True
        self._work.set()
        await self._drained.wait()

    async def read(self, after: Position, limit: int) -> list[RecordedEvent]:
        """Return up to *limit* events after a position, in order; empty at the head. Raises `LogBroken` where they cannot be read."""
        if after >= self.head:
            return []
        kept = self._tail.after(after, limit)
        if kept:
            return kept
        try:
            return await self._readers.read(lambda connection: reading.read(connection, after, limit))
        except StorageCorrupt as error:
            raise LogBroken(f"{self._path.name} is damaged after position {after}: {error}") from error

    async def read_at(self, positions: Sequence[Position]) -> list[RecordedEvent]:
        """Return the events at *positions*, in order; fewer where they are large, but never none. Raises `LogBroken` as `read` does."""
        try:
            return await self._readers.read(lambda connection: reading.read_at(connection, positions))
        except StorageCorrupt as error:
            raise LogBroken(f"{self._path.name} is damaged at one of {len(positions)} positions: {error}") from error

    async def settled(self) -> None:
        """Return when everything proposed before is appended, or refused. Raises `Overloaded`, `ShuttingDown` or a storage error."""
        await self.append(Proposal(decide=_nothing))

    async def cursors(self) -> dict[str, Cursor]:
        """Return, by name, how far those have come who act on events; a cursor moves with `Proposal.cursor`, or `advance`."""
        return await self._readers.read(reading.cursors)

    async def advance(self, cursor: Cursor) -> None:
        """Move a cursor without appending anything; make it where there is none of that name."""
        await self.append(Proposal(decide=_nothing, cursor=cursor))

    async def wait_beyond(self, position: Position) -> None:
        """Return when the log holds an event after *position*."""
        while self.head <= position:
            await self._grown.wait()

    async def follow(self, after: Position) -> AsyncIterator[RecordedEvent]:
        """Yield every event after a position, for ever: those there are, then each as it comes, none twice and none left out."""
        while True:
            await self.wait_beyond(after)
            for recorded in await self.read(after, FOLLOW_CHUNK):
                yield recorded
                after = recorded.position

    async def chain_at(self, position: Position) -> bytes | None:
        """Return the chain hash at a position (that of the empty log at 0), None beyond the head."""
        if position == 0:
            return chain.GENESIS
        return await self._readers.read(lambda connection: reading.chain_at(connection, position))

    async def verify(self, progress: Callable[[int, int], None]) -> LogReport:
        """Compute the whole chain again from the stored bytes; *progress* is told how many events of how many."""
        report, more, erasures = LogReport(ok=True, events=0, head_hash=chain.GENESIS.hex()), True, Erasures()
        while more:
            report, more = await self._readers.read(partial(verify_part, report=report, limit=VERIFY_CHUNK, erasures=erasures))
            progress(report.events, self.head)
        return report

    async def _commit(self, batch: list[tuple[Proposal, asyncio.Future[Outcome]]]) -> None:
        proposals = [proposal for proposal, _ in batch]

        def on_thread(connection: Connection) -> Committed:
            done = appending.commit(connection, proposals, self._head, self.origin, self._clock)
            checkpoint_quietly(self._checkpointer, connection)
            return done

        try:
            committed = await self._writer.run(on_thread)
        except Exception as error:  # noqa: BLE001  whoever waits is told, whatever it was
            await self._commit_failed(batch, error)
            return
        self._advance(committed)
        for (_, answered), outcome in zip(batch, committed.outcomes, strict=True):
            if isinstance(outcome, Exception):
                _fail(answered, outcome)
            elif not answered.done():
                answered.set_result(outcome)

    async def _commit_failed(self, batch: list[tuple[Proposal, asyncio.Future[Outcome]]], error: Exception) -> None:
        _log.error("log.commit_failed", proposals=len(batch), error=repr(error))
        if not isinstance(error, Unavailable) and len(batch) > 1:
            # One of them writes what the tables refuse; each gets a transaction of its own, so that only that one fails.
            for one in batch:
                await self._commit([one])
            return
        for _, answered in batch:
            _fail(answered, error)
        if isinstance(error, StorageFailed):
            await self._reopen()

    def _advance(self, committed: Committed) -> None:
        has_grown = committed.head.position > self.head
        self._head = committed.head
        self._tail.extend(committed.events)
        if has_grown:
            self._grown.set()
            self._grown = asyncio.Event()

    async def _reopen(self) -> None:
        """Start over with a new connection: after a failed fsync nobody knows what the old one believes."""
        await self._writer.close()
        self._writer = await Database.writer(self._path, durable=True)
        self._tail.clear()
        self._advance(Committed([], [], await self._writer.run(appending.load_head)))

    async def _prepare(self) -> None:
        self.origin = await self._writer.run(lambda connection: _create(connection, self._clock))
        self._head = await self._writer.run(appending.load_head)
        await self._verify_tail()

    async def _verify_tail(self) -> None:
        start = max(0, self.head - TAIL_VERIFIED_AT_START)
        link = await self.chain_at(start)
        report = LogReport(ok=True, events=start, head_hash=(link or b"").hex())
        report, _ = await self._readers.read(partial(verify_part, report=report, limit=TAIL_VERIFIED_AT_START, erasures=Erasures()))
        if not report.ok:
            raise LogBroken(f"{self._path}: the hash chain breaks at position {report.first_bad}")

    async def _close(self) -> None:
        for _, answered in self._waiting:
            _fail(answered, ShuttingDown())
        self._waiting.clear()
        try:
            await self._writer.run(self._checkpointer.truncate)
        except Unavailable as error:  # nothing is lost: what the WAL holds is read from there at the next start
            _log.warning("log.not_checkpointed", error=str(error))
        await self._writer.close()


@asynccontextmanager
async def opened(path: Path, clock: Clock, reader_count: int = 1) -> AsyncIterator[EventLog]:
    """Open the log at *path*, making it if there is none; verify the end of its chain.

    Raises `LogBroken` where the chain does not verify, and storage errors.
    """
    await anyio.Path(path).touch(mode=0o600)
    writer = await Database.writer(path, durable=True)
    await writer.run(lambda connection: connection.executescript(_schema()))
    async with readers.opened(path, reader_count) as reading_from:
        log = EventLog(path, clock, writer, reading_from)
        try:
            await log._prepare()  # noqa: SLF001  the second half of making it
            yield log
        finally:
            await log._close()  # noqa: SLF001


def _schema() -> str:
    return resources.files("omegad.log").joinpath("schema.sql").read_text(encoding="utf-8")


def _create(connection: Connection, clock: Clock) -> str:
    with writing(connection):
        connection.execute("INSERT OR IGNORE INTO identity VALUES (1, ?, ?)", (uuid7(clock).replace("-", ""), FORMAT))
        origin, stored_format = connection.execute("SELECT origin, format FROM identity").fetchone()
        if stored_format > FORMAT:
            raise LogBroken(f"log.db has format {stored_format}, this version reads {FORMAT}", hint="install a newer omegad")
        if stored_format < FORMAT:
            _log.info("log.upgraded", format=FORMAT, was=stored_format)
            connection.execute("UPDATE identity SET format = ?", (FORMAT,))
        if stored_format < FORMAT or not inline.are_of_today(connection):
            inline.make_again(connection)
    return str(origin)


class _Nothing(msgspec.Struct, frozen=True):
    """Nothing is said of a proposal that only waits for those before it."""


def _nothing(state: DecisionState, now_us: int) -> Decision:
    del state, now_us
    return Decision(answer=_Nothing())


def _log_failure(answered: asyncio.Future[Outcome]) -> None:
    if not answered.cancelled() and (error := answered.exception()):
        _log.warning("log.not_appended", error=repr(error))


def _fail(answered: asyncio.Future[Outcome], error: Exception) -> None:
    if not answered.done():
        answered.set_exception(error)
