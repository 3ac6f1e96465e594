"""Questions about memories by id, and lists of them."""

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from omegad.requests.filters import Filters, where
from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import PAGE_BYTES_MAX, Query
from omegad.requests.verb import Verb
from omegad.runtime.errors import NotFound
from omegad.runtime.times import LAST_US, rfc3339
from omegad.storage.driver import Connection

COLUMNS = """
m.id, m.node_id, m.content, m.event_type, m.created_at, m.referenced_date, m.session_id, m.project, m.entity_id, m.tags, m.priority, m.metadata,
m.source, m.confidence, m.status, m.superseded_by, m.ttl_seconds, m.repeated, m.access_count, m.last_accessed, m.pending, m.redacted,
m.auto_tags, m.on_probation, m.contradicted_by, m.rating, m.edited_at, m.expires_us
"""

RIPPLES_MAX = 50
_SUPPORTED = "SELECT count(DISTINCT origin) FROM ripples WHERE target_id = ? AND side = 'for' AND NOT is_echo"

Cursor = Annotated[str, Meta(pattern="^[0-9]{1,18}$", description="where the page begins: what the page before ended with")]
"""Where a page of rows in the order of the log begins: what the page before gave as `next_cursor`."""


class GetMemory(Query, frozen=True, kw_only=True, tag="memory.get"):
    """Show one memory with everything known of it; a superseded or deleted id keeps answering."""

    memory_id: Annotated[str, Meta(description="the memory's id")]


class ListMemories(Filters, frozen=True, kw_only=True, tag="memory.list"):
    """List the memories that pass the filters, newest first, a page at a time."""

    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many on a page")] = 50
    cursor: Annotated[str | None, Meta(description="where the page begins: what the page before ended with")] = None


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory as it stands. Times are RFC 3339, UTC."""

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


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """An edge of a memory, seen from it: outgoing or incoming."""

    memory_id: str
    edge_type: str
    weight: float
    direction: str


class Ripple(msgspec.Struct, frozen=True, kw_only=True):
    """What saying a memory did to another one: it speaks `for` it, `against` it, or `mentions` it, or is an echo; and the theses that it touched."""

    memory_id: str
    side: str
    is_echo: bool
    similarity: float
    theses: msgspec.Raw
    at: str


class Found(Memory, frozen=True, kw_only=True):
    """A memory with its edges, strongest first, and the position at which this is how things stand.

    `ripple_log` is what saying it did to others, latest first; `supported_by` counts the independent sessions and memories that speak for it.
    """

    edges: list[Edge]
    ripple_log: list[Ripple]
    supported_by: int
    position: int
    stale_by: int = 0


class MemoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some memories, where the next page begins (None after the last), and how many acknowledged events the views do not show yet."""

    memories: list[Memory]
    next_cursor: str | None
    position: int
    stale_by: int = 0


def fields(row: tuple[Any, ...], now_us: int = 0) -> dict[str, Any]:
    """Name the columns of `COLUMNS` as `Memory` does; without *now_us* for rows of which none has expired."""
    (_, memory_id, content, event_type, created_at, referenced_date, session_id, project, entity_id, tags, priority, metadata) = row[:12]
    (source, confidence, status, superseded_by, ttl_seconds, repeated, access_count, last_accessed, pending, redacted) = row[12:22]
    (auto_tags, on_probation, contradicted_by, rating, edited_at, expires_us) = row[22:28]
    return {
        "memory_id": memory_id,
        "content": content,
        "event_type": event_type,
        "created_at": created_at,
        "referenced_date": referenced_date,
        "session_id": session_id,
        "project": project,
        "entity_id": entity_id,
        "tags": msgspec.Raw(tags.encode()),
        "auto_tags": msgspec.Raw(auto_tags.encode()),
        "priority": priority,
        "metadata": msgspec.Raw(metadata.encode()),
        "source": source,
        "confidence": confidence,
        "status": standing(status, on_probation, expires_us, now_us),
        "superseded_by": superseded_by,
        "contradicted_by": contradicted_by,
        "ttl_seconds": ttl_seconds,
        "expires_at": None if expires_us is None else rfc3339(min(expires_us, LAST_US)),
        "edited_at": edited_at,
        "rating": rating,
        "repeated": repeated,
        "retrieval_count": access_count,
        "last_retrieved_at": last_accessed,
        "pending": bool(pending),
        "redacted": msgspec.Raw(redacted.encode()),
    }


def standing(status: str, on_probation: int, expires_us: int | None, now_us: int) -> str:
    """Return what a memory is at *now_us*: its status, "expired" from the moment its time is over, "probation" where it is on it."""
    if status != "active":
        return status
    if expires_us is not None and expires_us <= now_us:
        return "expired"
    return "probation" if on_probation else "active"


def require(connection: Connection, memory_id: str) -> tuple[int, str]:
    """Return the row and the content of a memory, whatever has become of it; raises `NotFound`."""
    row: tuple[int, str] | None = connection.execute("SELECT id, content FROM memories WHERE node_id = ?", (memory_id,)).fetchone()
    if row is None:
        raise _missing(memory_id)
    return row


def get(connection: Connection, query: GetMemory, moment: Moment) -> Found:
    """Read one memory as it stands; raises `NotFound`."""
    row = connection.execute(f"SELECT {COLUMNS} FROM memories AS m WHERE m.node_id = ?", (query.memory_id,)).fetchone()
    if row is None:
        raise _missing(query.memory_id)
    return Found(
        **fields(row, moment.now_us),
        edges=_edges(connection, query.memory_id),
        ripple_log=_ripples(connection, query.memory_id),
        supported_by=connection.execute(_SUPPORTED, (query.memory_id,)).fetchone()[0],
        position=moment.position,
        stale_by=moment.stale_by,
    )


def list_memories(connection: Connection, query: ListMemories, moment: Moment) -> MemoryPage:
    """Read one page of memories, newest first."""
    condition, values = where(query, moment.now_us)
    before = query.before(query.cursor)
    sql = f"SELECT {COLUMNS} FROM memories AS m WHERE {condition} AND m.id < ? ORDER BY m.id DESC LIMIT ?"
    page, has_more = page_of(connection.execute(sql, (*values, before, query.limit + 1)), query.limit)
    next_cursor = str(page[-1][0]) if has_more else None
    memories = [Memory(**fields(row)) for row in page]
    return MemoryPage(memories=memories, next_cursor=next_cursor, position=moment.position, stale_by=moment.stale_by)


def page_of(rows: Iterable[tuple[Any, ...]], limit: int) -> tuple[list[tuple[Any, ...]], bool]:
    """Take up to *limit* rows of `COLUMNS`, fewer where they are long, but never none if there is one; say whether there are more."""
    page: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        size += len(row[2]) + len(row[11])  # content, metadata
        if len(page) == limit or (page and size > PAGE_BYTES_MAX):
            return page, True
        page.append(row)
    return page, False


def are_there_any(connection: Connection) -> bool:
    """Say whether any memory was ever stored."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM memories)").fetchone()[0])


def _missing(memory_id: str) -> NotFound:
    return NotFound(f"there is no memory {memory_id[:80]}")


def _edges(connection: Connection, memory_id: str) -> list[Edge]:
    sql = """
    SELECT target_id, edge_type, weight, 'out' FROM edges WHERE source_id = :id
    UNION ALL SELECT source_id, edge_type, weight, 'in' FROM edges WHERE target_id = :id ORDER BY 3 DESC, 1
    """
    rows = connection.execute(sql, {"id": memory_id}).fetchall()
    return [Edge(memory_id=other, edge_type=kind, weight=weight, direction=direction) for other, kind, weight, direction in rows]


def _ripples(connection: Connection, memory_id: str) -> list[Ripple]:
    sql = "SELECT target_id, side, is_echo, similarity, theses, at FROM ripples WHERE memory_id = ? ORDER BY id DESC LIMIT ?"
    rows = connection.execute(sql, (memory_id, RIPPLES_MAX))
    return [
        Ripple(memory_id=other, side=side, is_echo=bool(is_echo), similarity=near, theses=msgspec.Raw(on.encode()), at=at)
        for other, side, is_echo, near, on, at in rows
    ]


METHODS = (
    QueryMethod(
        params=GetMemory,
        answer=Found,
        views=("memories", "edges", "ripples"),
        read=get,
        verb=Verb("get", by="memories.get"),
    ),
    QueryMethod(
        params=ListMemories,
        answer=MemoryPage,
        views=("memories",),
        read=list_memories,
        is_paged=True,
        verb=Verb(
            "list",
            by="memories.list_all",
            examples=("omegad list --project shop --limit 20",),
        ),
    ),
)
