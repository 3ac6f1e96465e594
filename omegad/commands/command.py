"""What every command has in common, and the kinds of parameter that recur."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Name = Annotated[str, Meta(min_length=1, max_length=256)]
Text = Annotated[str, Meta(min_length=1)]
Ack = Literal["related", "durable"]


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="method", forbid_unknown_fields=True):
    """Base of every command; its tag is the method's name.

    `request_id` makes it safe to send again: the same request of the same client gives the first answer. `ack` says how much to wait
    for: `durable` is answered as soon as the event is on the disk.
    """

    request_id: Name | None = None
    ack: Ack = "related"
