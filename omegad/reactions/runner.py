"""Carries out the reactions: each goes at its own pace, and what one fails on keeps neither itself nor
others from going on. What follows from events of other installations, these have seen to themselves.
"""

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import anyio
import msgspec
import structlog

from omegad.log import dead_letters
from omegad.log.dead_letters import DeadLetter
from omegad.log.decision import Cursor, RequestKey
from omegad.log.event import Position, RecordedEvent
from omegad.log.event_log import EventLog
from omegad.reactions.contract import Reaction, ReactionStatus, Reader, Schedule, Sweep
from omegad.requests.command import Command
from omegad.requests.method import RequestContext
from omegad.runtime.clock import STEP_US, Clock
from omegad.runtime.errors import (
    Conflict,
    NotFound,
    OmegadError,
    Overloaded,
    ReadTooLong,
    Refused,
    ShuttingDown,
    Stale,
    Unavailable,
)
from omegad.text.redaction import redact
from omegad.views.current import Views

T = TypeVar("T")

BATCH = 500
TRIES = 3  # at what is the reaction's own mistake
SAVE_EVERY = 1_000  # events that led to nothing: to look at them once more does no harm
SECOND_US = 1_000_000
FAR_US = (
    86_400 * SECOND_US
)  # ahead of the clock, where no slot was that did not come of a clock that was wrong
_OF_THE_SERVICE = (Unavailable, Overloaded, ShuttingDown, Stale)  # as while views are built again

_log = structlog.get_logger(__name__)


class Pace(NamedTuple):
    """How long to wait, in seconds: after a failure, doubling up to a bound, and between two looks at the
    clock or for what is lacking.
    """

    retry_s: float = 1.0
    retry_max_s: float = 60.0
    clock_s: float = 60.0
    sweep_s: float = 2.0


Find = Callable[[Reader], Iterable[Command]]


class _Work(NamedTuple):
    """An event, or a slot of time without one, its place, and what the views have to show for it."""

    position: Position
    shown: Position
    recorded: RecordedEvent | None


def _is_of_the_service(error: Exception) -> bool:
    """Say whether a reaction is not to blame for an error, as it is for what it reads too long."""
    return isinstance(error, _OF_THE_SERVICE) and not isinstance(error, ReadTooLong)


def _kind(error: str) -> str:
    return error.partition(":")[0]


Execute = Callable[[Command, RequestContext, Cursor | None], Awaitable[object]]
"""Carries out a command, and moves a cursor in the transaction of its append; raises what the decision
raises.
"""


class ReactionProgress:
    """Where a reaction stands: the position, or slot, up to which all is done."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.saved = 0
        self.waiting: str | None = None
        """What it is waiting out, in words."""
        self.dead_letters: dict[int, str] = {}
        """What was passed over because the reaction fails on it: the position or slot, and the kind of
        error; the log's file has more of it.
        """

    @property
    def trouble(self) -> str | None:
        """What is not as it should be, in words."""
        if not self.dead_letters:
            return self.waiting
        first = min(self.dead_letters)
        passed_over = (
            f"set aside {len(self.dead_letters)}, the first at {first} ({self.dead_letters[first]});"
            " `omegad reaction list` shows them, `omegad reaction retry` tries again"
        )
        return f"{self.waiting}; {passed_over}" if self.waiting else passed_over


class Runner:
    """Runs every reaction it is given, as long as `run` is running."""

    def __init__(
        self,
        log: EventLog,
        views: Views,
        clock: Clock,
        execute: Execute,
        reactions: Sequence[Reaction | Schedule | Sweep],
        *,
        pace: Pace | None = None,
    ) -> None:
        self._log = log
        self._views = views
        self._clock = clock
        self._execute = execute
        self._reactions = reactions
        self.pace = pace or Pace()
        self._begin = log.head
        self.progress = {
            reaction.NAME: ReactionProgress(log.head if isinstance(reaction, Sweep) else 0)
            for reaction in reactions
        }

    @property
    def head(self) -> Position:
        """Where the log ends."""
        return self._log.head

    async def run(self) -> None:
        """Work for ever."""
        for one in await self._trying(ReactionProgress(0), self.set_aside):
            if one.name in self.progress:
                self.progress[one.name].dead_letters.setdefault(one.position, _kind(one.error))
        async with anyio.create_task_group() as tasks:
            for reaction in self._reactions:
                match reaction:
                    case Sweep():
                        tasks.start_soon(self._sweep, reaction, name=reaction.NAME)
                    case Schedule():
                        tasks.start_soon(self._keep_time, reaction, name=reaction.NAME)
                    case _:
                        tasks.start_soon(self._follow, reaction, name=reaction.NAME)

    def status(self) -> dict[str, ReactionStatus]:
        """Say how each is doing."""
        return {reaction.NAME: self._status(reaction) for reaction in self._reactions}

    def _status(self, reaction: Reaction | Schedule | Sweep) -> ReactionStatus:
        progress = self.progress[reaction.NAME]
        lag = 0 if isinstance(reaction, Schedule) else self._log.head - progress.position
        lacking = reaction.trouble if isinstance(reaction, Sweep) else None
        return ReactionStatus(
            position=progress.position,
            lag=lag,
            trouble=progress.trouble or lacking,
            set_aside=len(progress.dead_letters),
        )

    async def set_aside(self) -> list[DeadLetter]:
        """Return all that was passed over because a reaction fails on it, by reaction and position."""
        return await self._log.on_writer(dead_letters.every)

    async def retry(self, one: DeadLetter) -> DeadLetter | None:
        """Try once more what was set aside; return None when it is done, else what it is set aside as now.
        Raises what it is not to blame for.
        """
        try:
            await self._act_again(one)
        except Exception as error:
            if _is_of_the_service(error):
                raise
            return await self._keep(one, error, 1)
        await self.forget(one)
        return None

    async def forget(self, one: DeadLetter) -> None:
        """Let go of what was set aside."""
        await self._log.on_writer(partial(dead_letters.remove, name=one.name, position=one.position))
        if one.name in self.progress:
            self.progress[one.name].dead_letters.pop(one.position, None)

    async def _act_again(self, one: DeadLetter) -> None:
        reaction = next((reaction for reaction in self._reactions if one.name == reaction.NAME), None)
        work = _Work(one.position, self._log.head, None)
        match reaction:
            case Schedule() if one.is_slot:
                await self._act(reaction, work, partial(reaction.due, one.position))
            case Reaction() if not one.is_slot:
                for recorded in await self._log.read_at([one.position]):
                    if isinstance(recorded.event, reaction.EVENTS):  # and was not erased meanwhile
                        work = work._replace(recorded=recorded)
                        await self._act(reaction, work, partial(reaction.react, recorded))
            case _:
                raise NotFound(
                    f"there is no reaction {one.name!r}",
                    hint="reaction.retry with forget lets go of what it failed on",
                )

    async def _keep(self, one: DeadLetter, error: Exception, tries: int) -> DeadLetter:
        """Keep what a reaction failed on, as often as that was, in the log's file."""
        said = redact(f"{type(error).__name__}: {error}")[0]
        failed = msgspec.structs.replace(
            one, failed_at=self._clock.now_us(), tries=tries, error=said[: dead_letters.ERROR_CHARACTERS]
        )
        await self._log.on_writer(partial(dead_letters.add, one=failed))
        if one.name in self.progress:
            known = self.progress[one.name].dead_letters
            known[one.position] = _kind(said)
            while len(known) > dead_letters.KEPT_MAX:
                del known[min(known)]
        return msgspec.structs.replace(failed, tries=one.tries + tries)

    async def run_slot(self, schedule: Schedule, slot: int) -> None:
        """Do what is due in a slot; returns when that is done, or set aside."""
        await self._deliver(schedule, _Work(slot, self._log.head, None), partial(schedule.due, slot))

    async def _follow(self, reaction: Reaction) -> None:
        progress = self.progress[reaction.NAME]
        if not await self._resume(reaction):
            progress.position = self._begin
            await self._trying(progress, partial(self._save, reaction))
        passes_over: Callable[[RecordedEvent], bool] = getattr(reaction, "passes_over", lambda _: False)
        while True:
            await self._log.wait_beyond(progress.position)
            for recorded in await self._trying(progress, partial(self._log.read, progress.position, BATCH)):
                is_passed_over = passes_over(recorded) or recorded.origin != self._log.origin
                if not is_passed_over and isinstance(recorded.event, reaction.EVENTS):
                    await self._deliver(
                        reaction,
                        _Work(recorded.position, recorded.position, recorded),
                        partial(reaction.react, recorded),
                    )
                progress.position = recorded.position
            if progress.position - progress.saved >= (SAVE_EVERY if reaction.EVENTS else 1):
                await self._trying(progress, partial(self._save, reaction))

    async def _keep_time(self, schedule: Schedule) -> None:
        """Give each slot its turn, once; while the clock is behind the log, the next one when its length
        has gone by, by what is measured.
        """
        progress, length_us = self.progress[schedule.NAME], schedule.EVERY * SECOND_US
        await self._resume(schedule)
        is_due_at = -math.inf  # a start cannot tell how long ago the last one was
        while True:
            slot, elapsed_us = divmod(self._clock.now_us(), length_us)
            is_behind = slot < progress.position
            if (
                (progress.position - slot) * length_us > FAR_US
                and slot < progress.position - 1
                and self._log.recorded_at <= self._clock.now_us() + STEP_US
            ):
                progress.position, is_behind = slot - 1, False  # the clock was mended
            if is_behind and anyio.current_time() >= is_due_at:
                slot = progress.position + 1
            if slot > progress.position:
                await self.run_slot(schedule, slot)
            if slot >= progress.position:
                is_due_at = anyio.current_time() + schedule.EVERY
            await anyio.sleep(min((length_us - elapsed_us) / SECOND_US, self.pace.clock_s))

    async def _sweep(self, sweep: Sweep) -> None:
        progress, is_wanted = self.progress[sweep.NAME], True
        while True:
            try:
                if is_wanted or sweep.is_due():
                    is_wanted = not await sweep.sweep()
                    progress.waiting = None
                is_wanted = await self._is_concerned(sweep, progress) or is_wanted
            # Whatever it is, the service goes on, and so may the sweep
            except Exception as error:  # noqa: BLE001
                _log.warning("reaction.waits", reaction=sweep.NAME, error=repr(error))
                progress.waiting, is_wanted = (
                    str(error) if isinstance(error, OmegadError) else repr(error),
                    True,
                )
                await anyio.sleep(self.pace.sweep_s)

    async def _is_concerned(self, sweep: Sweep, progress: ReactionProgress) -> bool:
        """Wait for events after which there is something to do; say whether there were any before it was
        time for another look.
        """
        with anyio.move_on_after(self.pace.sweep_s):
            while True:
                await self._log.wait_beyond(progress.position)
                events = await self._log.read(progress.position, BATCH)
                progress.position = events[-1].position
                if sweep.concerns(events):
                    return True
        return False

    async def _resume(self, reaction: Reaction | Schedule) -> bool:
        """Go on where an earlier run ended; say whether there was one."""
        progress = self.progress[reaction.NAME]
        cursor = (await self._trying(progress, self._log.cursors)).get(reaction.NAME)
        if cursor is not None:
            progress.position = progress.saved = cursor.position
        return cursor is not None

    async def _save(self, reaction: Reaction | Schedule) -> None:
        progress = self.progress[reaction.NAME]
        await self._log.advance(Cursor(reaction.NAME, progress.position, reaction.VERSION))
        progress.saved = progress.position

    async def _deliver(self, reaction: Reaction | Schedule, work: _Work, find: Find) -> None:
        """Find what follows from an event or a slot, and have it carried out; set it aside where that
        cannot be.
        """
        progress = self.progress[reaction.NAME]
        try:
            await self._act(
                reaction,
                work,
                find,
                progress,
                Cursor(reaction.NAME, work.position, reaction.VERSION),
            )
        except Exception as error:  # noqa: BLE001  whatever it is, the next event is another matter
            _log.error(
                "reaction.set_aside", reaction=reaction.NAME, position=work.position, error=repr(error)
            )
            one = DeadLetter(reaction.NAME, work.position, work.recorded is None, 0, 0, "")
            await self._trying(progress, partial(self._keep, one, error, TRIES))
        progress.position = max(progress.position, work.position)

    async def _act(
        self,
        reaction: Reaction | Schedule,
        work: _Work,
        find: Find,
        progress: ReactionProgress | None = None,
        cursor: Cursor | None = None,
    ) -> None:
        """Have carried out what follows; the last step moves the *cursor*. Each is tried again, as `_trying`
        has it, where there is *progress* to tell of, else once.
        """
        commands = await self._trying(progress, partial(self._find, reaction.VIEWS, find, work.shown))
        effect = getattr(reaction, "effect", None)
        if effect is not None and work.recorded is not None:
            await self._trying(progress, partial(effect, work.recorded))
        for place, command in enumerate(commands):
            key = RequestKey(
                client=f"reaction:{reaction.NAME}",
                request_id=f"{reaction.VERSION}/{work.position}/{place}",
                params_digest=b"",
            )
            cause = None if work.recorded is None else work.position
            context = RequestContext(client=key.client, delivery=key, cause=cause, written=work.shown)
            is_last = place == len(commands) - 1
            carry_out = partial(self._carry_out, command, context, cursor if is_last else None)
            await self._trying(progress, carry_out)

    async def _find(self, views: Collection[str], find: Find, shown: Position) -> tuple[Command, ...]:
        if views:
            await self._views.wait_for(shown, views)
        now_us = self._clock.now_us()
        return await self._views.read(lambda connection: tuple(find(Reader(connection, now_us))))

    async def _carry_out(self, command: Command, context: RequestContext, cursor: Cursor | None) -> None:
        try:
            await self._execute(command, context, cursor)
        except (Refused, NotFound, Conflict) as error:
            _log.info("reaction.refused", reaction=context.client, cause=context.cause, reason=str(error))
            return
        if cursor:
            self.progress[cursor.name].saved = cursor.position

    async def _trying(self, progress: ReactionProgress | None, work: Callable[[], Awaitable[T]]) -> T:
        """Do *work* until it is done: what it is not to blame for is waited out, any other failure raised
        after a few tries. Without *progress* it is tried once.
        """
        if progress is None:
            return await work()
        failures, wait_s = 0, self.pace.retry_s
        while True:
            try:
                result = await work()
            except Exception as error:
                failures += not _is_of_the_service(error)
                if failures == TRIES:
                    progress.waiting = None
                    raise
                is_told = isinstance(error, _OF_THE_SERVICE)
                progress.waiting = str(error) if is_told else f"tries again after {error!r}"
            else:
                progress.waiting = None
                return result
            await anyio.sleep(wait_s)
            wait_s = min(2 * wait_s, self.pace.retry_max_s)
