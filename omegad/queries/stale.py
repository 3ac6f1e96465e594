"""Which memories should be looked at again: rated badly, contradicted, or never found in all the time since they were said."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.method import Moment, QueryMethod
from omegad.queries.filters import Filters, where
from omegad.storage.driver import Connection

DAY_US = 86_400_000_000
PREVIEW_CHARACTERS = 400

_FOUND = """
WITH stale AS (
    SELECT m.id, m.node_id, m.event_type, m.project, m.created_at, m.created_us, m.rating, substr(m.content, 1, ?) AS content,
           CASE WHEN m.rating < 0 THEN 'rated badly' WHEN m.contradicted_by IS NOT NULL THEN 'contradicted' ELSE 'never found' END AS why
    FROM memories AS m
    WHERE {condition} AND (m.rating < 0 OR m.contradicted_by IS NOT NULL OR (m.access_count = 0 AND m.rating = 0 AND m.said_us < ?))
)
SELECT node_id, content, event_type, project, created_at, why, count(*) OVER () FROM stale
ORDER BY min(rating, 0), why = 'never found', created_us, id LIMIT ?
"""


class StaleMemories(Filters, frozen=True, kw_only=True, tag="memory.stale"):
    """Show what should be looked at again, the worst first: what is rated badly, what is contradicted, and the oldest that no query ever found."""

    days: Annotated[int, Meta(ge=0, le=3_660, description="never found counts from this age on")] = 14
    limit: Annotated[int, Meta(ge=1, le=100, description="how many at most")] = 10


class StaleMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory's beginning, and why it is shown: `rated badly`, `contradicted` or `never found`."""

    memory_id: str
    content: str
    event_type: str
    project: str | None
    created_at: str
    why: str


class StaleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The first of them, and how many there are in all."""

    memories: list[StaleMemory]
    total: int
    position: int
    stale_by: int


def stale(connection: Connection, query: StaleMemories, moment: Moment) -> StaleAnswer:
    """Read the active memories that pass the filters and should be looked at again."""
    condition, values = where(query, moment.now_us)
    said_before = moment.now_us - query.days * DAY_US
    rows = connection.execute(_FOUND.format(condition=condition), (PREVIEW_CHARACTERS, *values, said_before, query.limit)).fetchall()
    memories = [
        StaleMemory(memory_id=memory_id, content=content, event_type=event_type, project=project, created_at=created_at, why=why)
        for memory_id, content, event_type, project, created_at, why, _ in rows
    ]
    return StaleAnswer(memories=memories, total=rows[0][-1] if rows else 0, position=moment.position, stale_by=moment.stale_by)


METHODS = (QueryMethod(params=StaleMemories, answer=StaleAnswer, views=("memories",), read=stale),)
