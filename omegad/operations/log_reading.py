"""Questions put to the log itself."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.event import Position
from omegad.log.verifying import LogReport
from omegad.operations.views import ProgressToken
from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request

READ_MAX = 10_000


class ReadLog(Request, frozen=True, kw_only=True, tag="log.read"):
    """Read events after a position."""

    after: Annotated[int, Meta(ge=0, description="begin after this position")] = 0
    limit: Annotated[int, Meta(ge=1, le=READ_MAX, description="how many events at most")] = 100


class FollowLog(Request, frozen=True, kw_only=True, tag="log.follow"):
    """Be sent every event after a position (by default, those to come) as `log.event` notifications, until
    the request is cancelled.
    """

    after: (
        Annotated[int, Meta(ge=0, description="begin after this position; with those to come when left out")]
        | None
    ) = None


class VerifyLog(Request, frozen=True, kw_only=True, tag="log.verify"):
    """Prove that the log is as it was written."""

    progress_token: ProgressToken | None = None


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """That there is no more to follow, because the service stops."""


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some events, fewer than asked for where they are large, and where the log ends."""

    events: list[msgspec.Raw]
    """Each a `LogEvent`."""
    head: Position


METHODS = (
    ServiceMethod(params=ReadLog, answer=LogPage, is_paged=True, verb=None),
    ServiceMethod(params=FollowLog, answer=Ended, verb=None),
    ServiceMethod(params=VerifyLog, answer=LogReport, verb=None),
)
