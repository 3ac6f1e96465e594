"""Rows of the log as `Recorded` events."""

from collections.abc import Iterator
from typing import Any

from omegad.errors import LogBroken
from omegad.events.fact import Position, Recorded
from omegad.log.codec import decode
from omegad.storage.driver import Connection, sqlite

BATCH_BYTES_MAX = 8 * 1024 * 1024

_READ = """
SELECT e.position, e.event_id, e.tag, e.recorded_at, e.occurred_at, e.tz_offset, e.origin, e.hlc, e.session_id, e.project, e.client, e.cause,
       e.trace, e.chain, p.body
FROM events AS e LEFT JOIN payloads AS p ON p.position = e.position
WHERE e.position > ? ORDER BY e.position LIMIT ?
"""


def read(connection: Connection, after: Position, limit: int) -> list[Recorded]:
    """Return up to *limit* events after a position, in order; fewer where their payloads pass 8 MiB, but never none if there is one."""
    try:
        return list(_bounded(connection, after, limit))
    except sqlite.OperationalError as error:
        if "UTF-8" not in str(error):
            raise
        raise LogBroken(f"an event after position {after} is damaged: {error}") from error


def chain_at(connection: Connection, position: Position) -> bytes | None:
    """Return the chain hash at a position, None where the log does not reach it."""
    row = connection.execute("SELECT chain FROM events WHERE position = ?", (position,)).fetchone()
    return row[0] if row else None


def _bounded(connection: Connection, after: Position, limit: int) -> Iterator[Recorded]:
    size = 0
    for row in connection.execute(_READ, (after, limit)):
        yield _recorded(row)
        size += len(row[14] or "")
        if size > BATCH_BYTES_MAX:
            return


def _recorded(row: tuple[Any, ...]) -> Recorded:
    position, event_id, tag, recorded_at, occurred_at, tz_offset, origin, hlc, session_id, project, client, cause, trace, chain, body = row
    return Recorded(
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
