"""What decisions know of messages and intents: which are still to be shown to whom."""

from collections.abc import Iterator

import msgspec

from omegad.coordination.events import IntentAnnounced, MessageDelivered, MessagePosted
from omegad.coordination.folding import in_state, of_state
from omegad.log.decision import Tables
from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement
from omegad.session.events import DeliveriesExpired, SessionEnded
from projections import coord_intents, coord_messages

NAME = "messages"
VERSION = 5
KEPT_EVENTS = 5_000
"""A message is forgotten when its time is over, and so many events came after it: a clock that is wrong
for a while makes none unread for ever.
"""
EVENTS = (*coord_messages.EVENTS, IntentAnnounced, SessionEnded, DeliveriesExpired)

SCHEMA = (
    of_state(coord_messages.SCHEMA + coord_messages.INDEXES + coord_intents.SCHEMA + coord_intents.INDEXES)
    + """
CREATE TABLE state_intents_shown (
    session_id TEXT NOT NULL, -- whose intent
    shown_to   TEXT NOT NULL,
    shown_at   INTEGER NOT NULL, -- position
    PRIMARY KEY (session_id, shown_to)
) STRICT, WITHOUT ROWID;
CREATE INDEX state_intents_shown_to ON state_intents_shown (shown_to);
"""
)
CANONICAL = (
    *map(of_state, coord_messages.CANONICAL + coord_intents.CANONICAL),
    "SELECT * FROM state_intents_shown ORDER BY session_id, shown_to",
)

_OVER = "expires_us <= ? AND id <= ?"
_FORGET_DELIVERIES = (
    "DELETE FROM state_message_deliveries WHERE message_id IN (SELECT message_id FROM state_messages WHERE"
    f" {_OVER})"
)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    """Show what the views show, and let go of what no decision needs any more."""
    session_id, position = recorded.session_id or "", recorded.position
    if isinstance(recorded.event, MessagePosted):
        for sql in (_FORGET_DELIVERIES, f"DELETE FROM state_messages WHERE {_OVER}"):
            yield Statement(sql, (recorded.occurred_at, position - KEPT_EVENTS))
    yield from in_state(coord_messages.project(recorded))
    yield from in_state(coord_intents.project(recorded))
    match recorded.event:
        case MessageDelivered(intents_of=intents_of):
            for other in intents_of:
                yield Statement(
                    "INSERT OR REPLACE INTO state_intents_shown VALUES (?, ?, ?)",
                    (other, session_id, position),
                )
        case IntentAnnounced():
            yield Statement("DELETE FROM state_intents WHERE status != 'current'")
        case SessionEnded():
            yield Statement("DELETE FROM state_intents WHERE status != 'current'")
            yield Statement(
                "DELETE FROM state_intents_shown WHERE session_id = ?1 OR shown_to = ?1", (session_id,)
            )
        case DeliveriesExpired(before=before):
            yield Statement("DELETE FROM state_intents_shown WHERE shown_at < ?", (before,))
            yield Statement(
                "DELETE FROM state_intents WHERE id < ? AND expires_us <= ?", (before, recorded.occurred_at)
            )


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


class Messages(Tables):
    """Reads the tables."""

    def unread(self, session_id: str, project: str | None, now_us: int, limit: int) -> list[Message]:
        """Return the messages that a session of a project has yet to be shown, the oldest first."""
        # Each half has an index of its own, and is empty for a session alone.
        sql = """
        SELECT message_id, sender, text, memory_id FROM (
            SELECT * FROM state_messages WHERE to_session = ?1 UNION SELECT * FROM state_messages
            WHERE to_project = ?2
        ) AS m WHERE sender IS NOT ?1 AND expires_us > ?3
        AND NOT EXISTS (SELECT 1 FROM state_message_deliveries AS s WHERE s.message_id = m.message_id
        AND s.session_id = ?1)
        ORDER BY id LIMIT ?4
        """
        return [Message(*row) for row in self._connection.execute(sql, (session_id, project, now_us, limit))]

    def intent(self, session_id: str, now_us: int) -> Intent | None:
        """Return what a session is about to do, None where it did not say."""
        sql = """
        SELECT session_id, text, paths FROM state_intents
        WHERE session_id = ? AND status = 'current' AND expires_us > ?
        """
        row = self._connection.execute(sql, (session_id, now_us)).fetchone()
        return (
            None if row is None else Intent(row[0], row[1], msgspec.json.decode(row[2], type=tuple[str, ...]))
        )

    def intents(self, session_id: str, project: str | None, now_us: int) -> list[Intent]:
        """Return what the other sessions of a project are about to do, the latest first."""
        sql = """
        SELECT i.session_id, text, paths, shown_at, id FROM state_intents AS i
        LEFT JOIN state_intents_shown AS s ON s.session_id = i.session_id AND s.shown_to = ?1
        WHERE project = ?2 AND status = 'current' AND i.session_id != ?1 AND expires_us > ?3
        ORDER BY id DESC LIMIT 32
        """
        return [
            Intent(who, text, msgspec.json.decode(paths, type=tuple[str, ...]), shown, at)
            for who, text, paths, shown, at in self._connection.execute(sql, (session_id, project, now_us))
        ]
