"""What every command has in common, and the kinds of parameter and answer that recur."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.log.event import Position
from omegad.requests.query import RequestId

Name = Annotated[str, Meta(min_length=1, max_length=256)]
Text = Annotated[str, Meta(min_length=1)]
Reason = Annotated[str, Meta(max_length=4_096, description="why")]
Ack = Literal["related", "durable"]


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="method", forbid_unknown_fields=True):
    """Base of every command; its tag is the method's name.

    `request_id` makes it safe to send again: the same request of the same client gives the first answer.
    `ack` says how much to wait for: `durable` is answered as soon as the event is on the disk.
    """

    request_id: RequestId | None = None
    ack: Annotated[
        Ack, Meta(description="how much to wait for: durable is answered as soon as it is on the disk")
    ] = "related"


class Acknowledged(msgspec.Struct, frozen=True, kw_only=True):
    """Where the latest event of a command stands in the log.

    A subclass whose fields come before `position` on the wire is not `kw_only` itself.
    """

    position: Position = 0
