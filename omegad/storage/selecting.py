"""Other people's SQL: one SELECT on a file of ours, by a connection that can do nothing else and is closed after it.

What a SELECT may read is a list of tables, what it may call a list of functions. None of these makes a text longer than what it is given, and
`||` is refused, so that no value grows beyond what is stored; what takes long, or much memory, is interrupted. SQLite cannot be interrupted
while it puts subqueries into each other, which is bounded by counting what they name.
"""

import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from omegad.allocator import resident_bytes
from omegad.errors import Invalid, Overloaded
from omegad.storage.database import BUSY_TIMEOUT_MS, translated
from omegad.storage.driver import Connection, sqlite
from omegad.storage.readers import ReadersClosed

AT_ONCE = 2
INSTRUCTIONS_BETWEEN_LOOKS = 500  # at the clock and the memory: some of them copy a whole content
COLUMNS_MAX = 100
BLOB_BYTES_SHOWN = 32
EXPANDED_MAX = 200_000
"""What names in nested SELECTs may come to where each is replaced by what it stands for: about 100 bytes each."""
SQL_VIEW_WEIGHT = 400  # of names that a view of several tables stands for

SELECT, READ, FUNCTION, RECURSIVE = 21, 20, 31, 33  # sqlite3.h; the driver names only some of them

TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
_FUNCTIONS = """
abs avg coalesce count cume_dist current_date current_time current_timestamp date datetime dense_rank first_value glob if ifnull iif instr
json_array_length json_type json_valid julianday lag last_value lead length like likelihood likely lower ltrim max min nth_value ntile nullif
octet_length percent_rank rank round row_number rtrim sign strftime substr substring sum time timediff total trim typeof unicode unixepoch
unlikely upper -> ->>
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())

_places = threading.BoundedSemaphore(AT_ONCE)


class Limits(NamedTuple):
    """What an answer may take: rows, bytes of the rows as JSON, seconds, and bytes of memory."""

    rows: int
    bytes: int
    seconds: float
    memory_bytes: int


class Selection(NamedTuple):
    """The rows that were found, and whether there are more."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    has_more: bool


def select(path: Path, sql: str, tables: Mapping[str, bool], limits: Limits) -> Selection:
    """Run *sql*, one SELECT on *tables* of the file, of which it says whether they are views; blobs become SQL literals of their beginning.

    Raises `Invalid` for whatever else it is, for what is wrong in it, for what takes too much, and for a first row that is too large;
    `Overloaded` while too many others run.
    """
    _check_nesting(sql, tables)
    if not _places.acquire(blocking=False):
        raise Overloaded(f"{AT_ONCE} SELECTs are running already", hint="ask again in a moment")
    try:
        watch = _Watch(limits)
        with _explained(tables, watch), closing(_open(path)) as connection:
            connection.set_progress_handler(watch.look, INSTRUCTIONS_BETWEEN_LOOKS)
            connection.set_authorizer(_authorizer(tables))
            _check(connection.execute(f"EXPLAIN {sql}"))
            return _read(connection.execute(sql), limits)
    finally:
        _places.release()


class _Watch:
    """Says when a SELECT has taken too much, and what of."""

    def __init__(self, limits: Limits) -> None:
        self.taken = ""
        self._limits = limits
        self._since = time.monotonic()
        self._resident = resident_bytes()

    def look(self) -> bool:
        """Say whether it is to be interrupted."""
        if time.monotonic() - self._since > self._limits.seconds:
            self.taken = f"longer than {self._limits.seconds:g} s"
        elif resident_bytes() - self._resident > self._limits.memory_bytes:
            self.taken = f"more than {self._limits.memory_bytes // 2**20} MiB of memory"
        return bool(self.taken)


def _check_nesting(sql: str, tables: Mapping[str, bool]) -> None:
    """Refuse SELECTs within each other whose names could stand for too much; raises `Invalid`."""
    parts = (re.findall(r"\w+", part) for part in re.split(r"\bselect\b", sql, flags=re.IGNORECASE)[1:])
    expanded = math.prod(sum(SQL_VIEW_WEIGHT if tables.get(word.lower()) else 1 for word in words) or 1 for words in parts)
    if expanded > EXPANDED_MAX:
        raise Invalid("too much nested in each other", hint="ask with fewer or shorter SELECTs, one after the other")


def _open(path: Path) -> Connection:
    try:
        connection: Connection = sqlite.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)
    except sqlite.OperationalError as error:
        raise ReadersClosed from error  # the file was replaced a moment ago
    for pragma in ("query_only=ON", "trusted_schema=OFF", "temp_store=FILE", f"busy_timeout={BUSY_TIMEOUT_MS}"):
        connection.execute(f"PRAGMA {pragma}")
    connection.text_factory = lambda data: data.decode(errors="replace")
    return connection


def _authorizer(tables: Mapping[str, bool]) -> Callable[..., int]:
    def allowed(action: int, name: str | None, column: str | None, *_where: str | None) -> int:
        match action:
            case _ if action in {SELECT, RECURSIVE}:
                is_allowed = True
            case _ if action == FUNCTION:
                is_allowed = (column or "").lower() in FUNCTIONS
            case _ if action == READ:
                # Without a column only its rows are counted; so is what a WITH names.
                is_allowed = not column or name in tables or name in TABLE_FUNCTIONS
            case _:
                is_allowed = False
        return int(sqlite.SQLITE_OK if is_allowed else sqlite.SQLITE_DENY)

    return allowed


def _check(program: Iterator[Sequence[Any]]) -> None:
    """Refuse a program that makes longer texts, or wide rows; raises `Invalid`."""
    for _, operation, _, columns, *_ in program:
        if operation == "Concat":
            raise Invalid("|| is not allowed here", hint="select the parts as columns of their own")
        if operation in {"MakeRecord", "ResultRow"} and columns > COLUMNS_MAX:
            raise Invalid(f"more than {COLUMNS_MAX} columns", hint="select fewer columns")


def _read(found: Any, limits: Limits) -> Selection:  # noqa: ANN401  a cursor
    columns = tuple(column[0] for column in found.description)
    rows, size = list[tuple[Any, ...]](), 0
    for row in found:
        shown = tuple(map(_shown, row))
        size += len(msgspec.json.encode(shown))
        if len(rows) == limits.rows or size > limits.bytes:
            if not rows:
                raise Invalid(f"one row has more than {limits.bytes:,} bytes", hint="select fewer columns, or the beginning of a text with substr()")
            return Selection(columns, rows, has_more=True)
        rows.append(shown)
    return Selection(columns, rows, has_more=False)


def _shown(value: object) -> object:
    if not isinstance(value, bytes):
        return value
    return f"x'{value[:BLOB_BYTES_SHOWN].hex()}{'…' if len(value) > BLOB_BYTES_SHOWN else ''}'"


@contextmanager
def _explained(tables: Mapping[str, bool], watch: _Watch) -> Iterator[None]:
    """Turn what SQLite says of other people's SQL into `Invalid`; what is the file's fault stays that."""
    wanted = f"pass one SELECT on {', '.join(sorted(tables))}; SELECT * FROM one LIMIT 1 shows its columns"
    try:
        with translated():
            yield
    except (sqlite.Error, sqlite.Warning, ValueError) as error:
        if watch.taken:
            raise Invalid(f"the SELECT took {watch.taken}", hint="narrow it with WHERE or LIMIT") from error
        raise Invalid(f"SQL: {error}", hint=wanted) from error
