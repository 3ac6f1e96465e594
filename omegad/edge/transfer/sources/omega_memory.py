"""The database of omega-memory: `~/.omega/omega.db`."""

import re
from functools import partial

from omegad.edge.transfer.found import (
    NAME_CHARACTERS_MAX,
    Counts,
    Edge,
    Finding,
    Found,
    LeftOut,
    Source,
    counted,
    decoded,
    each_of_tables,
    has_columns,
    integer,
    moment,
    number,
    text_of,
    texts,
)
from omegad.runtime.json_types import Fields

IN_COLUMNS = frozenset({"event_type", "project", "tags", "priority", "session_id", "entity_id"})
"""What its metadata repeat of its columns."""
BESIDE = ("derived_from", "source_uri", "agent_type", "valid_until", "end_date")
SUPERSEDED = "superseded"
"""Columns that say something and have none here."""
READ = {
    "memories": (
        *("id", "node_id", "content", "metadata", "created_at", "last_accessed", "access_count", "status"),
        *("retrieval_count", "ttl_seconds", "session_id", "event_type", "project", "priority", "entity_id"),
        *("referenced_date", "content_hash", "canonical_hash", *BESIDE),
    ),
    "edges": ("id", "source_id", "target_id", "edge_type", "weight"),
}
"""The columns that are read, or made of others, by table."""
HABIT = "behavioral_pattern"
POINTS = {"helpful": 1, "unhelpful": -1, "outdated": -2}
NAME = re.compile("mem-[0-9a-f]{8,}")


def _found(row: Fields, at: int) -> Finding:
    metadata = decoded(row.get("metadata"), dict)
    status = text_of(row.get("status")) or "active"
    # Its upgrade to version 14 says of every row that it is superseded; of those that are, more is known.
    if metadata.get("superseded") or metadata.get("superseded_by"):
        status = SUPERSEDED
    elif status == SUPERSEDED and not row.get("valid_until"):
        status = "active"
    if status != "active":
        return LeftOut(str(row["node_id"]), status[:NAME_CHARACTERS_MAX])
    is_habit, confirmed = row.get("event_type") == HABIT, metadata.get("user_confirmed")
    if is_habit and confirmed is False:
        return LeftOut(str(row["node_id"]), "denied")
    return Found(
        source_id=row["node_id"],
        content=row["content"],
        created_at=moment(row.get("created_at"), at),
        event_type=row.get("event_type") or "memory",
        tags=(*texts(metadata.get("tags")), *((HABIT,) if is_habit else ())),
        project=text_of(row.get("project")),
        session_id=text_of(row.get("session_id")),
        entity_id=text_of(row.get("entity_id")),
        priority=row.get("priority"),
        ttl_seconds=row.get("ttl_seconds"),
        confidence=number(metadata.get("confidence"), 1.0),
        on_probation=is_habit and confirmed is not True,
        referenced_at=moment(row.get("referenced_date"), 0) or None,
        counts=_counts(row, metadata),
        metadata={name: row[name] for name in BESIDE if row.get(name) is not None}
        | {
            name: value
            for name, value in metadata.items()
            if name not in IN_COLUMNS and not name.startswith("_")
        },
    )


def _counts(row: Fields, metadata: Fields) -> Counts:
    """Return what was counted. The score is the sum that counts; what the ratings leave of it, since some
    versions keep the last ones alone, was helpful or unhelpful.
    """
    told = metadata.get("feedback_counts")
    if not isinstance(told, dict):
        signals = metadata.get("feedback_signals")
        given = (
            [one.get("rating") for one in signals if isinstance(one, dict)]
            if isinstance(signals, list)
            else []
        )
        told = {rating: given.count(rating) for rating in POINTS}
    ratings = {rating: counted(told.get(rating)) for rating in POINTS}
    score = integer(metadata.get("feedback_score"))
    rest = 0 if score is None else score - sum(POINTS[rating] * times for rating, times in ratings.items())
    ratings["helpful" if rest > 0 else "unhelpful"] += abs(rest)
    last = moment(row.get("last_accessed"), 0) or None
    retrievals = max(counted(row.get(name)) for name in ("access_count", "retrieval_count"))
    return Counts(retrievals=retrievals, last_retrieved_at=last, **ratings)


def _edge(row: Fields, _at: int) -> Edge:
    return Edge(
        source_id=row["source_id"],
        target_id=row["target_id"],
        edge_type=row.get("edge_type") or "related",
        weight=row.get("weight") or 1.0,
    )


SOURCE = Source(
    "omega-memory",
    "the database of omega-memory, ~/.omega/omega.db",
    has_columns("memories", "node_id", "content", "event_type", "created_at"),
    partial(each_of_tables, made={"memories": _found, "edges": _edge}, read=READ),
    {
        "user_fact": "user_preference",
        "preference": "user_preference",
        "lesson": "lesson_learned",
        HABIT: "user_preference",  # as habits are here
    },
    {"evolution": "evolves"},
    NAME.fullmatch,
)
