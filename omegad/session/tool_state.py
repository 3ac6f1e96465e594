"""What decisions know of tool calls: which uses are recorded, and how many calls each session has made."""

from collections.abc import Iterator

import msgspec

from omegad.log.aging import PayloadsAged
from omegad.log.decision import Tables
from omegad.log.event import END, Position, RecordedEvent
from omegad.log.projection import Statement
from omegad.session.events import DeliveriesExpired, ToolCallAged, ToolCalled
from omegad.storage.driver import Connection

NAME = "tool_calls"
VERSION = 2
EVENTS = (ToolCalled, ToolCallAged, DeliveriesExpired, PayloadsAged)
SCHEMA = """
CREATE TABLE state_tool_calls (
    session_id  TEXT NOT NULL,
    tool_use_id TEXT NOT NULL, -- '' in a row of its own for the session's latest call
    position    INTEGER NOT NULL,
    call_index  INTEGER NOT NULL,
    PRIMARY KEY (session_id, tool_use_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX state_tool_calls_by_position ON state_tool_calls (position) WHERE tool_use_id != '';
"""
CANONICAL = ("SELECT * FROM state_tool_calls ORDER BY session_id, tool_use_id",)
REPLACES = ("tool_guards", "session_guards")
"""The tables in which earlier versions kept this, to be removed."""

# A call_index that must not be NULL refuses a use that is there.
_SET = """
ON CONFLICT (session_id, tool_use_id) DO UPDATE
  SET (position, call_index) = (excluded.position, iif(excluded.tool_use_id = '', excluded.call_index, NULL))
"""
_LATEST = f"INSERT INTO state_tool_calls VALUES (?1, '', ?2, ?3) {_SET}"
_LATEST_AND_USE = f"INSERT INTO state_tool_calls VALUES (?1, '', ?2, ?3), (?1, ?4, ?2, ?3) {_SET}"
_GET = """
SELECT tool_use_id, position, call_index FROM state_tool_calls WHERE session_id = ? AND tool_use_id IN ('', ?)
"""
_FORGET = "DELETE FROM state_tool_calls WHERE position < ? AND tool_use_id != ''"


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case ToolCalled(tool_use_id=tool_use_id, call_index=call_index):
            latest = recorded.session_id or "", recorded.position, call_index
            if tool_use_id:
                yield Statement(_LATEST_AND_USE, (*latest, tool_use_id))
            else:
                yield Statement(_LATEST, latest)
        case DeliveriesExpired(before=before):
            yield Statement(_FORGET, (before,))
        case PayloadsAged(through=through):
            yield Statement(_FORGET, (through + 1,))


class ToolCallState(msgspec.Struct, frozen=True):
    """Where a tool call was recorded, and as which of its session's calls."""

    position: Position
    call_index: int


class ToolCalls(Tables):
    """Reads the tables. A row is read once, and a session's latest call along with whichever is asked for."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._known: dict[tuple[str, str], ToolCallState | None] = {}

    def get(self, session_id: str, tool_use_id: str) -> ToolCallState | None:
        """Return where this tool use was recorded, if it was."""
        if (session_id, tool_use_id) not in self._known:
            rows = self._connection.execute(_GET, (session_id, tool_use_id)).fetchall()
            self._known |= {(session_id, ""): None, (session_id, tool_use_id): None}
            self._known |= {(session_id, row[0]): ToolCallState(*row[1:]) for row in rows}
        return self._known[session_id, tool_use_id]

    def count(self, session_id: str) -> int:
        """Return how many tool calls of the session are recorded."""
        latest = self.get(session_id, "")
        return latest.call_index if latest else 0

    def kept_from(self) -> Position:
        """Return the position of the oldest call that is known again; beyond any log where there is none."""
        sql = "SELECT coalesce(min(position), ?) FROM state_tool_calls WHERE tool_use_id != ''"
        return int(self._connection.execute(sql, (END,)).fetchone()[0])
