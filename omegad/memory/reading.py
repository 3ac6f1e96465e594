"""Questions about memories by id, and lists of them."""

from collections.abc import Iterable
from itertools import groupby
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from omegad.index.active import is_over
from omegad.index.filters import Filters, Some, require_known, where
from omegad.memory import owner
from omegad.memory.strength import USES, strengths
from omegad.memory.types import MemoryTypes
from omegad.requests.method import Moment, QueryMethod, RequestContext, Services
from omegad.requests.query import PAGE_BYTES_MAX, Query, ViewAnswer
from omegad.requests.verb import SAID_BY, AgentTool, Table, Verb
from omegad.runtime.errors import NotFound
from omegad.runtime.json_types import Fields
from omegad.runtime.times import LAST_US, parse_time, rfc3339
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

_JSON = ("tags", "auto_tags", "metadata", "redacted")
LESSON_TYPES = ("lesson_learned", "error_pattern")
DAY_US = 86_400_000_000
DATE_CHARACTERS = len("2026-01-31")

COLUMNS = f"""
m.id, m.node_id, m.content, m.event_type, m.created_at, m.referenced_date, m.session_id, m.project,
m.entity_id, m.tags, m.auto_tags, m.priority, m.metadata, m.source, m.confidence, m.status,
m.superseded_by, m.contradicted_by, m.ttl_seconds, m.expires_us, m.edited_at, m.rating, m.repeated,
m.access_count, m.last_accessed, m.pending, m.redacted, {owner.OWNER}, m.on_probation
"""
"""The row's id, what `Memory` has in its order, and whether it is on probation."""

RIPPLES_MAX = 50
_EDGES = """
SELECT target_id, edge_type, weight, 'out' FROM edges WHERE source_id = :id
UNION ALL SELECT source_id, edge_type, weight, 'in' FROM edges WHERE target_id = :id ORDER BY 3 DESC, 1
"""
_RIPPLES = """
SELECT target_id, side, is_echo, similarity, theses, at FROM ripples WHERE memory_id = ?
ORDER BY id DESC LIMIT ?
"""
# What the metadata of a thesis says of these is as of when it was stored; shown is what is so now.
_THESIS = """
SELECT json_object('confidence', round(t.confidence, 4), 'evidence_count', t.for_count + t.against_count,
  'last_evaluated', strftime('%Y-%m-%d', t.last_evaluated_us / 1000000, 'unixepoch'),
  'evidence_for', json_group_array(e.memory_id) FILTER (WHERE e.side = 'for'),
  'evidence_against', json_group_array(e.memory_id) FILTER (WHERE e.side = 'against'))
FROM theses AS t LEFT JOIN thesis_evidence AS e ON e.thesis_id = t.thesis_id AND e.version = t.version
  AND e.weight > 0 AND e.retracted IS NULL
WHERE t.memory_id = ? GROUP BY t.id ORDER BY t.id DESC LIMIT 1
"""
_SUPPORTED = "SELECT count(DISTINCT origin) FROM ripples WHERE target_id = ? AND side = 'for' AND NOT is_echo"

Cursor = Annotated[
    str, Meta(pattern="^[0-9]{1,18}$", description="where the page begins: what the page before ended with")
]
"""Where a page of rows in the order of the log begins: what the page before gave as `next_cursor`."""


class GetMemory(Query, frozen=True, kw_only=True, tag="memory.get"):
    """Show one memory with everything known of it; a superseded or deleted id keeps answering."""

    memory_id: Annotated[str, Meta(description="the memory's id")]


class ListMemories(Filters, frozen=True, kw_only=True, tag="memory.list"):
    """List the memories that pass the filters, newest first, a page at a time."""

    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many on a page")] = 50
    cursor: Annotated[
        str | None, Meta(description="where the page begins: what the page before ended with")
    ] = None


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory as it stands. Times are RFC 3339, UTC.

    `person`, `machine` and `agent` say who stored it, where this home is in a team or another home told of
    it; `elsewhere` says that one did.
    """

    memory_id: str
    content: str
    event_type: str
    created_at: str
    referenced_date: str | None
    session_id: str | None
    project: str | None
    entity_id: str | None
    tags: msgspec.Raw
    auto_tags: msgspec.Raw
    priority: int
    metadata: msgspec.Raw
    source: str | None
    confidence: float | None
    status: str
    superseded_by: str | None
    contradicted_by: str | None
    ttl_seconds: int | None
    expires_at: str | None
    edited_at: str | None
    rating: int
    repeated: int
    retrieval_count: int
    last_retrieved_at: str | None
    pending: bool
    redacted: msgspec.Raw
    person: str | None
    machine: str | None
    agent: str | None
    elsewhere: bool


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """An edge of a memory, seen from it: outgoing or incoming."""

    memory_id: str
    edge_type: str
    weight: float
    direction: str


class Ripple(msgspec.Struct, frozen=True, kw_only=True):
    """What saying a memory did to another one: it speaks `for` it, `against` it, or `mentions` it, or is
    an echo; and the theses that it touched.
    """

    memory_id: str
    side: str
    is_echo: bool
    similarity: float
    theses: msgspec.Raw
    at: str


class MemoryDetail(Memory, frozen=True, kw_only=True):
    """A memory with its edges, strongest first, and the position at which this is how things stand.

    The metadata of a thesis says what evidence there is now. `strength` is how present it is by use and age,
    0 to 1, which the ranking weighs; `ripple_log` is what saying it did to others, latest first;
    `supported_by` counts the independent sessions and memories that speak for it.
    """

    strength: float
    edges: list[Edge]
    ripple_log: list[Ripple]
    supported_by: int
    position: int
    stale_by: int = 0


class MemoryPage(ViewAnswer, frozen=True):
    """Some memories, where the next page begins (None after the last), and how many acknowledged events
    the views do not show yet.
    """

    memories: list[Memory]
    next_cursor: str | None


def fields(row: tuple[Any, ...], now_us: int = 0) -> Fields:
    """Name the columns of `COLUMNS` as `Memory` does; without *now_us* for rows of which none has expired."""
    known = dict(zip(Memory.__struct_fields__, row[1:-1], strict=True))
    for name in _JSON:
        known[name] = msgspec.Raw(known[name].encode())
    expires_us = known["expires_at"]
    known["status"] = status_at(known["status"], row[-1], expires_us, now_us)
    known["expires_at"] = None if expires_us is None else rfc3339(min(expires_us, LAST_US))
    known["pending"], known["elsewhere"] = bool(known["pending"]), bool(known["elsewhere"])
    return known


def status_at(status: str, on_probation: int, expires_us: int | None, now_us: int) -> str:
    """Return what a memory is at *now_us*: its status, "expired" from the moment its time is over,
    "probation" where it is on it.
    """
    if status == "active" and is_over(expires_us, now_us):
        return "expired"
    return "probation" if status == "active" and on_probation else status


def require(connection: Connection, memory_id: str) -> tuple[int, str]:
    """Return the row and the content of a memory, whatever has become of it; raises `NotFound`."""
    row: tuple[int, str] | None = connection.execute(
        "SELECT id, content FROM memories WHERE node_id = ?", (memory_id,)
    ).fetchone()
    if row is None:
        raise _missing(memory_id)
    return row


async def known_types(services: Services, _query: Query, _context: RequestContext) -> MemoryTypes:
    """Return the known types, by which memories fade or do not."""
    return services[MemoryTypes]


def get(connection: Connection, query: GetMemory, types: MemoryTypes, moment: Moment) -> MemoryDetail:
    """Read one memory as it stands; raises `NotFound`."""
    row = connection.execute(
        f"SELECT {COLUMNS} FROM {owner.OWNED} WHERE m.node_id = ?", (query.memory_id,)
    ).fetchone()
    if row is None:
        raise _missing(query.memory_id)
    told = fields(row, moment.now_us) | _standing(connection, row)
    used = connection.execute(f"SELECT {USES} FROM memories AS m WHERE m.id = ?", row[:1]).fetchone()
    return MemoryDetail(
        **told,
        strength=round(float(strengths([used], types, moment.now_us)[0]), 6),
        edges=[
            Edge(memory_id=other, edge_type=kind, weight=weight, direction=direction)
            for other, kind, weight, direction in connection.execute(_EDGES, {"id": query.memory_id})
        ],
        ripple_log=[
            Ripple(
                memory_id=other,
                side=side,
                is_echo=bool(is_echo),
                similarity=near,
                theses=msgspec.Raw(on.encode()),
                at=at,
            )
            for other, side, is_echo, near, on, at in connection.execute(
                _RIPPLES, (query.memory_id, RIPPLES_MAX)
            )
        ],
        supported_by=connection.execute(_SUPPORTED, (query.memory_id,)).fetchone()[0],
        **moment.shown,
    )


def _standing(connection: Connection, row: tuple[Any, ...]) -> Fields:
    """Return the metadata of a thesis with what is so now, nothing of what is none."""
    if '"thesis"' not in row[12] or not (found := connection.execute(_THESIS, row[1:2]).fetchone()):
        return {}
    said, now = (msgspec.json.decode(one, type=dict[str, object]) for one in (row[12], found[0]))
    figures = {name: value for name, value in now.items() if name in said}
    return {"metadata": msgspec.Raw(msgspec.json.encode(said | figures))}


def list_memories(connection: Connection, query: ListMemories, moment: Moment) -> MemoryPage:
    """Read one page of memories, newest first."""
    require_known(connection, query)
    condition, values = where(query, moment.now_us)
    before = query.before(query.cursor)
    sql = f"SELECT {COLUMNS} FROM {owner.OWNED} WHERE {condition} AND m.id < ? ORDER BY m.id DESC LIMIT ?"
    page, has_more = page_of(connection.execute(sql, (*values, before, query.limit + 1)), query.limit)
    next_cursor = str(page[-1][0]) if has_more else None
    memories = [Memory(**fields(row) | _standing(connection, row)) for row in page]
    return MemoryPage(memories=memories, next_cursor=next_cursor, **moment.shown)


def page_of(rows: Iterable[tuple[Any, ...]], limit: int) -> tuple[list[tuple[Any, ...]], bool]:
    """Take up to *limit* rows of `COLUMNS`, fewer where they are long, but never none if there is one; say
    whether there are more.
    """
    page: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        size += len(row[2]) + len(row[12])  # content, metadata
        if len(page) == limit or (page and size > PAGE_BYTES_MAX):
            return page, True
        page.append(row)
    return page, False


def are_there_any(connection: Connection) -> bool:
    """Say whether any memory was ever stored."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM memories)").fetchone()[0])


def _missing(memory_id: str) -> NotFound:
    return NotFound(f"there is no memory {memory_id[:80]}")


ORDER = (
    "ORDER BY m.rating DESC, m.on_probation, m.repeated DESC, m.access_count - m.surfaced DESC,"
    " m.created_us DESC, m.id DESC"
)
BY_EVIDENCE = f"""
SELECT {COLUMNS} FROM {owner.OWNED} WHERE m.id IN (
    SELECT m.id FROM memories AS m WHERE {{condition}}
    {ORDER} LIMIT ?
)
{ORDER}
"""


class Lessons(Filters, frozen=True, kw_only=True, tag="memory.lessons"):
    """Show what was learned, the best proved first: by rating, then how often they were said again, then how
    often they were found, then the newest.

    Of one rating, those on probation come after the others.
    """

    event_types: Annotated[Some, Meta(description="of this type; of one of them when repeated")] = (
        LESSON_TYPES
    )
    limit: Annotated[int, Meta(ge=1, le=100, description="how many at most")] = 10


class LessonsAnswer(ViewAnswer, frozen=True):
    """Lessons that hold, best proved first."""

    lessons: list[Memory]


def lessons(connection: Connection, query: Lessons, moment: Moment) -> LessonsAnswer:
    """Read the active lessons that pass the filters; where these name no types, of `LESSON_TYPES`."""
    asked = query if query.event_types else msgspec.structs.replace(query, event_types=LESSON_TYPES)
    require_known(connection, query)
    condition, values = where(asked, moment.now_us)
    rows = connection.execute(BY_EVIDENCE.format(condition=condition), (*values, query.limit)).fetchall()
    return LessonsAnswer(lessons=[Memory(**fields(row)) for row in rows], **moment.shown)


# Sorted by row first, since the sorter would carry every content along.
TIMELINE = f"""
SELECT {COLUMNS} FROM {owner.OWNED}
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
    require_known(connection, query)
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
        params=GetMemory,
        answer=MemoryDetail,
        views=("memories", "edges", "ripples", "theses", owner.VIEW),
        prepare=known_types,
        read=get,
        shows_queries=True,
        verb=Verb("get", by="memories.get", is_first=True, examples=("omegad get mem-0123456789abcdef",)),
        tool=AgentTool("omega_memory get", by="memory.whole"),
    ),
    QueryMethod(
        params=ListMemories,
        answer=MemoryPage,
        views=("memories", "theses", owner.VIEW),
        read=list_memories,
        is_paged=True,
        verb=Verb(
            "list",
            table=Table(
                "memories",
                (
                    ("ID", "{memory_id}"),
                    ("TYPE", "{event_type}"),
                    ("STORED", "{created_at:moment}"),
                    ("PROJECT", "{project}"),
                    SAID_BY,
                    ("CONTENT", "{content}"),
                ),
                none="no memories",
                seldom=SAID_BY[:1],
            ),
            is_first=True,
            examples=("omegad list --project shop --limit 20",),
        ),
    ),
    QueryMethod(
        params=Lessons,
        answer=LessonsAnswer,
        views=("memories", owner.VIEW),
        read=lessons,
        turn=Turn.LONG,
        verb=Verb(
            table=Table(
                "lessons",
                (
                    ("RATING", "{rating}"),
                    ("REPEATED", "{repeated}"),
                    ("FOUND", "{retrieval_count}"),
                    ("ID", "{memory_id}"),
                    ("TYPE", "{event_type}"),
                    SAID_BY,
                    ("CONTENT", "{content}"),
                ),
                none="no lessons",
                seldom=SAID_BY[:1],
            ),
            examples=("omegad memory lessons --project shop",),
        ),
    ),
    QueryMethod(
        params=Timeline,
        answer=TimelinePage,
        views=("memories", owner.VIEW),
        read=timeline,
        is_paged=True,
        turn=Turn.LONG,
        verb=Verb(
            "timeline",
            by="memories.timeline",
            is_first=True,
            examples=("omegad timeline", "omegad timeline --days 30 --project shop --type decision"),
        ),
    ),
)
