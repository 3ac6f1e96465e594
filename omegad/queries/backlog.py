"""Which memories lack vectors."""

from typing import Any

import msgspec

from omegad.storage.driver import Connection


class Lacking(msgspec.Struct, frozen=True, kw_only=True):
    """A memory without vectors of an embedder, with what is needed to embed and relate it."""

    row: int
    memory_id: str
    content: str
    content_key: str
    event_type: str
    project: str | None
    entity_id: str | None
    is_pending: bool


_UNEMBEDDED = """
memories AS m WHERE m.status != 'deleted'
AND NOT EXISTS (SELECT 1 FROM memory_vectors AS v WHERE v.memory_id = m.node_id AND v.embedder_id = ? AND v.chunk = 0)
"""
_UNFILLED = """
SELECT m.content FROM deferred AS d JOIN memory_vectors AS v ON v.id / 1024 = d.position AND v.embedder_id = ?
JOIN memories AS m ON m.node_id = v.memory_id WHERE d.name = 'vectors' AND v.chunk = 0 ORDER BY d.position LIMIT ?
"""


def unembedded(connection: Connection, embedder_id: str, limit: int) -> list[Lacking]:
    """Return memories that have no vectors of the embedder, oldest first."""
    columns = "m.id, m.node_id, m.content, m.content_hash, m.event_type, m.project, m.entity_id, m.pending"
    rows = connection.execute(f"SELECT {columns} FROM {_UNEMBEDDED} ORDER BY m.id LIMIT ?", (embedder_id, limit))
    return [_lacking(*row) for row in rows]


def unfilled(connection: Connection, embedder_id: str, limit: int) -> list[str]:
    """Return the content of memories whose vectors are recorded but whose bytes are not at hand."""
    return [row[0] for row in connection.execute(_UNFILLED, (embedder_id, limit))]


def count(connection: Connection, embedder_id: str | None) -> int:
    """Return how many memories have no vectors of the embedder."""
    found: int = connection.execute(f"SELECT count(*) FROM {_UNEMBEDDED}", (embedder_id or "",)).fetchone()[0]
    return found


def _lacking(row: int, memory_id: str, content: str, content_key: str, event_type: str, *rest: Any) -> Lacking:  # noqa: ANN401  columns
    project, entity_id, pending = rest
    return Lacking(
        row=row,
        memory_id=memory_id,
        content=content,
        content_key=content_key,
        event_type=event_type,
        project=project,
        entity_id=entity_id,
        is_pending=bool(pending),
    )
