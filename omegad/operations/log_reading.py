"""Questions put to the log itself."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.event import Erased, Position, RecordedEvent, Unknown
from omegad.log.verifying import LogReport
from omegad.operations.views import ProgressToken
from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request
from omegad.runtime.times import rfc3339

READ_MAX = 10_000


class ReadLog(Request, frozen=True, kw_only=True, tag="log.read"):
    """Read events after a position."""

    after: Annotated[int, Meta(ge=0, description="begin after this position")] = 0
    limit: Annotated[int, Meta(ge=1, le=READ_MAX, description="how many events at most")] = 100


class FollowLog(Request, frozen=True, kw_only=True, tag="log.follow"):
    """Be sent every event after a position (by default, those to come) as `log.event` notifications, until the request is cancelled."""

    after: Annotated[int, Meta(ge=0, description="begin after this position; with those to come when left out")] | None = None


class VerifyLog(Request, frozen=True, kw_only=True, tag="log.verify"):
    """Prove that the log is as it was written."""

    progress_token: ProgressToken | None = None


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """That there is no more to follow, because the service stops."""


class LogEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event as it is told to clients."""

    position: Position
    id: str
    tag: str
    recorded_at: str
    occurred_at: str
    session_id: str | None
    project: str | None
    client: str | None
    cause: Position | None
    data: object


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some events, fewer than asked for where they are large, and where the log ends."""

    events: list[msgspec.Raw]
    """Each a `LogEvent`."""
    head: Position


def told(recorded: RecordedEvent) -> LogEvent:
    """Return an event as it is told to clients: an erased payload as null, an unknown one as the JSON that it is."""
    match recorded.event:
        case Erased():
            data: object = None
        case Unknown(body=body):
            data = msgspec.Raw(body)
        case known:
            data = known
    return LogEvent(
        position=recorded.position,
        id=recorded.event_id,
        tag=recorded.tag,
        recorded_at=rfc3339(recorded.recorded_at),
        occurred_at=rfc3339(recorded.occurred_at),
        session_id=recorded.session_id,
        project=recorded.project,
        client=recorded.client,
        cause=recorded.cause,
        data=data,
    )


METHODS = (
    ServiceMethod(params=ReadLog, answer=LogPage, is_paged=True),
    ServiceMethod(params=FollowLog, answer=Ended),
    ServiceMethod(params=VerifyLog, answer=LogReport),
)
