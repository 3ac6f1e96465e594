"""What changed between two moments: the events between them, put together by what they are about."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.event import Erased, Position, RecordedEvent, Unknown
from omegad.requests.method import ServiceMethod
from omegad.requests.query import AsOf, Request
from omegad.requests.verb import Verb
from omegad.runtime.times import rfc3339

EVENTS_MAX = 100_000
"""Events that one answer looks at."""
TEXT_CHARACTERS = 200
UNTOLD = frozenset({"embedded", "rippled"})  # of a memory: what omegad works out by itself
NAMED = {"skill": "skill", "identity": "file"}
"""What an event of a noun without ids of its own is about."""
TEXTS = ("content", "statement", "title", "text", "reason", "why")
"""Fields that say what somebody said, the most telling first."""


class DiffLog(Request, frozen=True, kw_only=True, tag="log.diff"):
    """Show what was stored, edited, deleted, rated and so on between two moments, by memory, thesis, task
    and so on.
    """

    since: Annotated[
        AsOf, Meta(description="after this moment: a position, a time, or the query_id of an answer")
    ] = msgspec.field(name="from")
    until: Annotated[AsOf, Meta(description="up to this moment; the end of the log when left out")] | None = (
        msgspec.field(name="to", default=None)
    )
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many memories, theses and so on at most")] = (
        200
    )


class Change(msgspec.Struct, kw_only=True):
    """What became of one thing: what happened, in order and each kind once; the latest wording's
    beginning; and when it was last heard of.
    """

    noun: str
    id: str
    what: list[str] = []
    text: str | None = None
    first: Position
    last: Position
    at: str


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """What happened after position `from` up to `to`: how many events of each tag, and what they are about,
    in the order of its first event.

    Where that is more than one answer holds, `to` is as far as it goes, and `next` is the `from` to go on
    with; else that is null.
    """

    since: Position = msgspec.field(name="from")
    until: Position = msgspec.field(name="to")
    tags: dict[str, int]
    changes: list[Change]
    next: Position | None


class Changes:
    """Puts events together."""

    def __init__(self, limit: int) -> None:
        """Tell of *limit* things at most."""
        self.tags: dict[str, int] = {}
        self.by_id: dict[tuple[str, str], Change] = {}
        self._limit = limit

    def add(self, recorded: RecordedEvent) -> bool:
        """Add an event, unless it is about one thing too many; say whether it was added."""
        tag, _, _ = recorded.tag.partition("@")
        noun, _, what = tag.partition(".")
        subject = _subject(recorded.event, noun)
        if subject is not None and what not in UNTOLD:
            change = self.by_id.get((noun, subject))
            if change is None:
                if len(self.by_id) == self._limit:
                    return False
                change = self.by_id[noun, subject] = Change(
                    noun=noun, id=subject, first=recorded.position, last=0, at=""
                )
            if what not in change.what:
                change.what.append(what)
            change.text = _text(recorded.event) or change.text
            change.last, change.at = recorded.position, rfc3339(recorded.occurred_at)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        return True


def _subject(event: object, noun: str) -> str | None:
    """Return the id or the name of what an event is about, None where it is about nothing that lasts, or
    was erased.
    """
    if isinstance(event, Erased | Unknown):
        return None
    found = getattr(event, NAMED.get(noun, f"{noun}_id"), None)
    return found if isinstance(found, str) else None


def _text(event: object) -> str | None:
    found = next((value for name in TEXTS if isinstance(value := getattr(event, name, None), str)), None)
    return found[:TEXT_CHARACTERS] if found else None


METHODS = (
    ServiceMethod(
        params=DiffLog,
        answer=Diff,
        verb=Verb(
            "diff",
            by="history.diff",
            given=(),
            examples=("omegad diff --from 2026-01-31", "omegad diff --from 1200 --to 1300"),
        ),
    ),
)
