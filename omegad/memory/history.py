"""The life of a memory: every event that is about it, in order."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.event import Position, RecordedEvent
from omegad.memory import owner
from omegad.memory.owner import Home
from omegad.memory.reading import Cursor, require
from omegad.requests.log_events import LogEvent, log_event
from omegad.requests.method import Moment, QueryMethod, RequestContext, Services
from omegad.requests.query import Query, ViewAnswer
from omegad.requests.verb import AgentTool, Verb
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

VIEWS = ("memories", "histories", owner.VIEW)


class MemoryHistory(Query, frozen=True, kw_only=True, tag="memory.history"):
    """Show a memory's life, event by event, oldest first; those that it is the other memory of are among
    them.
    """

    memory_id: Annotated[str, Meta(description="the memory's id")]
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many events on a page")] = 200
    cursor: Cursor | None = None


class LifeEvent(LogEvent, frozen=True, kw_only=True):
    """An event of a memory's life; where this home is in a team, or another home told of it, with whose home
    it was recorded in, and on which machine.
    """

    person: str | None
    machine: str | None


class History(ViewAnswer, frozen=True):
    """Some events of a life, their data null where it was erased, and where the next page begins (None
    after the last).
    """

    events: list[LifeEvent]
    next_cursor: str | None


class HistoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Where the events of a page are in the log, the homes of the team, and of which moment that is."""

    positions: list[Position]
    homes: dict[str, Home]
    has_more: bool
    moment: Moment


def page(connection: Connection, query: MemoryHistory, moment: Moment) -> HistoryPage:
    """Find one page of a memory's events; raises `NotFound`."""
    require(connection, query.memory_id)
    sql = "SELECT position FROM memory_history WHERE memory_id = ? AND position > ? ORDER BY position LIMIT ?"
    rows = connection.execute(sql, (query.memory_id, int(query.cursor or 0), query.limit + 1)).fetchall()
    return HistoryPage(
        positions=[row[0] for row in rows[: query.limit]],
        homes=owner.homes(connection),
        has_more=len(rows) > query.limit,
        moment=moment,
    )


async def finish(
    services: Services, _query: MemoryHistory, found: HistoryPage, _context: RequestContext
) -> History:
    """Read the events of a page, which are fewer than asked for where they are large: the view says which
    they are, the log what they say.
    """
    return history(found, await services.log.read_at(found.positions))


def history(found: HistoryPage, read: list[RecordedEvent]) -> History:
    """Make the answer of the events that could be *read* of a page."""
    events = [_lived(one, found.homes) for one in read]
    has_more = found.has_more or len(events) < len(found.positions)
    next_cursor = str(events[-1].position) if has_more and events else None
    return History(events=events, next_cursor=next_cursor, **found.moment.shown)


def _lived(recorded: RecordedEvent, homes: dict[str, Home]) -> LifeEvent:
    home = homes.get(recorded.origin)
    return LifeEvent(
        **msgspec.structs.asdict(log_event(recorded)),
        person=None if home is None else home.person,
        machine=None if home is None else home.machine,
    )


METHODS = (
    QueryMethod(
        params=MemoryHistory,
        answer=History,
        views=VIEWS,
        read=page,
        finish=finish,
        turn=Turn.LONG,
        verb=Verb(examples=("omegad memory history mem-0123456789abcdef",), by="memories.history"),
        tool=AgentTool("omega_memory history", by="memory.lived", limit=100),
    ),
)
