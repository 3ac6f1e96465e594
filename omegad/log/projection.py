"""The one contract of every fold of the log, whether its tables are written with the append (inline) or
follow it (async).

A projection is a module: a pure function from events to statements on tables of its own. It has no
connection, clock, randomness or logger, and does not know the other projections.
"""

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import LiteralString, NamedTuple, Protocol, cast

import msgspec

from omegad.log.event import Event, RecordedEvent
from omegad.log.mending import ClockMended


class Embedding(NamedTuple):
    """Stands in a statement for the bytes of a vector: float32, little-endian, of unit length.

    Where the bytes are not at hand the statement is put off until they are, so it must be one that changes
    only rows that still have this text hash, and may be run late or twice. Where one statement binds an
    embedding, so does every other of the same SQL.
    """

    embedder_id: str
    text_hash: str


_json = msgspec.json.Encoder(order="deterministic")


def to_json(value: object) -> str:
    """Write *value* as JSON, the same text for equal values."""
    return _json.encode(value).decode()


def united(column: LiteralString, given: LiteralString) -> LiteralString:
    """Return the SQL of a JSON array: the distinct values of a column that holds one, then those of the
    parameter *given*, at most 32.
    """
    return f"""(
        SELECT json_group_array(value) FROM (
            SELECT value FROM (SELECT 0 AS part, key, value FROM json_each({column}) UNION ALL
            SELECT 1, key, value FROM json_each({given}))
            GROUP BY value ORDER BY min(part), min(key) LIMIT 32
        )
    )"""


Value = str | int | float | bytes | None | Embedding


class Statement(NamedTuple):
    """One SQL statement and the values it binds."""

    sql: LiteralString
    values: Sequence[Value] = ()


def set_right(mended: ClockMended, table: LiteralString, *columns: LiteralString) -> Iterator[Statement]:
    """Return what sets right those times of columns, microseconds since 1970, that a clock stamped that
    was ahead.
    """
    for column in columns:
        sql = f"UPDATE {table} SET {column} = max(?1, {column} - ?2) WHERE {column} > ?3"
        yield Statement(sql, (mended.right_us, mended.ahead_us, mended.to_us))


def shorten(
    mended: ClockMended, table: LiteralString, position: LiteralString, until: LiteralString
) -> Statement:
    """Return what sets right until when, in microseconds since 1970, that holds which a clock stamped that
    was ahead; *position* is its event's.
    """
    sql = (
        f"UPDATE {table} SET {until} = {until} - ?1 WHERE {position} BETWEEN ?2 AND ?3 AND {until} - ?1 > ?4"
    )
    return Statement(sql, (mended.ahead_us, mended.first, mended.last, mended.right_us))


def written(time_us: LiteralString) -> LiteralString:
    """Return SQL that writes microseconds since 1970 as `times.rfc3339` does."""
    return (
        f"strftime('%Y-%m-%dT%H:%M:%S', {time_us} / 1000000, 'unixepoch') || printf('.%06dZ', {time_us} %"
        " 1000000)"
    )


def indexes(projection: "Projection") -> str:
    """Return the SQL of the indexes that only readers need."""
    return getattr(projection, "INDEXES", "")


def schema(projection: "Projection") -> str:
    """Return the SQL of all that a projection makes."""
    return projection.SCHEMA + indexes(projection)


class Projection(Protocol):
    """The shape of a projection's module.

    `NAME` is the word people use for it. `VERSION` goes up whenever `project` changes what it says of old
    events; the view is then built again. `SCHEMA` makes its tables. `EVENTS` are the events it shows.
    `CANONICAL` are the SELECTs, each with its ORDER BY, whose rows define what the view says: two views are
    equal when these are.

    A module may also have `INDEXES`, the SQL of indexes that `project` does without, which a rebuild makes
    when it has shown everything; `INTEGRITY`, SELECTs that fail, or return rows, where an index of its own is
    damaged; `APPROXIMATE`, SELECTs of a key, a float32 vector and the position of the event that it is of, in
    the order of the keys, whose vectors are equal when they differ by at most 1e-4; `ERASED_BY`, those of
    `EVENTS` that take out of its rows whatever is erased with them, as of earlier moments, too; `WIPES`,
    statements after which no index of its own keeps what was deleted; `SQL_VIEWS`, the SQL that drops and
    makes what reads its tables and others' for people's own SQL, run whenever the file is opened, and no part
    of the schema; `READABLE`, the digests of earlier schemas whose tables serve until they are built again;
    `project_together`, of a view, which says of many events, in their order, what `project` says of each, in
    fewer statements, none of which binds a vector; and, where it is inline, `REPLACES`, the tables in which
    releases before `inline_projections` kept what it says.
    """

    @property
    def NAME(self) -> str: ...  # noqa: N802, D102  constants of a module
    @property
    def VERSION(self) -> int: ...  # noqa: N802, D102
    @property
    def SCHEMA(self) -> LiteralString: ...  # noqa: N802, D102
    @property
    def EVENTS(self) -> tuple[type[Event], ...]: ...  # noqa: N802, D102
    @property
    def CANONICAL(self) -> tuple[LiteralString, ...]: ...  # noqa: N802, D102
    def project(self, recorded: RecordedEvent, /) -> Iterable[Statement]:
        """Return the statements that show *recorded*, whose event is one of `EVENTS`."""
        ...


def modules(package: str, *names: str) -> tuple[Projection, ...]:
    """Return the projections that are modules of a package."""
    return tuple(cast("Projection", import_module(f"{package}.{name}")) for name in names)
