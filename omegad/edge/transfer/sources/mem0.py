"""Memories as mem0 gives them: a JSON list, or an object whose `results` or `memories` are one."""

from collections.abc import Iterator
from pathlib import Path

from omegad.edge.transfer.found import (
    Beginning,
    Finding,
    Found,
    LeftOut,
    Source,
    each,
    modified_at,
    moment,
    text_of,
    texts,
)
from omegad.edge.transfer.reading import Odd, json_file
from omegad.runtime.errors import Invalid
from omegad.runtime.json_types import Fields

LISTS = ("results", "memories")


def recognises(_path: Path, beginning: Beginning) -> bool:
    """Say whether it is one."""
    return beginning.head.lstrip()[:1] in {b"[", b"{"} and b'"memory":' in b"".join(beginning.head.split())


def read(path: Path) -> Iterator[Finding]:
    """Yield each memory, in the order of the file. Raises `Invalid` where there is no list."""
    whole, at = json_file(path), modified_at(path)
    found = (
        whole
        if isinstance(whole, list)
        else next((whole[name] for name in LISTS if isinstance(whole.get(name), list)), None)
    )
    if found is None:
        raise Invalid(f"{path} has no list of memories", hint="pass what get_all() of mem0 gives, as JSON")
    numbered = (
        (f"memory {number}", one if isinstance(one, dict) else Odd("it is no object"))
        for number, one in enumerate(found, 1)
    )
    yield from each(numbered, lambda place, one: [_found(one, place, at)])


def _found(one: Fields, place: str, at: int) -> Finding:
    content = text_of(one.get("memory")) or text_of(one.get("content")) or text_of(one.get("text"))
    source_id = str(one.get("id") or place)
    if content is None:
        return LeftOut(source_id, "empty")
    metadata = one["metadata"] if isinstance(one.get("metadata"), dict) else {}
    return Found(
        source_id=source_id,
        content=content,
        created_at=moment(one.get("created_at"), at),
        tags=texts(one.get("categories")),
        project=text_of(metadata.get("project")) or text_of(one.get("app_id")),
        session_id=text_of(one.get("run_id")),
        entity_id=text_of(one.get("user_id")) or text_of(one.get("agent_id")),
        metadata=metadata,
    )


SOURCE = Source("mem0", "JSON of mem0: what get_all() gives", recognises, read)
