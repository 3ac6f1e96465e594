"""How far each projection has come, kept in the file of its rows."""

from collections.abc import Iterable

import msgspec

from omegad.log.checkpoint import Checkpoint
from omegad.storage.driver import Connection


def load(connection: Connection) -> dict[str, Checkpoint]:
    """Read every checkpoint of the file, by projection name."""
    rows = connection.execute(
        "SELECT name, version, schema_digest, tables, position, chain, failed_position, error FROM"
        " checkpoints"
    )
    return {
        name: Checkpoint(name, version, digest, msgspec.json.decode(tables, type=tuple[str, ...]), *rest)
        for name, version, digest, tables, *rest in rows
    }


def save(connection: Connection, checkpoint: Checkpoint) -> Checkpoint:
    """Write the checkpoint of a projection whose tables were made, in the same transaction; return it."""
    name, version, digest, tables, *rest = msgspec.structs.astuple(checkpoint)
    row = (name, version, digest, msgspec.json.encode(tables).decode(), *rest)
    connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    return checkpoint


def move(connection: Connection, reached: Iterable[Checkpoint]) -> None:
    """Write how far projections have come whose checkpoints are there, in the transaction of the rows."""
    rows = [(one.position, one.chain, one.failed_position, one.error, one.name) for one in reached]
    connection.executemany(
        "UPDATE checkpoints SET position = ?, chain = ?, failed_position = ?, error = ? WHERE name = ?", rows
    )
