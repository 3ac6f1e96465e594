"""One transaction of the log: proposals decided, events numbered, chained and written, decision state folded.

Runs on the writer's thread. The head moves only when the transaction has committed.
"""

import secrets
from collections.abc import Sequence

import msgspec

from omegad import state
from omegad.clock import Clock, next_hlc, uuid7
from omegad.errors import Conflict, OmegadError
from omegad.log import chain, codec
from omegad.log.decision import Decision, Outcome, Proposal, RequestKey
from omegad.log.event import NewEvent, Position, RecordedEvent
from omegad.redaction.sanitise import check_size, sanitise, without_credentials
from omegad.storage.driver import Connection
from omegad.storage.transaction import writing

_INSERT_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_PAYLOAD = "INSERT INTO payloads VALUES (?, ?, ?)"
_FIND_REQUEST = "SELECT params_digest, position, answer FROM requests WHERE client = ? AND request_id = ?"
_INSERT_REQUEST = "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?)"
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


def load_head(connection: Connection) -> Head:
    """Read where the log ends."""
    row = connection.execute("SELECT position, chain, recorded_at, hlc FROM events ORDER BY position DESC LIMIT 1").fetchone()
    return Head(*row) if row else Head(0, chain.GENESIS, 0, 0)


def commit(connection: Connection, proposals: Sequence[Proposal], head: Head, origin: str, clock: Clock) -> Committed:
    """Decide and append *proposals* in one transaction, each after the ones before it, the first after *head*, where the log ends.

    One whose decision fails writes nothing and leaves the others alone; a failure of the storage undoes all and is raised.
    """
    with writing(connection):
        append = _Append(connection, head, origin, clock)
        outcomes = [append.settle(proposal) for proposal in proposals]
        append.write_rows()
    return Committed(outcomes, append.events, append.head)


class _Append:
    """The state of one open transaction."""

    def __init__(self, connection: Connection, head: Head, origin: str, clock: Clock) -> None:
        self._connection = connection
        self._state = state.DecisionState(connection)
        self._origin = origin
        self._clock = clock
        self._tz_offset = clock.tz_offset_minutes()
        self._rows: list[tuple[object, ...]] = []
        self._payloads: list[tuple[object, ...]] = []
        self.head = head
        self.events: list[tuple[RecordedEvent, int]] = []

    def settle(self, proposal: Proposal) -> Outcome | Exception:
        outcome = self._decided(proposal)
        if proposal.cursor and isinstance(outcome, Outcome):
            self._connection.execute(_MOVE_CURSOR, msgspec.structs.astuple(proposal.cursor))
        return outcome

    def _decided(self, proposal: Proposal) -> Outcome | Exception:
        try:
            answered = self._answered(proposal.request)
            if answered:
                return answered
            now_us = self._clock.now_us()
            decision = proposal.decide(self._state, now_us)
            bodies = [_encoded(new) for new in decision.events]
        except OmegadError as refusal:
            return refusal
        except Exception as mistake:  # noqa: BLE001  a mistake in one decision is told to its own caller and spoils no other
            return mistake
        return self._write(proposal, decision, bodies, now_us)

    def write_rows(self) -> None:
        """Write the events of all proposals; nothing within the transaction reads them, so that they can be written together."""
        self._connection.executemany(_INSERT_EVENT, self._rows)
        self._connection.executemany(_INSERT_PAYLOAD, self._payloads)

    def _answered(self, request: RequestKey | None) -> Outcome | None:
        if request is None:
            return None
        row = self._connection.execute(_FIND_REQUEST, (request.client, request.request_id)).fetchone()
        if row is None:
            return None
        if row[0] != request.params_digest:
            raise Conflict(f"request_id {request.request_id!r} was used before, with other parameters")
        return Outcome(answer=msgspec.Raw(row[2].encode()), position=row[1])

    def _write(self, proposal: Proposal, decision: Decision, bodies: list[tuple[NewEvent, bytes]], now_us: int) -> Outcome:
        first = self.head.position + 1
        for new, body in bodies:
            self._add(proposal, new, body, now_us)
        answer = decision.answer
        if bodies and getattr(answer, "position", None) == 0:
            answer = msgspec.structs.replace(answer, position=self.head.position)
        outcome = Outcome(answer=answer, position=self.head.position if bodies else getattr(answer, "position", 0))
        if key := proposal.request:
            encoded = msgspec.json.encode(answer).decode()
            row = (key.client, key.request_id, key.params_digest, first if bodies else None, outcome.position, encoded)
            self._connection.execute(_INSERT_REQUEST, row)
        return outcome

    def _add(self, proposal: Proposal, new: NewEvent, body: bytes, now_us: int) -> None:
        position = self.head.position + 1
        # The order of the log stands when the clock is set back; what happened, and how long it holds, goes by the clock as it is.
        recorded_at = max(now_us, self.head.recorded_at)
        salt = secrets.token_bytes(chain.SALT_BYTES)
        occurred_at = now_us if new.occurred_at is None else new.occurred_at
        hlc = next_hlc(self.head.hlc, now_us)
        cause = self.head.position if new.follows else (new.cause or proposal.cause)
        envelope = (
            *(position, uuid7(self._clock), codec.tag_of(type(new.event)), recorded_at, occurred_at, self._tz_offset, self._origin, hlc),
            *(new.session_id, new.project, proposal.client, cause, proposal.trace, chain.payload_hash(salt, body)),
        )
        link = chain.link(self.head.chain, envelope)
        self._rows.append((*envelope, link))
        self._payloads.append((position, salt, body.decode()))
        recorded = RecordedEvent(*envelope[:13], chain=link, event=new.event)
        state.fold(self._connection, recorded)
        self.head = Head(position, link, recorded_at, hlc)
        self.events.append((recorded, len(body)))


def _encoded(new: NewEvent) -> tuple[NewEvent, bytes]:
    new = without_credentials(new)
    clean = sanitise(new.event)
    body = codec.encode(clean)
    check_size(body)
    return (new if clean is new.event else msgspec.structs.replace(new, event=clean)), body
