"""What decisions know of agents' hooks: which came in, which sessions are open, and for which files
memories were shown.
"""

from collections.abc import Iterator

import msgspec

from omegad.log.aging import PayloadsAged
from omegad.log.decision import Tables
from omegad.log.event import END, Position, RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, set_right
from omegad.session.events import (
    OWN,
    RESUMED,
    TO_JUDGE,
    DeliveriesExpired,
    Delivery,
    GitMerged,
    GitPushChecked,
    MemorySurfaced,
    PromptSubmitted,
    SessionCompacted,
    SessionEnded,
    SessionStarted,
    SubagentEnded,
    ToolCallAged,
    ToolCalled,
    TurnEnded,
)

NAME = "hooks"
VERSION = 13
EVENTS = (
    *(
        SessionStarted,
        PromptSubmitted,
        TurnEnded,
        SubagentEnded,
        SessionCompacted,
        SessionEnded,
        MemorySurfaced,
        ToolCalled,
        ToolCallAged,
        GitPushChecked,
        GitMerged,
    ),
    *(DeliveriesExpired, PayloadsAged, ClockMended),
)
AGAIN_US = 2_000_000
"""For so long what says the same is the same hook, told twice."""
UNKEYED_CHARACTERS = 32
"""Digests of this length were made without a key, and are kept nowhere but in their events."""
PAYLOADS_KEPT_US = 30 * 86_400_000_000
"""How long, at least, the latest of a session is kept that says nothing more."""
ANYTHING = ""
"""Stands for a file: whatever was shown last, of which the latest counts."""
ITSELF = ""
"""Stands for an agent: the session's own, for which others may work."""
ANYBODY = ""
"""The session under which calls of omegad's own tools are known again: hosts need not say whose they are."""

SCHEMA = """
CREATE TABLE state_deliveries (
    delivery_id TEXT PRIMARY KEY,
    position    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX state_deliveries_by_position ON state_deliveries (position);
CREATE TABLE state_payloads ( -- the latest of each session
    session_id  TEXT NOT NULL,
    digest      TEXT NOT NULL,
    occurred_at INTEGER NOT NULL, -- microseconds since 1970
    position    INTEGER NOT NULL, -- of the latest that said so
    PRIMARY KEY (session_id, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX state_payloads_by_position ON state_payloads (position);
CREATE TABLE state_agent_sessions (
    session_id TEXT PRIMARY KEY,
    host       TEXT NOT NULL,
    project    TEXT,
    is_open    INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL -- position of the latest session.ended, 0 before the first
) STRICT, WITHOUT ROWID;
CREATE TABLE state_surfaced_files (
    session_id TEXT NOT NULL,
    agent_id   TEXT NOT NULL,
    file       TEXT NOT NULL,
    position   INTEGER NOT NULL,
    at_us      INTEGER NOT NULL, -- when it was looked for, microseconds since 1970
    PRIMARY KEY (session_id, agent_id, file)
) STRICT, WITHOUT ROWID;
CREATE INDEX state_surfaced_files_by_position ON state_surfaced_files (position);
CREATE TABLE state_merges ( -- the latest of each work tree
    worktree  TEXT PRIMARY KEY,
    after     TEXT NOT NULL,
    merged_at INTEGER NOT NULL -- microseconds since 1970
) STRICT, WITHOUT ROWID;
"""
CANONICAL = (
    "SELECT * FROM state_deliveries ORDER BY delivery_id",
    "SELECT * FROM state_payloads ORDER BY session_id, digest",
    "SELECT * FROM state_agent_sessions ORDER BY session_id",
    "SELECT * FROM state_surfaced_files ORDER BY session_id, agent_id, file",
    "SELECT * FROM state_merges ORDER BY worktree",
)

_PAYLOAD = (
    "INSERT INTO state_payloads VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET occurred_at ="
    " excluded.occurred_at, position = excluded.position"
)
_OPEN = """
INSERT INTO state_agent_sessions VALUES (?, ?, ?, 1, 0) ON CONFLICT DO UPDATE
  SET is_open = 1, project = coalesce(excluded.project, project)
"""
_REOPEN = "UPDATE state_agent_sessions SET is_open = 1 WHERE session_id = ? AND is_open = 0"
_END = """
INSERT INTO state_agent_sessions VALUES (?, ?, ?, 0, ?) ON CONFLICT DO UPDATE
  SET is_open = 0, ended_at = excluded.ended_at
"""
_FILE = "INSERT OR IGNORE INTO state_surfaced_files VALUES (?, ?, ?, ?, ?)"
_FORGOTTEN = (
    "DELETE FROM state_surfaced_files WHERE session_id = ? AND agent_id = ? AND file != ? AND at_us < ?"
)
_TOLD = "INSERT OR REPLACE INTO state_surfaced_files VALUES (?, ?, ?, ?, ?)"
_EXPIRED = (
    "DELETE FROM state_deliveries WHERE position < ?",
    "DELETE FROM state_surfaced_files WHERE position < ?",
)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    session_id = recorded.session_id or ""
    match recorded.event:
        case ToolCalled(delivery=delivery):  # first, as most are
            is_own = delivery is not None and delivery.delivery_id.startswith(OWN)
            yield from _delivered(recorded, delivery, ANYBODY if is_own else session_id)
            yield Statement(_REOPEN, (session_id,))
        case (
            SessionStarted() | PromptSubmitted() | TurnEnded() | SubagentEnded() | SessionCompacted() as told
        ):
            yield from _delivered(recorded, told.delivery)
            yield Statement(_OPEN, (session_id, told.host, recorded.project))
            is_begun = isinstance(told, SessionStarted) and told.source != RESUMED
            if session_id and (is_begun or isinstance(told, SessionCompacted)):
                yield Statement(_FORGOTTEN, (session_id, ITSELF, ANYTHING, recorded.occurred_at))
        case SessionEnded(host=host, delivery=delivery):
            yield from _delivered(recorded, delivery)
            yield Statement(_END, (session_id, host, recorded.project, recorded.position))
        case GitPushChecked(delivery=delivery):
            yield from _delivered(recorded, delivery)
        case MemorySurfaced() as shown:
            yield from _surfaced(recorded, session_id, shown)
        case GitMerged(worktree=worktree, after=after):
            yield Statement(
                "INSERT OR REPLACE INTO state_merges VALUES (?, ?, ?)",
                (worktree, after, recorded.occurred_at),
            )
        case _:
            yield from _of_earlier_ones(recorded)


def _of_earlier_ones(recorded: RecordedEvent) -> Iterator[Statement]:
    """Project what says something of earlier events."""
    match recorded.event:
        case DeliveriesExpired(before=before):
            yield from _expired(before)
            yield Statement(
                "DELETE FROM state_payloads WHERE occurred_at < ?", (recorded.occurred_at - PAYLOADS_KEPT_US,)
            )
        case PayloadsAged(through=through):  # what remains says no more how it came in
            yield from _expired(through + 1)
            yield Statement("DELETE FROM state_payloads WHERE position <= ?", (through,))
        case ClockMended() as mended:
            yield from set_right(mended, "state_payloads", "occurred_at")
            yield from set_right(mended, "state_surfaced_files", "at_us")
            yield from set_right(mended, "state_merges", "merged_at")


def _surfaced(recorded: RecordedEvent, session_id: str, shown: MemorySurfaced) -> Iterator[Statement]:
    whose, when = (session_id, shown.agent_id or ITSELF), (recorded.position, shown.at)
    if shown.how == "warning":
        yield Statement(_FILE, (ANYBODY, ITSELF, shown.subject, *when))
    elif shown.how not in TO_JUDGE:
        yield Statement(_TOLD, (*whose, ANYTHING, *when))
        if shown.how in {"edit", "file"}:
            yield Statement(_FILE, (*whose, shown.subject, *when))


def _expired(before: Position) -> Iterator[Statement]:
    for sql in _EXPIRED:
        yield Statement(sql, (before,))


def _delivered(
    recorded: RecordedEvent, delivery: Delivery | None, session_id: str | None = None
) -> Iterator[Statement]:
    if delivery is not None:
        session_id = recorded.session_id or "" if session_id is None else session_id
        yield Statement(
            "INSERT OR IGNORE INTO state_deliveries VALUES (?, ?)", (delivery.delivery_id, recorded.position)
        )
        yield Statement(
            "DELETE FROM state_payloads WHERE session_id = ? AND occurred_at < ?",
            (session_id, recorded.occurred_at - AGAIN_US),
        )
        if len(delivery.digest) != UNKEYED_CHARACTERS:
            yield Statement(_PAYLOAD, (session_id, delivery.digest, recorded.occurred_at, recorded.position))


class AgentSessionState(msgspec.Struct, frozen=True):
    """What the log knows of a session; `ended_at` is the position of its latest end, 0 before the first."""

    host: str
    project: str | None
    is_open: bool
    ended_at: Position


class Hooks(Tables):
    """Reads the tables."""

    def has_come(self, session_id: str, delivery: Delivery, occurred_at: int) -> bool:
        """Say whether a hook came in before: under the same id, or saying the same a moment ago."""
        sql = """
        SELECT 1 FROM state_deliveries WHERE delivery_id = ?
        UNION ALL SELECT 1 FROM state_payloads WHERE session_id = ? AND digest = ?
        AND abs(occurred_at - ?) <= ?
        """
        return self._has(sql, delivery.delivery_id, session_id, delivery.digest, occurred_at, AGAIN_US)

    def session(self, session_id: str) -> AgentSessionState | None:
        """Return what is known of a session, None where no hook told of it."""
        sql = "SELECT host, project, is_open, ended_at FROM state_agent_sessions WHERE session_id = ?"
        row = self._connection.execute(sql, (session_id,)).fetchone()
        return AgentSessionState(row[0], row[1], bool(row[2]), row[3]) if row else None

    def beginning(self, prefix: str) -> list[str]:
        """Return sessions whose id begins with a prefix, two at most."""
        sql = (
            "SELECT session_id FROM state_agent_sessions WHERE session_id BETWEEN ?1 AND ?1 || char(0x10FFFF)"
            " LIMIT 2"
        )
        return [session_id for (session_id,) in self._connection.execute(sql, (prefix,))]

    def has_surfaced(self, session_id: str, agent_id: str | None, file: str) -> bool:
        """Say whether an agent of a session, None for its own, was shown memories for a file and has them in
        its context.
        """
        sql = "SELECT 1 FROM state_surfaced_files WHERE session_id = ? AND agent_id = ? AND file = ?"
        return self._has(sql, session_id, agent_id or ITSELF, file)

    def told_at(self, session_id: str, agent_id: str | None) -> Position:
        """Return the position at which an agent of a session, None for its own, was last told memories
        unasked; 0 where it never was.
        """
        sql = "SELECT position FROM state_surfaced_files WHERE session_id = ? AND agent_id = ? AND file = ?"
        row = self._connection.execute(sql, (session_id, agent_id or ITSELF, ANYTHING)).fetchone()
        return row[0] if row else 0

    def merged(self, worktree: str) -> tuple[str, int] | None:
        """Return the commit that the latest merge of a work tree led to, and when, in microseconds since
        1970.
        """
        sql = "SELECT after, merged_at FROM state_merges WHERE worktree = ?"
        row = self._connection.execute(sql, (worktree,)).fetchone()
        return None if row is None else (row[0], row[1])

    def has_warned(self, subject: str) -> bool:
        """Say whether any agent was told of this."""
        return self.has_surfaced(ANYBODY, None, subject)

    def kept_from(self) -> Position:
        """Return the position of the oldest by which a hook, or a file, is known again; beyond any log
        where there is none.
        """
        return int(
            self._connection.execute(
                "SELECT min((SELECT coalesce(min(position), ?1) FROM state_deliveries), (SELECT"
                " coalesce(min(position), ?1) FROM state_surfaced_files))",
                (END,),
            ).fetchone()[0]
        )
