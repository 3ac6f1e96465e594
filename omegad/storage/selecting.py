"""Other people's SQL: one SELECT on a file of ours, in a process that can do nothing else, has bounds of its
own and is killed at these.

SQLite cannot be interrupted while it puts subqueries into each other, which is bounded by counting what they
name.
"""

import math
import os
import re
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
import sqlite_vec

from omegad.runtime import child
from omegad.runtime.errors import Invalid, OmegadError, Overloaded, StorageFailed
from omegad.storage import sealing, selection
from omegad.storage.database import BUSY_TIMEOUT_MS, storage_failure
from omegad.storage.driver import sqlite
from omegad.storage.readers import ReadersClosed

AT_ONCE = 2
EXPANDED_MAX = 200_000
"""What names in nested SELECTs may come to where each is replaced by what it stands for: about 100 bytes
each.
"""

_COMMAND = (sys.executable, "-I", "-S", selection.__file__)
_places = threading.BoundedSemaphore(AT_ONCE)


class Limits(NamedTuple):
    """What an answer may take: rows, bytes of the rows as JSON, seconds of the processor's time, and bytes of
    memory.
    """

    rows: int
    bytes: int
    seconds: float
    memory_bytes: int


class Selection(NamedTuple):
    """The rows that were found, and whether there are more."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    has_more: bool


async def select(path: Path, sql: str, tables: Mapping[str, int], limits: Limits) -> Selection:
    """Run *sql*, one SELECT on *tables* of the file, with the number of words that each stands for, 0 of a
    part of an index; blobs become SQL literals of their beginning.

    Raises `Invalid` for whatever else it is, for what is wrong in it, for what takes too much, and for a
    first row that is too large; `Overloaded` while too many others run. The process ends with whoever is
    cancelled.
    """
    parts = (re.findall(r"\w+", part) for part in re.split(r"\bselect\b", sql, flags=re.IGNORECASE)[1:])
    expanded = math.prod(sum(tables.get(word.lower(), 1) for word in words) or 1 for words in parts)
    if expanded > EXPANDED_MAX:
        raise Invalid(
            "too much nested in each other", hint="ask with fewer or shorter SELECTs, one after the other"
        )
    if not _places.acquire(blocking=False):
        raise Overloaded(f"{AT_ONCE} SELECTs are running already", hint="ask again in a moment")
    try:
        answer = await _answer(path, sql, tables, limits)
    finally:
        _places.release()
    if answer.rows is None:
        raise _error(answer, tables)
    return Selection(answer.columns, answer.rows, answer.has_more)


class _Answer(msgspec.Struct, frozen=True):
    """What the process says: rows, or why there are none."""

    columns: tuple[str, ...] = ()
    rows: list[tuple[object, ...]] | None = None
    has_more: bool = False
    refused: tuple[str, str] | None = None
    gone: bool = False
    error: str = ""
    code: int = 0


async def _answer(path: Path, sql: str, tables: Mapping[str, int], limits: Limits) -> _Answer:
    driver = sys.modules[sqlite.__name__].__file__ or ""
    asked: selection.Question = {
        "driver": sqlite.__name__,
        "paths": [os.path.dirname(os.path.dirname(driver))],  # noqa: PTH120
        "extension": sqlite_vec.loadable_path(),
        "file": os.fspath(path),
        "sealed": sealing.pragmas(),
        "sql": sql,
        "tables": list(tables),
        "busy_timeout_ms": BUSY_TIMEOUT_MS,
        "rows": limits.rows,
        "bytes": limits.bytes,
        "seconds": limits.seconds,
        "memory_bytes": limits.memory_bytes,
    }
    said = b""
    try:
        with anyio.move_on_after(limits.seconds + selection.WAIT_S):
            async with child.started(_COMMAND, limits.bytes, msgspec.json.encode(asked) + b"\n") as running:
                said = await running.output.read()
    except OSError as error:
        raise StorageFailed(f"no process can be started beside this one: {error.strerror}") from error
    # What was ended by the system, or here, has said nothing.
    return (
        msgspec.json.decode(said, type=_Answer)
        if said
        else _Answer(refused=selection.taken(f"longer than {limits.seconds:g} s"))
    )


def _error(answer: _Answer, tables: Mapping[str, int]) -> OmegadError:
    """Return what is wrong with other people's SQL, as `Invalid`; what is the file's fault stays that."""
    if answer.gone:
        return ReadersClosed()
    if answer.refused:
        return Invalid(answer.refused[0], hint=answer.refused[1])
    if failure := storage_failure(answer.code, answer.error):
        return failure
    named = ", ".join(sorted(table for table, words in tables.items() if words))
    wanted = f"pass one SELECT on {named}; SELECT * FROM one LIMIT 1 shows its columns"
    return Invalid(f"SQL: {answer.error}", hint=wanted)
