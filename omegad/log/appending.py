"""What writes the log, on the writer's thread: it makes the tables, and in one transaction after the other
decides proposals, numbers, chains and writes events, and folds decision state.

The head moves only when the transaction has committed.
"""

import os
import secrets
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import msgspec

from omegad.log import aging, chain, erasure, mending, requests
from omegad.log.codec import tag_of
from omegad.log.decision import Decision, DecisionState, Outcome, Proposal
from omegad.log.erasure import PayloadErased
from omegad.log.event import NewEvent, Position, RecordedEvent, Stamp
from omegad.log.inline import Inline, Vocabulary
from omegad.log.mending import ClockMended
from omegad.log.reading import FORMAT, check_format
from omegad.log.requests import Requests, answered
from omegad.runtime.clock import Clock, next_hlc, uuid7
from omegad.runtime.errors import Invalid, LogReplaced, OmegadError
from omegad.runtime.precedence import bulk_gives_way
from omegad.storage.driver import Connection
from omegad.storage.rows import run_rows
from omegad.storage.transaction import run_script, writing

Identity = tuple[int, int]

PAYLOAD_BYTES_MAX = 1024 * 1024

_INSERT_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_PAYLOAD = "INSERT INTO payloads VALUES (?, ?, ?)"
_INSERT_ERASURE = "INSERT OR IGNORE INTO erasures VALUES (?)"
_MOVE_CURSOR = "INSERT OR REPLACE INTO cursors (name, position, version) VALUES (?, ?, ?)"


class Head(msgspec.Struct, frozen=True):
    """The end of the log, from which the next event continues."""

    position: Position
    chain: bytes
    recorded_at: int
    hlc: int


class Committed(msgspec.Struct, frozen=True):
    """What one transaction came to: an outcome or error for each proposal, and the events it added."""

    outcomes: list[Outcome | Exception]
    events: list[tuple[RecordedEvent, int]]
    """Each with the size of its payload, in bytes as stored."""
    head: Head
    is_state_stale: bool = False
    """Whether the inline projections have to be made anew, since they show what was erased."""


def load_head(connection: Connection) -> Head:
    """Read where the log ends."""
    row = connection.execute(
        "SELECT position, chain, recorded_at, hlc FROM events ORDER BY position DESC LIMIT 1"
    ).fetchone()
    return Head(*row) if row else Head(0, chain.GENESIS, 0, 0)


def create(connection: Connection, clock: Clock, inline: Inline) -> tuple[str, Position | None]:
    """Make the tables that are not there yet; return the installation's name, and where `Inline.prepare`
    says that catching up begins.
    """
    schema = resources.files("omegad.log").joinpath("schema.sql").read_text(encoding="utf-8")
    requests.lay_out_anew(connection, schema)
    with writing(connection):
        run_script(connection, schema)
        connection.execute(
            "INSERT OR IGNORE INTO identity VALUES (1, ?, ?)", (uuid7(clock).replace("-", ""), FORMAT)
        )
        check_format(connection)
        connection.execute("UPDATE identity SET format = ?1 WHERE format < ?1", (FORMAT,))
        requests.forget_unkeyed(connection)
        origin: str = connection.execute("SELECT origin FROM identity").fetchone()[0]
        return origin, inline.prepare(connection)


class InPlace:
    """What the log at *path* and its write-ahead log are known by, from `load_head` on."""

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path)
        self._wal = os.path.realpath(path) + "-wal"
        self._known: tuple[Identity | None, Identity | None] | None = None

    def load_head(self, connection: Connection) -> Head:
        """Read where the log ends, and take the files that it is read from for those in use."""
        head = load_head(connection)
        self._known = self._found()
        return head

    def bytes(self) -> int:
        """How large the log is, without its write-ahead log; 0 where it is gone."""
        found = Path(self._path)
        return found.stat().st_size if found.exists() else 0

    def check(self) -> None:
        """Raise `LogReplaced` where other files, or none, have the names."""
        if trouble := self.trouble():
            raise LogReplaced(trouble)

    def trouble(self) -> str | None:
        """Say what is wrong, None where nothing is."""
        if self._known is None or self._known == self._found():
            return None
        return f"{self._path} or its write-ahead log was moved, replaced or removed while it was in use"

    def _found(self) -> tuple[Identity | None, Identity | None]:
        return _identity(self._path), _identity(self._wal)


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116  twice for each commit, and the faster of the two
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Appender:
    """Decides and appends, for the installation *origin*, whose name every event is recorded with."""

    def __init__(self, vocabulary: Vocabulary, origin: str, clock: Clock) -> None:
        self.vocabulary = vocabulary
        self.origin = origin
        self.clock = clock
        self.requests = Requests(clock)

    def commit(self, connection: Connection, proposals: Sequence[Proposal], head: Head) -> Committed:
        """Decide and append *proposals* in one transaction, each after the ones before it, the first after
        *head*, where the log ends.

        One whose decision fails writes nothing and leaves the others alone; a failure of the storage undoes
        all and is raised.
        """
        with writing(connection):
            append = _Append(self, connection, head)
            outcomes = [append.settle(proposal) for proposal in proposals]
            append.write_rows()
        return Committed(outcomes, append.events, append.head, is_state_stale=append.is_state_stale)


class _Append:
    """The state of one open transaction."""

    def __init__(self, appender: Appender, connection: Connection, head: Head) -> None:
        self._connection = connection
        self._appender = appender
        self._vocabulary = appender.vocabulary
        self._tz_offset = appender.clock.tz_offset_minutes()
        self._rows: list[tuple[object, ...]] = []
        self._payloads: list[tuple[object, ...]] = []
        self.head = head
        self.events: list[tuple[RecordedEvent, int]] = []
        self.is_state_stale = False

    def settle(self, proposal: Proposal) -> Outcome | Exception:
        outcome = self._decided(proposal)
        if proposal.cursor and isinstance(outcome, Outcome):
            self._connection.execute(_MOVE_CURSOR, msgspec.structs.astuple(proposal.cursor))
        return outcome

    def _decided(self, proposal: Proposal) -> Outcome | Exception:
        try:
            if proposal.request and (first := answered(self._connection, proposal.request)):
                return first
            now_us = self._appender.clock.now_us()
            decision = proposal.decide(self._state(), now_us)
            bodies = [self._encoded(number, new) for number, new in enumerate(decision.events)]
            if decision.erasure:
                erasure.check_seen(
                    self._connection, decision.erasure, (str(body) for _, _, body in self._payloads)
                )
        except OmegadError as refusal:
            return refusal.with_traceback(None)  # or whoever is refused keeps all that is in the transaction
        # A mistake in one decision is told to its own caller and spoils no other
        except Exception as mistake:  # noqa: BLE001
            return mistake
        return self._write(proposal, decision, bodies, now_us)

    def write_rows(self) -> None:
        """Write the events of all proposals; nothing within the transaction reads them, so that they can
        be written together.
        """
        run_rows(self._connection, _INSERT_EVENT, self._rows)
        run_rows(self._connection, _INSERT_PAYLOAD, self._payloads)

    def _state(self) -> object:
        """Return what a decision is made on: anew for each, since it may remember what it has read, and the
        one before has written.
        """
        state = self._vocabulary.state(self._connection)
        if isinstance(state, DecisionState):
            state.head = self.head.position
        return state

    def _write(
        self, proposal: Proposal, decision: Decision, bodies: list[tuple[NewEvent, bytes]], now_us: int
    ) -> Outcome:
        first = self.head.position + 1
        recorded = list[RecordedEvent]()
        for number, (new, body) in enumerate(bodies):
            bulk_gives_way(number)
            recorded.append(self._add(proposal, new, body, now_us))
        if recorded:
            self._vocabulary.inline.fold(self._connection, *recorded)
        if erased := decision.erasure:
            # What remains stands in place of payloads, and what that says in place of what the inline
            # projections show.
            erasure.replace(self._connection, erased.remnants)
            erasure.clean_answers(self._connection, erased)
            erasure.clean_set_aside(self._connection, erased)
            if erased.has_names or not self._vocabulary.inline.patch(self._connection, erased.remnants):
                self.is_state_stale = True
        aging.replace(self._connection, decision.aged)
        answer = decision.answer
        if bodies and getattr(answer, "position", None) == 0:
            answer = msgspec.structs.replace(answer, position=self.head.position)
        outcome = Outcome(
            answer=answer,
            position=self.head.position if bodies else getattr(answer, "position", decision.position),
        )
        if proposal.request:
            self._appender.requests.remember(self._connection, proposal.request, first, outcome)
        return outcome

    def _add(self, proposal: Proposal, new: NewEvent, body: bytes, now_us: int) -> RecordedEvent:
        position = self.head.position + 1
        # The order of the log stands when the clock is set back; what happened, and how long it holds, goes
        # by the clock as it is.
        recorded_at = now_us if isinstance(new.event, ClockMended) else max(now_us, self.head.recorded_at)
        salt = secrets.token_bytes(chain.SALT_BYTES)
        occurred_at = now_us if new.occurred_at is None else new.occurred_at
        stamp = new.foreign or self._here(proposal, now_us)
        cause = self.head.position if new.follows else (new.cause or proposal.cause)
        envelope = (
            *(
                position,
                stamp.event_id,
                tag_of(type(new.event)),
                recorded_at,
                occurred_at,
                stamp.tz_offset,
                stamp.origin,
                stamp.hlc,
            ),
            *(
                new.session_id,
                new.project,
                stamp.client,
                cause,
                proposal.trace,
                chain.payload_hash(salt, body),
            ),
        )
        link = chain.link(self.head.chain, envelope)
        self._rows.append((*envelope, link))
        self._payloads.append((position, salt, body.decode()))
        recorded = RecordedEvent(*envelope[:13], chain=link, event=new.event)
        if isinstance(new.event, PayloadErased):
            self._connection.executemany(_INSERT_ERASURE, [(erased,) for erased in new.event.positions])
        if isinstance(new.event, ClockMended):
            mending.note(self._connection, position, new.event)
        self.head = Head(position, link, recorded_at, max(self.head.hlc, stamp.hlc))
        self.events.append((recorded, len(body)))
        return recorded

    def _here(self, proposal: Proposal, now_us: int) -> Stamp:
        return Stamp(
            origin=self._appender.origin,
            event_id=uuid7(self._appender.clock),
            hlc=next_hlc(self.head.hlc, now_us),
            tz_offset=self._tz_offset,
            client=proposal.client,
        )

    def _encoded(self, number: int, new: NewEvent) -> tuple[NewEvent, bytes]:
        bulk_gives_way(number)
        new = self._vocabulary.sanitise(new)
        body = self._vocabulary.codec.encode(new.event)
        if len(body) > PAYLOAD_BYTES_MAX:
            raise Invalid(f"an event of {len(body)} bytes is too large; the limit is {PAYLOAD_BYTES_MAX}")
        return new, body
