"""Which memories were shown to whom: by which query, to which session, at which rank, with which score."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.memory.reading import Cursor, require
from omegad.requests import details
from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import Query, ViewAnswer
from omegad.requests.verb import GONE, Table, Verb
from omegad.runtime.errors import Invalid, NotFound
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

RANKS = 1_024  # the ids of one query's rows lie within its position times this, and the next one's
LAST_ROW = 2**62

# The newest query first, in it the best rank first. The inner statement reads no more of an index than the
# page and one query beyond it.
RECEIPTS = f"""
SELECT * FROM (
    SELECT r.id, r.query_id, r.session_id, r.memory_id, r.rank, r.score, r.at, r.how FROM retrievals AS r
    WHERE {{condition}} AND r.id < (? / {RANKS} + 1) * {RANKS} AND NOT r.id BETWEEN ? / {RANKS} * {RANKS}
      AND ?
    ORDER BY r.id DESC LIMIT ? + {RANKS}
)
ORDER BY id / {RANKS} DESC, id LIMIT ?
"""


class ListReceipts(Query, frozen=True, kw_only=True, tag="receipts.list"):
    """Show which memories were found by which queries, newest first: for a session, of a memory, of a
    query, or of all that are named.
    """

    session_id: Annotated[str | None, Meta(description="for this session")] = None
    memory_id: Annotated[str | None, Meta(description="of this memory")] = None
    query_id: Annotated[str | None, Meta(description="of this query")] = None
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many on a page")] = 100
    cursor: Cursor | None = None


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """One memory shown once, ranks counted from 1.

    `how` is the way that it came to be shown: `query`, or unasked in a `briefing`, in it for `review`, as a
    `reminder`, for a `prompt`, before an `edit`, or after an `error`.
    """

    query_id: str
    session_id: str | None
    memory_id: str
    rank: int
    score: float
    at: str
    how: str


class ReceiptPage(ViewAnswer, frozen=True):
    """Some receipts, and where the next page begins (None after the last). There are none from before
    `details_gone_until`, since their time was over, but of briefings and reminders; None where all are kept.
    """

    receipts: list[Receipt]
    next_cursor: str | None
    details_gone_until: str | None


def list_receipts(connection: Connection, query: ListReceipts, moment: Moment) -> ReceiptPage:
    """Read one page of receipts; raises `NotFound` for a memory or query that there is not, `Invalid`
    where none of the three is named.
    """
    parts, values = list[str](), list[object]()
    if query.session_id is not None:
        parts.append("r.session_id = ?")
        values.append(query.session_id)
    if query.memory_id is not None:
        require(connection, query.memory_id)
        parts.append("r.memory_id = ?")
        values.append(query.memory_id)
    if query.query_id is not None:
        of_query = "(SELECT q.id FROM retrieval_queries AS q WHERE q.query_id = ?)"
        if connection.execute(f"SELECT 1 WHERE {of_query} IS NOT NULL", (query.query_id,)).fetchone() is None:
            hint = "pass the query_id of an answer of memory.query"
            raise NotFound(f"there is no query {query.query_id[:80]}", hint=hint)
        parts.append(f"r.id > {of_query} * {RANKS} AND r.id < ({of_query} + 1) * {RANKS}")
        values += [query.query_id, query.query_id]
    if not parts:
        raise Invalid("receipts.list: whose receipts?", hint="name a session_id, a memory_id or a query_id")
    told = LAST_ROW if query.cursor is None else int(query.cursor)
    sql = RECEIPTS.format(condition=" AND ".join(parts))
    rows = connection.execute(sql, (*values, told, told, told, query.limit + 1, query.limit + 1)).fetchall()
    page = rows[: query.limit]
    next_cursor = str(page[-1][0]) if len(rows) > query.limit else None
    receipts = [Receipt(**dict(zip(Receipt.__struct_fields__, row[1:], strict=True))) for row in page]
    return ReceiptPage(
        receipts=receipts,
        next_cursor=next_cursor,
        details_gone_until=details.gone_until(connection, "queries"),
        **moment.shown,
    )


METHODS = (
    QueryMethod(
        params=ListReceipts,
        answer=ReceiptPage,
        views=("memories", "retrievals", details.VIEW),
        read=list_receipts,
        shows_queries=True,
        turn=Turn.LONG,
        verb=Verb(
            "memory receipts",
            given=("memory_id",),
            table=Table(
                "receipts",
                (
                    ("WHEN", "{at:moment}"),
                    ("HOW", "{how}"),
                    ("QUERY", "{query_id}"),
                    ("RANK", "{rank}"),
                    ("SCORE", "{score:.3f}"),
                    ("SESSION", "{session_id}"),
                    ("MEMORY", "{memory_id}"),
                ),
                none="no receipts",
                warns=GONE,
            ),
            examples=(
                "omegad memory receipts mem-0123456789abcdef",
                "omegad memory receipts --session-id s-1 --limit 20",
            ),
        ),
    ),
)
