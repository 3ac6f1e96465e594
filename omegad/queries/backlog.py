"""Which memories lack vectors."""

import msgspec

from omegad.storage.driver import Connection


class Lacking(msgspec.Struct, frozen=True):
    """A memory without vectors of an embedder, with what is needed to embed and relate it."""

    memory_id: str
    content: str
    content_hash: str
    event_type: str
    project: str | None
    entity_id: str | None


_UNEMBEDDED = """
memories AS m WHERE m.status != 'deleted'
AND NOT EXISTS (SELECT 1 FROM memory_vectors AS v WHERE v.memory_id = m.node_id AND v.embedder_id = ? AND v.chunk = 0)
"""
_UNFILLED = """
SELECT d.position, m.content FROM deferred AS d CROSS JOIN memory_vectors AS v ON v.id = d.position * 1024 AND v.embedder_id = ?
JOIN memories AS m ON m.node_id = v.memory_id WHERE d.name = 'vectors' ORDER BY d.position LIMIT ?
"""


def unembedded(connection: Connection, embedder_id: str, limit: int) -> list[Lacking]:
    """Return memories that have no vectors of the embedder, oldest first."""
    columns = "m.node_id, m.content, m.content_hash, m.event_type, m.project, m.entity_id"
    rows = connection.execute(f"SELECT {columns} FROM {_UNEMBEDDED} ORDER BY m.id LIMIT ?", (embedder_id, limit))
    return [Lacking(*row) for row in rows]


def unfilled(connection: Connection, embedder_id: str, limit: int) -> list[tuple[int, str]]:
    """Return memories whose vectors are recorded but whose bytes are not at hand: the position of the record, and the content."""
    return connection.execute(_UNFILLED, (embedder_id, limit)).fetchall()


def count(connection: Connection, embedder_id: str | None) -> int:
    """Return how many memories cannot be found by meaning yet: without vectors of the embedder, or without the vectors' bytes."""
    unfilled = "deferred AS d CROSS JOIN memory_vectors AS v ON v.id = d.position * 1024 AND v.embedder_id = ? WHERE d.name = 'vectors'"
    sql = f"SELECT (SELECT count(*) FROM {_UNEMBEDDED}) + (SELECT count(*) FROM {unfilled})"
    found: int = connection.execute(sql, (embedder_id or "", embedder_id or "")).fetchone()[0]
    return found
