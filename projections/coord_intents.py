"""What sessions said that they would do."""

from collections.abc import Iterator

from omegad.coordination.events import IntentAnnounced
from omegad.log.event import RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, shorten, to_json
from omegad.runtime.times import rfc3339
from omegad.session.events import SessionEnded

NAME = "coord_intents"
VERSION = 2
EVENTS = (IntentAnnounced, SessionEnded, ClockMended)

SCHEMA = """
CREATE TABLE coord_intents (
    id         INTEGER PRIMARY KEY, -- position of intent.announced
    session_id TEXT NOT NULL,
    project    TEXT,
    text       TEXT NOT NULL,
    paths      TEXT NOT NULL,       -- JSON array
    status     TEXT NOT NULL,       -- current (until expires_us), replaced by a later one, or ended
    created_at TEXT NOT NULL,
    expires_us INTEGER NOT NULL     -- microseconds since 1970
) STRICT;
CREATE INDEX coord_intents_current ON coord_intents (session_id) WHERE status = 'current';
"""
INDEXES = """
CREATE INDEX coord_intents_by_project ON coord_intents (project, id) WHERE status = 'current';
"""
CANONICAL = ("SELECT * FROM coord_intents ORDER BY id",)

_OVER = "UPDATE coord_intents SET status = ? WHERE session_id = ? AND status = 'current'"


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    session_id = recorded.session_id or ""
    match recorded.event:
        case IntentAnnounced(text=text, paths=paths, expires_at=expires_at):
            yield Statement(_OVER, ("replaced", session_id))
            values = (
                recorded.position,
                session_id,
                recorded.project,
                text,
                to_json(paths),
                rfc3339(recorded.occurred_at),
                expires_at,
            )
            yield Statement("INSERT INTO coord_intents VALUES (?, ?, ?, ?, ?, 'current', ?, ?)", values)
        case SessionEnded():
            yield Statement(_OVER, ("ended", session_id))
        case ClockMended() as mended:
            yield shorten(mended, "coord_intents", "id", "expires_us")
