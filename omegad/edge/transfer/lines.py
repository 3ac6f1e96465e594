"""A log as JSON Lines, which loses nothing: what it says can be read anywhere, and makes the same log again.

The first line is the header; then come the events in order, and what was answered to requests. The payload of
an event stands in its line as it is stored, byte for byte, so that every hash can be computed again. What is
made of the events is left out: a log makes it again.
"""

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from struct import error as StructError  # noqa: N812  it is a class
from typing import IO

import msgspec

from omegad.catalog.events import CODEC
from omegad.edge.transfer.log_file import Progress, open_log, require
from omegad.log import aging, appending, chain, dead_letters, erasure, mending, reading
from omegad.log.aging import PayloadsAged
from omegad.log.codec import tag_of
from omegad.log.dead_letters import DeadLetter
from omegad.log.erasure import PayloadErased
from omegad.log.event import Placed
from omegad.log.inline import Inline
from omegad.log.mending import ClockMended
from omegad.log.verifying import ChainCheck
from omegad.runtime.clock import Clock
from omegad.runtime.errors import Invalid, OmegadError
from omegad.runtime.json_types import Json
from omegad.storage.database import leave_wal, open_writer, translated
from omegad.storage.driver import Connection, sqlite
from omegad.storage.transaction import snapshot, writing

FORMAT = "omegad-log"
VERSION = 1
LINE_BYTES_MAX = 32 * 1024 * 1024
LINES_AT_ONCE = 2_000

_TELLING = {tag_of(kind) for kind in (PayloadErased, PayloadsAged, ClockMended)}
_REQUESTS = (
    "SELECT client, request_id, params_digest, first_position, position, answer FROM requests ORDER BY"
    " client, request_id"
)
_INSERT_EVENT = f"INSERT INTO events VALUES ({', '.join('?' * 15)})"


class Header(
    msgspec.Struct, frozen=True, kw_only=True, tag="header", forbid_unknown_fields=True, omit_defaults=True
):
    """What the file is: whose log, how long it is, and the chain after its last event (hex)."""

    format: str
    version: int
    origin: str
    head: int
    chain: str
    cursors: tuple[tuple[str, int, int], ...] = ()
    """Name, version and position of those who act on events."""
    set_aside: tuple[DeadLetter, ...] = ()
    """What they failed on."""


class EventLine(Placed, frozen=True, tag="event", forbid_unknown_fields=True):
    """An event. Hashes are hex; what was erased has no payload."""

    payload_hash: str
    chain: str
    salt: str | None
    payload: msgspec.Raw


class RequestLine(msgspec.Struct, frozen=True, tag="request", forbid_unknown_fields=True):
    """What was answered to a request, so that the same one gets the same answer from another home."""

    client: str
    request_id: str
    params_digest: str
    first_position: int | None
    position: int
    answer: msgspec.Raw


Line = Header | EventLine | RequestLine
_decode = msgspec.json.Decoder(Line).decode
_encode = msgspec.json.Encoder().encode
_NOT_OURS = (ValueError, OverflowError, RecursionError, StructError, OmegadError)
"""What a line ends with that nobody has exported: hex that is none, a number too large, a row twice, an
event that cannot be read.
"""
_ERASED_PAYLOAD = msgspec.Raw(b"null")


def export(log: Path, out: IO[bytes], progress: Progress) -> Header:
    """Write the log at *log*, as it is at one moment, to *out*, verifying it on the way.

    Raises `LogBroken` where it does not verify; what was written until then is not the log.
    """
    with translated(), closing(open_log(log)) as connection, snapshot(connection):
        header = _header(connection)
        out.write(_encode(header) + b"\n")
        check = ChainCheck()
        while rows := check.verify(connection, LINES_AT_ONCE):
            for row in rows:
                salt = None if row.salt is None else row.salt.hex()
                payload = _ERASED_PAYLOAD if row.body is None else msgspec.Raw(row.body)
                *envelope, payload_hash = row.envelope
                fields = list[Json]((*envelope, payload_hash.hex(), row.chain.hex(), salt, payload))
                out.write(_encode(EventLine(*fields)) + b"\n")
            progress(check.report.events, header.head, "events")
        require(check.report, log)
        for client, request_id, digest, first, position, answer in connection.execute(_REQUESTS):
            line = RequestLine(
                client, request_id, digest.hex(), first, position, msgspec.Raw(answer.encode())
            )
            out.write(_encode(line) + b"\n")
    return header


def make_log(lines: IO[bytes], target: Path, progress: Progress) -> Header:
    """Make the log at *target*, an empty file, of the lines that `export` wrote, computing its chain on the
    way.

    What is made of the events is left to the first start of a daemon. Raises `Invalid`, naming the line, for
    anything else.
    """
    numbered = _parsed(lines)
    header = next(numbered, (0, None))[1]
    if not isinstance(header, Header) or header.format != FORMAT:
        raise Invalid(
            "the file does not begin with the header of an export",
            hint="pass a file that `omegad export` wrote",
        )
    if header.version != VERSION:
        raise Invalid(
            f"the export has version {header.version}, this omegad reads {VERSION}",
            hint="install a newer omegad",
        )
    with translated(), closing(open_writer(target, durable=False)) as connection:
        appending.create(connection, Clock(), Inline(()))
        making = _Making(connection, header)
        while part := list(islice(numbered, LINES_AT_ONCE)):
            making.add(part)
            progress(making.position, header.head, "events")
        making.end()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        leave_wal(connection)
    return header


def is_export(path: Path) -> bool:
    """Say whether a file begins as `export` begins one."""
    with path.open("rb") as file:
        return b'"format":"omegad-log"' in file.readline(1_000)


class _Making:
    """A log that is being made of lines."""

    def __init__(self, connection: Connection, header: Header) -> None:
        self.position = 0
        self._connection = connection
        self._header = header
        self._chain = chain.GENESIS
        self._changed: dict[
            int, bytes | None
        ] = {}  # payloads that are not what their events were hashed with, by what they hash to
        self._erased: dict[int, tuple[int, str]] = {}
        try:
            with writing(connection):
                connection.execute("UPDATE identity SET origin = ?", (header.origin,))
                connection.executemany(
                    "INSERT INTO cursors (name, version, position) VALUES (?, ?, ?)", header.cursors
                )
            for one in header.set_aside:
                dead_letters.add(connection, one)
        except (*_NOT_OURS, sqlite.IntegrityError) as error:
            raise _wrong(1, str(error)) from error

    def add(self, lines: list[tuple[int, Line]]) -> None:
        with writing(self._connection):
            for number, line in lines:
                try:
                    if isinstance(line, Header):
                        raise Invalid("a second header")
                    if isinstance(line, EventLine):
                        self._add_event(line)
                    else:
                        client, request_id, digest, first, position, answer = msgspec.structs.astuple(line)
                        self._connection.execute(
                            "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?)",
                            (
                                client,
                                request_id,
                                bytes.fromhex(digest),
                                first,
                                position,
                                bytes(answer).decode(),
                            ),
                        )
                except (*_NOT_OURS, sqlite.IntegrityError) as error:
                    raise _wrong(number, str(error)) from error

    def _add_event(self, line: EventLine) -> None:
        envelope = (*msgspec.structs.astuple(line)[:13], bytes.fromhex(line.payload_hash))
        body = None if line.salt is None else bytes(line.payload)
        found = chain.link(self._chain, envelope)
        payload_hash = None if body is None else chain.payload_hash(bytes.fromhex(line.salt or ""), body)
        if payload_hash != envelope[13]:
            self._changed[line.position] = payload_hash
        if line.position != self.position + 1 or found.hex() != line.chain:
            raise Invalid(f"the hash chain breaks at position {self.position + 1}")
        self._connection.execute(_INSERT_EVENT, (*envelope, found))
        if body is not None:
            self._connection.execute(
                "INSERT INTO payloads VALUES (?, ?, ?)",
                (line.position, bytes.fromhex(line.salt or ""), body.decode()),
            )
        event = CODEC.decode(line.tag, body) if line.tag in _TELLING else None
        if isinstance(event, PayloadErased):
            self._connection.executemany(
                "INSERT OR IGNORE INTO erasures VALUES (?)", [(position,) for position in event.positions]
            )
            self._erased |= erasure.named_by(line.position, event)
        if isinstance(event, PayloadsAged):
            for position, left in event.left:
                if position in self._changed and aging.short_hash(self._changed[position]) == left:
                    del self._changed[position]
        if isinstance(event, ClockMended):
            mending.note(self._connection, line.position, event)
        self.position, self._chain = line.position, found

    def end(self) -> None:
        """Check that it is the whole log: its length, its last hash, and that what has no payload was
        erased.
        """
        if (self.position, self._chain.hex()) != (self._header.head, self._header.chain):
            raise Invalid(
                f"the file ends at event {self.position} of {self._header.head}",
                hint="it was cut off: export it again",
            )
        for position, found in self._changed.items():
            if not erasure.stands_for(self._erased, position, found):
                if found is None:
                    raise Invalid(
                        f"the payload at position {position} is missing, and no event says that it was erased"
                    )
                raise _wrong(
                    position + 1, f"the hash chain breaks at position {position}"
                )  # the header is the first line


def _header(connection: Connection) -> Header:
    head = reading.head(connection)
    # The log of an older version may not have the table.
    has_set_aside = connection.execute(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'set_aside'"
    ).fetchone()
    return Header(
        format=FORMAT,
        version=VERSION,
        origin=connection.execute("SELECT origin FROM identity").fetchone()[0],
        head=head,
        chain=(reading.chain_at(connection, head) or chain.GENESIS).hex(),
        cursors=tuple(connection.execute("SELECT name, version, position FROM cursors ORDER BY name")),
        set_aside=tuple(dead_letters.every(connection)) if has_set_aside else (),
    )


def _parsed(lines: IO[bytes]) -> Iterator[tuple[int, Line]]:
    number = 0
    while line := lines.readline(LINE_BYTES_MAX):
        number += 1
        try:
            yield number, _decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _wrong(number, str(error)) from error


def _wrong(number: int, problem: str) -> Invalid:
    return Invalid(
        f"line {number} is none that `omegad export` wrote: {problem}",
        hint="nothing was imported; export it again",
    )
