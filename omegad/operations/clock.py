"""What the clock says, and whether the log and the time that goes by agree."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.log.mending import ClockMended
from omegad.memory.events import MemoryRestored
from omegad.memory.state import Memories, MemoryState
from omegad.operations.services import DaemonServices
from omegad.requests.command import Acknowledged, Command, Reason
from omegad.requests.method import CommandMethod, RequestContext, ServiceMethod, Services
from omegad.requests.query import Request
from omegad.requests.verb import Option, Verb
from omegad.rpc.peer import Call
from omegad.runtime.clock import STEP_US
from omegad.runtime.steadiness import SECOND_US, in_words
from omegad.runtime.times import rfc3339


class ShowClock(Request, frozen=True, kw_only=True, tag="clock.show"):
    """Show what the clock says, when the latest event was recorded, what a clock stamped that was ahead,
    and whether the clock jumped.
    """


class ClockStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the clock says, and what the latest event of the log, `latest`, was recorded at, None in an empty
    log.

    `events` were stamped by a clock that was ahead, from position `first` on; it was `ahead_s` ahead.
    `jumped_s` is by how much the clock jumped while the daemon ran. `trouble` says what is odd and what to
    do, None where nothing is.
    """

    now: str
    latest: str | None
    events: int
    first: int
    ahead_s: int
    jumped_s: int
    trouble: str | None


async def show(services: DaemonServices, _query: ShowClock, _call: Call) -> ClockStatus:
    """Say what the clock says, and what does not agree with it."""
    ahead = await services.log.stamped_ahead(services.clock.now_us())
    return ClockStatus(
        now=rfc3339(services.clock.now_us()),
        latest=rfc3339(services.log.recorded_at) if services.head else None,
        events=ahead.last - ahead.first + 1 if ahead else 0,
        first=ahead.first if ahead else 0,
        ahead_s=ahead.ahead_us // SECOND_US if ahead else 0,
        jumped_s=services.steadiness.jumped_us // SECOND_US,
        trouble=trouble(services),
    )


def trouble(services: DaemonServices) -> str | None:
    """Say in what the clock does not agree with the log, or with the time that went by, and what to do; None
    where it does.
    """
    services.steadiness.look()
    behind_us = services.log.recorded_at - services.clock.now_us()
    if behind_us <= STEP_US:
        return services.steadiness.trouble()
    return (
        f"the clock is {in_words(behind_us)} behind the log: if it is wrong, set it right; if the log was"
        " written by one that was ahead, run `omegad clock mend`"
    )


class MendClock(Command, frozen=True, kw_only=True, tag="clock.mend"):
    """Say that the clock is right now: what one stamped that was ahead counts from the right time, and
    what expired only for that is found again.
    """

    reason: Reason | None = None
    dry_run: Annotated[bool, Meta(description="say what would be mended, and mend nothing")] = False


class Mended(Acknowledged, frozen=True, kw_only=True):
    """How many events were stamped by a clock that was ahead, from which position on, by how much it was, and
    which memories are found again.

    Without any of these, the log and the clock agree, or what jumped is taken for right.
    """

    events: int = 0
    first: int = 0
    ahead_s: int = 0
    restored: tuple[str, ...] = ()


async def prepare(services: Services, command: MendClock, _context: RequestContext) -> ClockMended | None:
    """Find what was stamped by a clock that was ahead."""
    if not command.dry_run:
        services.steadiness.accept()
    return await services.log.stamped_ahead(services.clock.now_us())


def decide(command: MendClock, ahead: ClockMended | None, state: DecisionState, now_us: int) -> Decision:
    """Decide it: all at once, in one step."""
    if ahead is None:
        return Decision(events=(), answer=Mended())
    mended = msgspec.structs.replace(
        ahead, to_us=now_us, right_us=min(ahead.right_us, now_us), reason=command.reason
    )
    back = tuple(
        one
        for one in state[Memories].expired_since(ahead.first)
        if _lasts(one, mended) and state[Memories].holder(one.content_key, now_us) is None
    )
    answer = Mended(
        events=ahead.last - ahead.first + 1,
        first=ahead.first,
        ahead_s=ahead.ahead_us // SECOND_US,
        restored=tuple(one.memory_id for one in back),
    )
    if command.dry_run:
        return Decision(events=(), answer=answer)
    why = "expired by a clock that was ahead"
    restored = (
        NewEvent(event=MemoryRestored(memory_id=one.memory_id, reason=why), project=one.project, follows=True)
        for one in back
    )
    return Decision(events=(NewEvent(event=mended), *restored), answer=answer)


def _lasts(memory: MemoryState, mended: ClockMended) -> bool:
    """Say whether a memory's time is not over by the right clock."""
    if memory.expires_at is None or memory.ttl_seconds is None:
        return False
    expires_at = max(mended.right_us, memory.said_at - mended.ahead_us) + memory.ttl_seconds * SECOND_US
    return (memory.expires_at if memory.said_at <= mended.to_us else expires_at) > mended.to_us


METHODS = (
    ServiceMethod(params=ShowClock, answer=ClockStatus, verb=Verb(by="asking_first.show_clock")),
    CommandMethod(
        params=MendClock,
        answer=Mended,
        prepare=prepare,
        decide=decide,
        verb=Verb(
            by="asking_first.mend_clock",
            options=(Option("yes", "mend without asking", "flag"),),
            examples=(
                "omegad clock mend --dry-run",
                'omegad clock mend --yes --reason "the battery of the clock was empty"',
            ),
        ),
    ),
)
