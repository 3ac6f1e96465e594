"""Which memories lack vectors."""

import msgspec

from omegad.storage.driver import Connection


class Lacking(msgspec.Struct, frozen=True):
    """A memory without vectors of an embedder, with what is needed to embed and relate it. Its place is the position that it was stored at."""

    place: int
    memory_id: str
    content: str
    content_hash: str
    event_type: str
    project: str | None
    entity_id: str | None
    session_id: str | None


class Unfilled(msgspec.Struct, frozen=True):
    """A memory whose vectors are recorded but not at hand. Its place is the position of the record."""

    place: int
    memory_id: str
    content: str
    content_hash: str


_UNEMBEDDED = """
memories AS m WHERE m.id > ? AND m.status != 'deleted'
AND NOT EXISTS (SELECT 1 FROM memory_vectors AS v WHERE v.memory_id = m.node_id AND v.embedder_id = ? AND v.chunk = 0)
"""
_UNFILLED = """
deferred AS d CROSS JOIN memory_vectors AS v ON v.id = d.position * 1024 AND v.embedder_id = ?
JOIN memories AS m ON m.node_id = v.memory_id WHERE d.name = 'vectors' AND d.position > ?
"""


def unembedded(connection: Connection, embedder_id: str, after: int, limit: int) -> list[Lacking]:
    """Return memories after a place that have no vectors of the embedder, oldest first."""
    columns = "m.id, m.node_id, m.content, m.content_hash, m.event_type, m.project, m.entity_id, m.session_id"
    rows = connection.execute(f"SELECT {columns} FROM {_UNEMBEDDED} ORDER BY m.id LIMIT ?", (after, embedder_id, limit))
    return [Lacking(*row) for row in rows]


def unfilled(connection: Connection, embedder_id: str, after: int, limit: int) -> list[Unfilled]:
    """Return memories after a place whose vectors are recorded but whose bytes are not at hand, in the order of the records."""
    columns = "d.position, m.node_id, m.content, m.content_hash"
    rows = connection.execute(f"SELECT {columns} FROM {_UNFILLED} ORDER BY d.position LIMIT ?", (embedder_id, after, limit))
    return [Unfilled(*row) for row in rows]


def count(connection: Connection, embedder_id: str | None, after: int = 0, filled_to: int = 0) -> int:
    """Return how many memories cannot be found by meaning yet.

    Those are stored after *after* and have no vectors of the embedder, or have some recorded after *filled_to* whose bytes are not at hand.
    """
    sql = f"SELECT (SELECT count(*) FROM {_UNEMBEDDED}) + (SELECT count(*) FROM {_UNFILLED})"
    found: int = connection.execute(sql, (after, embedder_id or "", embedder_id or "", filled_to)).fetchone()[0]
    return found
