"""Rows of the log as `RecordedEvent` events."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from omegad.errors import LogBroken
from omegad.log.codec import decode
from omegad.log.decision import Cursor
from omegad.log.event import Position, RecordedEvent
from omegad.storage.driver import Connection, sqlite

BATCH_BYTES_MAX = 8 * 1024 * 1024

_SELECT = """
SELECT e.position, e.event_id, e.tag, e.recorded_at, e.occurred_at, e.tz_offset, e.origin, e.hlc, e.session_id, e.project, e.client, e.cause,
       e.trace, e.chain, p.body
FROM events AS e LEFT JOIN payloads AS p ON p.position = e.position
"""
_READ = f"{_SELECT} WHERE e.position > ? ORDER BY e.position LIMIT ?"
READ_AT = f"{_SELECT} WHERE e.position IN (SELECT value FROM json_each(?)) ORDER BY e.position"


def read(connection: Connection, after: Position, limit: int) -> list[RecordedEvent]:
    """Return up to *limit* events after a position, in order; fewer where their payloads pass 8 MiB, but never none if there is one."""
    return _decoded(connection, f"after position {after}", _READ, (after, limit))


def read_at(connection: Connection, positions: Sequence[Position]) -> list[RecordedEvent]:
    """Return the events at *positions*, in order; fewer where their payloads pass 8 MiB, but never none if there is one."""
    return _decoded(connection, f"at one of {len(positions)} positions", READ_AT, (str(list(positions)),))


def chain_at(connection: Connection, position: Position) -> bytes | None:
    """Return the chain hash at a position, None where the log does not reach it."""
    row = connection.execute("SELECT chain FROM events WHERE position = ?", (position,)).fetchone()
    return row[0] if row else None


def cursors(connection: Connection) -> dict[str, Cursor]:
    """Return every cursor by its name."""
    return {row[0]: Cursor(*row) for row in connection.execute("SELECT name, position, version FROM cursors")}


def _decoded(connection: Connection, place: str, sql: str, values: tuple[object, ...]) -> list[RecordedEvent]:
    try:
        return list(_bounded(connection.execute(sql, values)))
    except sqlite.OperationalError as error:
        if "UTF-8" not in str(error):
            raise
        raise LogBroken(f"an event {place} is damaged: {error}") from error


def _bounded(rows: Iterable[tuple[Any, ...]]) -> Iterator[RecordedEvent]:
    size = 0
    for row in rows:
        yield _recorded(row)
        size += len(row[14] or "")
        if size > BATCH_BYTES_MAX:
            return


def _recorded(row: tuple[Any, ...]) -> RecordedEvent:
    position, event_id, tag, recorded_at, occurred_at, tz_offset, origin, hlc, session_id, project, client, cause, trace, chain, body = row
    return RecordedEvent(
        position=position,
        event_id=event_id,
        tag=tag,
        recorded_at=recorded_at,
        occurred_at=occurred_at,
        tz_offset=tz_offset,
        origin=origin,
        hlc=hlc,
        session_id=session_id,
        project=project,
        client=client,
        cause=cause,
        trace=trace,
        chain=chain,
        event=decode(tag, body),
    )
