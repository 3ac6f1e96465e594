"""The bounds within which facts of others are taken: those of what this home's own clients may send it, which
views and times can hold; somewhat wider where homes may have added to it since.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.event import Event
from omegad.memory.types import TTL_SECONDS_MAX
from omegad.runtime.times import FIRST_US, LAST_US
from omegad.sharing.fact import Fact

BODY_BYTES_MAX = 900_000  # so that it is an event of this log, whatever is marked in it
DEEP_MAX = 100
"""How deeply metadata is nested."""
ZONE_MINUTES_MAX = 24 * 60

_Made = Annotated[str, Meta(min_length=1, max_length=256)]
_Names = Annotated[tuple[Annotated[str, Meta(max_length=256)], ...], Meta(max_length=1_000)]
_Share = Annotated[float, Meta(ge=-1, le=1)]
_Moment = Annotated[int, Meta(ge=FIRST_US, le=LAST_US)]


class _Placed(msgspec.Struct, frozen=True):
    """What is bounded of a fact. What has no project is nobody's to share."""

    subject: _Made
    project: _Made
    occurred_at: _Moment
    hlc: Annotated[int, Meta(ge=0)]  # the post sees that it is not ahead
    tz_offset: Annotated[int, Meta(ge=-ZONE_MINUTES_MAX, le=ZONE_MINUTES_MAX)]
    agent: Annotated[str, Meta(max_length=256)] | None


class _Said(msgspec.Struct, frozen=True):
    """What is bounded of an event, where it has it."""

    memory_id: _Made
    event_type: _Made = "-"
    content: Annotated[str, Meta(min_length=1)] | None = None
    entity_id: _Made | None = None
    source: _Made | None = None
    target_id: _Made = "-"
    superseded_by: _Made = "-"
    contradicted_by: _Made = "-"
    tags: _Names | None = ()
    auto_tags: _Names = ()
    redacted: _Names = ()
    referenced_at: _Moment | None = None
    ttl_seconds: Annotated[int, Meta(ge=1, le=TTL_SECONDS_MAX)] | None = None
    confidence: Annotated[float, Meta(ge=0, le=1)] | None = None
    similarity: _Share = 0
    strength: _Share = 0
    weight: _Share = 0


def is_within(fact: Fact, event: Event) -> bool:
    """Say whether a fact, and the event that it tells, are within bounds."""
    try:
        msgspec.convert(fact, _Placed, from_attributes=True)
        msgspec.convert(event, _Said, from_attributes=True)
    except msgspec.ValidationError:
        return False
    return len(fact.body or b"") <= BODY_BYTES_MAX and _is_flat(getattr(event, "metadata", None), DEEP_MAX)


def _is_flat(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_flat(one, levels - 1) for one in inner)
