"""Every tool call of every session, in order."""

from collections.abc import Iterable

from omegad.log.aging import PayloadsAged
from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement, to_json
from omegad.runtime.times import rfc3339
from omegad.session.call_facts import facts
from omegad.session.events import ToolCallAged, ToolCalled

NAME = "audit"
VERSION = 6
EVENTS = (ToolCalled, ToolCallAged, PayloadsAged)
AGED_BY = (PayloadsAged,)

SUMMARY_CHARACTERS = 200

SCHEMA = """
CREATE TABLE coord_audit (
    id             INTEGER PRIMARY KEY, -- position of tool.called
    session_id     TEXT,
    call_index     INTEGER NOT NULL,
    tool_name      TEXT NOT NULL,
    status         TEXT NOT NULL,       -- ok, error or denied
    tool_use_id    TEXT,
    input_summary  TEXT,
    input_bytes    INTEGER,
    result_summary TEXT,
    result_bytes   INTEGER,
    duration_ms    REAL,
    project        TEXT,
    created_at     TEXT NOT NULL,
    file           TEXT,                -- that the input names
    given          TEXT NOT NULL,       -- JSON array: memories that the input names
    returned       TEXT NOT NULL,       -- JSON array: memories that the result names
    edited         TEXT NOT NULL,       -- JSON array: files that it was to change
    result_status  TEXT AS (status),    -- what others call them
    input_size     INTEGER AS (input_bytes)
) STRICT;

CREATE INDEX coord_audit_by_session ON coord_audit (session_id, call_index);
CREATE INDEX coord_audit_by_file ON coord_audit (file) WHERE edited != '[]';
"""
"""With its indexes: made at the end of a rebuild, they would be sorted in memory, 65 bytes for each call."""

# What happened, whichever table shows it, for people and agents who look after themselves. The casts give
# each column one type in all parts, without which SQLite sorts them all to find the latest.
SQL_VIEWS = """
DROP VIEW IF EXISTS audit_log;
CREATE VIEW audit_log AS
SELECT a.id, a.created_at, 'tool' AS kind, a.session_id, a.project, s.model, a.tool_name AS name, a.status,
       a.duration_ms, CAST(coalesce(a.result_summary, a.input_summary) AS TEXT) AS summary
FROM coord_audit AS a LEFT JOIN agent_sessions AS s USING (session_id)
UNION ALL
SELECT q.id, q.at, iif(q.took_us IS NULL, 'shown', 'query'), q.session_id, q.project, s.model, q.mode,
       CAST(CASE WHEN q.degraded IS NOT NULL THEN 'degraded' WHEN q.abstained THEN 'abstained' ELSE 'ok' END
            AS TEXT),
       CAST(q.took_us / 1000.0 AS REAL), q.text
FROM retrieval_queries AS q LEFT JOIN agent_sessions AS s USING (session_id)
UNION ALL
SELECT p.id, p.created_at, 'exchange', p.session_id, p.project, s.model, s.host,
       CAST(iif(r.id IS NULL, 'open', 'ok') AS TEXT),
       CAST(round((julianday(r.created_at) - julianday(p.created_at)) * 86400000) AS REAL),
       CAST(substr(p.content, 1, 200) AS TEXT)
FROM conversations AS p LEFT JOIN agent_sessions AS s USING (session_id)
LEFT JOIN conversations AS r ON r.id = (
    SELECT max(l.id) FROM conversations AS l
    WHERE l.session_id = p.session_id AND l.role = 'assistant' AND l.id > p.id AND l.id < coalesce(
        (SELECT min(n.id) FROM conversations AS n
         WHERE n.session_id = p.session_id AND n.role = 'user' AND n.id > p.id),
        l.id + 1
    )
)
WHERE p.role = 'user'
UNION ALL
SELECT started_position, started_at, 'session', session_id, project, model, source,
       CAST(iif(ended_at IS NULL, 'open', end_reason) AS TEXT),
       CAST(round((julianday(ended_at) - julianday(started_at)) * 86400000) AS REAL), folder
FROM agent_sessions
UNION ALL
SELECT k.id, k.created_at, 'skill', k.session_id, k.project, s.model, k.skill, k.status,
       CAST(NULL AS REAL), k.lesson
FROM skill_lessons AS k LEFT JOIN agent_sessions AS s USING (session_id);
"""

CANONICAL = (
    """SELECT id, session_id, call_index, tool_name, status, tool_use_id, input_summary, input_bytes,
    result_summary, result_bytes, duration_ms, project, created_at, file, given, returned, edited
    FROM coord_audit ORDER BY id""",
)
# Of version 5, which lacks the other names.
READABLE = frozenset({"192a499adbb5a53b"})

_INSERT = "INSERT INTO coord_audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_AGE = (
    "UPDATE coord_audit SET tool_use_id = NULL, input_summary = NULL, result_summary = NULL WHERE id > ? AND"
    " id <= ?"
)

_NONE = to_json(())


def project(recorded: RecordedEvent) -> Iterable[Statement]:
    match recorded.event:
        case ToolCalled() as call:
            file, edited, given, returned = facts(call)
            row = (
                recorded.position,
                recorded.session_id,
                call.call_index,
                call.tool_name,
                call.status,
                call.tool_use_id,
                *_summaries(call),
                call.duration_ms,
                recorded.project,
                rfc3339(recorded.occurred_at),
                file,
                to_json(given) if given else _NONE,
                to_json(returned) if returned else _NONE,
                to_json(edited) if edited else _NONE,
            )
            return (Statement(_INSERT, row),)  # no generator: of a log most events are calls
        case PayloadsAged(kind="tools", after=after, through=through):
            return (Statement(_AGE, (after, through)),)
        case _:
            return ()


def _summaries(call: ToolCalled) -> tuple[str | None, int | None, str | None, int | None]:
    if isinstance(call, ToolCallAged):
        return None, call.input_bytes, None, call.result_bytes
    given, result = call.tool_input, call.result
    return (
        None if given is None else given.head[:SUMMARY_CHARACTERS],
        None if given is None else given.bytes,
        None if result is None else result.head[:SUMMARY_CHARACTERS],
        None if result is None else result.bytes,
    )
