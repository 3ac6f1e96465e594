"""What an answer as of a moment says of that moment, and where the moment of an earlier answer is found."""

import msgspec

from omegad.log.event import Position
from omegad.runtime.errors import NotFound
from omegad.storage.driver import Connection

VIEWS = ("retrievals",)


class Then(msgspec.Struct, frozen=True, kw_only=True):
    """The moment that an answer is as of: a position of the log, and the time that is taken for now.

    `changed` has what an earlier answer was made with otherwise, as [then, now], by name: views, `ranking`,
    `embedder` (null without its help). `is_comparable` says whether that is known; without an earlier answer
    there is nothing to compare. `erased` counts the payloads up to there that were erased, and are shown no
    more.
    """

    position: Position
    at: str
    query_id: str | None = None
    is_comparable: bool = False
    changed: dict[str, tuple[object, object]] = {}
    erased: int = 0


def recorded_at(connection: Connection, query_id: str) -> Position:
    """Return where the log has the answer named; raises `NotFound`."""
    row = connection.execute("SELECT id FROM retrieval_queries WHERE query_id = ?", (query_id,)).fetchone()
    if row is None:
        raise NotFound(
            f"there is no query {query_id[:80]!r}",
            hint="as_of takes a position, a time, or the query_id of an answer of memory.query",
        )
    position: Position = row[0]
    return position
