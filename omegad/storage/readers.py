"""A few read-only connections to one file, each on its own thread, and how long each read may take.

A read that is over its time is interrupted, and its connection is free again. The interruption comes from the
event loop: a progress handler would take the interpreter's lock every few thousand instructions, which costs
a busy process more than the reading. SQLite looks for it at every jump of a program; what computes beside
SQLite calls `check` between its steps.
"""

import asyncio
import gc
import threading
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import anyio
import structlog

from omegad.runtime.errors import Overloaded, ReadTooLong, Unavailable
from omegad.runtime.precedence import HOOKS
from omegad.storage.database import Database, Work
from omegad.storage.driver import Connection, sqlite
from omegad.storage.transaction import snapshot

T = TypeVar("T")

_log = structlog.get_logger(__name__)

AGAIN_S = 0.05  # after which a read is interrupted again: between two statements nothing hears it
WAIT_S = 30.0  # for a reader
ROLLBACKS_MAX = 20


class ReadersClosed(Unavailable):
    """The file was closed, or replaced by another."""

    hint = "ask again"


class Turn(Enum):
    """Whose turn it is when a reader is free."""

    FIRST = 0
    """That of hooks, for which an agent waits: before all others, and with a reader that nobody else
    takes.
    """
    USUAL = 1
    LONG = 2
    """That of what goes through much: it has a reader of its own, and takes none of the others'."""


class Limits(NamedTuple):
    """How many seconds a read may take, by its turn."""

    first: float
    usual: float
    long: float


LIMITS = Limits(first=1.25, usual=5.0, long=30.0)


class Reading(NamedTuple):
    """How many readers a file has, beside those that one turn alone takes, and how long each may take."""

    readers: int
    limits: Limits = LIMITS


class _Watch:
    """How long the read that a thread is at may go on."""

    def __init__(self, limit_s: float, turn: Turn) -> None:
        self.limit_s = limit_s
        self.turn = turn
        self.until = time.monotonic() + limit_s
        self.timer: asyncio.TimerHandle | None = None

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.until


_mine = threading.local()


def check() -> None:
    """Give way to hooks, and raise `ReadTooLong` where the read that this thread is at has taken too long:
    for between the steps of a long one.
    """
    watch: _Watch | None = getattr(_mine, "watch", None)
    if watch is None:
        return
    _give_way(watch)
    if watch.is_over:
        raise _too_long(watch)


def _give_way(watch: _Watch) -> None:
    if HOOKS.is_held and watch.turn is not Turn.FIRST:
        HOOKS.give_way()


def _too_long(watch: _Watch) -> ReadTooLong:
    return ReadTooLong(f"it took longer than {watch.limit_s:g} s to read")


class _Waiter:
    def __init__(self) -> None:
        self.is_over = anyio.Event()
        self.database: Database | None = None


class Readers:
    """Hands out connections for consistent reads; waits when all are in use."""

    def __init__(self, usual: list[Database], own: dict[Turn, Database], limits: Limits) -> None:
        """Use `opened`, which opens and closes them; *own* are those that one turn alone takes."""
        self._lanes = {
            Turn.FIRST: [*usual, *([own[Turn.FIRST]] if Turn.FIRST in own else [])],
            Turn.USUAL: usual,
        }
        self._lanes[Turn.LONG] = [own[Turn.LONG]] if Turn.LONG in own else usual
        self._idle = {*usual, *own.values()}
        self._count = len(self._idle)
        self._limits = {Turn.FIRST: limits.first, Turn.USUAL: limits.usual, Turn.LONG: limits.long}
        self._waiting: dict[Turn, deque[_Waiter]] = {turn: deque() for turn in Turn}
        self._is_closed = False
        self._came_back = anyio.Event()

    async def read(self, work: Work[T], turn: Turn = Turn.USUAL) -> T:
        """Do *work*, all of whose reads see one moment; raises `ReadTooLong` where it is not done in time.
        Whoever is cancelled interrupts it.
        """
        database = await self._taken(turn)
        watch = _Watch(self._limits[turn], turn)
        _interrupt_after(watch.limit_s, database, watch)
        try:
            found = await database.run(lambda connection: _in_snapshot(connection, work, watch))
        except anyio.get_cancelled_exc_class():
            watch.until = 0.0
            _interrupt(database, watch)
            # The thread is at it still, and its place taken until it is not; whoever has no more time does
            # not wait for that.
            database.afterwards(partial(self._done, database, watch))
            raise
        except BaseException as error:
            if isinstance(error, ReadTooLong):
                _log.warning("storage.read_too_long", turn=turn.name.lower(), error=str(error))
            self._done(database, watch)
            raise
        self._done(database, watch)
        return found

    def _done(self, database: Database, watch: _Watch) -> None:
        assert watch.timer
        watch.timer.cancel()
        self._give_back(database)

    async def drain(self) -> None:
        """Wait until no read is under way, and let none begin: later ones raise `ReadersClosed`."""
        self._is_closed = True
        for waiting in self._waiting.values():
            while waiting:
                waiting.popleft().is_over.set()
        while len(self._idle) < self._count:
            await self._came_back.wait()

    async def _taken(self, turn: Turn) -> Database:
        if self._is_closed:
            raise ReadersClosed
        if database := next(filter(self._idle.__contains__, self._lanes[turn]), None):
            self._idle.remove(database)
            return database
        waiter = _Waiter()
        self._waiting[turn].append(waiter)
        try:
            with anyio.move_on_after(WAIT_S):
                await waiter.is_over.wait()
        except BaseException:
            if waiter.database:
                self._give_back(waiter.database)
            raise
        finally:
            with suppress(ValueError):  # it was given one, or is to go
                self._waiting[turn].remove(waiter)
        if waiter.database:
            return waiter.database
        raise (
            ReadersClosed
            if self._is_closed
            else Overloaded(f"no reader was free within {WAIT_S:g} s", hint="ask again in a moment")
        )

    def _give_back(self, database: Database) -> None:
        for turn in Turn:
            if database in self._lanes[turn] and self._waiting[turn]:
                waiter = self._waiting[turn].popleft()
                waiter.database = database
                waiter.is_over.set()
                return
        self._idle.add(database)
        self._came_back.set()
        self._came_back = anyio.Event()


def _interrupt_after(seconds: float, database: Database, watch: _Watch) -> None:
    if watch.timer:
        watch.timer.cancel()
    watch.timer = asyncio.get_running_loop().call_later(seconds, _interrupt, database, watch)


def _interrupt(database: Database, watch: _Watch) -> None:
    """Interrupt what the thread of a connection is at, again and again until the timer is cancelled; what
    is over is not harmed.
    """
    database.interrupt_now()
    _interrupt_after(AGAIN_S, database, watch)


def _in_snapshot(connection: Connection, work: Work[T], watch: _Watch) -> T:
    _mine.watch = watch
    _give_way(watch)
    try:
        with snapshot(connection):
            return work(connection)
    except BaseException as error:
        if not watch.is_over:
            raise
        _let_go(error)
        for _ in range(ROLLBACKS_MAX):
            if not connection.in_transaction:
                break
            with suppress(sqlite.OperationalError):  # which can be interrupted, too
                connection.execute("ROLLBACK")
            gc.collect()  # a statement may be in a circle
        if isinstance(error, sqlite.OperationalError):
            raise _too_long(watch) from None
        raise
    finally:
        _mine.watch = None


def _let_go(error: BaseException | None) -> None:
    """Let go of the statements that the frames of an error have begun: one that is not over keeps the
    interruption, for those after it as well.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


@asynccontextmanager
async def opened(
    path: Path, count: int, limits: Limits = LIMITS, own: Collection[Turn] = ()
) -> AsyncIterator[Readers]:
    """Open *count* readers of *path*, and one for each turn that is to have its own; close them at the end
    of the block.
    """
    databases = [await Database.reader(path) for _ in range(count + len(own))]
    try:
        yield Readers(databases[:count], dict(zip(own, databases[count:], strict=True)), limits)
    finally:
        with anyio.CancelScope(shield=True):
            for database in databases:
                await database.close()
