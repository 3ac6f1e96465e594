"""What decisions know of messages and intents: which are still to be shown to whom."""

from collections.abc import Iterator

import msgspec

from omegad.coordination.message_events import IntentAnnounced, MessageDelivered, MessagePosted
from omegad.log.event import RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, shorten, to_json
from omegad.session.delivery_events import DeliveriesExpired
from omegad.session.events import SessionEnded
from omegad.storage.driver import Connection

NAME = "messages"
VERSION = 4
KEPT_EVENTS = 5_000
"""A message is forgotten when its time is over, and so many events came after it: a clock that is wrong for a while makes none unread for ever."""
EVENTS = (MessagePosted, MessageDelivered, IntentAnnounced, SessionEnded, DeliveriesExpired, ClockMended)

SCHEMA = """
CREATE TABLE state_messages ( -- those whose time was not over when the latest was sent, and the others that are not far back
    message_id TEXT PRIMARY KEY,
    sender     TEXT,             -- session
    to_session TEXT,
    to_project TEXT,
    text       TEXT NOT NULL,
    memory_id  TEXT,
    sent_at    INTEGER NOT NULL, -- position
    expires_at INTEGER NOT NULL  -- microseconds since 1970
) STRICT, WITHOUT ROWID;
CREATE INDEX state_messages_by_session ON state_messages (to_session, sent_at);
CREATE INDEX state_messages_by_project ON state_messages (to_project, sent_at);
CREATE TABLE state_messages_shown (
    message_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    PRIMARY KEY (message_id, session_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE state_intents ( -- the latest of each session that has not ended
    session_id   TEXT PRIMARY KEY,
    project      TEXT,
    text         TEXT NOT NULL,
    paths        TEXT NOT NULL,    -- JSON array
    announced_at INTEGER NOT NULL, -- position
    expires_at   INTEGER NOT NULL  -- microseconds since 1970
) STRICT, WITHOUT ROWID;
CREATE INDEX state_intents_by_project ON state_intents (project);
CREATE TABLE state_intents_shown (
    session_id TEXT NOT NULL, -- whose intent
    shown_to   TEXT NOT NULL,
    shown_at   INTEGER NOT NULL, -- position
    PRIMARY KEY (session_id, shown_to)
) STRICT, WITHOUT ROWID;
CREATE INDEX state_intents_shown_to ON state_intents_shown (shown_to);
"""
CANONICAL = (
    "SELECT * FROM state_messages ORDER BY message_id",
    "SELECT * FROM state_messages_shown ORDER BY message_id, session_id",
    "SELECT * FROM state_intents ORDER BY session_id",
    "SELECT * FROM state_intents_shown ORDER BY session_id, shown_to",
)

_OVER = "expires_at <= ? AND sent_at <= ?"
_FORGET_SHOWN = f"DELETE FROM state_messages_shown WHERE message_id IN (SELECT message_id FROM state_messages WHERE {_OVER})"
_FORGET = f"DELETE FROM state_messages WHERE {_OVER}"
_SENT = "INSERT INTO state_messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_SHOWN = "INSERT OR IGNORE INTO state_messages_shown SELECT message_id, ?2 FROM state_messages WHERE message_id = ?1"
_INTENT = "INSERT OR REPLACE INTO state_intents VALUES (?, ?, ?, ?, ?, ?)"
_INTENT_SHOWN = "INSERT OR REPLACE INTO state_intents_shown VALUES (?, ?, ?)"


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    session_id, position = recorded.session_id or "", recorded.position
    match recorded.event:
        case MessagePosted() as sent:
            over = (recorded.occurred_at, position - KEPT_EVENTS)
            yield Statement(_FORGET_SHOWN, over)
            yield Statement(_FORGET, over)
            addressed = (sent.message_id, recorded.session_id, sent.to_session, sent.to_project)
            yield Statement(_SENT, (*addressed, sent.text, sent.memory_id, position, sent.expires_at))
        case MessageDelivered(message_ids=message_ids, intents_of=intents_of):
            for message_id in message_ids:
                yield Statement(_SHOWN, (message_id, session_id))
            for other in intents_of:
                yield Statement(_INTENT_SHOWN, (other, session_id, position))
        case IntentAnnounced(text=text, paths=paths, expires_at=expires_at):
            yield Statement(_INTENT, (session_id, recorded.project, text, to_json(paths), position, expires_at))
        case SessionEnded():
            yield Statement("DELETE FROM state_intents WHERE session_id = ?", (session_id,))
            yield Statement("DELETE FROM state_intents_shown WHERE session_id = ?1 OR shown_to = ?1", (session_id,))
        case DeliveriesExpired(before=before):
            yield Statement("DELETE FROM state_intents_shown WHERE shown_at < ?", (before,))
            yield Statement("DELETE FROM state_intents WHERE announced_at < ? AND expires_at <= ?", (before, recorded.occurred_at))
        case ClockMended() as mended:
            yield shorten(mended, "state_messages", "sent_at", "expires_at")
            yield shorten(mended, "state_intents", "announced_at", "expires_at")
        case _:
            pass


class Message(msgspec.Struct, frozen=True):
    """A message that is to be shown: from a session, None for a person."""

    message_id: str
    sender: str | None
    text: str
    memory_id: str | None


class Intent(msgspec.Struct, frozen=True):
    """What a session is about to do, to which files."""

    session_id: str
    text: str
    paths: tuple[str, ...]
    shown_at: int | None = None
    """Where the session that asks was shown one of that session last; None where it never was."""
    announced_at: int = 0


class Messages:
    """Reads the tables."""

    def __init__(self, connection: Connection) -> None:
        """Read through *connection*, whatever transaction is open there."""
        self._connection = connection

    def unread(self, session_id: str, project: str | None, now_us: int, limit: int) -> list[Message]:
        """Return the messages that a session of a project has yet to be shown, the oldest first."""
        # Each half has an index of its own, and is empty for a session alone.
        sql = """
        SELECT message_id, sender, text, memory_id FROM (
            SELECT * FROM state_messages WHERE to_session = ?1 UNION SELECT * FROM state_messages WHERE to_project = ?2
        ) AS m WHERE sender IS NOT ?1 AND expires_at > ?3
        AND NOT EXISTS (SELECT 1 FROM state_messages_shown AS s WHERE s.message_id = m.message_id AND s.session_id = ?1)
        ORDER BY sent_at LIMIT ?4
        """
        return [Message(*row) for row in self._connection.execute(sql, (session_id, project, now_us, limit))]

    def readers(self, prefix: str) -> list[str]:
        """Return sessions whose id begins with a prefix, two at most."""
        sql = "SELECT session_id FROM state_agent_sessions WHERE session_id BETWEEN ?1 AND ?1 || char(0x10FFFF) LIMIT 2"
        return [session_id for (session_id,) in self._connection.execute(sql, (prefix,))]

    def intent(self, session_id: str, now_us: int) -> Intent | None:
        """Return what a session is about to do, None where it did not say."""
        sql = "SELECT session_id, text, paths FROM state_intents WHERE session_id = ? AND expires_at > ?"
        row = self._connection.execute(sql, (session_id, now_us)).fetchone()
        return None if row is None else Intent(row[0], row[1], msgspec.json.decode(row[2], type=tuple[str, ...]))

    def intents(self, session_id: str, project: str | None, now_us: int) -> list[Intent]:
        """Return what the other sessions of a project are about to do, the latest first."""
        sql = """
        SELECT i.session_id, text, paths, shown_at, announced_at FROM state_intents AS i
        LEFT JOIN state_intents_shown AS s ON s.session_id = i.session_id AND s.shown_to = ?1
        WHERE project = ?2 AND i.session_id != ?1 AND expires_at > ?3 ORDER BY announced_at DESC LIMIT 32
        """
        rows = self._connection.execute(sql, (session_id, project, now_us))
        return [Intent(who, text, msgspec.json.decode(paths, type=tuple[str, ...]), shown, at) for who, text, paths, shown, at in rows]
