"""What was answered to whom, so that a request that is sent again is the same request.

It is remembered for 30 days, and for 100,000 events; what is older is forgotten bit by bit.
"""

import re
import shutil
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from omegad.log.decision import Outcome, RequestKey
from omegad.log.event import Position
from omegad.runtime.clock import Clock
from omegad.runtime.digests import differ
from omegad.runtime.errors import Conflict, Unavailable
from omegad.storage.database import translated
from omegad.storage.driver import Connection
from omegad.storage.transaction import run_script, writing

KEPT_US = 30 * 86_400 * 1_000_000
KEPT_EVENTS = 100_000
LAYOUT_TIMES, ROOM_BYTES = 4, 64 * 1024 * 1024
"""So many times what answers take, and so much beside, must be free for laying their table out anew."""
FORGOTTEN_AT_ONCE = 1_000
FORGET_EVERY = 5_000  # events: the table is read from its beginning each time

_FIND = "SELECT params_digest, position, answer FROM requests WHERE client = ? AND request_id = ?"
_INSERT = "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?)"
_UNKEYED = "length(params_digest) = 16"  # as an index has it, which has no rows but these
_IMPORTS = "substr(request_id, 1, 7) = 'import-' AND substr(request_id, -33, 1) = '-'"  # as an index has it
_IMPORTED = re.compile(r"import-.+-[0-9a-f]{32}")
_WITHOUT_ROWID = "SELECT 1 FROM sqlite_schema WHERE name = 'requests' AND instr(sql, 'WITHOUT ROWID')"
_PUT_ASIDE = (
    "ALTER TABLE requests RENAME TO requests_before",
    "DROP INDEX IF EXISTS requests_unkeyed",
    "DROP INDEX IF EXISTS requests_of_imports",
)
_TAKE_BACK = """
INSERT INTO requests SELECT client, request_id, params_digest, first_position, position, answer
FROM requests_before ORDER BY position
"""
_FORGET = """
DELETE FROM requests WHERE (client, request_id) IN (SELECT client, request_id FROM requests
  WHERE coalesce(first_position, position) < ? LIMIT ?)
"""


def answered(connection: Connection, request: RequestKey) -> Outcome | None:
    """Return the first answer to a request, None where there was none. Raises `Conflict` where it had
    other parameters.
    """
    row = connection.execute(_FIND, (request.client, request.request_id)).fetchone()
    if row is None:
        return None
    if differ(row[0], request.params_digest):
        raise Conflict(f"request_id {request.request_id!r} was used before, with other parameters")
    return Outcome(answer=msgspec.Raw(row[2].encode()), position=row[1])


def kept_from(connection: Connection, head: Position, now_us: int) -> Position:
    """Return the first position of what is kept to be known again, in a log that ends at *head*: recorded
    lately, or among the latest events.
    """

    def recorded_at(position: Position) -> int:
        found = connection.execute("SELECT recorded_at FROM events WHERE position = ?", (position,))
        return int(found.fetchone()[0])

    return 1 + bisect_left(range(1, head - KEPT_EVENTS), now_us - KEPT_US, key=recorded_at)


def lay_out_anew(connection: Connection, schema: str) -> None:
    """Bring a table as earlier versions made it, whose longer answers take a page each, into the form that
    the *schema* of the log gives it; where there is no room for that, and some to spare, a later start does.
    """
    if not (connection.execute(_WITHOUT_ROWID).fetchone() and _has_room(connection)):
        return
    try:
        with translated(), writing(connection):
            for change in _PUT_ASIDE:
                connection.execute(change)
            run_script(connection, schema)
            connection.execute(_TAKE_BACK)
            connection.execute("DROP TABLE requests_before")
    except Unavailable:
        with suppress(Unavailable), translated():  # what it has written takes room that a start needs
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _has_room(connection: Connection) -> bool:
    """Say whether the disk has room for a table of requests beside the one that is there, and for its way
    through the write-ahead log.
    """
    file = connection.execute("PRAGMA database_list").fetchone()[2]
    found = connection.execute("SELECT total(length(answer)) + 1000 * count(*) FROM requests").fetchone()
    return shutil.disk_usage(Path(file).parent).free > LAYOUT_TIMES * int(found[0]) + ROOM_BYTES


def forget_unkeyed(connection: Connection) -> None:
    """Forget, in the transaction that is open, digests that were made without a key: of parameters, and in
    the ids of tools' commands.

    The answers stay; the same `request_id` is then the same request.
    """
    connection.execute(
        f"DELETE FROM requests WHERE {_UNKEYED} AND instr(request_id, '/' || lower(hex(params_digest)) ||"
        " '/')"
    )
    connection.execute(f"UPDATE requests SET params_digest = x'' WHERE {_UNKEYED}")


def key_imports(connection: Connection, named: Callable[[str], str]) -> None:
    """Replace the ids of requests that end with a digest of an imported text, made without a key, by what
    *named* returns.

    The same import is still the same request.
    """
    found = connection.execute(f"SELECT client, request_id FROM requests WHERE {_IMPORTS}").fetchall()
    keyed = [
        (named(request_id), client, request_id)
        for client, request_id in found
        if _IMPORTED.fullmatch(request_id)
    ]
    if keyed:
        with writing(connection):
            # The parameters have the id among them, and so their digest is another.
            sql = (
                "UPDATE OR REPLACE requests SET request_id = ?, params_digest = x'' WHERE client = ? AND"
                " request_id = ?"
            )
            connection.executemany(sql, keyed)


class Requests:
    """The table of requests that were answered, as the writer's thread keeps it; they grow old by *clock*."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next: Position = 0

    def remember(
        self, connection: Connection, request: RequestKey, first: Position, outcome: Outcome
    ) -> None:
        """Note what was answered; *first* is the position of its first event, or that it would have had."""
        answer = msgspec.json.encode(outcome.answer).decode()
        connection.execute(
            _INSERT,
            (request.client, request.request_id, request.params_digest, first, outcome.position, answer),
        )

    def after_commit(self, connection: Connection, head: Position) -> None:
        """Forget some of the oldest, when it is time; a failure puts it off."""
        if head < max(self._next, KEPT_EVENTS):
            return
        self._next = head + FORGET_EVERY
        with suppress(Unavailable), translated():
            before = kept_from(connection, head, self._clock.now_us())
            with writing(connection):
                forgotten = connection.execute(_FORGET, (before, FORGOTTEN_AT_ONCE)).rowcount
            if forgotten == FORGOTTEN_AT_ONCE:
                self._next = head
