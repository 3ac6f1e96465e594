"""What decisions know of sharing: the team, what is chosen, who told how much, and, of each memory, who had
the last word.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from omegad.log.decision import Tables
from omegad.log.event import Position, RecordedEvent
from omegad.log.projection import Statement, to_json
from omegad.memory.events import (
    MemoryDeleted,
    MemoryEdited,
    MemoryErased,
    MemoryEvolved,
    MemoryLinked,
    MemoryRated,
    MemoryRepeated,
    MemoryRestored,
    MemorySuperseded,
    MemoryUnlinked,
)
from omegad.requests.method import Services
from omegad.sharing.events import (
    FactsReceived,
    FactsTold,
    ShareChosen,
    ShareJoined,
    ShareLeft,
    ShareRenewed,
    ShareWithdrawn,
)
from omegad.storage.driver import Connection

NAME = "sharing"
VERSION = 2
EVENTS = (
    ShareJoined,
    ShareLeft,
    ShareRenewed,
    ShareChosen,
    ShareWithdrawn,
    FactsTold,
    FactsReceived,
    MemoryEdited,
    MemoryEvolved,
    MemoryRepeated,
    MemoryRated,
    MemorySuperseded,
    MemoryDeleted,
    MemoryRestored,
    MemoryLinked,
    MemoryUnlinked,
    MemoryErased,
)
SCHEMA = """
CREATE TABLE state_share (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    team      TEXT NOT NULL,
    origin    TEXT NOT NULL,
    person    TEXT NOT NULL,
    machine   TEXT NOT NULL,
    seq       INTEGER NOT NULL, -- of the latest fact told
    told_to   INTEGER NOT NULL  -- the position up to which all is told
) STRICT;
CREATE TABLE state_share_choices (
    project      TEXT PRIMARY KEY,
    types        TEXT NOT NULL, -- JSON array, empty for all
    on_probation INTEGER NOT NULL,
    chosen_at    INTEGER NOT NULL -- position; what was stored before is told as it says then
) STRICT, WITHOUT ROWID;
CREATE TABLE state_share_origins (
    origin  TEXT PRIMARY KEY,
    person  TEXT NOT NULL,
    machine TEXT NOT NULL,
    seq     INTEGER NOT NULL -- of the latest fact received
) STRICT, WITHOUT ROWID;
CREATE TABLE state_shared (
    memory_id TEXT PRIMARY KEY,
    origin    TEXT              -- that told of it first, NULL for this home
) STRICT, WITHOUT ROWID;
CREATE TABLE state_share_erased (
    memory_id TEXT PRIMARY KEY -- of what was shared
) STRICT, WITHOUT ROWID;
CREATE TABLE state_share_left (
    team    TEXT PRIMARY KEY,
    told_to INTEGER NOT NULL -- as in state_share, when it was left
) STRICT, WITHOUT ROWID;
CREATE TABLE state_share_left_origins (
    team   TEXT NOT NULL,
    origin TEXT NOT NULL,
    seq    INTEGER NOT NULL, -- of its latest fact that was received, or told where it was this home's
    PRIMARY KEY (team, origin)
) STRICT, WITHOUT ROWID;
CREATE TABLE state_share_left_memories (
    memory_id TEXT NOT NULL, -- that was shared with it
    team      TEXT NOT NULL,
    PRIMARY KEY (memory_id, team)
) STRICT, WITHOUT ROWID;
CREATE TABLE state_registers (
    memory_id TEXT NOT NULL,
    register  TEXT NOT NULL,    -- wording, standing, an edge, or once and the id of an event that counts
    hlc       INTEGER NOT NULL, -- of the event that had the last word, with its id
    event_id  TEXT NOT NULL,
    PRIMARY KEY (memory_id, register)
) STRICT, WITHOUT ROWID;
"""
CANONICAL = (
    "SELECT * FROM state_share",
    "SELECT * FROM state_share_choices ORDER BY project",
    "SELECT * FROM state_share_origins ORDER BY origin",
    "SELECT * FROM state_shared ORDER BY memory_id",
    "SELECT * FROM state_share_erased ORDER BY memory_id",
    "SELECT * FROM state_share_left ORDER BY team",
    "SELECT * FROM state_share_left_origins ORDER BY team, origin",
    "SELECT * FROM state_share_left_memories ORDER BY memory_id, team",
    "SELECT * FROM state_registers ORDER BY memory_id, register",
)
ERASED_BY = (MemoryErased,)

WORDING, STANDING = "wording", "standing"
Stamped = tuple[int, str]
"""A hybrid logical time and the id of the event that has it: the later of two is the greater."""

NEVER_WRITTEN: Stamped = (0, "")

_WRITTEN = """
INSERT INTO state_registers VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET hlc = excluded.hlc, event_id = excluded.event_id
WHERE (excluded.hlc, excluded.event_id) > (hlc, event_id)
"""
_ORIGIN = """
INSERT INTO state_share_origins VALUES (?, ?, ?, 0)
ON CONFLICT DO UPDATE SET person = excluded.person, machine = excluded.machine
"""
_SHARED = "INSERT OR IGNORE INTO state_shared SELECT value ->> 0, value ->> 1 FROM json_each(?)"
_TOLD_BEFORE = "INSERT OR REPLACE INTO state_share_left_origins SELECT team, origin, seq FROM state_share"
_LOST = (
    # What the server has of this home comes back, and is known by these; what it lacks is told anew
    _TOLD_BEFORE,
    "INSERT OR IGNORE INTO state_share_left_memories SELECT memory_id, team FROM state_shared, state_share",
    "DELETE FROM state_shared WHERE origin IS NULL",
)
_LEAVE = (
    # A team that is joined again tells all there is once more; what it told before is known by these
    "INSERT OR REPLACE INTO state_share_left SELECT team, told_to FROM state_share",
    (
        "INSERT OR REPLACE INTO state_share_left_origins SELECT team, o.origin, o.seq"
        " FROM state_share_origins AS o, state_share"
    ),
    _TOLD_BEFORE,
    "INSERT OR IGNORE INTO state_share_left_memories SELECT memory_id, team FROM state_shared, state_share",
    "DELETE FROM state_share",
    "DELETE FROM state_share_choices",
    "DELETE FROM state_share_origins",
    "DELETE FROM state_shared",
)


def register(event: object) -> str | None:
    """Return which register of its memory an event writes, None for one that writes none."""
    match event:
        case MemoryEdited() | MemoryEvolved():
            return WORDING
        case MemoryRepeated(tags=tags):
            return WORDING if tags else None
        case MemorySuperseded() | MemoryDeleted() | MemoryRestored():
            return STANDING
        case MemoryLinked(target_id=target_id):
            return f"edge {target_id}"
        case MemoryUnlinked(target_id=target_id):
            return f"edge {target_id}"
        case _:
            return None


def once(event_id: str) -> str:
    """Return the register of what adds up, which is written once for each event."""
    return f"once {event_id}"


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryErased(memory_id=memory_id):
            yield Statement(
                "INSERT OR IGNORE INTO state_share_erased SELECT memory_id FROM state_shared"
                " WHERE memory_id = ?1 UNION SELECT memory_id FROM state_share_left_memories"
                " WHERE memory_id = ?1",
                (memory_id,),
            )
            yield Statement("DELETE FROM state_registers WHERE memory_id = ?", (memory_id,))
        case FactsReceived() as received:
            yield from _received(received)
        case FactsTold() as told:
            yield Statement("UPDATE state_share SET seq = ?, told_to = ?", (told.seq, told.told_to))
            if told.memories:
                yield Statement(_SHARED, (to_json([(one, None) for one in told.memories]),))
        case (ShareJoined() | ShareLeft() | ShareRenewed() | ShareChosen() | ShareWithdrawn()) as membership:
            yield from _membership(recorded.position, membership)
        case event:
            written = register(event) or once(recorded.event_id)
            if written:
                memory_id = str(getattr(event, "memory_id", ""))
                yield Statement(_WRITTEN, (memory_id, written, recorded.hlc, recorded.event_id))


def _membership(
    position: Position,
    event: ShareJoined | ShareLeft | ShareRenewed | ShareChosen | ShareWithdrawn,
) -> Iterator[Statement]:
    match event:
        case ShareJoined(team=team, origin=origin, person=person, machine=machine):
            yield Statement(
                "INSERT INTO state_share VALUES (1, ?1, ?2, ?3, ?4, 0,"
                " coalesce((SELECT told_to FROM state_share_left WHERE team = ?1), ?5))",
                (team, origin, person, machine, position),
            )
        case ShareLeft():
            yield from (Statement(sql) for sql in _LEAVE)
        case ShareRenewed(origin=origin, before=before, seq=seq, told_to=told_to, is_lost=is_lost):
            if is_lost:
                yield from (Statement(sql) for sql in _LOST)
            yield Statement(
                "INSERT OR REPLACE INTO state_share_origins SELECT ?, person, machine, ? FROM state_share",
                (before, seq),
            )
            yield Statement("UPDATE state_share SET origin = ?, seq = 0, told_to = ?", (origin, told_to))
        case ShareChosen(project=project_, types=types, on_probation=on_probation):
            yield Statement(
                "INSERT OR REPLACE INTO state_share_choices VALUES (?, ?, ?, ?)",
                (project_, to_json(types), on_probation, position),
            )
        case ShareWithdrawn(project=project_):
            yield Statement("DELETE FROM state_share_choices WHERE project = ?", (project_,))


def _received(received: FactsReceived) -> Iterator[Statement]:
    for one in received.origins:
        yield Statement(_ORIGIN, (one.origin, one.person, one.machine))
    stored = [(fact.stored, fact.origin) for fact in received.facts if fact.stored]
    if stored:
        yield Statement(_SHARED, (to_json(stored),))
    reached = {fact.origin: fact.seq for fact in received.facts}
    for origin, seq in reached.items():
        yield Statement("UPDATE state_share_origins SET seq = ? WHERE origin = ?", (seq, origin))


def new_origin(services: Services) -> str:
    """Return a name for this home that nobody has."""
    return f"home-{services.clock.random_bits(64):016x}"


class Team(msgspec.Struct, frozen=True):
    """The team that is shared with: as which origin, how many facts it was told, and up to where in the
    log.
    """

    team: str
    origin: str
    person: str
    machine: str
    seq: int
    told_to: Position


class Choice(msgspec.Struct, frozen=True):
    """What is shared of a project, and where in the log that was chosen; no types for every one that can
    be.
    """

    project: str
    types: tuple[str, ...]
    on_probation: bool
    chosen_at: Position


class Sharing(Tables):
    """What the log knows of sharing, whatever transaction is open."""

    def team(self) -> Team | None:
        """Return the team that is shared with, None where there is none."""
        row = self._connection.execute(
            "SELECT team, origin, person, machine, seq, told_to FROM state_share"
        ).fetchone()
        return Team(*row) if row else None

    def choices(self) -> dict[str, Choice]:
        """Return what is shared, by project."""
        rows = self._connection.execute("SELECT * FROM state_share_choices ORDER BY project")
        return {
            project: Choice(project, msgspec.json.decode(types, type=tuple[str, ...]), bool(probation), at)
            for project, types, probation, at in rows
        }

    def reached(self) -> dict[str, int]:
        """Return the latest fact received of each origin."""
        return dict(self._connection.execute("SELECT origin, seq FROM state_share_origins").fetchall())

    def origins(self) -> dict[str, tuple[str, str]]:
        """Return the person and the machine of each origin that was met."""
        rows = self._connection.execute("SELECT origin, person, machine FROM state_share_origins")
        return {origin: (person, machine) for origin, person, machine in rows}

    def is_ours(self, memory_id: str) -> bool:
        """Say whether a shared memory was told first by this home, or by another of the same person."""
        return self._has(
            "SELECT 1 FROM state_shared AS s LEFT JOIN state_share_origins AS o USING (origin)"
            " WHERE memory_id = ? AND (s.origin IS NULL OR o.person = (SELECT person FROM state_share))",
            memory_id,
        )

    def is_shared(self, memory_id: str) -> bool:
        """Say whether a memory was told or received."""
        return self._has("SELECT 1 FROM state_shared WHERE memory_id = ?", memory_id)

    def was_shared(self, memory_id: str) -> bool:
        """Say whether a memory was shared with the team of now before this home left it."""
        return self._has(
            "SELECT 1 FROM state_share_left_memories JOIN state_share USING (team) WHERE memory_id = ?",
            memory_id,
        )

    def was_left(self) -> bool:
        """Say whether memories were shared with the team of now before this home left it."""
        return self._has(
            "SELECT 1 FROM state_share_left JOIN state_share USING (team)"
            " JOIN state_share_left_memories USING (team) LIMIT 1"
        )

    def reached_before(self) -> dict[str, int]:
        """Return the latest fact of each origin that came in, or was told, before this home left the team of
        now.
        """
        rows = self._connection.execute(
            "SELECT l.origin, l.seq FROM state_share_left_origins AS l JOIN state_share USING (team)"
        )
        return dict(rows.fetchall())

    def is_erased(self, memory_id: str) -> bool:
        """Say whether a memory was shared and is erased."""
        return self._has("SELECT 1 FROM state_share_erased WHERE memory_id = ?", memory_id)

    def written(self, memory_id: str, register: str) -> Stamped:
        """Return who had the last word in a register; what is before everything where nobody had."""
        row = self._connection.execute(
            "SELECT hlc, event_id FROM state_registers WHERE memory_id = ? AND register = ?",
            (memory_id, register),
        ).fetchone()
        return (row[0], row[1]) if row else NEVER_WRITTEN


class Known(NamedTuple):
    """What the log knows of sharing at one moment."""

    team: Team | None
    choices: dict[str, Choice]
    reached: dict[str, int]
    origins: dict[str, tuple[str, str]]
    """The person and the machine of each."""


def known(connection: Connection) -> Known:
    """Return what the log knows of sharing."""
    sharing = Sharing(connection)
    return Known(sharing.team(), sharing.choices(), sharing.reached(), sharing.origins())


def was_left(connection: Connection) -> bool:
    """Say whether memories were shared with the team of now before this home left it."""
    return Sharing(connection).was_left()


def owned(connection: Connection, memory_ids: Iterable[str]) -> dict[str, bool]:
    """Return those that are shared, and whether each was told first by this person."""
    sharing = Sharing(connection)
    return {one: sharing.is_ours(one) for one in memory_ids if sharing.is_shared(one)}
