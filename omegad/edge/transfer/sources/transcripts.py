"""Transcripts of Claude Code: `~/.claude/projects/*/*.jsonl`, or a folder of them. What states something
worth remembering is found, on probation.
"""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from omegad.edge.transfer.found import Beginning, Finding, Found, Source, each, modified_at, moment, text_of
from omegad.edge.transfer.reading import Odd, Row, json_lines
from omegad.runtime import pausing
from omegad.runtime.config import find_paths
from omegad.runtime.errors import Invalid
from omegad.runtime.private import public_text
from omegad.text.ingestion.statements import Role, statements

MESSAGE_CHARACTERS_MAX = 64 * 1024
ROLES: tuple[Role, ...] = ("user", "assistant")


def recognises(path: Path, beginning: Beginning) -> bool:
    """Say whether it is one, or a folder of them."""
    if path.is_dir():
        return next(path.rglob("*.jsonl"), None) is not None
    return path.suffix == ".jsonl" and b'"sessionId"' in beginning.head


def read(path: Path) -> Iterator[Finding]:
    """Yield what people and the agent stated, session after session."""
    for file in sorted(path.rglob("*.jsonl")) if path.is_dir() else (path,):
        yield from each(_lines(file), partial(_stated, file))


def _lines(file: Path) -> Iterator[Row]:
    """Yield the lines of a file, with its name; of one of many that cannot be read, that."""
    try:
        for place, line in json_lines(file):
            yield f"{file.name} {place}", line
    except Invalid as error:
        yield file.name, Odd(str(error))


def _stated(file: Path, _place: str, line: object) -> Iterator[Found]:
    if not isinstance(line, dict) or line.get("isMeta") or line.get("isSidechain"):
        return
    message = line.get("message") if not _is_paused(text_of(line.get("cwd"))) else None
    for role in ROLES:
        if line.get("type") == role and isinstance(message, dict):
            for number, statement in enumerate(
                statements(public_text(_said(message.get("content"))[:MESSAGE_CHARACTERS_MAX]), role)
            ):
                yield Found(
                    source_id=f"{line.get('uuid')}#{number}",
                    content=statement.text,
                    created_at=moment(line.get("timestamp"), modified_at(file)),
                    event_type=statement.event_type,
                    project=text_of(line.get("cwd")),
                    session_id=text_of(line.get("sessionId")),
                    confidence=statement.probability,
                    on_probation=True,
                    metadata={"role": role},
                )


@cache
def _is_paused(folder: str | None) -> bool:
    """Return whether nothing is to be kept of a folder."""
    return folder is not None and pausing.of_folders(str(find_paths().home), [folder]) is not None


def _said(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        part["text"]
        for part in parts
        if isinstance(part, dict) and part.get("type") == "text" and text_of(part.get("text"))
    )


SOURCE = Source(
    "claude-code", "a transcript of Claude Code, or a folder of them: ~/.claude/projects", recognises, read
)
