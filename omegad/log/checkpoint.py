"""How far a projection has come, and the tables that hold its rows."""

from collections.abc import Iterable, Mapping
from hashlib import sha256

import msgspec

from omegad.log.chain import GENESIS
from omegad.log.event import Position
from omegad.log.projection import Projection, schema
from omegad.storage.driver import Connection
from omegad.storage.transaction import run_script


class Checkpoint(msgspec.Struct, frozen=True):
    """Where a projection stands: the last position it shows, the log's chain there, and what it failed on,
    if it did.
    """

    name: str
    version: int
    schema_digest: str
    tables: tuple[str, ...] = ()
    position: Position = 0
    chain: bytes = GENESIS
    failed_position: Position | None = None
    error: str | None = None

    def belongs_to(self, projection: Projection) -> bool:
        """Say whether the rows were made by this version of the projection."""
        return self.version == projection.VERSION and self.can_be_read(projection)

    def can_be_read(self, projection: Projection) -> bool:
        """Say whether the rows are in tables that can be read and written as those of this version of the
        projection, whatever they say.
        """
        return self.schema_digest in {schema_digest(projection), *getattr(projection, "READABLE", ())}


def failed(marks: Mapping[str, Checkpoint], names: Iterable[str]) -> Checkpoint | None:
    """Return the checkpoint of one of the projections named that has failed, if one has."""
    return next((marks[name] for name in names if marks[name].failed_position is not None), None)


def schema_digest(projection: Projection) -> str:
    """Identify a projection's schema."""
    return sha256(schema(projection).encode()).hexdigest()[:16]


def start_of(projection: Projection) -> Checkpoint:
    """Return the checkpoint of a projection that has shown nothing yet."""
    return Checkpoint(
        name=projection.NAME, version=projection.VERSION, schema_digest=schema_digest(projection)
    )


def create(connection: Connection, projection: Projection, *, bare: bool = False) -> Checkpoint:
    """Make the tables of a projection, in the transaction that is open; *bare*, without its `INDEXES`.
    Return where it begins.
    """
    before = _tables(connection)
    run_script(connection, projection.SCHEMA if bare else schema(projection))
    return msgspec.structs.replace(start_of(projection), tables=tuple(sorted(_tables(connection) - before)))


def drop(connection: Connection, checkpoint: Checkpoint) -> None:
    """Remove the tables of a projection, whichever version of it made them."""
    for table in checkpoint.tables:
        connection.execute(f'DROP TABLE IF EXISTS "{table}"')


def _tables(connection: Connection) -> set[str]:
    rows = connection.execute("PRAGMA main.table_list").fetchall()
    return {
        name
        for _, name, kind, *_ in rows
        if kind in {"table", "virtual", "view"} and not name.startswith("sqlite_")
    }
