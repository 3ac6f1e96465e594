"""The database of claude-mem: `~/.claude-mem/claude-mem.db`."""

from functools import partial

from omegad.edge.transfer.found import (
    Finding,
    Found,
    LeftOut,
    Source,
    decoded,
    each_of_tables,
    has_columns,
    moment,
    text_of,
    texts,
)
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


def _found(kind: str, row: Fields, at: int) -> Finding:
    """Return what was observed, how a session was summed up, or what is always to be kept to."""
    event_type, told = row.get("type") or "memory", list[object]()
    match kind:
        case "observation":
            told = [row.get("title"), row.get("narrative") or row.get("text")]
            told += [f"- {fact}" for fact in texts(decoded(row.get("facts"), list))]
        case "summary":
            event_type = "session_summary"
            told += [
                f"{name.replace('_', ' ').capitalize()}: {text}"
                for name in SUMMED_UP
                if (text := text_of(row.get(name)))
            ]
        case _ if row.get("status") in (None, "active"):
            event_type, told = "directive", [row.get("content")]
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
    has_columns("observations", "project", "type", "created_at"),
    partial(
        each_of_tables,
        made={
            "observations": partial(_found, "observation"),
            "session_summaries": partial(_found, "summary"),
            "directives": partial(_found, "directive"),
        },
        read=READ,
    ),
    TYPES,
)
