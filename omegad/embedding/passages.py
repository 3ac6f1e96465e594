"""Which texts of a memory are embedded: its content in passages, each behind the day and project that it speaks of.

Pure: the same memory gives the same passages for ever under one `PASSAGES_VERSION`, which is part of every embedder id.
"""

from datetime import UTC, datetime

PASSAGES_VERSION = 1
PASSAGE_CHARACTERS = 1_200
PASSAGES_MAX = 64  # of one memory; the words of the rest are still found by full text


def passages(content: str, referenced_at: int | None) -> tuple[str, ...]:
    """Return the texts to embed for a memory; *referenced_at* is in microseconds since 1970."""
    day = "" if referenced_at is None else f"{datetime.fromtimestamp(referenced_at / 1e6, UTC):%-d %B %Y}: "
    return tuple(day + part for part in _cut(content)[:PASSAGES_MAX])


def _cut(content: str) -> list[str]:
    """Cut at the last paragraph, line, sentence or word end that still fits, in this order of preference."""
    parts: list[str] = []
    while len(content) > PASSAGE_CHARACTERS:
        end = _end_of_part(content[:PASSAGE_CHARACTERS])
        parts.append(content[:end])
        content = content[end:]
    return [*parts, content]


def _end_of_part(window: str) -> int:
    for mark in ("\n\n", "\n", ". ", " "):
        found = window.rfind(mark, PASSAGE_CHARACTERS // 2)
        if found > 0:
            return found + len(mark)
    return len(window)
