"""The SQLite database of mcp-memory-service: `sqlite_vec.db`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omegad.edge.transfer.found import Beginning, Edge, Finding, Found, LeftOut, Source, columns_of, decoded, each, modified_at, moment, text_of
from omegad.edge.transfer.reading import database, rows, rows_if_any

PROJECT = "proj:"
NO_TAG = "untagged"


def recognises(_path: Path, beginning: Beginning) -> bool:
    """Say whether it is one."""
    return columns_of(beginning.tables, "memories", ("content_hash", "content", "tags", "memory_type", "created_at"))


def read(path: Path) -> Iterator[Finding]:
    """Yield every memory that was not deleted or superseded there, oldest first, and the edges of its graph."""
    at = modified_at(path)

    def memory(_place: str, row: dict[str, Any]) -> Iterator[Finding]:
        yield _found(row, at)

    with database(path) as connection:
        yield from each(rows(connection, "memories"), memory)
        yield from each(rows_if_any(connection, "memory_graph"), _edge)


def _found(row: dict[str, Any], at: int) -> Finding:
    if hidden := "deleted" if row.get("deleted_at") else "superseded" if row.get("superseded_by") else None:
        return LeftOut(str(row["content_hash"]), hidden)
    tags = tuple(tag.strip() for tag in (text_of(row.get("tags")) or "").split(",") if tag.strip() not in {"", NO_TAG})
    return Found(
        source_id=row["content_hash"],
        content=row["content"],
        created_at=moment(row.get("created_at"), at),
        event_type=row.get("memory_type") or "memory",
        tags=tags,
        project=next((tag.removeprefix(PROJECT) for tag in tags if tag.startswith(PROJECT)), None),
        metadata=decoded(row.get("metadata"), dict),
    )


def _edge(_place: str, row: dict[str, Any]) -> Iterator[Finding]:
    kind = row.get("relationship_type") or "related"
    yield Edge(source_id=row["source_hash"], target_id=row["target_hash"], edge_type=kind, weight=row.get("similarity", 1.0))


SOURCE = Source(
    "mcp-memory-service",
    "the SQLite database of mcp-memory-service, sqlite_vec.db",
    recognises,
    read,
    {"learning": "lesson_learned", "error": "error_pattern", "observation": "memory", "note": "memory", "preference": "user_preference"},
)
