"""The database of omega-memory: `~/.omega/omega.db`."""

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
    text_of,
    texts,
)

IN_COLUMNS = frozenset({"event_type", "project", "tags", "priority", "session_id", "entity_id"})
"""What its metadata repeat of its columns."""


def recognises(_path: Path, beginning: Beginning) -> bool:
    """Say whether it is one."""
    return columns_of(beginning.tables, "memories", ("node_id", "content", "event_type", "created_at"))


def read(path: Path) -> Iterator[Finding]:
    """Yield every memory that is active there, oldest first, and the edges."""
    with database(path) as connection:
        for row in rows(connection, "memories", "id"):
            metadata = decoded(row.get("metadata"), dict)
            status = row.get("status") or ("superseded" if metadata.get("superseded") else "active")
            if status != "active":
                yield LeftOut(row["node_id"], status)
                continue
            yield Found(
                source_id=row["node_id"],
                content=row["content"],
                created_at=moment(row["created_at"], modified_at(path)),
                event_type=row["event_type"] or "memory",
                tags=texts(metadata.get("tags")),
                project=text_of(row.get("project")),
                session_id=text_of(row.get("session_id")),
                entity_id=text_of(row.get("entity_id")),
                priority=row.get("priority"),
                ttl_seconds=row.get("ttl_seconds"),
                metadata={name: value for name, value in metadata.items() if name not in IN_COLUMNS and not name.startswith("_")},
            )
        for row in rows_if_any(connection, "edges", "id"):
            yield Edge(source_id=row["source_id"], target_id=row["target_id"], edge_type=row["edge_type"], weight=row.get("weight") or 1.0)


SOURCE = Source(
    "omega-memory",
    "the database of omega-memory, ~/.omega/omega.db",
    recognises,
    read,
    {"user_fact": "user_preference", "preference": "user_preference", "lesson": "lesson_learned"},
    {"evolution": "evolves"},
)
