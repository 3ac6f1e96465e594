"""What a decision may rely on: small tables in the log's own file, written in the transaction of the append.

Each is a fold of the events, in `fold`, so that it says the same after any crash; views lag and never guard anything.
"""

import msgspec

from omegad.events.erasure import PayloadErased
from omegad.events.fact import Fact, Position
from omegad.events.memory import MemoryDeleted, MemoryEmbedded, MemoryRelated, MemoryStored, MemorySuperseded
from omegad.events.tool import ToolCalled
from omegad.storage.driver import Connection


class MemoryGuard(msgspec.Struct, frozen=True):
    """What the log knows of a memory. Positions are those of the events that stored and last changed it."""

    memory_id: str
    content_key: str
    stored_at: Position
    changed_at: Position
    state: str
    pending: bool


class ToolGuard(msgspec.Struct, frozen=True):
    """Where a tool call was recorded, and as which of its session's calls."""

    position: Position
    call_index: int


class Guards:
    """Reads the guard tables, including what earlier proposals of the same transaction wrote."""

    def __init__(self, connection: Connection) -> None:
        """Read through the connection whose transaction is open."""
        self._connection = connection

    def memory(self, memory_id: str) -> MemoryGuard | None:
        """Return what is known of a memory, None where the id was never stored."""
        return self._memory("SELECT memory_id, content_key, stored_at, changed_at, state, pending FROM memory_guards WHERE memory_id = ?", memory_id)

    def holder(self, content_key: str) -> MemoryGuard | None:
        """Return the active memory that has exactly this content in this scope."""
        return self._memory(
            "SELECT memory_id, content_key, stored_at, changed_at, state, pending FROM memory_guards"
            " WHERE content_key = ? AND state = 'active' ORDER BY stored_at LIMIT 1",
            content_key,
        )

    def is_embedded(self, memory_id: str, embedder_id: str) -> bool:
        """Say whether an embedding of the memory by this embedder was recorded."""
        sql = "SELECT 1 FROM embedding_guards WHERE memory_id = ? AND embedder_id = ?"
        return self._connection.execute(sql, (memory_id, embedder_id)).fetchone() is not None

    def tool_call(self, session_id: str, tool_use_id: str) -> ToolGuard | None:
        """Return where this tool use was recorded, if it was."""
        sql = "SELECT position, call_index FROM tool_guards WHERE session_id = ? AND tool_use_id = ?"
        row = self._connection.execute(sql, (session_id, tool_use_id)).fetchone()
        return ToolGuard(*row) if row else None

    def calls(self, session_id: str) -> int:
        """Return how many tool calls of the session are recorded."""
        row = self._connection.execute("SELECT calls FROM session_guards WHERE session_id = ?", (session_id,)).fetchone()
        return row[0] if row else 0

    def _memory(self, sql: str, key: str) -> MemoryGuard | None:
        row = self._connection.execute(sql, (key,)).fetchone()
        if row is None:
            return None
        memory_id, content_key, stored_at, changed_at, state, pending = row
        return MemoryGuard(memory_id, content_key, stored_at, changed_at, state, bool(pending))


def fold(connection: Connection, position: Position, session_id: str | None, event: Fact) -> None:
    """Write what *event* means for later decisions."""
    match event:
        case MemoryStored():
            row = (event.memory_id, event.content_key, position, position, "active", event.pending)
            connection.execute("INSERT INTO memory_guards VALUES (?, ?, ?, ?, ?, ?)", row)
        case MemoryEmbedded():
            connection.execute("INSERT OR IGNORE INTO embedding_guards VALUES (?, ?)", (event.memory_id, event.embedder_id))
            connection.execute("UPDATE memory_guards SET changed_at = ? WHERE memory_id = ?", (position, event.memory_id))
        case MemoryRelated():
            connection.execute("UPDATE memory_guards SET pending = 0 WHERE memory_id = ?", (event.memory_id,))
        case MemorySuperseded():
            _change_state(connection, event.memory_id, "superseded", position)
        case MemoryDeleted():
            _change_state(connection, event.memory_id, "deleted", position)
        case ToolCalled():
            _count_call(connection, position, session_id or "", event)
        case PayloadErased():
            connection.executemany("INSERT OR IGNORE INTO erasures VALUES (?)", [(erased,) for erased in event.positions])
        case _:
            pass


def _change_state(connection: Connection, memory_id: str, state: str, position: Position) -> None:
    connection.execute("UPDATE memory_guards SET state = ?, changed_at = ? WHERE memory_id = ?", (state, position, memory_id))


def _count_call(connection: Connection, position: Position, session_id: str, event: ToolCalled) -> None:
    sql = "INSERT INTO session_guards VALUES (?, ?) ON CONFLICT (session_id) DO UPDATE SET calls = excluded.calls"
    connection.execute(sql, (session_id, event.call_index))
    if event.tool_use_id is not None:
        connection.execute("INSERT INTO tool_guards VALUES (?, ?, ?, ?)", (session_id, event.tool_use_id, position, event.call_index))
