"""What decisions know of tool calls: which uses are recorded, and how many calls each session has made."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from omegad.log.aging import PayloadsAged
from omegad.log.decision import Following, Tables
from omegad.log.event import END, Position, RecordedEvent
from omegad.log.projection import Statement, to_json
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
_ANY = f"INSERT INTO state_tool_calls VALUES (?, ?, ?, ?) {_SET}"
_GET = """
SELECT tool_use_id, position, call_index FROM state_tool_calls WHERE session_id = ? AND tool_use_id IN ('', ?)
"""
_GET_ALL = """
SELECT session_id, tool_use_id, position, call_index FROM json_each(?) AS asked CROSS JOIN state_tool_calls
ON session_id = asked.value ->> 0 AND tool_use_id IN ('', asked.value ->> 1)
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


def project_together(events: Iterable[RecordedEvent]) -> Iterator[Statement]:
    """Project events; calls by statements that insert many rows at once."""
    for recorded in events:
        if isinstance(call := recorded.event, ToolCalled):
            for use in ("", call.tool_use_id) if call.tool_use_id else ("",):
                values = (recorded.session_id or "", use, recorded.position, call.call_index)
                yield Statement(_ANY, values)
        else:
            yield from project(recorded)


class ToolCallState(msgspec.Struct, frozen=True):
    """Where a tool call was recorded, and as which of its session's calls."""

    position: Position
    call_index: int


class ToolCalls(Following):
    """Reads the tables. A row is read once, and a session's latest call along with whichever is asked for."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._known: dict[tuple[str, str], ToolCallState | None] = {}

    def foresee(self, keys: Sequence[tuple[str, ...]]) -> None:
        """Read tool uses, each by its session and its id."""
        rows = self._connection.execute(_GET_ALL, (to_json(keys),)).fetchall()
        self._known = {(session_id, use): None for session_id, asked in keys for use in ("", asked)}
        self._known |= {(row[0], row[1]): ToolCallState(row[2], row[3]) for row in rows}

    def show(self, recorded: RecordedEvent) -> bool:
        """Take note of a call."""
        match recorded.event:
            case ToolCalled(tool_use_id=tool_use_id, call_index=call_index):
                call = ToolCallState(recorded.position, call_index)
                session_id = recorded.session_id or ""
                self._known[session_id, ""] = self._known[session_id, tool_use_id or ""] = call
                return True
            case DeliveriesExpired() | PayloadsAged():
                return False
            case _:
                return True

    def get(self, session_id: str, tool_use_id: str) -> ToolCallState | None:
        """Return where this tool use was recorded, if it was."""
        if (session_id, tool_use_id) not in self._known:
            rows = self._connection.execute(_GET, (session_id, tool_use_id)).fetchall()
            found = {row[0]: ToolCallState(*row[1:]) for row in rows}
            for use in ("", tool_use_id):  # what is known already may not be in the table yet
                self._known.setdefault((session_id, use), found.get(use))
        return self._known[session_id, tool_use_id]

    def count(self, session_id: str) -> int:
        """Return how many tool calls of the session are recorded."""
        latest = self.get(session_id, "")
        return latest.call_index if latest else 0


class KnownUses(Tables):
    """Reads of the tables what nobody follows."""

    def kept_from(self) -> Position:
        """Return the position of the oldest call that is known again; beyond any log where there is none."""
        sql = "SELECT coalesce(min(position), ?) FROM state_tool_calls WHERE tool_use_id != ''"
        return int(self._connection.execute(sql, (END,)).fetchone()[0])
