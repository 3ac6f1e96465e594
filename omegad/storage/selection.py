"""One SELECT of other people's on a file of ours, in a process of its own: `python -I -S selection.py`, with
JSON on standard input.

What a SELECT may read is a list of tables, what it may call a list of functions. None of these makes a text
longer than what it is given, and `||` is refused, so that no value grows beyond what is stored. What takes
long, or much memory, is interrupted; what SQLite cannot interrupt, such as a function at work on a long text,
ends with the process, which ends with whoever asked. It imports next to nothing, to start quickly.
"""

import importlib
import json
import math
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import quote

if TYPE_CHECKING:
    from sqlite3 import Cursor

INSTRUCTIONS_BETWEEN_LOOKS = 500  # at the clock and the memory: some of them copy a whole content
COLUMNS_MAX = 100
BLOB_BYTES_SHOWN = 32
GRACE_S = 0.5  # after the time is over, for SQLite to hear of it
WAIT_S = 10.0  # which a process may wait, to start and beside its work, on a machine that is busy
SLACK_BYTES = 64 * 2**20  # of address space, beside what is counted as memory

SELECT, READ, FUNCTION, RECURSIVE, PRAGMA = 21, 20, 31, 33, 19  # sqlite3.h; the driver names only some

TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
_FUNCTIONS = """
abs avg bm25 coalesce count cume_dist current_date current_time current_timestamp date datetime dense_rank
first_value glob if ifnull iif instr json_array_length json_type json_valid julianday lag last_value lead
length like likelihood likely lower ltrim match max min nth_value ntile nullif octet_length percent_rank rank
round row_number rtrim sign strftime substr substring sum time timediff total trim typeof unicode unixepoch
unlikely upper vec_distance_cosine -> ->>
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Question(TypedDict):
    """What is asked: a SELECT on tables of a file, and its bounds; `seconds` are of the processor's time."""

    driver: str
    paths: list[str]
    extension: str
    file: str
    sealed: list[str]
    sql: str
    tables: list[str]
    busy_timeout_ms: int
    rows: int
    bytes: int
    seconds: float
    memory_bytes: int


class RefusedSelect(Exception):
    """It is not allowed, or too much: what it is, and what to do."""


class _Watch:
    """Says when a SELECT has taken too much, and what of."""

    def __init__(self, seconds: float, memory_bytes: int) -> None:
        self.taken = ""
        self._seconds, self._memory_bytes = seconds, memory_bytes
        self._since = time.process_time()  # what waits for its turn on a busy machine takes nothing
        self._resident = _memory()[1]
        self._asker = select.poll()
        self._asker.register(sys.stdin.fileno(), 0)

    def look(self) -> bool:
        """Say whether it is to be interrupted."""
        if time.process_time() - self._since > self._seconds:
            self.taken = f"longer than {self._seconds:g} s"
        elif _memory()[1] - self._resident > self._memory_bytes:
            self.taken = too_much_memory(self._memory_bytes)
        elif self._asker.poll(0):  # whoever asked is gone
            os._exit(1)
        return bool(self.taken)


def taken(what: str) -> tuple[str, str]:
    """Return what a SELECT is refused with that has taken too much, and what to do."""
    return f"the SELECT took {what}", "narrow it with WHERE or LIMIT"


def too_much_memory(memory_bytes: int) -> str:
    """Say what a SELECT has taken that runs out of memory."""
    return f"more than {memory_bytes // 2**20} MiB of memory"


def _memory() -> tuple[int, int]:
    """Return how much address space the process has, 0 where the system does not say, and how much memory
    it occupies.
    """
    with (
        suppress(OSError),
        open("/proc/self/statm", "rb") as statm,  # noqa: PTH123
    ):
        size, resident, *_ = statm.read().split()
        return int(size) * PAGE_BYTES, int(resident) * PAGE_BYTES
    return 0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: bytes, and the peak


def _bound(seconds: float, memory_bytes: int) -> None:
    """Have the system end this process where nothing else does."""
    signal.setitimer(signal.ITIMER_PROF, seconds + GRACE_S)
    signal.setitimer(signal.ITIMER_REAL, seconds + GRACE_S + WAIT_S)
    cpu_s = math.ceil(seconds + GRACE_S) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    if size := _memory()[0]:
        most = size + memory_bytes + SLACK_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def answered(asked: Question) -> dict[str, object]:
    """Run what is *asked*, and return the columns, the rows and whether there are more; or why not, as
    `selecting` reads it.
    """
    sys.path.extend(asked["paths"])
    sqlite = importlib.import_module(asked["driver"])
    watch = _Watch(asked["seconds"], asked["memory_bytes"])
    try:
        connection = sqlite.connect(f"file:{quote(asked['file'])}?mode=ro", uri=True, isolation_level=None)
    except sqlite.OperationalError:
        return {"gone": True}  # the file was replaced a moment ago
    try:
        for pragma in (
            *asked["sealed"],
            "query_only=ON",
            "trusted_schema=OFF",
            # What is sealed spills into no file, which would be plain
            f"temp_store={'MEMORY' if asked['sealed'] else 'FILE'}",
            f"busy_timeout={asked['busy_timeout_ms']}",
        ):
            connection.execute(f"PRAGMA {pragma}")
        connection.enable_load_extension(True)  # noqa: FBT003  the DB-API's signature
        connection.load_extension(asked["extension"])
        connection.enable_load_extension(False)  # noqa: FBT003
        connection.text_factory = lambda data: data.decode(errors="replace")
        _bound(asked["seconds"], asked["memory_bytes"])
        connection.set_progress_handler(watch.look, INSTRUCTIONS_BETWEEN_LOOKS)
        connection.set_authorizer(_authorizer(asked["tables"], sqlite.SQLITE_OK, sqlite.SQLITE_DENY))
        _check(connection.execute(f"EXPLAIN {asked['sql']}"))
        return _read(connection.execute(asked["sql"]), asked["rows"], asked["bytes"])
    except RefusedSelect as refused:
        return {"refused": refused.args}
    except MemoryError:
        return {"refused": taken(watch.taken or too_much_memory(asked["memory_bytes"]))}
    except (sqlite.Error, sqlite.Warning, ValueError) as error:
        if watch.taken:
            return {"refused": taken(watch.taken)}
        return {"error": str(error), "code": getattr(error, "sqlite_errorcode", None) or 0}


def _authorizer(tables: Collection[str], ok: int, deny: int) -> Callable[..., int]:
    def allowed(action: int, name: str | None, column: str | None, *_where: str | None) -> int:
        match action:
            case _ if action in {SELECT, RECURSIVE}:
                is_allowed = True
            case _ if action == FUNCTION:
                is_allowed = (column or "").lower() in FUNCTIONS
            case _ if action == READ:
                # Without a column only its rows are counted; so is what a WITH names.
                is_allowed = not column or name in tables or name in TABLE_FUNCTIONS
            case _ if action == PRAGMA:
                is_allowed = (name, column) == ("data_version", None)  # which full text asks for itself
            case _:
                is_allowed = False
        return ok if is_allowed else deny

    return allowed


def _check(program: Iterator[tuple[int, str, int, int, *tuple[object, ...]]]) -> None:
    """Refuse a program that makes longer texts, or wide rows."""
    for _, operation, _, columns, *_ in program:
        if operation == "Concat":
            raise RefusedSelect("|| is not allowed here", "select the parts as columns of their own")
        if operation in {"MakeRecord", "ResultRow"} and columns > COLUMNS_MAX:
            raise RefusedSelect(f"more than {COLUMNS_MAX} columns", "select fewer columns")


def _read(found: "Cursor", rows_max: int, bytes_max: int) -> dict[str, object]:
    columns = [column[0] for column in found.description]
    rows, size = list[list[object]](), 0
    for row in found:
        shown = [_shown(value) for value in row]
        size += len(json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode())
        if len(rows) == rows_max or size > bytes_max:
            if not rows:
                raise RefusedSelect(
                    f"one row has more than {bytes_max:,} bytes",
                    "select fewer columns, or the beginning of a text with substr()",
                )
            return {"columns": columns, "rows": rows, "has_more": True}
        rows.append(shown)
    return {"columns": columns, "rows": rows, "has_more": False}


def _shown(value: object) -> object:
    if isinstance(value, bytes):
        return f"x'{value[:BLOB_BYTES_SHOWN].hex()}{'…' if len(value) > BLOB_BYTES_SHOWN else ''}'"
    return None if isinstance(value, float) and math.isinf(value) else value  # which JSON has no way to say


def main() -> None:
    """Answer one line with one; with nothing where whoever asked was gone before the question was whole."""
    try:
        asked = json.loads(sys.stdin.readline())
    except ValueError:
        return
    answer = json.dumps(answered(asked)).encode()
    with suppress(BrokenPipeError):
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    os._exit(0)  # without the interpreter's end, which takes as long as a short SELECT


if __name__ == "__main__":
    main()
