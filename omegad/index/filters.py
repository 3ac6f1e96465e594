"""Which memories a query or list is about."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.index.active import active, active_or_replaced
from omegad.requests.query import One, Query
from omegad.runtime.errors import Invalid
from omegad.runtime.times import parse_time
from omegad.storage.driver import Connection

LAST_ROW = 2**62
CURSOR_DIGITS = 19  # fewer than would pass 2**62

Some = Annotated[tuple[One, ...], Meta(max_length=32)]
Whose = Literal["mine", "others"]

_ORIGIN = "coalesce((SELECT origin FROM memory_owners WHERE memory_id = m.node_id), '')"
_OF_PERSON = "(SELECT origin FROM share_origins WHERE person = ?)"
_OF_OTHERS = """
(SELECT origin FROM share_origins WHERE person IS NOT (SELECT person FROM share_origins WHERE is_here))
"""


class Filters(Query, frozen=True, kw_only=True):
    """Conditions that all must hold; of several types, and of several tags, one must. `since` and `until`
    bound when it was stored.
    """

    event_types: Annotated[Some, Meta(description="of this type; of one of them when repeated")] = ()
    project: Annotated[One | None, Meta(description="of this project")] = None
    or_none: Annotated[bool, Meta(description="where a project is named, also what is of none")] = False
    entity_id: Annotated[One | None, Meta(description="about this person or thing")] = None
    session_id: Annotated[One | None, Meta(description="from this session")] = None
    tags: Annotated[Some, Meta(description="with this tag; with one of them when repeated")] = ()
    since: Annotated[str | None, Meta(description="stored at or after this time, like 2026-01-31")] = None
    until: Annotated[str | None, Meta(description="stored at or before this time")] = None
    person: Annotated[One | None, Meta(description="said by this person of the team")] = None
    whose: Annotated[
        Whose | None, Meta(description="said by the person of this home, on whichever machine, or by others")
    ] = None

    @property
    def are_of_rows(self) -> bool:
        """Whether the rows of memories have to be looked at to tell which pass: the columns beside the index
        do not say it.
        """
        return bool(self.tags) or self.person is not None or self.whose is not None

    def named(self) -> dict[str, object]:
        """Return the conditions that are set."""
        found = {
            name: getattr(self, name)
            for name in Filters.__struct_fields__
            if name not in Query.__struct_fields__
        }
        return {name: value for name, value in found.items() if value not in (None, (), False)}

    def before(self, cursor: str | None) -> int:
        """Return the row that a page begins before; raises `Invalid` for a cursor that no page gave."""
        if cursor is None:
            return LAST_ROW
        if not (cursor.isascii() and cursor.isdigit() and len(cursor) < CURSOR_DIGITS):
            raise Invalid(
                f"{cursor[:40]!r} is not a cursor", hint="pass next_cursor of the page before, or nothing"
            )
        return int(cursor)


class Filtered(msgspec.Struct, frozen=True):
    """Which memories are looked among: a condition on `memories AS m`, and its values; whether all that
    can be found pass it.
    """

    condition: str
    values: tuple[object, ...]
    is_everything: bool = False


def where(filters: Filters, now_us: int) -> tuple[str, tuple[object, ...]]:
    """Return a condition on `memories AS m`, and its values: what is active, not expired at *now_us*, and
    passes the filters.
    """
    return _where(filters, active(now="?"), now_us)


def where_ever(filters: Filters, now_us: int) -> tuple[str, tuple[object, ...]]:
    """Return the same of what is active, or was until something replaced it."""
    return _where(filters, active_or_replaced("?"), now_us)


def _where(filters: Filters, standing: str, now_us: int) -> tuple[str, tuple[object, ...]]:
    named = {column: getattr(filters, column) for column in ("entity_id", "session_id")}
    parts: list[tuple[str, tuple[object, ...]]] = [
        (standing, (now_us,)),
        *((f"m.{column} = ?", (value,)) for column, value in named.items() if value is not None),
    ]
    if filters.project is not None:
        parts.append((f"(m.project = ?{' OR m.project IS NULL' * filters.or_none})", (filters.project,)))
    if filters.event_types:
        parts.append((f"m.event_type IN ({_marks(filters.event_types)})", filters.event_types))
    if filters.tags:
        marks = _marks(filters.tags)
        tagged = (
            f"EXISTS (SELECT 1 FROM json_each(m.{column}) WHERE value IN ({marks}))"
            for column in ("tags", "auto_tags")
        )
        parts.append((f"({' OR '.join(tagged)})", filters.tags * 2))
    if filters.since is not None:
        parts.append(("m.created_us >= ?", (parse_time(filters.since, "since"),)))
    if filters.until is not None:
        parts.append(("m.created_us <= ?", (parse_time(filters.until, "until"),)))
    if filters.person is not None:
        parts.append((f"{_ORIGIN} IN {_OF_PERSON}", (filters.person,)))
    if filters.whose is not None:
        parts.append((f"{_ORIGIN} {'NOT ' * (filters.whose == 'mine')}IN {_OF_OTHERS}", ()))
    return " AND ".join(part for part, _ in parts), tuple(value for _, values in parts for value in values)


def require_known(connection: Connection, filters: Filters) -> None:
    """Raise `Invalid` where the filters ask for a person of whom this home has never heard."""
    if filters.person is None:
        return
    known = [name for (name,) in connection.execute("SELECT DISTINCT person FROM share_origins ORDER BY 1")]
    if filters.person not in known:
        there = f"known are {', '.join(known)}" if known else "this home shares with no team: leave it out"
        raise Invalid(f"nobody is called {filters.person!r} in the team", hint=there)


def _marks(values: tuple[str, ...]) -> str:
    return ", ".join("?" * len(values))
