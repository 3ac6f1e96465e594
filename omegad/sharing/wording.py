"""What a rewording replaces, all at once."""

from typing import Any

import msgspec


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """All that a memory says: by the last one who reworded it, or by who stored it."""

    content: str
    tags: tuple[str, ...]
    priority: int
    metadata: dict[str, object]
    referenced_at: int | None
    source: str | None
    confidence: float | None


COLUMNS = "content, tags, priority, metadata, referenced_us, source, confidence"
"""Of the view of memories, in the order of `Wording`."""


def worded(said: object) -> dict[str, Any]:
    """Return the fields of a wording, by name, that something has: an event that words a memory, for one."""
    return {name: getattr(said, name) for name in Wording.__struct_fields__}


def read(columns: tuple[Any, ...]) -> dict[str, Any]:
    """Return the fields of a wording, by name, that a row of `COLUMNS` has."""
    named = dict(zip(Wording.__struct_fields__, columns, strict=True))
    tags = msgspec.json.decode(named["tags"], type=tuple[str, ...])
    metadata = msgspec.json.decode(named["metadata"], type=dict[str, object])
    return named | {"tags": tags, "metadata": metadata}
