"""What every query has in common."""

from typing import Annotated

import msgspec
from msgspec import Meta

PAGE_BYTES_MAX = 1024 * 1024  # of the events or contents on a page, which ends earlier where they are large

POSITION_MAX = 2**62

AsOf = Annotated[
    Annotated[str, Meta(min_length=1, max_length=256)] | Annotated[int, Meta(ge=0, le=POSITION_MAX)],
    Meta(
        description=(
            "answer as things stood then: a position, a time like 2026-01-31T09:30:00Z, or the query_id of an"
            " answer"
        )
    ),
]
"""A moment of the past."""

RequestId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        description="makes it safe to send again: the same id gives the first answer",
    ),
]
"""By which the same request is the same."""

One = Annotated[str, Meta(max_length=256)]
"""A name that a query asks for."""


class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="method", forbid_unknown_fields=True):
    """Base of what is asked of the service itself; its tag is the method's name."""


class Query(Request, frozen=True, kw_only=True):
    """Base of what is read from the views."""

    min_position: (
        Annotated[int, Meta(ge=0, description="answer only from views that show the log up to here")] | None
    ) = None
    as_of: AsOf | None = None


class ViewAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what is answered from the views: the position that they showed, and how many acknowledged
    events they did not show yet.

    A subclass is not `kw_only` itself, so that these come after its own fields on the wire.
    """

    position: int
    stale_by: int
