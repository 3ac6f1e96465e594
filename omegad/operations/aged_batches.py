"""What is left of events whose time is over, in batches that go together."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from omegad.log import aging
from omegad.log.aging import Remains
from omegad.log.codec import Codec
from omegad.log.event import Event, Position, RecordedEvent
from omegad.search.aging import Uses, of_query
from omegad.search.events import MemoryQueried, MemoryRead, QueryAged
from omegad.session import aging as of_sessions
from omegad.session.aging import KEPT, Kept
from omegad.session.events import TO_JUDGE, MemorySurfaced, SurfacingAged


class Batch(NamedTuple):
    """What goes at once: what is left of which events, after one position up to another; `positions` are all
    that were looked at.
    """

    after: Position
    through: Position
    positions: tuple[Position, ...]
    left: tuple[Remains, ...]
    counts: Counter[str]
    freed: int


def batch_of(after: Position, through: Position, events: Sequence[RecordedEvent], codec: Codec) -> Batch:
    """Return what is left of events that are over."""
    uses, changed = Uses(), list[tuple[RecordedEvent, Event | None]]()
    for recorded in events:
        if (remaining := _remaining(recorded.event, uses)) is not KEPT:
            changed.append((recorded, remaining))
    _carry(changed, uses)
    left = tuple(aging.remains(recorded.position, event, codec) for recorded, event in changed)
    before = sum(
        len(codec.encode(recorded.event)) for recorded, _ in changed if isinstance(recorded.event, Event)
    )
    return Batch(
        after=after,
        through=through,
        positions=tuple(recorded.position for recorded in events),
        left=left,
        counts=Counter(recorded.tag.partition("@")[0] for recorded, _ in changed),
        freed=before - sum(len(one.body or b"") for one in left),
    )


def _remaining(event: object, uses: Uses) -> Event | Literal[Kept.KEPT] | None:
    """Return what remains of an event, None for nothing; note what a query found."""
    match event:
        case MemoryRead():
            return None
        case MemoryQueried(results=results, at=at):
            uses.add(results, at, is_unasked=False)
            return of_query(event)
        case MemorySurfaced(how=how, results=results, at=at):
            if how not in of_sessions.LASTING:
                uses.add(results, at, is_unasked=True)
            elif how not in TO_JUDGE:
                uses.see(results, at)
    return of_sessions.remaining(event)


def _carry(changed: list[tuple[RecordedEvent, Event | None]], uses: Uses) -> None:
    """Have the last query of them say how often memories were found by all."""
    for place in reversed(range(len(changed))):
        recorded, remaining = changed[place]
        if isinstance(remaining, QueryAged | SurfacingAged):
            changed[place] = recorded, msgspec.structs.replace(remaining, uses=uses.all())
            return


def counted(asked: Sequence[RecordedEvent]) -> Position | None:
    """Return up to where *asked*, the latest queries and what was shown up to a moment, say how often
    memories were found; None where all do. What those found that aged together is said by the last of them.
    """
    after: Position | None = None
    for recorded in reversed(asked):
        if isinstance(recorded.event, QueryAged | SurfacingAged):
            if recorded.event.uses:
                break
            after = recorded.position - 1 if recorded.event.returned else after
    return after


class Aged(msgspec.Struct, frozen=True, kw_only=True):
    """Of one kind: how long it is kept, up to when and to which position it has gone, how many events of
    which tags that is, and how many bytes less their payloads are.
    """

    kind: str
    days: int
    until: str
    through: Position
    counts: dict[str, int] = {}
    freed_bytes: int = 0
