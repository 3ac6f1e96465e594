"""The database of claude-mem: `~/.claude-mem/claude-mem.db`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from omegad.edge.transfer.found import (
    Beginning,
    Finding,
    Found,
    LeftOut,
    Other,
    Source,
    columns_of,
    decoded,
    each,
    modified_at,
    moment,
    text_of,
    texts,
)
from omegad.edge.transfer.reading import database, others, rows, rows_if_any
from omegad.runtime.json_types import Fields

SUMMED_UP = ("request", "investigated", "learned", "completed", "next_steps", "notes")
BESIDE = ("subtitle", "agent_type", "relevance_count", "merged_into_project", "prompt_number")
"""Columns that say something and have none here."""
ALWAYS = ("id", "project", "metadata", "created_at", "created_at_epoch", "content_hash", *BESIDE)
FILES = ("files_read", "files_modified", "files_edited")
SESSIONS = ("memory_session_id", "sdk_session_id", "session_id")
READ = {
    "observations": (
        *("type", "title", "narrative", "text", "facts", "concepts"),
        *(*FILES, *SESSIONS, *ALWAYS),
    ),
    "session_summaries": (*SUMMED_UP, *FILES, *SESSIONS, *ALWAYS),
    "directives": ("content", "status", *SESSIONS, *ALWAYS),
}
"""The columns that are read, or made of others, by table."""
TYPES = {
    "bugfix": "error_pattern",
    "discovery": "lesson_learned",
    "feature": "task_completion",
    "refactor": "task_completion",
    "change": "task_completion",
    "directive": "constraint",
}


def recognises(_path: Path, beginning: Beginning) -> bool:
    """Say whether it is one."""
    return columns_of(beginning.tables, "observations", ("project", "type", "created_at"))


def read(path: Path) -> Iterator[Finding]:
    """Yield what was observed, how sessions were summed up, and what is always to be kept to, each oldest
    first; and what else it holds.
    """
    at = modified_at(path)

    def observed(_place: str, row: Fields) -> Iterator[Finding]:
        told = (
            row.get("title"),
            row.get("narrative") or row.get("text"),
            *(f"- {fact}" for fact in texts(decoded(row.get("facts"), list))),
        )
        yield _found(at, row, "observation", row.get("type") or "memory", told)

    def summed_up(_place: str, row: Fields) -> Iterator[Finding]:
        told = tuple(
            f"{name.replace('_', ' ').capitalize()}: {text}"
            for name in SUMMED_UP
            if (text := text_of(row.get(name)))
        )
        yield _found(at, row, "summary", "session_summary", told)

    def directed(_place: str, row: Fields) -> Iterator[Finding]:
        is_on = row.get("status") in (None, "active")
        yield _found(at, row, "directive", "directive", [row.get("content") if is_on else None])

    with database(path) as connection:
        yield from each(rows(connection, "observations"), observed)
        yield from each(rows_if_any(connection, "session_summaries"), summed_up)
        yield from each(rows_if_any(connection, "directives"), directed)
        yield from (Other(what, count) for what, count in others(connection, READ))


def _found(at: int, row: Fields, kind: str, event_type: str, told: Sequence[object]) -> Finding:
    content = "\n".join(text for one in told if (text := text_of(one)))
    source_id = f"{kind}-{row['id']}"
    if not content:
        return LeftOut(source_id, "empty")
    files = {name: read for name in FILES if (read := texts(decoded(row.get(name), list)))}
    return Found(
        source_id=source_id,
        content=content,
        created_at=moment(row.get("created_at_epoch") or row.get("created_at"), at),
        event_type=event_type,
        # A word of theirs that is a type of ours in another word is found by itself as well.
        tags=(*texts(decoded(row.get("concepts"), list)), *((event_type,) if event_type in TYPES else ())),
        project=text_of(row.get("project")),
        session_id=next((text for name in SESSIONS if (text := text_of(row.get(name)))), None),
        metadata={
            **decoded(row.get("metadata"), dict),
            **{name: value for name in BESIDE if (value := row.get(name))},
            **files,
        },
    )


SOURCE = Source(
    "claude-mem",
    "the database of claude-mem, ~/.claude-mem/claude-mem.db",
    recognises,
    read,
    TYPES,
)
