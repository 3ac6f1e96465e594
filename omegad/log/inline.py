"""Inline projections: tables of the log's own file, written in the transaction of the append, so that decisions can rely on them.

One that is new, or of another version, is made from the whole log, batch by batch; it is relied on only once it is in step.
"""

from collections.abc import Container, Iterable, Sequence
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from omegad.log import reading, retouching
from omegad.log.codec import Codec
from omegad.log.event import Event, Position, RecordedEvent
from omegad.runtime.errors import OmegadError, Unavailable
from omegad.storage.database import failure_of_storage, translated
from omegad.storage.digest import Digest, digest
from omegad.storage.driver import Connection
from omegad.storage.transaction import run_script, writing


class InlineProjection(Protocol):
    """The shape of an inline projection's module, as of any projection's.

    `REPLACES` may name tables in which releases that knew no `inline_projections` kept what it says.
    """

    @property
    def NAME(self) -> str: ...  # noqa: N802, D102  constants of a module
    @property
    def VERSION(self) -> int: ...  # noqa: N802, D102
    @property
    def SCHEMA(self) -> str: ...  # noqa: N802, D102
    @property
    def EVENTS(self) -> tuple[type[Event], ...]: ...  # noqa: N802, D102
    @property
    def CANONICAL(self) -> Sequence[str]: ...  # noqa: N802, D102
    def project(self, recorded: RecordedEvent, /) -> Iterable[tuple[str, Sequence[Any]]]:
        """Return the statements, each with the values that it binds, that show *recorded*, whose event is one of `EVENTS`."""
        ...


class ProjectionFailed(Unavailable):
    """An inline projection cannot be made from the log, so that nothing can be decided."""

    hint = "reading goes on; the message names the event: install the version of omegad that wrote it, or report this"


class Inline:
    """The inline projections of a log."""

    def __init__(self, projections: Sequence[InlineProjection]) -> None:
        """Take the modules."""
        self._projections = {projection.NAME: projection for projection in projections}
        self._by_event = {
            kind: tuple(projection for projection in projections if kind in projection.EVENTS)
            for kind in {kind for projection in projections for kind in projection.EVENTS}
        }

    def fold(self, connection: Connection, recorded: RecordedEvent) -> None:
        """Show an event to every projection that it concerns, in the transaction that is open."""
        for projection in self._concerned(recorded):
            for sql, values in projection.project(recorded):
                connection.execute(sql, values)

    def prepare(self, connection: Connection) -> Position | None:
        """Make the tables that are missing or of another version, empty; in the transaction that is open. Return as `behind` does."""
        if connection.execute("PRAGMA user_version").fetchone()[0]:  # a release that has none of this has appended
            self.reset(connection)
            connection.execute("PRAGMA user_version=0")
        found = {name: rest for name, *rest in connection.execute("SELECT name, version, schema_digest FROM inline_projections")}
        self._drop(connection, [name for name, identity in found.items() if identity != self._identity(name)])
        self._create(connection)
        return behind(connection)

    def reset(self, connection: Connection) -> None:
        """Empty every projection, to be made from the whole log; in the transaction that is open."""
        self._drop(connection, [name for (name,) in connection.execute("SELECT name FROM inline_projections")])
        self._create(connection)

    def catch_up(self, connection: Connection, codec: Codec, limit: int) -> Position | None:
        """Show up to *limit* more events to those that are behind, in a transaction. Return as `behind` does.

        Raises `ProjectionFailed`, and storage errors; then nothing has changed.
        """
        with translated(), writing(connection):
            marks = dict(connection.execute("SELECT name, position FROM inline_projections WHERE position IS NOT NULL"))
            batch = reading.read(connection, codec, min(marks.values(), default=0), limit) if marks else []
            for recorded in batch:
                self._show(connection, recorded, [name for name, position in marks.items() if position < recorded.position])
            reached = batch[-1].position if batch else None
            connection.execute("UPDATE inline_projections SET position = ?1 WHERE position < coalesce(?1, position + 1)", (reached,))
        return reached

    def other_tags(self, codec: Codec) -> list[str]:
        """Return the tags of *codec* whose events concern no projection."""
        return [tag for tag, kind in codec.kinds.items() if kind not in self._by_event]

    def show(self, connection: Connection, recorded: RecordedEvent) -> None:
        """Show an event to every projection; raises `ProjectionFailed`, and storage errors."""
        self._show(connection, recorded, self._projections)

    def retouch(self, connection: Connection, erased: retouching.Pairs) -> bool:
        """Change the rows that show events, in the transaction that is open, to what they would be had each been the second of its pair.

        Return whether that could be done; else they have to be made anew.
        """
        tables = {name: msgspec.json.decode(made, type=list[str]) for name, made in connection.execute("SELECT name, tables FROM inline_projections")}
        kept = [name for name in self._projections if name in tables]
        return not erased or all(retouching.retouch(connection, tables[name], self._projections[name], erased) for name in kept)

    def digests(self, connection: Connection) -> dict[str, Digest]:
        """Return what each projection says that is in step with the log."""
        names = [name for (name,) in connection.execute("SELECT name FROM inline_projections WHERE position IS NULL")]
        return {name: digest(connection, self._projections[name]) for name in names if name in self._projections}

    def replica(self, connection: Connection) -> None:
        """Make the tables of every projection in a database of their own, where the log is not."""
        for projection in self._projections.values():
            run_script(connection, projection.SCHEMA)

    def digests_of_replica(self, connection: Connection) -> dict[str, Digest]:
        """Return what each projection says in a database of their own."""
        return {name: digest(connection, projection) for name, projection in self._projections.items()}

    def _show(self, connection: Connection, recorded: RecordedEvent, names: Container[str]) -> None:
        for projection in self._concerned(recorded):
            if projection.NAME in names:
                try:
                    for sql, values in projection.project(recorded):
                        connection.execute(sql, values)
                except OmegadError:
                    raise
                except Exception as error:
                    raise failure_of_storage(error) or _failure(projection, recorded, error) from error

    def _concerned(self, recorded: RecordedEvent) -> Sequence[InlineProjection]:
        return self._by_event.get(type(recorded.event), ())  # type: ignore[arg-type]

    def _identity(self, name: str) -> list[object] | None:
        projection = self._projections.get(name)
        return [projection.VERSION, sha256(projection.SCHEMA.encode()).hexdigest()[:16]] if projection else None

    def _drop(self, connection: Connection, names: Sequence[str]) -> None:
        for name in names:
            (tables,) = connection.execute("DELETE FROM inline_projections WHERE name = ? RETURNING tables", (name,)).fetchone()
            for table in msgspec.json.decode(tables, type=list[str]):
                connection.execute(f'DROP TABLE IF EXISTS "{table}"')

    def _create(self, connection: Connection) -> None:
        known = {name for (name,) in connection.execute("SELECT name FROM inline_projections")}
        begin = 0 if reading.head(connection) else None
        for name in self._projections.keys() - known:
            for table in getattr(self._projections[name], "REPLACES", ()):
                connection.execute(f'DROP TABLE IF EXISTS "{table}"')
            before = _tables(connection)
            run_script(connection, self._projections[name].SCHEMA)
            made = msgspec.json.encode(sorted(_tables(connection) - before)).decode()
            row = (name, *(self._identity(name) or ()), made, begin)
            connection.execute("INSERT INTO inline_projections VALUES (?, ?, ?, ?, ?)", row)


def behind(connection: Connection) -> Position | None:
    """Return how far those have come that are not in step with the log, None when all are."""
    found: Position | None = connection.execute("SELECT min(position) FROM inline_projections").fetchone()[0]
    return found


def _failure(projection: InlineProjection, recorded: RecordedEvent, error: Exception) -> OmegadError:
    reason = f"{type(error).__name__}: {error}"[:500]
    return ProjectionFailed(f"the inline projection {projection.NAME!r} fails at position {recorded.position}: {reason}")


def _tables(connection: Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
