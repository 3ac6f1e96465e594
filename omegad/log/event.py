"""What every event has in common: its base, its place in the log, and the two that stand in for one that
cannot be read.
"""

from types import ModuleType
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

Position = int
"""Where an event stands in the log: 1, 2, 3 … without gaps."""
END: Position = 2**62
"""Beyond any log."""

FreeText = str
"""Words that people or programs wrote. Whatever text of an event is not marked as one of the next three is
such, and is searched for secrets before it reaches the log.
"""

FreeData = dict[str, object]
"""JSON whose strings, keys among them, are free text."""

GivenName = Annotated[str, Meta(extra={"name": True})]
"""What whoever writes calls something, by which it is found again: credentials are taken out of it, always
by the same mark.
"""

MadeId = Annotated[
    str, Meta(extra={"unsearched": "omegad drew or counted it itself, and refuses one that it has not made"})
]
MadeDigest = Annotated[
    str,
    Meta(extra={"unsearched": "omegad made it, in digits, of what stays in the log or with the home's key"}),
]


class Event(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="type", forbid_unknown_fields=True
):
    """Base of every event. A subclass chooses its tag, `noun.past_verb@version`; the tag never follows the
    class's name.
    """


def declared_in(module: ModuleType) -> tuple[type[Event], ...]:
    """Return the events that a module declares, in its order."""
    kinds = (kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Event))
    return tuple(kind for kind in kinds if kind.__module__ == module.__name__)


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """An event that this version cannot read, since a newer one wrote it; its bytes are kept. `problem`
    says what is wrong with a known tag.
    """

    tag: str
    body: bytes
    problem: str = ""


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """An event whose payload was erased; that it happened remains."""

    tag: str


class Excerpt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The beginning and end of a text too long to keep, with the size of the whole and the SHA-256 of what is
    kept, `head` and then `tail`.

    `tail` is empty when `head` is all there was. In older events the hash and the size are of the whole text
    as it was.
    """

    head: FreeText
    tail: FreeText = ""
    bytes: int
    sha256: MadeDigest


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """Which installation recorded an event first, and as what: the event's id, its hybrid logical time, the
    offset in minutes and the client.
    """

    origin: str
    event_id: str
    hlc: int
    tz_offset: int
    client: str | None


class NewEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event on its way into the log, with what is known of where it came from.

    `occurred_at` is in microseconds since 1970, None for "now". `cause` is the position of the event that led
    to this one; `follows` says that it is the event just before, in the same append. `foreign` is for one
    that another installation recorded, and keeps its place in time: a decision that has such ends with an
    event of its own, whose logical time is after theirs.
    """

    event: Event
    session_id: str | None = None
    project: str | None = None
    occurred_at: int | None = None
    cause: Position | None = None
    follows: bool = False
    foreign: Stamp | None = None


Envelope: TypeAlias = tuple[
    *tuple[Position, str, str, int, int, int, str, int],
    *tuple[str | None, str | None, str | None, Position | None, str | None, bytes],
]
"""A row of the table of events without its chain: the fields of `Placed`, and the hash of the payload."""


class Placed(msgspec.Struct, frozen=True, gc=False):
    """The place the log gave an event. Times are microseconds since 1970, offsets are in minutes."""

    position: Position
    event_id: str = msgspec.field(name="id")
    tag: str
    recorded_at: int
    occurred_at: int
    tz_offset: int
    origin: str
    hlc: int
    session_id: str | None
    project: str | None
    client: str | None
    cause: Position | None
    trace: str | None


class RecordedEvent(Placed, frozen=True, gc=False):
    """An event together with its place. `chain` is the hash of the log up to and including this event."""

    chain: bytes
    event: Event | Unknown | Erased
