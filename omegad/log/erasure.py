"""What was taken out of the log for good: a payload is replaced by what remains of it, or by nothing, and an
event says so.

The hash of what remains stands in that event, so the chain covers it, and it verifies in place of what the
payload's own event was hashed with.
"""

import secrets
from collections.abc import Callable, Iterable

import msgspec

from omegad.log import chain
from omegad.log.codec import Codec
from omegad.log.event import END, Event, FreeText, MadeDigest, Position, RecordedEvent, Unknown
from omegad.runtime.errors import Refused
from omegad.storage.driver import Connection

CURSOR = "erasing"
"""The cursor that is moved to `UNDER_WAY` with an erasure, and to `DONE` when its bytes are in no file of
the home.
"""
UNDER_WAY, DONE = 1, 0

ANSWERS_AT_ONCE = 100

SearchTerms = tuple[tuple[str, ...], ...]

_NAME = "INSERT OR IGNORE INTO erasures VALUES (?)"
_WIPE = "DELETE FROM payloads WHERE position = ?"
_LEAVE = "INSERT INTO payloads VALUES (?, ?, ?)"


class PayloadErased(Event, frozen=True, kw_only=True, tag="payload.erased@1"):
    """The payloads at these positions were removed; their hashes stay in the chain.

    `remains` has, for each of them, the hash (hex) of what stands in its place from then on, '' where nothing
    does; empty for nothing at all.
    """

    positions: tuple[Position, ...]
    reason: FreeText
    remains: tuple[MadeDigest, ...] = ()


class Remnant(msgspec.Struct, frozen=True, gc=False):
    """What is to stand in place of a payload: its salt and body, None where nothing is.

    The event, of the class `kind`, is held as JSON, and its place as msgpack: an erasure may take out
    thousands, each of which would be dozens of objects.
    """

    position: Position
    salt: bytes
    body: bytes | None
    kind: type[Event] | type[Unknown]
    place: bytes
    event: bytes
    is_renamed: bool = False
    """Whether what the event is about goes by another name afterwards."""

    @property
    def hash(self) -> str:
        """Its hash as `PayloadErased.remains` has it."""
        return "" if self.body is None else chain.payload_hash(self.salt, self.body).hex()

    @property
    def before(self) -> RecordedEvent:
        """The event as it was."""
        return self._recorded(msgspec.json.decode(self.event, type=self.kind))

    @property
    def after(self) -> RecordedEvent | None:
        """What remains of it, None where that is unreadable."""
        return None if self.body is None else self._recorded(msgspec.json.decode(self.body, type=self.kind))

    def _recorded(self, event: Event | Unknown) -> RecordedEvent:
        recorded: RecordedEvent = RecordedEvent(*msgspec.msgpack.decode(self.place), event)  # type: ignore[call-arg]
        return recorded


class Erasure(msgspec.Struct, frozen=True):
    """What is taken out of the log: of payloads, and of the answers that were given.

    What is to be taken out has all words of one group of `terms` in it, as JSON has it; without any group
    everything is looked at. `clean` takes it out of a text. Answers have `answer_terms`, and `clean_answer`
    takes it out of their decoded JSON. It was looked for up to the position `seen`; `None` for an erasure
    that goes on whatever came since.
    """

    remnants: tuple[Remnant, ...]
    terms: SearchTerms
    clean: Callable[[object], object]
    answer_terms: SearchTerms
    clean_answer: Callable[[object], object]
    seen: Position | None = None
    has_names: bool = False
    """Whether names go, by which rows are told apart: what shows them is made anew."""


class CameSince(Refused):
    """What may hold a copy was appended since the erasure was prepared."""


def remnant(recorded: RecordedEvent, event: Event | None, codec: Codec) -> Remnant:
    """Return what remains of *recorded*, an event or what is unknown: *event*, or nothing where that is
    None.
    """
    *place, was = msgspec.structs.astuple(recorded)
    return Remnant(
        position=recorded.position,
        salt=secrets.token_bytes(chain.SALT_BYTES),
        body=None if event is None else codec.encode(event),
        kind=type(was),
        place=msgspec.msgpack.encode(place),
        event=msgspec.json.encode(was),
        is_renamed=event is not None and getattr(was, "entity_id", None) != getattr(event, "entity_id", None),
    )


def replace(connection: Connection, remnants: Iterable[Remnant]) -> None:
    """Put what remains in place of the payloads, in the transaction that is open; the event that names
    them is part of it.
    """
    for one in remnants:
        connection.execute(_NAME, (one.position,))
        connection.execute(_WIPE, (one.position,))
        if one.body is not None:
            connection.execute(_LEAVE, (one.position, one.salt, one.body.decode()))


def clean_set_aside(connection: Connection, erasure: Erasure) -> None:
    """Take out of what is told of failures what is erased, in the transaction that is open."""
    sql = f"SELECT name, position, error FROM set_aside WHERE {_has('error', erasure.terms)}"
    for name, position, error in connection.execute(sql, sum(erasure.terms, ())).fetchall():
        connection.execute(
            "UPDATE set_aside SET error = ? WHERE name = ? AND position = ?",
            (erasure.clean(error), name, position),
        )


def clean_answers(connection: Connection, erasure: Erasure) -> None:
    """Take out of the answers that were given to requests what is erased, in the transaction that is open."""
    columns = ("answer", "request_id", "client")
    terms = erasure.answer_terms
    held = " OR ".join(_has(column, terms) for column in columns)
    sql = (
        f"SELECT client, request_id, answer FROM requests WHERE ({held}) AND (client, request_id) > (?, ?)"
        " ORDER BY client, request_id LIMIT ?"
    )
    values, last = len(columns) * sum(terms, ()), ("", "")
    while rows := connection.execute(sql, (*values, *last, ANSWERS_AT_ONCE)).fetchall():
        for client, request_id, answer in rows:
            clean = (
                erasure.clean(client),
                erasure.clean(request_id),
                msgspec.json.encode(erasure.clean_answer(msgspec.json.decode(answer))).decode(),
            )
            if clean != (client, request_id, answer):
                change = (
                    "UPDATE OR REPLACE requests SET (client, request_id, answer) = (?, ?, ?) WHERE client = ?"
                    " AND request_id = ?"
                )
                connection.execute(change, (*clean, client, request_id))
        last = rows[-1][:2]


def candidates(
    connection: Connection, terms: SearchTerms, after: Position, through: Position
) -> list[Position]:
    """Return the positions after *after*, up to *through*, of the payloads in whose JSON all words of one
    group of *terms* stand.

    Without any group that is all of them.
    """
    sql = (
        f"SELECT position FROM payloads WHERE ({_has('body', terms)}) AND position > ? AND position <= ?"
        " ORDER BY position"
    )
    return [position for (position,) in connection.execute(sql, (*sum(terms, ()), after, through))]


def check_seen(connection: Connection, erasure: Erasure, waiting: Iterable[str]) -> None:
    """Raise `CameSince` where a payload that was appended since, or is *waiting* to be, may hold what is
    erased.
    """
    if erasure.seen is None:
        return
    groups = erasure.terms or ((),)
    if any(all(word in body for word in group) for body in waiting for group in groups) or candidates(
        connection, erasure.terms, erasure.seen, END
    ):
        raise CameSince("an event that may hold a copy came meanwhile")


def stands_for(
    named: dict[Position, tuple[Position, str]], position: Position, body_hash: bytes | None
) -> bool:
    """Say whether a later event, as *named* has them by position, says that this is what remains of the
    payload at *position*.
    """
    at, remains = named.get(position, (0, ""))
    return at > position and remains == ("" if body_hash is None else body_hash.hex())


def named_by(at: Position, event: PayloadErased) -> dict[Position, tuple[Position, str]]:
    """Return, by position, where the event stands that names it, and the hash of what remains."""
    hashes = event.remains or ("",) * len(event.positions)
    return {position: (at, remains) for position, remains in zip(event.positions, hashes, strict=False)}


def _has(column: str, terms: SearchTerms) -> str:
    return " OR ".join(f"({' AND '.join([f'instr({column}, ?)'] * len(group))})" for group in terms) or "1"
