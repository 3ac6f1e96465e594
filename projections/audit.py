"""Every tool call of every session, in order."""

from collections.abc import Iterator

from omegad.events.tool import ToolCalled
from omegad.log.event import Excerpt, RecordedEvent
from omegad.projection import Statement
from omegad.times import rfc3339

NAME = "audit"
VERSION = 1
EVENTS = (ToolCalled,)

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
    created_at     TEXT NOT NULL
) STRICT;
"""
INDEXES = """
CREATE INDEX coord_audit_by_session ON coord_audit (session_id, call_index);
"""

CANONICAL = ("SELECT * FROM coord_audit ORDER BY id",)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case ToolCalled() as call:
            yield Statement(
                "INSERT INTO coord_audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    recorded.position,
                    recorded.session_id,
                    call.call_index,
                    call.tool_name,
                    call.status,
                    call.tool_use_id,
                    *_summary(call.tool_input),
                    *_summary(call.result),
                    call.duration_ms,
                    recorded.project,
                    rfc3339(recorded.occurred_at),
                ),
            )
        case _:
            pass


def _summary(part: Excerpt | None) -> tuple[str | None, int | None]:
    return (None, None) if part is None else (part.head[:SUMMARY_CHARACTERS], part.bytes)
