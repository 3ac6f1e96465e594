"""The file of the MCP reference server for a knowledge graph: `memory.json`, JSON Lines of entities and relations, or one object with both."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omegad.transfer.found import Beginning, Finding, Found, LeftOut, Source, json_file, json_lines, modified_at, text_of, texts

KINDS = ("entity", "relation")


def recognises(_path: Path, beginning: Beginning) -> bool:
    """Say whether it is one."""
    head = b"".join(beginning.head.split())
    names_both = b'"entities":[' in head and b'"relations":[' in head
    return names_both or (head.startswith(b"{") and any(f'"type":"{kind}"'.encode() in head for kind in KINDS))


def read(path: Path) -> Iterator[Finding]:
    """Yield each observation of each entity, and each relation as a sentence."""
    at = modified_at(path)
    for place, one in _objects(path):
        entity, observed = text_of(one.get("name")), texts(one.get("observations"))
        if entity:
            kind = text_of(one.get("entityType"))
            named = f"{entity} ({kind})" if kind else entity
            for number, observation in enumerate(observed):
                yield _found(f"{entity}#{number}", f"{named}: {observation}", at, entity, kind)
            if not observed:
                yield _found(entity, f"{entity} is a {kind}", at, entity, kind) if kind else LeftOut(entity, "empty")
        elif all(text_of(one.get(name)) for name in ("from", "to", "relationType")):
            told = f"{one['from']} {one['relationType'].replace('_', ' ')} {one['to']}"
            yield _found(f"{one['from']}>{one['relationType']}>{one['to']}", told, at, one["from"], "relation")
        else:
            yield LeftOut(f"line {place}", "neither an entity nor a relation")


def _found(source_id: str, content: str, at: int, entity: str, tag: str | None) -> Found:
    return Found(source_id=source_id, content=content, created_at=at, entity_id=entity, tags=(tag,) if tag else ())


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as file:
        is_whole = b'"entities"' in file.readline(4_096) + file.readline(4_096)
    if is_whole:
        graph = json_file(path)
        found: Any = enumerate([*graph.get("entities", ()), *graph.get("relations", ())], 1)
    else:
        found = json_lines(path)
    yield from ((place, one if isinstance(one, dict) else {}) for place, one in found)


SOURCE = Source("knowledge-graph", "memory.json of the MCP knowledge graph server", recognises, read)
