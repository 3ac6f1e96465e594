"""The SQLite database of mcp-memory-service: `sqlite_vec.db`."""

from collections.abc import Iterator
from pathlib import Path

from omegad.transfer.found import (
    Beginning,
    Edge,
    Finding,
    Found,
    LeftOut,
    Source,
    columns_of,
    database,
    decoded,
    modified_at,
    moment,
    rows,
    rows_if_any,
)

PROJECT = "proj:"
NO_TAG = "untagged"


def recognises(_path: Path, beginning: Beginning) -> bool:
    """Say whether it is one."""
    return columns_of(beginning.tables, "memories", ("content_hash", "content", "tags", "memory_type", "created_at"))


def read(path: Path) -> Iterator[Finding]:
    """Yield every memory that was not deleted or superseded there, oldest first, and the edges of its graph."""
    with database(path) as connection:
        for row in rows(connection, "memories", "id"):
            metadata = decoded(row["metadata"], dict)
            hidden = "deleted" if row.get("deleted_at") else "superseded" if row.get("superseded_by") else None
            if hidden:
                yield LeftOut(row["content_hash"], hidden)
                continue
            tags = tuple(tag.strip() for tag in (row["tags"] or "").split(",") if tag.strip() not in {"", NO_TAG})
            yield Found(
                source_id=row["content_hash"],
                content=row["content"],
                created_at=moment(row["created_at"], modified_at(path)),
                event_type=row["memory_type"] or "memory",
                tags=tags,
                project=next((tag.removeprefix(PROJECT) for tag in tags if tag.startswith(PROJECT)), None),
                metadata=metadata,
            )
        for row in rows_if_any(connection, "memory_graph", "rowid"):
            kind = row.get("relationship_type") or "related"
            yield Edge(source_id=row["source_hash"], target_id=row["target_hash"], edge_type=kind, weight=row["similarity"])


SOURCE = Source(
    "mcp-memory-service",
    "the SQLite database of mcp-memory-service, sqlite_vec.db",
    recognises,
    read,
    {"learning": "lesson_learned", "error": "error_pattern", "observation": "memory", "note": "memory", "preference": "user_preference"},
)
