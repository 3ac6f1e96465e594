"""The file of the MCP reference server for a knowledge graph: `memory.json`, JSON Lines of entities and
relations, or one object with both.
"""

from collections.abc import Iterator
from pathlib import Path

from omegad.edge.transfer.found import (
    UNREADABLE,
    Beginning,
    Finding,
    Found,
    LeftOut,
    Source,
    each,
    modified_at,
    text_of,
)
from omegad.edge.transfer.reading import Odd, Row, json_file, json_lines, open_file
from omegad.runtime.json_types import Fields

KINDS = ("entity", "relation")


def recognises(_path: Path, beginning: Beginning) -> bool:
    """Say whether it is one."""
    head = b"".join(beginning.head.split())
    names_both = b'"entities":[' in head and b'"relations":[' in head
    return names_both or (
        head.startswith(b"{") and any(f'"type":"{kind}"'.encode() in head for kind in KINDS)
    )


def read(path: Path) -> Iterator[Finding]:
    """Yield each observation of each entity, and each relation as a sentence."""
    at = modified_at(path)

    def told(place: str, one: object) -> Iterator[Finding]:
        yield from _findings(place, one if isinstance(one, dict) else {}, at)

    return each(_objects(path), told)


def _findings(place: str, one: Fields, at: int) -> Iterator[Finding]:
    if entity := text_of(one.get("name")):
        yield from _observed(entity, text_of(one.get("entityType")), one.get("observations") or [], at)
    elif all(text_of(one.get(name)) for name in ("from", "to", "relationType")):
        told = f"{one['from']} {one['relationType'].replace('_', ' ')} {one['to']}"
        yield _found(f"{one['from']}>{one['relationType']}>{one['to']}", told, at, one["from"], "relation")
    else:
        yield LeftOut(place, "neither an entity nor a relation")


def _observed(entity: str, kind: str | None, observed: object, at: int) -> Iterator[Finding]:
    named, number = f"{entity} ({kind})" if kind else entity, 0
    for observation in observed if isinstance(observed, list) else [observed]:
        if isinstance(observation, str):
            yield _found(f"{entity}#{number}", f"{named}: {observation}", at, entity, kind)
            number += 1
        else:
            yield LeftOut(entity, UNREADABLE, f"an observation is {type(observation).__name__}, and no text")
    if not observed:
        yield _found(entity, f"{entity} is a {kind}", at, entity, kind) if kind else LeftOut(entity, "empty")


def _found(source_id: str, content: str, at: int, entity: str, tag: str | None) -> Found:
    return Found(
        source_id=source_id, content=content, created_at=at, entity_id=entity, tags=(tag,) if tag else ()
    )


def _objects(path: Path) -> Iterator[Row]:
    with open_file(path) as file:
        is_whole = b'"entities"' in (file.readline(4_096) + file.readline(4_096)).replace(b"\0", b"")
    if not is_whole:
        yield from json_lines(path)
        return
    graph, number = json_file(path), 0
    for name in ("entities", "relations"):
        found = graph.get(name) or []
        if not isinstance(found, list):
            yield name, Odd("it is no list")
            continue
        for one in found:
            number += 1
            yield f"line {number}", one


SOURCE = Source("knowledge-graph", "memory.json of the MCP knowledge graph server", recognises, read)
