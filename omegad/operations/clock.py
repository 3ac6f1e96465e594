"""What the clock says, and whether the log and the time that goes by agree."""

import msgspec

from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request
from omegad.requests.verb import Verb


class ShowClock(Request, frozen=True, kw_only=True, tag="clock.show"):
    """Show what the clock says, when the latest event was recorded, what a clock stamped that was ahead, and whether the clock jumped."""


class ClockStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the clock says, and what the latest event of the log, `latest`, was recorded at, None in an empty log.

    `events` were stamped by a clock that was ahead, from position `first` on; it was `ahead_s` ahead. `jumped_s` is by how much the clock
    jumped while the daemon ran. `trouble` says what is odd and what to do, None where nothing is.
    """

    now: str
    latest: str | None
    events: int
    first: int
    ahead_s: int
    jumped_s: int
    trouble: str | None


METHODS = (ServiceMethod(params=ShowClock, answer=ClockStatus, verb=Verb(by="clock.show")),)
