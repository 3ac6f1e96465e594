"""The messages that agents left for each other, and who was shown which."""

from collections.abc import Iterator

from omegad.coordination.events import MessageDelivered, MessagePosted
from omegad.log.event import RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, shorten
from omegad.runtime.times import rfc3339

NAME = "coord_messages"
VERSION = 2
EVENTS = (MessagePosted, MessageDelivered, ClockMended)

SCHEMA = """
CREATE TABLE coord_messages (
    id         INTEGER PRIMARY KEY, -- position of message.posted
    message_id TEXT NOT NULL UNIQUE,
    sender     TEXT,                -- session, NULL for a person
    to_session TEXT,
    to_project TEXT,
    text       TEXT NOT NULL,
    memory_id  TEXT,                -- that it hands over
    created_at TEXT NOT NULL,
    expires_us INTEGER NOT NULL     -- microseconds since 1970
) STRICT;
CREATE TABLE coord_message_deliveries (
    message_id   TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    delivered_at TEXT NOT NULL,
    PRIMARY KEY (message_id, session_id)
) STRICT, WITHOUT ROWID;
"""
INDEXES = """
CREATE INDEX coord_messages_by_session ON coord_messages (to_session, id);
CREATE INDEX coord_messages_by_project ON coord_messages (to_project, id);
"""
CANONICAL = (
    "SELECT * FROM coord_messages ORDER BY id",
    "SELECT * FROM coord_message_deliveries ORDER BY message_id, session_id",
)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    at = rfc3339(recorded.occurred_at)
    match recorded.event:
        case MessagePosted() as sent:
            addressed = (
                recorded.position,
                sent.message_id,
                recorded.session_id,
                sent.to_session,
                sent.to_project,
            )
            yield Statement(
                "INSERT INTO coord_messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*addressed, sent.text, sent.memory_id, at, sent.expires_at),
            )
        case MessageDelivered(message_ids=message_ids):
            for message_id in message_ids:
                yield Statement(
                    "INSERT OR IGNORE INTO coord_message_deliveries VALUES (?, ?, ?)",
                    (message_id, recorded.session_id or "", at),
                )
        case ClockMended() as mended:
            yield shorten(mended, "coord_messages", "id", "expires_us")
