"""What was remembered lately, day by day."""

from itertools import groupby
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.index.filters import Filters, where
from omegad.memory.reading import COLUMNS, Memory, fields, page_of
from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import ViewAnswer
from omegad.requests.verb import Verb
from omegad.runtime.times import parse_time
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

DAY_US = 86_400_000_000
DATE_CHARACTERS = len("2026-01-31")

# Sorted by row first, since the sorter would carry every content along.
TIMELINE = f"""
SELECT {COLUMNS} FROM memories AS m
WHERE m.id IN (SELECT m.id FROM memories AS m WHERE {{condition}} AND m.created_us >= ?
  ORDER BY m.created_us DESC, m.id DESC LIMIT ?)
ORDER BY m.created_us DESC, m.id DESC
"""


class Timeline(Filters, frozen=True, kw_only=True, tag="memory.timeline"):
    """Show what was remembered lately, day by day. The days end today or, where `until` is given, with the
    day that it is in, and are UTC.
    """

    days: Annotated[
        int, Meta(ge=1, le=3_660, description="how many days, that of until or today being the last")
    ] = 7
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many memories at most")] = 200


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """The memories that are as old as a day, newest first."""

    day: str
    memories: list[Memory]


class TimelinePage(ViewAnswer, frozen=True):
    """The days that have memories, newest first; `truncated` says that older ones were beyond the limit."""

    days: list[Day]
    truncated: bool


def timeline(connection: Connection, query: Timeline, moment: Moment) -> TimelinePage:
    """Read the active memories of some days, those on probation among them."""
    condition, values = where(query, moment.now_us)
    end_us = moment.now_us if query.until is None else parse_time(query.until, "until")
    start_us = (end_us // DAY_US - query.days + 1) * DAY_US
    rows, truncated = page_of(
        connection.execute(TIMELINE.format(condition=condition), (*values, start_us, query.limit + 1)),
        query.limit,
    )
    memories = [Memory(**fields(row)) for row in rows]
    days = [
        Day(day=day, memories=list(those))
        for day, those in groupby(memories, key=lambda one: one.created_at[:DATE_CHARACTERS])
    ]
    return TimelinePage(days=days, truncated=truncated, **moment.shown)


METHODS = (
    QueryMethod(
        params=Timeline,
        answer=TimelinePage,
        views=("memories",),
        read=timeline,
        is_paged=True,
        turn=Turn.LONG,
        verb=Verb(
            "timeline",
            by="history.timeline",
            is_first=True,
            examples=("omegad timeline", "omegad timeline --days 30 --project shop --type decision"),
        ),
    ),
)
