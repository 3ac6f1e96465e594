"""Many rows by one statement, in few calls of SQLite.

Around each call another thread may take the interpreter, and where several want it that costs more than most
rows do.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

from omegad.storage.driver import Connection

ROWS_AT_ONCE = 16

_INSERT = re.compile(r"(\s*INSERT (?:OR \w+ )?INTO [^?]*?VALUES )(\((?:\?, )*\?\))([^?]*)")


def run_rows(connection: Connection, sql: str, rows: Sequence[Sequence[object]]) -> None:
    """Run a statement with each of *rows* of values, in their order. What inserts them as `(?, ?)` inserts
    16 of them at once: where one is refused, so are these.
    """
    if len(rows) == 1:  # as most are where the log is followed closely
        connection.execute(sql, rows[0])
        return
    place, at_once = 0, _of_rows(sql) if len(rows) >= ROWS_AT_ONCE else None
    while at_once and len(rows) - place >= ROWS_AT_ONCE:
        connection.execute(at_once, [*chain.from_iterable(rows[place : place + ROWS_AT_ONCE])])
        place += ROWS_AT_ONCE
    if left := rows[place:]:
        connection.executemany(sql, left)


@lru_cache(maxsize=256)
def _of_rows(sql: str) -> str | None:
    """Return the statement that inserts as many rows, None for what is no such insert."""
    found = _INSERT.fullmatch(sql)
    return found and f"{found[1]}{', '.join([found[2]] * ROWS_AT_ONCE)}{found[3]}"
