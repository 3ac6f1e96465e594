"""The database of claude-mem: `~/.claude-mem/claude-mem.db`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omegad.transfer.found import (
    Beginning,
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

SUMMED_UP = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def recognises(_path: Path, beginning: Beginning) -> bool:
    """Say whether it is one."""
    return columns_of(beginning.tables, "observations", ("project", "type", "created_at"))


def read(path: Path) -> Iterator[Finding]:
    """Yield what was observed, then how sessions were summed up, oldest first."""
    with database(path) as connection:
        for row in rows(connection, "observations", "id"):
            told = (row.get("title"), row.get("narrative") or row.get("text"), *(f"- {fact}" for fact in texts(decoded(row.get("facts"), list))))
            yield _found(path, row, "observation", row["type"] or "memory", told)
        for row in rows_if_any(connection, "session_summaries", "id"):
            told = tuple(f"{name.replace('_', ' ').capitalize()}: {row[name]}" for name in SUMMED_UP if text_of(row.get(name)))
            yield _found(path, row, "summary", "session_summary", told)


def _found(path: Path, row: dict[str, Any], kind: str, event_type: str, told: tuple[Any, ...]) -> Finding:
    content = "\n".join(text for text in told if text_of(text))
    if not content:
        return LeftOut(f"{kind}-{row['id']}", "empty")
    files = {name: read for name in ("files_read", "files_modified", "files_edited") if (read := texts(decoded(row.get(name), list)))}
    return Found(
        source_id=f"{kind}-{row['id']}",
        content=content,
        created_at=moment(row.get("created_at_epoch") or row["created_at"], modified_at(path)),
        event_type=event_type,
        tags=texts(decoded(row.get("concepts"), list)),
        project=text_of(row.get("project")),
        session_id=next((row[name] for name in ("memory_session_id", "sdk_session_id", "session_id") if text_of(row.get(name))), None),
        metadata=files,
    )


SOURCE = Source(
    "claude-mem",
    "the database of claude-mem, ~/.claude-mem/claude-mem.db",
    recognises,
    read,
    {
        "bugfix": "error_pattern",
        "discovery": "lesson_learned",
        "feature": "task_completion",
        "refactor": "task_completion",
        "change": "task_completion",
    },
)
