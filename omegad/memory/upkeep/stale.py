"""Which memories should be looked at again: rated badly, contradicted, or not found for long."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.index.filters import Filters, where
from omegad.requests.agent_tool import AgentTool
from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import ViewAnswer
from omegad.runtime.times import rfc3339
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

DAY_US = 86_400_000_000
PREVIEW_CHARACTERS = 400

DAYS = 14
UNFOUND_DAYS = 60
"""After so long, what no query has found any more should be looked at."""

_STALE = """
WITH stale AS (
    SELECT m.id, m.node_id, m.event_type, m.project, m.created_at, m.created_us, m.rating, m.source,
      substr(m.content, 1, ?) AS content,
           CASE WHEN m.rating < 0 THEN 'rated badly' WHEN m.contradicted_by IS NOT NULL THEN 'contradicted'
                WHEN m.access_count = 0 THEN 'never found' ELSE 'not found lately' END AS why
    FROM memories AS m
    WHERE {condition} AND (m.rating < 0 OR m.contradicted_by IS NOT NULL
                           OR (m.rating = 0 AND m.access_count = 0 AND m.said_us < ?)
                           OR (m.rating = 0 AND m.access_count > 0 AND m.last_accessed < ? AND m.said_us < ?))
)
"""
_ORDER = "ORDER BY min(rating, 0), why IN ('never found', 'not found lately'), created_us, id"
_FOUND = f"""{_STALE}
SELECT node_id, content, event_type, project, created_at, why, count(*) OVER () FROM stale {_ORDER} LIMIT ?
"""
_WORST = f"""{_STALE}
SELECT node_id, why FROM (
    SELECT *, row_number() OVER (PARTITION BY project {_ORDER}) AS place FROM stale
    WHERE why != 'never found' AND event_type != 'reminder' AND coalesce(source, '') != ?
) WHERE place <= ? {_ORDER} LIMIT ?
"""
WORST_MAX = 100


class StaleMemories(Filters, frozen=True, kw_only=True, tag="memory.stale"):
    """Show what should be looked at again, the worst first: what is rated badly, what is contradicted, and
    the oldest that no query finds.
    """

    days: Annotated[
        int, Meta(ge=0, le=3_660, description="that no query finds it counts from this age on")
    ] = DAYS
    limit: Annotated[int, Meta(ge=1, le=100, description="how many at most")] = 10


class StaleMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory's beginning, and why it is shown: `rated badly`, `contradicted`, `never found`, or `not
    found lately`, in 60 days.
    """

    memory_id: str
    content: str
    event_type: str
    project: str | None
    created_at: str
    why: str


class StaleAnswer(ViewAnswer, frozen=True):
    """The first of them, and how many there are in all."""

    memories: list[StaleMemory]
    total: int


def stale(connection: Connection, query: StaleMemories, moment: Moment) -> StaleAnswer:
    """Read the active memories that pass the filters and should be looked at again."""
    condition, values = where(query, moment.now_us)
    rows = connection.execute(
        _FOUND.format(condition=condition), (*_values(values, moment.now_us, query.days), query.limit)
    ).fetchall()
    memories = [
        StaleMemory(
            memory_id=memory_id,
            content=content,
            event_type=event_type,
            project=project,
            created_at=created_at,
            why=why,
        )
        for memory_id, content, event_type, project, created_at, why, _ in rows
    ]
    return StaleAnswer(
        memories=memories,
        total=rows[0][-1] if rows else 0,
        **moment.shown,
    )


def worst(connection: Connection, now_us: int, *, each: int, besides: str) -> dict[str, str]:
    """Return the memories that should be looked at most and why: *each* of every project at most, none
    that was never found, none of one source.
    """
    condition, values = where(Filters(), now_us)
    rows = connection.execute(
        _WORST.format(condition=condition), (*_values(values, now_us, DAYS), besides, each, WORST_MAX)
    )
    return dict(rows.fetchall())


def _values(values: tuple[object, ...], now_us: int, days: int) -> tuple[object, ...]:
    said_before = now_us - days * DAY_US
    return PREVIEW_CHARACTERS, *values, said_before, rfc3339(now_us - UNFOUND_DAYS * DAY_US), said_before


METHODS = (
    QueryMethod(
        params=StaleMemories,
        answer=StaleAnswer,
        views=("memories",),
        read=stale,
        turn=Turn.LONG,
        tool=AgentTool("omega_reflect stale", by="upkeep.stale"),
    ),
)
