"""The database of omega-memory: `~/.omega/omega.db`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omegad.edge.transfer.found import (
    NAME_CHARACTERS_MAX,
    Beginning,
    Edge,
    Finding,
    Found,
    LeftOut,
    Source,
    columns_of,
    decoded,
    each,
    modified_at,
    moment,
    text_of,
    texts,
)
from omegad.edge.transfer.reading import database, rows, rows_if_any

IN_COLUMNS = frozenset({"event_type", "project", "tags", "priority", "session_id", "entity_id"})
"""What its metadata repeat of its columns."""


def recognises(_path: Path, beginning: Beginning) -> bool:
    """Say whether it is one."""
    return columns_of(beginning.tables, "memories", ("node_id", "content", "event_type", "created_at"))


def read(path: Path) -> Iterator[Finding]:
    """Yield every memory that is active there, oldest first, and the edges."""
    at = modified_at(path)

    def memory(_place: str, row: dict[str, Any]) -> Iterator[Finding]:
        yield _found(row, at)

    with database(path) as connection:
        yield from each(rows(connection, "memories"), memory)
        yield from each(rows_if_any(connection, "edges"), _edge)


def _found(row: dict[str, Any], at: int) -> Finding:
    metadata = decoded(row.get("metadata"), dict)
    status = text_of(row.get("status")) or ("superseded" if metadata.get("superseded") else "active")
    if status != "active":
        return LeftOut(str(row["node_id"]), status[:NAME_CHARACTERS_MAX])
    return Found(
        source_id=row["node_id"],
        content=row["content"],
        created_at=moment(row.get("created_at"), at),
        event_type=row.get("event_type") or "memory",
        tags=texts(metadata.get("tags")),
        project=text_of(row.get("project")),
        session_id=text_of(row.get("session_id")),
        entity_id=text_of(row.get("entity_id")),
        priority=row.get("priority"),
        ttl_seconds=row.get("ttl_seconds"),
        metadata={name: value for name, value in metadata.items() if name not in IN_COLUMNS and not name.startswith("_")},
    )


def _edge(_place: str, row: dict[str, Any]) -> Iterator[Finding]:
    yield Edge(source_id=row["source_id"], target_id=row["target_id"], edge_type=row.get("edge_type") or "related", weight=row.get("weight") or 1.0)


SOURCE = Source(
    "omega-memory",
    "the database of omega-memory, ~/.omega/omega.db",
    recognises,
    read,
    {"user_fact": "user_preference", "preference": "user_preference", "lesson": "lesson_learned"},
    {"evolution": "evolves"},
)
