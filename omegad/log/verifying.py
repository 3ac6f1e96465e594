"""Proof that the log is as it was written: every link of the chain computed again from the stored bytes."""

from typing import Any

import msgspec

from omegad.events.fact import Position
from omegad.log import chain
from omegad.storage.driver import Connection

_ROWS = """
SELECT e.position, e.event_id, e.tag, e.recorded_at, e.occurred_at, e.tz_offset, e.origin, e.hlc, e.session_id, e.project, e.client, e.cause,
       e.trace, e.payload_hash, e.chain, p.salt, p.body, x.position IS NOT NULL
FROM events AS e LEFT JOIN payloads AS p ON p.position = e.position LEFT JOIN erasures AS x ON x.position = e.position
WHERE e.position > ? ORDER BY e.position LIMIT ?
"""


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the log verifies: how many events did, the chain after them (hex), and the first position that does not."""

    ok: bool
    events: int
    head_hash: str
    first_bad: Position | None = None


def verify_part(connection: Connection, report: LogReport, limit: int) -> tuple[LogReport, bool]:
    """Verify up to *limit* events after those that *report* covers; return the longer report and whether there may be more."""
    link, position = bytes.fromhex(report.head_hash), report.events
    rows = connection.execute(_ROWS, (position, limit)).fetchall()
    for row in rows:
        position += 1
        link = chain.link(link, row[:14])
        if row[0] != position or link != row[14] or not _payload_holds(row):
            bad = LogReport(ok=False, events=position - 1, head_hash=report.head_hash, first_bad=position)
            return bad, False
    return LogReport(ok=True, events=position, head_hash=link.hex()), len(rows) == limit


def _payload_holds(row: tuple[Any, ...]) -> bool:
    payload_hash, salt, body, is_erased = row[13], row[15], row[16], row[17]
    if body is None:
        return bool(is_erased)
    return bool(chain.payload_hash(salt, body.encode()) == payload_hash)
