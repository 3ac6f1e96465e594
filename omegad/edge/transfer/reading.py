"""The files and databases of other programs, read row by row: what is odd in one is told, and the others
are read all the same.
"""

import json
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from omegad.runtime.errors import Invalid
from omegad.runtime.json_text import flattened, mended
from omegad.runtime.json_types import Json, changed
from omegad.storage.driver import Connection, sqlite

FILE_BYTES_MAX = 512 * 1024 * 1024
LINE_BYTES_MAX = 64 * 1024 * 1024
BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
NOT_A_FILE = "write what it gives to a file, and pass that"

MADE = re.compile(r"^sqlite_|schema_|_fts|_vec|vec_|embedding|migration|^metadata$")
"""Tables that say nothing by themselves: those of SQLite, of indices, and of versions."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class Odd(NamedTuple):
    """A row that cannot be read, and what is wrong with it."""

    problem: str


Row = tuple[str, Json]
"""Where it stands, and what it says, or `Odd`."""


def check_kind(path: Path) -> None:
    """Raise `Invalid` for what is neither a file nor a folder: a pipe may never say anything, and a device
    never end.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise Invalid(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise Invalid(f"{path} cannot be read: {error}") from error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise Invalid(f"{path} is a pipe, socket or device, and no file", hint=NOT_A_FILE)


def beginning_of(path: Path, count: int) -> bytes:
    """Return the first bytes of a file; those of text as UTF-8, however it is written."""
    with open_file(path) as file:
        head: bytes = file.read(count)
    encoding = _encoding(head)
    return head.decode(encoding, "ignore").encode("utf-8", "ignore") if encoding else head


@contextmanager
def open_file(path: Path) -> Iterator[BufferedReader]:
    """Open a file to read its bytes. Raises `Invalid` where that fails, or it is something else by now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Invalid(f"{path} is no file", hint=NOT_A_FILE)
            yield file
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror or error}") from error


def _whole_file(file: BufferedReader, path: Path, bytes_max: int, hint: str = "split it") -> bytes:
    """Return all bytes of a file. Raises `Invalid` where there are more than *bytes_max*."""
    data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        most = f"{bytes_max // 2**20} MiB" if bytes_max > 2**20 else f"{bytes_max // 1024} KiB"
        raise Invalid(f"{path} is larger than {most}", hint=hint)
    return bytes(data)


def text_file(path: Path, bytes_max: int) -> str:
    """Return what a file of text says. Raises `Invalid` where it is too large, or no text in UTF-8, or in
    UTF-16 that says so.
    """
    with open_file(path) as file:
        data = _whole_file(file, path, bytes_max)
    encoding = _encoding(data) or "utf-8"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} is not {encoding.upper()}", hint="convert it: `iconv -t UTF-8`") from error


def json_lines(path: Path) -> Iterator[Row]:
    """Yield what each line of a file says; nothing of a last one without an end that is no JSON yet."""
    with open_file(path) as file:
        lines: Iterable[bytes] = _lines(file)
        if encoding := _encoding(file.peek(4)):
            data = _whole_file(file, path, FILE_BYTES_MAX, "convert it to UTF-8 without a byte order mark")
            lines = data.decode(encoding, "replace").encode("utf-8", "replace").splitlines(keepends=True)
        for number, line in enumerate(lines, 1):
            place = f"line {number}"
            if len(line) > LINE_BYTES_MAX:
                yield place, Odd(f"it is longer than {LINE_BYTES_MAX // 2**20} MiB")
            elif line.strip():
                try:
                    yield place, json_of(line)
                except (ValueError, RecursionError) as error:
                    if line.endswith(b"\n"):
                        yield place, Odd(f"it is no JSON: {error}")


def json_file(path: Path) -> Json:
    """Return what a file of JSON says. Raises `Invalid`."""
    with open_file(path) as file:
        data = _whole_file(file, path, FILE_BYTES_MAX)
    encoding = _encoding(data)
    try:
        return json_of(data.decode(encoding).encode() if encoding else data)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{path}: {error}", hint="is it whole?") from error


def json_of(data: bytes | str) -> Json:
    """Return what JSON says: U+FFFD for what no encoding can carry, null for what is nested too deeply.
    Raises `ValueError`, `RecursionError`.

    What is stricter is faster, and fails on little: text that was cut, bytes of another encoding, NaN and
    numbers too large.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        read = mended(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    read = flattened(read.decode("utf-8", "replace").encode())
    try:
        return msgspec.json.decode(read)
    except msgspec.DecodeError:
        return json.loads(read)


def whole(value: Json) -> Json:
    """Return *value* with U+FFFD for halves of surrogate pairs, which no encoding can carry."""
    return changed(value, partial(_SURROGATE.sub, "\ufffd"))


@contextmanager
def database(path: Path) -> Iterator[Connection]:
    """Open another program's database to read it, and nothing else. Raises `Invalid` where that fails."""
    try:
        with closing(
            sqlite.connect(f"file:{quote(os.fsencode(path))}?mode=ro", uri=True, isolation_level=None)
        ) as connection:
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute(
                "PRAGMA writable_schema=ON"
            )  # or nothing is read of a file that is cut, as nothing is written
            connection.text_factory = lambda data: data.decode(errors="replace")
            yield connection
    except sqlite.Error as error:
        raise Invalid(
            f"{path} cannot be read: {error}", hint="stop the program that it belongs to, or pass a copy"
        ) from error


def rows(connection: Connection, table: str) -> Iterator[Row]:
    """Yield the rows of *table*, whatever columns it has; where pages are damaged, those before and those
    after.
    """
    last, behind = None, list[Sequence[object]]()
    ordered = f"SELECT rowid, * FROM {_name(table)} ORDER BY rowid"
    found = connection.execute(ordered)
    columns = [column[0] for column in found.description[1:]]

    def row(values: Sequence[object]) -> Row:
        return f"{table} {values[0]}", dict(zip(columns, values[1:], strict=True))

    try:
        for values in found:
            last = values[0]
            yield row(values)
    except sqlite.DatabaseError as error:
        yield f"{table} after {last}", Odd(str(error))
        with suppress(sqlite.DatabaseError):  # of which is told already
            for values in connection.execute(f"{ordered} DESC"):
                if last is not None and values[0] <= last:
                    break
                behind.append(values)
        yield from map(row, reversed(behind))


def has_table(connection: Connection, table: str) -> bool:
    """Say whether there is a table, which not every version of the other system has."""
    asked = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
    return connection.execute(asked, (table,)).fetchone() is not None


def others(connection: Connection, read: Mapping[str, Collection[str]]) -> Iterator[tuple[str, int]]:
    """Yield which tables have rows, and which columns have values, beside those that are *read*, and how
    many; none that are made of others, and none that cannot be read.
    """
    for (table,) in connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    ).fetchall():
        if MADE.search(table):
            continue
        columns = [column for _, column, *_ in connection.execute(f"PRAGMA table_info({_name(table)})")]
        asked = {f"column {table}.{one}": _name(one) for one in columns if one not in read.get(table, ())}
        for what, values in (asked if table in read else {f"table {table}": "1"}).items():
            with suppress(sqlite.DatabaseError):
                (count,) = connection.execute(
                    f"SELECT count(*) FROM {_name(table)} WHERE {values} NOT IN ('', '{{}}', '[]', 0)"
                ).fetchone()
                if count:
                    yield what, count


def _name(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _encoding(head: bytes) -> str | None:
    return next((encoding for mark, encoding in BYTE_ORDER_MARKS if head.startswith(mark)), None)


def _lines(file: BufferedReader) -> Iterator[bytes]:
    """Yield lines; of one that is too long the beginning, which is just too long as well."""
    while line := file.readline(LINE_BYTES_MAX + 1):
        rest = line
        while len(rest) > LINE_BYTES_MAX and not rest.endswith(b"\n"):
            rest = file.readline(LINE_BYTES_MAX + 1)
        yield line
