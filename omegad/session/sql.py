"""SQL of people and agents on the views, read-only: so that an agent can check what it did before it
claims so.
"""

import re
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from omegad.requests.method import EVERY_VIEW, Moment, QueryMethod, RequestContext, Services
from omegad.requests.query import Query, ViewAnswer
from omegad.requests.verb import AgentTool, Verb
from omegad.storage.driver import Connection
from omegad.storage.selecting import Limits, select

SECONDS_MAX = 1.0
BYTES_MAX = 256 * 1024
MEMORY_BYTES_MAX = 128 * 1024 * 1024
OWN = frozenset({"checkpoints", "deferred"})
"""Tables of the machinery, which say nothing of what happened."""


class SelectRows(Query, frozen=True, kw_only=True, tag="audit.sql"):
    """Run one SELECT on the tables of `views.db`: `audit_log`, `conversations`, `memories` and the others.

    It can neither write nor look elsewhere, takes at most 1 second of the processor's time, and answers with
    at most 256 KiB; of functions it has those that make no text longer.
    """

    sql: Annotated[str, Meta(min_length=1, max_length=8_192, description="one SELECT")]
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many rows at most")] = 100


class Rows(ViewAnswer, frozen=True):
    """Rows by column; `truncated` says that there are more than `limit`, or than 256 KiB. Blobs are SQL
    literals of their beginning.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    truncated: bool


def find(connection: Connection, _query: SelectRows, moment: Moment) -> tuple[Path, dict[str, int], Moment]:
    """Return where the views are, their tables, with the number of words that each stands for (0 of a part of
    an index, which is asked with it), and what they show.
    """
    file = next(path for _, name, path in connection.execute("PRAGMA database_list") if name == "main")
    listed = connection.execute("PRAGMA main.table_list").fetchall()
    indexes = tuple(
        f"{name}_" for _, name, kind, *_ in listed if kind == "virtual"
    )  # whose parts are not all told apart from tables
    views = dict(connection.execute("SELECT name, sql FROM main.sqlite_master WHERE type = 'view'"))
    words = {
        name: 0 if name.startswith(indexes) else len(re.findall(r"\w+", views.get(name, name)))
        for _, name, *_ in listed
        if name not in OWN and not name.startswith("sqlite_")
    }
    return Path(file), words, moment


async def answer(
    _services: Services,
    query: SelectRows,
    place: tuple[Path, dict[str, int], Moment],
    _context: RequestContext,
) -> Rows:
    """Run the SELECT in a process of its own, for which nobody waits."""
    limits = Limits(rows=query.limit, bytes=BYTES_MAX, seconds=SECONDS_MAX, memory_bytes=MEMORY_BYTES_MAX)
    file, tables, moment = place
    found = await select(file, query.sql, tables, limits)
    return Rows(
        columns=found.columns,
        rows=found.rows,
        truncated=found.has_more,
        **moment.shown,
    )


METHODS = (
    QueryMethod(
        params=SelectRows,
        answer=Rows,
        views=EVERY_VIEW,
        read=find,
        finish=answer,
        shows_queries=True,
        verb=Verb(
            "sql",
            by="log.sql",
            examples=(
                'omegad sql "SELECT kind, status, count(*) FROM audit_log GROUP BY 1, 2"',
                (
                    "omegad sql \"SELECT created_at, name, summary FROM audit_log WHERE status = 'error'"
                    ' ORDER BY id DESC" --limit 5'
                ),
            ),
        ),
        tool=AgentTool("omega_stats sql", by="upkeep.selected"),
    ),
)
