"""Agents' sessions, and what was said in them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import LiteralString

from omegad.log.aging import PayloadsAged
from omegad.log.event import Event, Excerpt, RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, set_right
from omegad.runtime.times import rfc3339
from omegad.session.events import (
    RESUMED,
    PromptSubmitted,
    SessionCompacted,
    SessionEnded,
    SessionStarted,
    SubagentEnded,
    ToolCallAged,
    ToolCalled,
    TurnEnded,
)

NAME = "conversations"
VERSION = 6
EVENTS = (
    SessionStarted,
    PromptSubmitted,
    TurnEnded,
    SubagentEnded,
    SessionCompacted,
    SessionEnded,
    ToolCalled,
    ToolCallAged,
    PayloadsAged,
    ClockMended,
)
AGED_BY = (PayloadsAged,)

SCHEMA = """
CREATE TABLE agent_sessions (
    session_id       TEXT PRIMARY KEY,
    host             TEXT NOT NULL,
    project          TEXT,
    folder           TEXT,
    source           TEXT,             -- how it began last: startup, resume, compact, …
    model            TEXT,
    started_position INTEGER NOT NULL, -- of the event that it began with last
    context_at       TEXT NOT NULL,    -- since when its context holds what it is told, empty for always
    started_at       TEXT NOT NULL,
    last_us          INTEGER NOT NULL, -- when it was heard of last, microseconds since 1970
    prompts          INTEGER NOT NULL DEFAULT 0,
    turns            INTEGER NOT NULL DEFAULT 0,
    tool_calls       INTEGER NOT NULL DEFAULT 0,
    compactions      INTEGER NOT NULL DEFAULT 0,
    ended_at         TEXT,             -- NULL while it is open
    end_reason       TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations (
    id         INTEGER PRIMARY KEY, -- position of the event
    session_id TEXT NOT NULL,
    role       TEXT NOT NULL,       -- user, assistant, or subagent, which works for the assistant
    content    TEXT NOT NULL,       -- its beginning, and its end where it is long
    bytes      INTEGER NOT NULL,    -- of the whole
    project    TEXT,
    created_at TEXT NOT NULL
) STRICT;
"""
INDEXES = """
CREATE INDEX conversations_by_session ON conversations (session_id, id);
CREATE INDEX agent_sessions_open ON agent_sessions (last_us) WHERE ended_at IS NULL;
"""

CANONICAL = ("SELECT * FROM agent_sessions ORDER BY session_id", "SELECT * FROM conversations ORDER BY id")

_SEEN = """
INSERT INTO agent_sessions
  (session_id, host, project, started_position, context_at, started_at, last_us, tool_calls)
  VALUES (?1, ?2, ?3, ?4, '', ?5, ?6, ?7)
ON CONFLICT DO UPDATE SET last_us = max(last_us, excluded.last_us),
  project = coalesce(excluded.project, project), ended_at = NULL, end_reason = NULL,
  tool_calls = tool_calls + excluded.tool_calls
"""
_STARTED = (
    "UPDATE agent_sessions SET host = ?1, folder = ?2, source = ?3, model = coalesce(?4, model),"
    f" started_position = ?5, context_at = iif(?3 IS '{RESUMED}', context_at, max(context_at, ?6))"
    " WHERE session_id = ?7"
)
_COUNTED: dict[type[Event], LiteralString] = {
    PromptSubmitted: "UPDATE agent_sessions SET prompts = prompts + 1 WHERE session_id = ?",
    TurnEnded: "UPDATE agent_sessions SET turns = turns + 1 WHERE session_id = ?",
}
_COMPACTED = (
    "UPDATE agent_sessions SET compactions = compactions + 1, context_at = max(context_at, ?)"
    " WHERE session_id = ?"
)
_SPEAKERS: dict[type[Event], str] = {
    PromptSubmitted: "user",
    TurnEnded: "assistant",
    SubagentEnded: "subagent",
}
UNSAID = "unknown"
"""The host of a session that only tool calls tell of, where their client has no name."""


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    session_id = recorded.session_id or ""
    match recorded.event:
        case ToolCalled() if session_id:  # first, as most are
            yield _called((recorded,))
        case SessionStarted() as started:
            yield _seen(recorded, started.host)
            how = started.host, started.folder, started.source, started.model
            at = rfc3339(recorded.occurred_at)
            yield Statement(_STARTED, (*how, recorded.position, at, session_id))
        case (
            PromptSubmitted(host=host, prompt=said)
            | TurnEnded(host=host, message=said)
            | SubagentEnded(host=host, message=said)
        ) as told:
            yield _seen(recorded, host)
            if not isinstance(told, SubagentEnded):
                yield Statement(_COUNTED[type(told)], (session_id,))
            if said is not None:
                yield _said(recorded, _SPEAKERS[type(told)], said)
        case SessionCompacted(host=host):
            yield _seen(recorded, host)
            yield Statement(_COMPACTED, (rfc3339(recorded.occurred_at), session_id))
        case SessionEnded(reason=reason):
            yield Statement(
                "UPDATE agent_sessions SET ended_at = ?, end_reason = ? WHERE session_id = ?",
                (rfc3339(recorded.occurred_at), reason, session_id),
            )
        case PayloadsAged(kind="prompts", after=after, through=through):
            yield Statement(
                "UPDATE conversations SET content = '' WHERE id > ? AND id <= ?", (after, through)
            )
        case ClockMended(to_us=to_us) as mended:
            yield from set_right(mended, "agent_sessions", "last_us")
            yield Statement(
                "UPDATE agent_sessions SET context_at = ?1 WHERE context_at > ?1", (rfc3339(to_us),)
            )


def project_together(events: Iterable[RecordedEvent]) -> Iterator[Statement]:
    """Project events; the calls between two others, which are most of a log, in one statement a session."""
    calls: dict[str, list[RecordedEvent]] = {}
    for recorded in events:
        if not isinstance(recorded.event, ToolCalled):
            yield from map(_called, calls.values())
            calls.clear()
            yield from project(recorded)
        elif session_id := recorded.session_id:
            calls.setdefault(session_id, []).append(recorded)
    yield from map(_called, calls.values())


def _called(calls: Sequence[RecordedEvent]) -> Statement:
    return _seen(calls[0], calls[0].client or UNSAID, calls)


def _seen(recorded: RecordedEvent, host: str, calls: Sequence[RecordedEvent] = ()) -> Statement:
    """Say that a session goes on with an event, or with *calls*, of which it is the first."""
    heard = calls or (recorded,)
    values = (
        recorded.session_id or "",
        host,
        next((one.project for one in reversed(heard) if one.project is not None), None),
        recorded.position,
        rfc3339(recorded.occurred_at),
        max(one.recorded_at for one in heard),
        len(calls),
    )
    return Statement(_SEEN, values)


def _said(recorded: RecordedEvent, role: str, said: Excerpt) -> Statement:
    content = f"{said.head}\n[…]\n{said.tail}" if said.tail else said.head
    values = (
        recorded.position,
        recorded.session_id or "",
        role,
        content,
        said.bytes,
        recorded.project,
        rfc3339(recorded.occurred_at),
    )
    return Statement("INSERT INTO conversations VALUES (?, ?, ?, ?, ?, ?, ?)", values)
