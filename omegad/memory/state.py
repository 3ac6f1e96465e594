"""What decisions know of each memory, and by which models it was embedded."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from omegad.index.active import is_active
from omegad.log.decision import DecisionState, Tables
from omegad.log.event import Position, RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, to_json
from omegad.memory.events import (
    ConflictOffered,
    ConflictSettled,
    MemoryContradicted,
    MemoryDeleted,
    MemoryDemoted,
    MemoryEdited,
    MemoryEmbedded,
    MemoryErased,
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
    Verdict,
)
from omegad.requests.command import Name
from omegad.requests.method import Services
from omegad.runtime.errors import NotFound, Refused
from omegad.storage.driver import Connection

MemoryId = Annotated[Name, Meta(description="the memory's id")]

NAME = "memories"
VERSION = 4
EVENTS = (
    MemoryStored,
    MemoryEmbedded,
    MemoryRelated,
    MemoryRepeated,
    MemoryEvolved,
    MemoryEdited,
    MemoryContradicted,
    MemoryUnlinked,
    MemoryRated,
    MemoryPromoted,
    MemorySuperseded,
    MemoryDeleted,
    MemoryDemoted,
    MemoryExpired,
    MemoryRestored,
    MemoryErased,
    ConflictOffered,
    ConflictSettled,
    ClockMended,
)
SCHEMA = """
CREATE TABLE state_memories (
    memory_id   TEXT PRIMARY KEY,
    content_key TEXT NOT NULL,
    stored_at   INTEGER NOT NULL, -- position of memory.stored
    changed_at  INTEGER NOT NULL, -- position of the latest event that changed how it is found
    state       TEXT NOT NULL CHECK (state IN ('active', 'superseded', 'deleted', 'expired')),
    pending     INTEGER NOT NULL, -- 1 until its relations are decided
    event_type  TEXT NOT NULL,
    project     TEXT,
    entity_id   TEXT,
    session_id  TEXT,
    denied_by   TEXT,             -- the memory that denied it last, since it was last said or restored
    probation   INTEGER NOT NULL, -- 1 until it is promoted
    rating      INTEGER NOT NULL, -- the sum of what it was given
    ttl_seconds INTEGER,
    expires_at  INTEGER,          -- microseconds since 1970, NULL where it is permanent
    said_at     INTEGER NOT NULL, -- microseconds since 1970, when it was last stored, said again or edited
    home        TEXT NOT NULL     -- the origin of memory.stored
) STRICT, WITHOUT ROWID;
CREATE INDEX state_memories_by_content ON state_memories (content_key);
CREATE TABLE state_embeddings (
    memory_id   TEXT NOT NULL,
    embedder_id TEXT NOT NULL,
    PRIMARY KEY (memory_id, embedder_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE state_conflicts (
    memory_id TEXT NOT NULL,
    target_id TEXT NOT NULL, -- the older one
    verdict   TEXT,          -- NULL until somebody says it
    PRIMARY KEY (memory_id, target_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX state_conflicts_by_target ON state_conflicts (target_id);
"""
CANONICAL = (
    "SELECT * FROM state_memories ORDER BY memory_id",
    "SELECT * FROM state_embeddings ORDER BY memory_id, embedder_id",
    "SELECT * FROM state_conflicts ORDER BY memory_id, target_id",
)
ERASED_BY = (MemoryErased,)
REPLACES = ("memory_guards", "embedding_guards")
"""The tables in which earlier versions kept this, to be removed."""

_INSERT = "INSERT INTO state_memories VALUES (?, ?, ?, ?, 'active', ?, ?, ?, ?, ?, NULL, ?, 0, ?, ?, ?, ?)"
_UNEMBEDDED = "DELETE FROM state_embeddings WHERE memory_id = ?"
_STATE = "UPDATE state_memories SET state = ?, changed_at = ? WHERE memory_id = ?"
_PROBATION = "UPDATE state_memories SET probation = ? WHERE memory_id = ?"
_SAID = """
UPDATE state_memories SET said_at = max(said_at, ?1), expires_at = max(expires_at,
  ?1 + ttl_seconds * 1000000), denied_by = NULL,
                          content_key = coalesce(?2, content_key), changed_at = coalesce(?3, changed_at)
                          WHERE memory_id = ?4
"""
_LASTING = """
UPDATE state_memories SET ttl_seconds = iif(?1, NULL, max(ttl_seconds, coalesce(?2, 0))), expires_at = iif(?1,
  NULL, expires_at)
WHERE memory_id = ?3
"""
_RESTORED = """
UPDATE state_memories SET state = 'active', changed_at = ?1, denied_by = NULL,
                          ttl_seconds = iif(?2, NULL, ttl_seconds), expires_at = iif(?2, NULL, expires_at)
                          WHERE memory_id = ?3
"""

_SET_RIGHT = """
UPDATE state_memories SET said_at = max(?1, said_at - ?2), expires_at = max(?1,
  said_at - ?2) + ttl_seconds * 1000000 WHERE said_at > ?3
"""

_CONFLICTS = """
SELECT target_id, coalesce(verdict, 'offered'), verdict IS NOT NULL FROM state_conflicts
WHERE memory_id = ?1 AND target_id IN (SELECT value FROM json_each(?2))
UNION ALL
SELECT memory_id, coalesce(verdict, 'offered'), verdict IS NOT NULL FROM state_conflicts
WHERE target_id = ?1 AND memory_id IN (SELECT value FROM json_each(?2)) ORDER BY 3
"""


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    position = recorded.position
    match recorded.event:
        case MemoryStored() as stored:
            yield _stored(recorded, stored)
        case MemoryEmbedded(memory_id=memory_id, embedder_id=embedder_id):
            yield Statement("INSERT OR IGNORE INTO state_embeddings VALUES (?, ?)", (memory_id, embedder_id))
            yield Statement(
                "UPDATE state_memories SET changed_at = ? WHERE memory_id = ?", (position, memory_id)
            )
        case MemoryRepeated() | MemoryEvolved() | MemoryEdited() as said:
            yield from _said(recorded, said)
        case MemorySuperseded(memory_id=memory_id):
            yield Statement(_STATE, ("superseded", position, memory_id))
        case MemoryDeleted(memory_id=memory_id):
            yield Statement(_STATE, ("deleted", position, memory_id))
        case MemoryExpired(memory_id=memory_id):
            yield Statement(_STATE, ("expired", position, memory_id))
        case MemoryErased(memory_id=memory_id):
            yield Statement("DELETE FROM state_memories WHERE memory_id = ?", (memory_id,))
            yield Statement(_UNEMBEDDED, (memory_id,))
            yield Statement(
                "DELETE FROM state_conflicts WHERE memory_id = ?1 OR target_id = ?1", (memory_id,)
            )
        case MemoryRestored(memory_id=memory_id, is_permanent=is_permanent):
            yield Statement(_RESTORED, (position, is_permanent, memory_id))
        case _:
            yield from _judged(recorded)


def _judged(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryRelated(memory_id=memory_id):
            yield Statement("UPDATE state_memories SET pending = 0 WHERE memory_id = ?", (memory_id,))
        case MemoryContradicted(memory_id=memory_id, contradicted_by=by):
            yield Statement(
                "UPDATE state_memories SET changed_at = ?, denied_by = ? WHERE memory_id = ?",
                (recorded.position, by, memory_id),
            )
        case MemoryUnlinked(memory_id=by, target_id=memory_id, edge_types=edge_types) if (
            "contradicts" in edge_types
        ):
            yield Statement(
                "UPDATE state_memories SET denied_by = NULL WHERE memory_id = ? AND denied_by = ?",
                (memory_id, by),
            )
        case ConflictOffered(memory_id=memory_id, target_id=target_id):
            yield Statement(
                "INSERT OR IGNORE INTO state_conflicts VALUES (?, ?, NULL)", (memory_id, target_id)
            )
        case ConflictSettled(memory_id=memory_id, target_id=target_id, verdict=verdict):
            yield Statement(
                "DELETE FROM state_conflicts WHERE memory_id = ? AND target_id = ?", (target_id, memory_id)
            )
            yield Statement(
                "INSERT OR REPLACE INTO state_conflicts VALUES (?, ?, ?)", (memory_id, target_id, verdict)
            )
        case MemoryRated(memory_id=memory_id, points=points):
            yield Statement(
                "UPDATE state_memories SET rating = rating + ? WHERE memory_id = ?", (points, memory_id)
            )
        case MemoryPromoted(memory_id=memory_id):
            yield Statement(_PROBATION, (0, memory_id))
        case MemoryDemoted(memory_id=memory_id):
            yield Statement(_PROBATION, (1, memory_id))
        case ClockMended() as mended:
            yield Statement(_SET_RIGHT, (mended.right_us, mended.ahead_us, mended.to_us))


def _said(
    recorded: RecordedEvent, said: MemoryRepeated | MemoryEvolved | MemoryEdited
) -> Iterator[Statement]:
    if not isinstance(said, MemoryEdited) and (said.is_permanent or said.ttl_seconds is not None):
        yield Statement(_LASTING, (said.is_permanent, said.ttl_seconds, said.memory_id))
    if isinstance(said, MemoryRepeated):
        yield Statement(_SAID, (recorded.occurred_at, None, None, said.memory_id))
    else:
        yield Statement(_SAID, (recorded.occurred_at, said.content_key, recorded.position, said.memory_id))
        yield Statement(_UNEMBEDDED, (said.memory_id,))


def _stored(recorded: RecordedEvent, stored: MemoryStored) -> Statement:
    said_at, position = recorded.occurred_at, recorded.position
    expires_at = None if stored.ttl_seconds is None else said_at + stored.ttl_seconds * 1_000_000
    known = (stored.memory_id, stored.content_key, position, position, stored.pending)
    scope = (stored.event_type, recorded.project, stored.entity_id, recorded.session_id)
    lasting = (stored.on_probation, stored.ttl_seconds, expires_at, said_at)
    return Statement(_INSERT, (*known, *scope, *lasting, recorded.origin))


class MemoryState(msgspec.Struct, frozen=True):
    """What the log knows of a memory.

    Positions are those of the events that stored and last changed it; `rating` is the sum of the points it
    was given. `expires_at`, None for what is permanent, and `said_at`, when it was last stored, said again or
    edited, are in microseconds since 1970. `home` is the origin that stored it.
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
    home: str

    def is_active(self, now_us: int) -> bool:
        """Say whether a search may find it at this moment, whether or not its expiry has been recorded."""
        return is_active(self.state, self.expires_at, now_us)


class Memories(Tables):
    """Reads the tables. A memory is read once."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._read: dict[str, MemoryState | None] = {}

    def get(self, memory_id: str) -> MemoryState | None:
        """Return what is known of a memory, None where the id was never stored."""
        if memory_id not in self._read:
            sql = "SELECT * FROM state_memories WHERE memory_id = ?"
            row = self._connection.execute(sql, (memory_id,)).fetchone()
            self._read[memory_id] = None if row is None else _state_of(row)
        return self._read[memory_id]

    def look_up(self, memory_ids: Sequence[str]) -> None:
        """Read memories that `get` will be asked for, all at once: ten of them in the time of three."""
        sql = "SELECT * FROM state_memories WHERE memory_id IN (SELECT value FROM json_each(?))"
        rows = self._connection.execute(sql, (to_json(memory_ids),))
        self._read |= dict.fromkeys(memory_ids) | {row[0]: _state_of(row) for row in rows}

    def is_elsewhere(self, memory: MemoryState) -> bool:
        """Say whether another home stored a memory, which then is for that one to put in order."""
        return self._has("SELECT 1 FROM identity WHERE origin <> ?", memory.home)

    def holder(self, content_key: str, now_us: int) -> MemoryState | None:
        """Return the memory that has exactly this content in this scope, and can be found at this moment."""
        sql = "SELECT * FROM state_memories WHERE content_key = ? ORDER BY stored_at"
        holders = map(_state_of, self._connection.execute(sql, (content_key,)))
        return next((one for one in holders if one.is_active(now_us)), None)

    def expired_since(self, position: Position) -> list[MemoryState]:
        """Return the memories whose expiry was recorded at a position or after it."""
        rows = self._connection.execute(
            "SELECT * FROM state_memories WHERE state = 'expired' AND changed_at >= ? ORDER BY stored_at",
            (position,),
        )
        return [_state_of(row) for row in rows]

    def conflicts(self, memory_id: str, others: Sequence[str]) -> dict[str, Verdict | Literal["offered"]]:
        """Return what somebody said that a memory and others are to each other, by the other, "offered" where
        nobody has answered that yet; those of which nobody was asked are left out.
        """
        rows = self._connection.execute(_CONFLICTS, (memory_id, to_json(others))) if others else ()
        return {other: said for other, said, _ in rows}

    def is_embedded(self, memory_id: str, embedder_id: str) -> bool:
        """Say whether an embedding of the memory by this embedder was recorded."""
        sql = "SELECT 1 FROM state_embeddings WHERE memory_id = ? AND embedder_id = ?"
        return self._has(sql, memory_id, embedder_id)


_BOOLEANS = tuple(map(MemoryState.__struct_fields__.index, ("pending", "probation")))


def _state_of(row: tuple[Any, ...]) -> MemoryState:
    known = list(row)
    for place in _BOOLEANS:
        known[place] = bool(known[place])
    return MemoryState(*known)


def known(state: DecisionState, memory_id: str) -> MemoryState:
    """Return what the log knows of a memory; raises `NotFound`."""
    memory = state[Memories].get(memory_id)
    if memory is None:
        raise NotFound(f"there is no memory {memory_id[:80]}")
    return memory


def findable(state: DecisionState, memory_id: str, now_us: int) -> MemoryState:
    """Return what the log knows of a memory that a search may find; raises `NotFound`, or `Refused` for
    one that is hidden.
    """
    memory = known(state, memory_id)
    if not memory.is_active(now_us):
        shown = "expired" if memory.state == "active" else memory.state
        raise Refused(f"memory {memory_id} is {shown}", hint="memory.restore brings it back")
    return memory


def new_id(services: Services) -> str:
    """Return an id for a memory that is yet to be stored."""
    return f"mem-{services.clock.random_bits(64):016x}"
