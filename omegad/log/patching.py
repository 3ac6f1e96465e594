"""Rows changed in place to what a projection would have made of an event whose payload says less than it did.

What a projection binds as text stands in its tables as it was bound, so what it would bind otherwise is
looked for there. Where that cannot be said of a statement, the projection has to be made anew.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from omegad.log.erasure import Remnant
from omegad.log.event import RecordedEvent
from omegad.log.projection import Projection
from omegad.storage.driver import Connection, sqlite

CHARACTERS_MIN = 12
"""Shorter texts may stand in a table for something else."""


def patch(
    connection: Connection, tables: Iterable[str], projection: Projection, erased: Sequence[Remnant]
) -> bool:
    """Change *tables*, those of *projection*, in the transaction that is open, to what they would be had each
    event been what remains of it. One with `ERASED_BY` takes that out itself, as it shows these events.

    Return whether that could be done; else nothing was changed, or some of it.
    """
    texts: dict[str, str | None] = {}
    times = Counter[str]()
    for one in () if hasattr(projection, "ERASED_BY") else erased:
        if not issubclass(one.kind, projection.EVENTS):
            continue
        found = None if (after := one.after) is None else _changes(projection, one.before, after)
        if found is None or any(texts.get(old, new) != new for old, new in found):
            return False
        texts |= found
        times.update(old for old, _ in found)
    # A text that stands there more often is that of another event, too, which says it still.
    return not texts or (
        all(_change(connection, table, texts, times) for table in tables) and min(times.values()) >= 0
    )


def _changes(
    projection: Projection, before: RecordedEvent, after: RecordedEvent
) -> list[tuple[str, str | None]] | None:
    """Return the texts that are bound for an event, each with what is to be bound instead; None where that
    does not tell what to change.
    """
    old, new = list(projection.project(before)), list(projection.project(after))
    if [sql for sql, _ in old] != [sql for sql, _ in new]:
        return None
    found = list[tuple[str, str | None]]()
    for (sql, was), (_, given) in zip(old, new, strict=True):
        for one, other in zip(was, given, strict=True):
            if one == other:
                continue
            if not isinstance(one, str) or not isinstance(other, str | None):
                return None
            if len(one) < CHARACTERS_MIN or (one[0] in "[{" and "json_each" in sql):
                return None
            found.append((one, other))
    return found


def _change(connection: Connection, table: str, texts: dict[str, str | None], times: Counter[str]) -> bool:
    """Put the new texts in place of the old ones, and take each from the *times* that they may be met; say
    whether the table takes them.
    """

    def patched(data: bytes | None) -> bytes | None:
        text = None if data is None else data.decode()
        if text is None or text not in texts:
            return data
        times[text] -= 1
        changed = texts[text]
        return None if changed is None else changed.encode()

    columns = [
        f'"{name}"'
        for _, name, kind, *_ in connection.execute(f'PRAGMA table_info("{table}")').fetchall()
        if kind == "TEXT"
    ]
    if not columns:
        return True
    connection.create_function("patched", 1, patched)
    # By their bytes, since the driver takes what a function returns as text for ended at the first NUL in it.
    changed = ", ".join(f"{column} = CAST(patched(CAST({column} AS BLOB)) AS TEXT)" for column in columns)
    holds = " OR ".join(f"{column} IN (SELECT value FROM json_each(?1))" for column in columns)
    try:
        connection.execute(
            f'UPDATE "{table}" SET {changed} WHERE {holds}', (msgspec.json.encode(list(texts)).decode(),)
        )
    except sqlite.IntegrityError:  # a key that is taken, or one that cannot be empty
        return False
    return True
