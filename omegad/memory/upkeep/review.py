"""Which memories should be looked at again: rated badly, contradicted, or not found for long; and what was
captured unasked and never helped anyone, which is ready to be dropped.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.index.filters import Filters, where
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.memory import owner
from omegad.memory.events import MemoryDeleted
from omegad.memory.state import known
from omegad.requests.command import Acknowledged, Command, Name, Reason
from omegad.requests.method import CommandMethod, Moment, QueryMethod
from omegad.requests.query import ViewAnswer
from omegad.requests.verb import AgentTool, Option, Table, Verb
from omegad.runtime.times import rfc3339
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

_OWN = f"NOT {owner.is_elsewhere('m.node_id')}"
"""What others said they put in order themselves."""

# Use, a helpful rating, and being said again by someone else end a memory's probation; so what is on it for
# long has nothing that speaks for it.
_JUNK = """
SELECT m.node_id, substr(m.content, 1, ?), m.event_type, m.project, m.created_at, m.source,
       CASE WHEN m.rating < 0 THEN 'rated badly'
       WHEN m.access_count > 0 OR EXISTS (SELECT 1 FROM retrievals AS r WHERE r.memory_id = m.node_id)
            THEN 'shown, never used' ELSE 'never shown' END,
       count(*) OVER ()
FROM memories AS m WHERE {condition} AND m.on_probation = 1 AND m.rating <= 0 AND m.said_us < ?
  ORDER BY m.rating, m.said_us, m.id LIMIT ?
"""

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
        _FOUND.format(condition=f"{condition} AND {_OWN}"),
        (*_values(values, moment.now_us, query.days), query.limit),
    ).fetchall()
    return StaleAnswer(
        memories=[
            StaleMemory(
                memory_id=memory_id,
                content=content,
                event_type=event_type,
                project=project,
                created_at=created_at,
                why=why,
            )
            for memory_id, content, event_type, project, created_at, why, _ in rows
        ],
        total=rows[0][-1] if rows else 0,
        **moment.shown,
    )


def worst(connection: Connection, now_us: int, *, each: int, besides: str) -> dict[str, str]:
    """Return the memories that should be looked at most and why: *each* of every project at most, none
    that was never found, none of one source.
    """
    condition, values = where(Filters(), now_us)
    rows = connection.execute(
        _WORST.format(condition=f"{condition} AND {_OWN}"),
        (*_values(values, now_us, DAYS), besides, each, WORST_MAX),
    )
    return dict(rows.fetchall())


def _values(values: tuple[object, ...], now_us: int, days: int) -> tuple[object, ...]:
    said_before = now_us - days * DAY_US
    return PREVIEW_CHARACTERS, *values, said_before, rfc3339(now_us - UNFOUND_DAYS * DAY_US), said_before


class JunkMemories(Filters, frozen=True, kw_only=True, tag="memory.junk"):
    """Show what was captured unasked and never helped: never used, rated helpful or confirmed;
    `memory.prune` drops what this lists.
    """

    days: Annotated[int, Meta(ge=0, le=3_660, description="only what was said longer ago than this")] = 14
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many at most")] = 100


class JunkMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory's beginning, what captured it, and what speaks against it: `rated badly`, `shown, never
    used` or `never shown`.
    """

    memory_id: str
    content: str
    event_type: str
    project: str | None
    created_at: str
    source: str | None
    why: str


class JunkAnswer(ViewAnswer, frozen=True):
    """The first of them, and how many there are in all."""

    memories: list[JunkMemory]
    total: int


def junk(connection: Connection, query: JunkMemories, moment: Moment) -> JunkAnswer:
    """Read the active memories on probation that pass the filters and that nothing speaks for, the worst
    and oldest first.
    """
    condition, values = where(query, moment.now_us)
    said_before = moment.now_us - query.days * DAY_US
    rows = connection.execute(
        _JUNK.format(condition=f"{condition} AND {_OWN}"),
        (PREVIEW_CHARACTERS, *values, said_before, query.limit),
    ).fetchall()
    return JunkAnswer(
        memories=[
            JunkMemory(
                memory_id=memory_id,
                content=content,
                event_type=event_type,
                project=project,
                created_at=created_at,
                source=source,
                why=why,
            )
            for memory_id, content, event_type, project, created_at, source, why, _ in rows
        ],
        total=rows[0][-1] if rows else 0,
        **moment.shown,
    )


class PruneMemories(Command, frozen=True, kw_only=True, tag="memory.prune"):
    """Delete memories that `memory.junk` listed, all in one step; those that have proved themselves since,
    or are hidden, stay as they are.
    """

    memory_ids: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=1_000, description="a memory's id")]
    reason: Reason = "captured unasked, never helped"


class Pruned(Acknowledged, frozen=True):
    """What was deleted, which memory.restore brings back, and what was not."""

    deleted: tuple[str, ...]
    kept: tuple[str, ...]


def prune(command: PruneMemories, state: DecisionState, now_us: int) -> Decision:
    """Decide which of the memories named go: those on probation still, and not rated helpful. Raises
    `NotFound`.
    """
    memories = [known(state, memory_id) for memory_id in dict.fromkeys(command.memory_ids)]
    gone = [
        memory for memory in memories if memory.is_active(now_us) and memory.probation and memory.rating <= 0
    ]
    events = (
        NewEvent(
            event=MemoryDeleted(memory_id=memory.memory_id, reason=command.reason),
            project=memory.project,
            follows=place > 0,
        )
        for place, memory in enumerate(gone)
    )
    deleted = tuple(memory.memory_id for memory in gone)
    kept = tuple(memory.memory_id for memory in memories if memory.memory_id not in deleted)
    changed_at = 0 if gone else max(memory.changed_at for memory in memories)
    return Decision(events=tuple(events), answer=Pruned(deleted=deleted, kept=kept, position=changed_at))


METHODS = (
    QueryMethod(
        params=StaleMemories,
        answer=StaleAnswer,
        views=("memories", owner.VIEW),
        read=stale,
        turn=Turn.LONG,
        tool=AgentTool("omega_reflect stale", by="upkeep.stale"),
        verb=Verb(
            examples=("omegad memory stale --project shop --days 90",),
            table=Table(
                "memories",
                (
                    ("ID", "{memory_id}"),
                    ("WHY", "{why}"),
                    ("TYPE", "{event_type}"),
                    ("STORED", "{created_at:moment}"),
                    ("PROJECT", "{project}"),
                    ("CONTENT", "{content}"),
                ),
                none="nothing should be looked at again",
            ),
        ),
    ),
    QueryMethod(
        params=JunkMemories,
        answer=JunkAnswer,
        views=("memories", "retrievals", owner.VIEW),
        read=junk,
        turn=Turn.LONG,
        verb=Verb(
            by="upkeep.junk",
            options=(
                Option("drop", "delete what is listed, which `omegad memory restore` brings back", "flag"),
            ),
            examples=("omegad memory junk --days 30", "omegad memory junk --project shop --drop"),
        ),
    ),
    CommandMethod(
        params=PruneMemories,
        answer=Pruned,
        decide=prune,
        verb=Verb(
            by="upkeep.prune",
            given=(),
            examples=('omegad memory prune --memory-id mem-0123456789abcdef --reason "never helped"',),
        ),
    ),
)
