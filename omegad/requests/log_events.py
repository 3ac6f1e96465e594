"""An event of the log as clients are told of it."""

import msgspec

from omegad.log.event import Erased, Position, RecordedEvent, Unknown
from omegad.runtime.times import rfc3339


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


def log_event(recorded: RecordedEvent) -> LogEvent:
    """Return an event as it is told to clients: an erased payload as null, an unknown one as the JSON that
    it is.
    """
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
