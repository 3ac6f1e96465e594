"""The SQLite database of mcp-memory-service: `sqlite_vec.db`."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from omegad.edge.transfer.found import (
    Counts,
    Edge,
    Finding,
    Found,
    LeftOut,
    Other,
    Source,
    counted,
    decoded,
    each_of_tables,
    has_columns,
    moment,
    number,
    text_of,
)
from omegad.edge.transfer.reading import database
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


def read(path: Path) -> Iterator[Finding]:
    """Yield every memory that was not deleted or superseded there, oldest first, the edges of its graph,
    and what else it holds.
    """
    known, rated = set[object](), list[str]()
    with database(path) as connection, suppress(sqlite.DatabaseError):  # of damaged pages, what can be read
        known.update(text for (text,) in connection.execute("SELECT content_hash FROM memories"))
    told = f"{QUALITY}, which stays in the metadata and ranks nothing"
    for one in each_of_tables(
        path,
        {"memories": partial(_found, known), "memory_graph": _edge},
        READ,
        lambda: [Other(told, len(rated))] if rated else [],
    ):
        if isinstance(one, Found) and QUALITY in one.metadata:
            rated.append(one.source_id)
        yield one


def _found(known: Collection[object], row: Fields, at: int) -> Finding:
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


def _edge(row: Fields, _at: int) -> Edge:
    return Edge(
        source_id=row["source_hash"],
        target_id=row["target_hash"],
        edge_type=row.get("relationship_type") or "related",
        weight=row.get("similarity", 1.0),
    )


SOURCE = Source(
    "mcp-memory-service",
    "the SQLite database of mcp-memory-service, sqlite_vec.db",
    has_columns("memories", "content_hash", "content", "tags", "memory_type", "created_at"),
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
