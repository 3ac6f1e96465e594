"""What decisions know of tool calls: which uses are recorded, and how many calls each session has made."""

from collections.abc import Iterator

import msgspec

from omegad.events.tool import ToolCalled
from omegad.log.event import Position, RecordedEvent
from omegad.projection import Statement
from omegad.storage.driver import Connection

NAME = "tool_calls"
VERSION = 1
EVENTS = (ToolCalled,)
SCHEMA = """
CREATE TABLE state_tool_calls (
    session_id  TEXT NOT NULL,
    tool_use_id TEXT NOT NULL,
    position    INTEGER NOT NULL,
    call_index  INTEGER NOT NULL,
    PRIMARY KEY (session_id, tool_use_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE state_sessions (
    session_id TEXT PRIMARY KEY,
    calls      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""
CANONICAL = ("SELECT * FROM state_tool_calls ORDER BY session_id, tool_use_id", "SELECT * FROM state_sessions ORDER BY session_id")
REPLACES = ("tool_guards", "session_guards")
"""The tables in which earlier versions kept this, to be removed."""

_CALL = "INSERT INTO state_tool_calls VALUES (?, ?, ?, ?)"
_SESSION = "INSERT INTO state_sessions VALUES (?, ?) ON CONFLICT (session_id) DO UPDATE SET calls = excluded.calls"


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case ToolCalled(tool_use_id=tool_use_id, call_index=call_index):
            session_id = recorded.session_id or ""
            yield Statement(_SESSION, (session_id, call_index))
            if tool_use_id is not None:
                yield Statement(_CALL, (session_id, tool_use_id, recorded.position, call_index))
        case _:
            pass


class ToolCallState(msgspec.Struct, frozen=True):
    """Where a tool call was recorded, and as which of its session's calls."""

    position: Position
    call_index: int


class ToolCalls:
    """Reads the tables."""

    def __init__(self, connection: Connection) -> None:
        """Read through *connection*, whatever transaction is open there."""
        self._connection = connection

    def get(self, session_id: str, tool_use_id: str) -> ToolCallState | None:
        """Return where this tool use was recorded, if it was."""
        sql = "SELECT position, call_index FROM state_tool_calls WHERE session_id = ? AND tool_use_id = ?"
        row = self._connection.execute(sql, (session_id, tool_use_id)).fetchone()
        return ToolCallState(*row) if row else None

    def count(self, session_id: str) -> int:
        """Return how many tool calls of the session are recorded."""
        row = self._connection.execute("SELECT calls FROM state_sessions WHERE session_id = ?", (session_id,)).fetchone()
        return int(row[0]) if row else 0
