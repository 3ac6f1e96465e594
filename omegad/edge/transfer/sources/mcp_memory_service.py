"""The SQLite database of mcp-memory-service: `sqlite_vec.db`."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from omegad.edge.transfer.found import (
    Beginning,
    Counts,
    Edge,
    Finding,
    Found,
    LeftOut,
    Other,
    Source,
    columns_of,
    counted,
    decoded,
    each,
    modified_at,
    moment,
    number,
    text_of,
)
from omegad.edge.transfer.reading import database, others, rows, rows_if_any
from omegad.runtime.json_types import Fields
from omegad.storage.driver import sqlite

PROJECT = "proj:"
NO_TAG = "untagged"
READ = {
    "memories": (
        *("id", "content_hash", "content", "tags", "memory_type", "metadata", "created_at", "created_at_iso"),
        *("updated_at_iso", "deleted_at", "superseded_by", "confidence", "last_accessed"),
        "parent_id",
    ),
    "memory_graph": ("source_hash", "target_hash", "similarity", "relationship_type"),
}
"""The columns that are read, or made of others, by table."""
QUALITY = "quality_score"
"""What a model or its use made a memory worth there; what people rated it comes along."""

HELPFUL, UNHELPFUL = 1, -1
"""What a person may have rated a memory."""


def recognises(_path: Path, beginning: Beginning) -> bool:
    """Say whether it is one."""
    return columns_of(
        beginning.tables, "memories", ("content_hash", "content", "tags", "memory_type", "created_at")
    )


def read(path: Path) -> Iterator[Finding]:
    """Yield every memory that was not deleted or superseded there, oldest first, the edges of its graph,
    and what else it holds.
    """
    at = modified_at(path)

    rated = 0

    def memory(_place: str, row: Fields) -> Iterator[Finding]:
        nonlocal rated
        found = _found(row, at, known)
        rated += isinstance(found, Found) and QUALITY in found.metadata
        yield found

    with database(path) as connection:
        known = set[object]()
        with suppress(sqlite.DatabaseError):  # of damaged pages, what can be read
            known.update(text for (text,) in connection.execute("SELECT content_hash FROM memories"))
        yield from each(rows(connection, "memories"), memory)
        yield from each(rows_if_any(connection, "memory_graph"), _edge)
        if rated:
            yield Other(f"{QUALITY}, which stays in the metadata and ranks nothing", rated)
        yield from (Other(what, count) for what, count in others(connection, READ))


def _found(row: Fields, at: int, known: Collection[object]) -> Finding:
    """Return what a row says; its parent is named where it is one of those *known*, or the digest of a text
    that is gone would be kept.
    """
    if hidden := "deleted" if row.get("deleted_at") else "superseded" if row.get("superseded_by") else None:
        return LeftOut(str(row["content_hash"]), hidden)
    tags = tuple(
        tag.strip() for tag in (text_of(row.get("tags")) or "").split(",") if tag.strip() not in {"", NO_TAG}
    )
    metadata, parent = decoded(row.get("metadata"), dict), text_of(row.get("parent_id"))
    return Found(
        source_id=row["content_hash"],
        content=row["content"],
        created_at=moment(row.get("created_at"), at),
        event_type=row.get("memory_type") or "memory",
        tags=tags,
        project=next((tag.removeprefix(PROJECT) for tag in tags if tag.startswith(PROJECT)), None),
        confidence=number(row.get("confidence"), 1.0),
        counts=_counts(row, metadata),
        metadata=({"parent_id": parent} if parent in known else {}) | metadata,
    )


def _counts(row: Fields, metadata: Fields) -> Counts:
    """Return what was counted: of the ratings the last ones, which are those that it keeps."""
    history = metadata.get("rating_history")
    told = (
        [one.get("rating") for one in history if isinstance(one, dict)] if isinstance(history, list) else []
    )
    ratings = told or [metadata.get("user_rating")]
    last = moment(metadata.get("last_accessed_at"), 0) or moment(row.get("last_accessed"), 0)
    return Counts(
        retrievals=counted(metadata.get("access_count")),
        last_retrieved_at=last or None,
        helpful=ratings.count(HELPFUL),
        unhelpful=ratings.count(UNHELPFUL),
    )


def _edge(_place: str, row: Fields) -> Iterator[Finding]:
    kind = row.get("relationship_type") or "related"
    yield Edge(
        source_id=row["source_hash"],
        target_id=row["target_hash"],
        edge_type=kind,
        weight=row.get("similarity", 1.0),
    )


SOURCE = Source(
    "mcp-memory-service",
    "the SQLite database of mcp-memory-service, sqlite_vec.db",
    recognises,
    read,
    {
        "learning": "lesson_learned",
        "insight": "lesson_learned",
        "best_practice": "lesson_learned",
        "anti_pattern": "lesson_learned",
        "gotcha": "lesson_learned",
        "error": "error_pattern",
        "bug": "error_pattern",
        "architecture": "decision",
        "tool_choice": "decision",
        "approach": "decision",
        "observation": "memory",
        "note": "memory",
        "preference": "user_preference",
    },
)
