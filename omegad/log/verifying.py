"""Proof that the log is as it was written: every link of the chain computed again from the stored bytes."""

from typing import Any

import msgspec

from omegad.log import chain
from omegad.log.codec import decode, tag_of
from omegad.log.erasure import PayloadErased
from omegad.log.event import Position
from omegad.storage.driver import Connection

_ROWS = """
SELECT e.position, e.event_id, e.tag, e.recorded_at, e.occurred_at, e.tz_offset, e.origin, e.hlc, e.session_id, e.project, e.client, e.cause,
       e.trace, e.payload_hash, e.chain, p.salt, p.body
FROM events AS e LEFT JOIN payloads AS p ON p.position = e.position
WHERE e.position > ? ORDER BY e.position LIMIT ?
"""

_ERASURES = "SELECT e.position, p.body FROM events AS e JOIN payloads AS p USING (position) WHERE e.tag = ? AND e.position > ?"

_ERASED = tag_of(PayloadErased)


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the log verifies: how many events did, the chain after them (hex), and the first position that does not."""

    ok: bool
    events: int
    head_hash: str
    first_bad: Position | None = None


class Erasures:
    """Which payloads events say were erased. The log is searched for such events only once a payload is missing, and each part of it once."""

    def __init__(self) -> None:
        """Know of none yet."""
        self._named: dict[Position, Position] = {}
        self._searched_to: Position = 0

    def excuse(self, connection: Connection, position: Position) -> bool:
        """Say whether a later event says that the payload at *position* was erased."""
        if position not in self._named:
            self._search(connection)
        return self._named.get(position, 0) > position

    def _search(self, connection: Connection) -> None:
        for at, body in connection.execute(_ERASURES, (_ERASED, self._searched_to)):
            event = decode(_ERASED, body)
            if isinstance(event, PayloadErased):
                self._named |= {position: at for position in event.positions}  # noqa: C420  fromkeys loses the type
        self._searched_to = connection.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()[0]


def verify_part(connection: Connection, report: LogReport, limit: int, erasures: Erasures) -> tuple[LogReport, bool]:
    """Verify up to *limit* events after those that *report* covers; return the longer report and whether there may be more."""
    link, position = bytes.fromhex(report.head_hash), report.events
    rows = _rows(connection, position, limit)
    for row in rows:
        position += 1
        is_missing = row[16] is None and not erasures.excuse(connection, position)
        found = None if is_missing else _link(link, row)
        if found is None or row[0] != position or found != row[14]:
            return LogReport(ok=False, events=position - 1, head_hash=link.hex(), first_bad=position), False
        link = found
    return LogReport(ok=True, events=position, head_hash=link.hex()), len(rows) == limit


def _rows(connection: Connection, after: Position, limit: int) -> list[tuple[Any, ...]]:
    """Read rows even where their text is not UTF-8 any more; such text then has no hash."""
    factory = connection.text_factory
    connection.text_factory = lambda data: data.decode(errors="surrogateescape")
    try:
        return connection.execute(_ROWS, (after, limit)).fetchall()
    finally:
        connection.text_factory = factory


def _link(previous: bytes, row: tuple[Any, ...]) -> bytes | None:
    payload_hash, salt, body = row[13], row[15], row[16]
    try:
        if body is not None and chain.payload_hash(salt, body.encode()) != payload_hash:
            return None
        return chain.link(previous, row[:14])
    except (UnicodeEncodeError, TypeError, AttributeError, OverflowError):
        return None  # a value of a kind that the log never writes
