"""How far each projection has come, kept in the file of its rows."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import msgspec

from omegad.log.chain import GENESIS
from omegad.log.event import Position
from omegad.log.projection import Projection, schema
from omegad.storage.driver import Connection


class Checkpoint(msgspec.Struct, frozen=True):
    """Where a projection stands: the last position it shows, the log's chain there, and what it failed on, if it did."""

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
        """Say whether the rows are in the tables that this version of the projection has, whatever they say."""
        return self.schema_digest == schema_digest(projection)


def schema_digest(projection: Projection) -> str:
    """Identify a projection's schema."""
    return sha256(schema(projection).encode()).hexdigest()[:16]


def start_of(projection: Projection) -> Checkpoint:
    """Return the checkpoint of a projection that has shown nothing yet."""
    return Checkpoint(name=projection.NAME, version=projection.VERSION, schema_digest=schema_digest(projection))


def load(connection: Connection) -> dict[str, Checkpoint]:
    """Read every checkpoint of the file, by projection name."""
    rows = connection.execute("SELECT name, version, schema_digest, tables, position, chain, failed_position, error FROM checkpoints")
    return {row[0]: _from_row(*row) for row in rows}


def save(connection: Connection, checkpoint: Checkpoint) -> None:
    """Write the checkpoint of a projection whose tables were made, in the same transaction."""
    name, version, digest, tables, *rest = msgspec.structs.astuple(checkpoint)
    row = (name, version, digest, msgspec.json.encode(tables).decode(), *rest)
    connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def move(connection: Connection, reached: Iterable[Checkpoint]) -> None:
    """Write how far projections have come whose checkpoints are there, in the transaction of the rows."""
    rows = [(one.position, one.chain, one.failed_position, one.error, one.name) for one in reached]
    connection.executemany("UPDATE checkpoints SET position = ?, chain = ?, failed_position = ?, error = ? WHERE name = ?", rows)


def _from_row(name: str, version: int, digest: str, tables: str, *rest: Any) -> Checkpoint:  # noqa: ANN401  columns of a STRICT table
    return Checkpoint(name, version, digest, msgspec.json.decode(tables, type=tuple[str, ...]), *rest)
