"""What a decision may rely on: small tables in the log's own file, written in the transaction of the append.

Each is a fold of the events, in `fold`, so that it says the same after any crash; views lag and never guard anything.
"""

from importlib import resources
from zlib import crc32

import msgspec

from omegad.events.memory import (
    MemoryContradicted,
    MemoryDeleted,
    MemoryEdited,
    MemoryEmbedded,
    MemoryEvolved,
    MemoryExpired,
    MemoryPromoted,
    MemoryRated,
    MemoryRelated,
    MemoryRepeated,
    MemoryRestored,
    MemoryStored,
    MemorySuperseded,
    MemoryUnlinked,
)
from omegad.events.tool import ToolCalled
from omegad.log import reading
from omegad.log.erasure import PayloadErased
from omegad.log.event import Event, Position, RecordedEvent
from omegad.storage.driver import Connection
from omegad.storage.transaction import run_script

FOLD = 1
"""Goes up whenever `fold` makes something else of an event; the tables are then made again from the log."""
REFOLD_BATCH = 5_000
MICROSECONDS = 1_000_000

_SAID = "expires_at = max(expires_at, ?1 + ttl_seconds * 1000000), said_at = max(said_at, ?1), denied_by = NULL"
_LASTING = "ttl_seconds = iif(?1, NULL, max(ttl_seconds, coalesce(?2, 0))), expires_at = iif(?1, NULL, expires_at)"
_TABLES = ("memory_guards", "embedding_guards", "tool_guards", "session_guards")
_COLUMNS = (
    "memory_id, content_key, stored_at, changed_at, state, pending, event_type, project, entity_id, session_id, denied_by,"
    " probation, rating, ttl_seconds, expires_at, said_at"
)


class MemoryState(msgspec.Struct, frozen=True):
    """What the log knows of a memory.

    Positions are those of the events that stored and last changed it; `rating` is the sum of the points it was given. `expires_at`, None
    for what is permanent, and `said_at`, when it was last stored, said again or edited, are in microseconds since 1970.
    """

    memory_id: str
    content_key: str
    stored_at: Position
    changed_at: Position
    state: str
    pending: bool
    event_type: str
    project: str | None
    entity_id: str | None
    session_id: str | None
    denied_by: str | None
    probation: bool
    rating: int
    ttl_seconds: int | None
    expires_at: int | None
    said_at: int

    def is_active(self, now_us: int) -> bool:
        """Say whether a search may find it at this moment, whether or not its expiry has been recorded."""
        return self.state == "active" and (self.expires_at is None or self.expires_at > now_us)


class ToolCallState(msgspec.Struct, frozen=True):
    """Where a tool call was recorded, and as which of its session's calls."""

    position: Position
    call_index: int


class DecisionState:
    """Reads the guard tables, including what earlier proposals of the same transaction wrote."""

    def __init__(self, connection: Connection) -> None:
        """Read through the connection whose transaction is open."""
        self._connection = connection

    def memory(self, memory_id: str) -> MemoryState | None:
        """Return what is known of a memory, None where the id was never stored."""
        return self._memory(f"SELECT {_COLUMNS} FROM memory_guards WHERE memory_id = ?", (memory_id,))

    def holder(self, content_key: str, now_us: int) -> MemoryState | None:
        """Return the memory that has exactly this content in this scope, and can be found at this moment."""
        return self._memory(
            f"SELECT {_COLUMNS} FROM memory_guards WHERE content_key = ? AND state = 'active' AND coalesce(expires_at > ?, 1)"
            " ORDER BY stored_at LIMIT 1",
            (content_key, now_us),
        )

    def is_embedded(self, memory_id: str, embedder_id: str) -> bool:
        """Say whether an embedding of the memory by this embedder was recorded."""
        sql = "SELECT 1 FROM embedding_guards WHERE memory_id = ? AND embedder_id = ?"
        return self._connection.execute(sql, (memory_id, embedder_id)).fetchone() is not None

    def tool_call(self, session_id: str, tool_use_id: str) -> ToolCallState | None:
        """Return where this tool use was recorded, if it was."""
        sql = "SELECT position, call_index FROM tool_guards WHERE session_id = ? AND tool_use_id = ?"
        row = self._connection.execute(sql, (session_id, tool_use_id)).fetchone()
        return ToolCallState(*row) if row else None

    def calls(self, session_id: str) -> int:
        """Return how many tool calls of the session are recorded."""
        row = self._connection.execute("SELECT calls FROM session_guards WHERE session_id = ?", (session_id,)).fetchone()
        return row[0] if row else 0

    def _memory(self, sql: str, values: tuple[object, ...]) -> MemoryState | None:
        row = self._connection.execute(sql, values).fetchone()
        if row is None:
            return None
        (memory_id, content_key, stored_at, changed_at, state, pending, *scope, probation, rating, ttl_seconds, expires_at, said_at) = row
        event_type, project, entity_id, session_id, denied_by = scope
        return MemoryState(
            *(memory_id, content_key, stored_at, changed_at, state, bool(pending), event_type, project, entity_id, session_id),
            *(denied_by, bool(probation), rating, ttl_seconds, expires_at, said_at),
        )


def are_of_today(connection: Connection) -> bool:
    """Say whether this version's fold filled the tables last: another version leaves out what it does not know, or shapes them otherwise."""
    marked: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return marked == _mark()


def make_again(connection: Connection) -> None:
    """Make the tables, and fill them from the whole log; within the caller's transaction."""
    drop(connection)
    create(connection)
    refold(connection)
    connection.execute(f"PRAGMA user_version={_mark()}")


def create(connection: Connection) -> None:
    """Make the tables that are not there yet."""
    run_script(connection, _schema())


def _schema() -> str:
    return resources.files("omegad.state").joinpath("schema.sql").read_text(encoding="utf-8")


def _mark() -> int:
    """Identify the fold and the shape of its tables, as 31 bits that are not 0, which a file has that nobody marked."""
    return crc32(f"{FOLD} {_schema()}".encode()) & 0x7FFF_FFFF or 1


def refold(connection: Connection) -> None:
    """Fill the tables, made anew and empty, from the whole log; within the caller's transaction."""
    after = 0
    while batch := reading.read(connection, after, REFOLD_BATCH):
        for recorded in batch:
            fold(connection, recorded)
        after = batch[-1].position


def drop(connection: Connection) -> None:
    """Remove the tables, whose shape may be that of another version."""
    for table in _TABLES:
        connection.execute(f"DROP TABLE IF EXISTS {table}")


def fold(connection: Connection, recorded: RecordedEvent) -> None:
    """Write what an event means for later decisions."""
    event = recorded.event
    match event:
        case ToolCalled():
            _count_call(connection, recorded.position, recorded.session_id or "", event)
        case PayloadErased():
            connection.executemany("INSERT OR IGNORE INTO erasures VALUES (?)", [(erased,) for erased in event.positions])
        case Event():
            _fold_memory(connection, recorded, event)
        case _:
            pass


def _fold_memory(connection: Connection, recorded: RecordedEvent, event: Event) -> None:
    position = recorded.position
    match event:
        case MemoryStored():
            _insert(connection, recorded, event)
        case MemoryEmbedded():
            connection.execute("INSERT OR IGNORE INTO embedding_guards VALUES (?, ?)", (event.memory_id, event.embedder_id))
            _set(connection, event.memory_id, "changed_at = ?", position)
        case MemoryRelated():
            _set(connection, event.memory_id, "pending = 0")
        case MemoryRepeated():
            _fold_lasting(connection, event)
            _set(connection, event.memory_id, _SAID, recorded.occurred_at)
        case MemoryEvolved() | MemoryEdited():
            if isinstance(event, MemoryEvolved):
                _fold_lasting(connection, event)
            said = (recorded.occurred_at, event.content_key, position)
            _set(connection, event.memory_id, f"{_SAID}, content_key = ?2, changed_at = ?3", *said)
            connection.execute("DELETE FROM embedding_guards WHERE memory_id = ?", (event.memory_id,))
        case MemoryContradicted():
            _set(connection, event.memory_id, "changed_at = ?, denied_by = ?", position, event.contradicted_by)
        case MemoryRated():
            _set(connection, event.memory_id, "rating = rating + ?", event.points)
        case MemoryPromoted():
            _set(connection, event.memory_id, "probation = 0")
        case _:
            _fold_state(connection, position, event)


def _fold_lasting(connection: Connection, event: MemoryRepeated | MemoryEvolved) -> None:
    if event.is_permanent or event.ttl_seconds is not None:
        _set(connection, event.memory_id, _LASTING, event.is_permanent, event.ttl_seconds)


def _fold_state(connection: Connection, position: Position, event: Event) -> None:
    match event:
        case MemorySuperseded():
            _set(connection, event.memory_id, "state = 'superseded', changed_at = ?", position)
        case MemoryDeleted():
            _set(connection, event.memory_id, "state = 'deleted', changed_at = ?", position)
        case MemoryExpired():
            _set(connection, event.memory_id, "state = 'expired', changed_at = ?", position)
        case MemoryUnlinked():
            if "contradicts" in event.edge_types:
                sql = "UPDATE memory_guards SET denied_by = NULL WHERE memory_id = ? AND denied_by = ?"
                connection.execute(sql, (event.target_id, event.memory_id))
        case MemoryRestored():
            kept = ", ttl_seconds = NULL, expires_at = NULL" if event.is_permanent else ""
            _set(connection, event.memory_id, f"state = 'active', changed_at = ?{kept}", position)
        case _:
            pass


def _insert(connection: Connection, recorded: RecordedEvent, event: MemoryStored) -> None:
    expires_at = None if event.ttl_seconds is None else recorded.occurred_at + event.ttl_seconds * MICROSECONDS
    row = (
        *(event.memory_id, event.content_key, recorded.position, recorded.position, "active", event.pending),
        *(event.event_type, recorded.project, event.entity_id, recorded.session_id),
        *(None, event.on_probation, 0, event.ttl_seconds, expires_at, recorded.occurred_at),
    )
    connection.execute("INSERT INTO memory_guards VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _set(connection: Connection, memory_id: str, assignments: str, *values: object) -> None:
    connection.execute(f"UPDATE memory_guards SET {assignments} WHERE memory_id = ?{len(values) + 1}", (*values, memory_id))


def _count_call(connection: Connection, position: Position, session_id: str, event: ToolCalled) -> None:
    sql = "INSERT INTO session_guards VALUES (?, ?) ON CONFLICT (session_id) DO UPDATE SET calls = excluded.calls"
    connection.execute(sql, (session_id, event.call_index))
    if event.tool_use_id is not None:
        connection.execute("INSERT INTO tool_guards VALUES (?, ?, ?, ?)", (session_id, event.tool_use_id, position, event.call_index))
