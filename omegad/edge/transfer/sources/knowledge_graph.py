"""The file of the MCP reference server for a knowledge graph: `memory.json`, JSON Lines of entities and
relations, or one object with both.
"""

from collections.abc import Iterator
from functools import partial
from itertools import count
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
    with open_file(path) as file:
        is_whole = b'"entities"' in (file.readline(4_096) + file.readline(4_096)).replace(b"\0", b"")
    objects = _objects(json_file(path)) if is_whole else json_lines(path)
    yield from each(objects, partial(_findings, modified_at(path)))


def _objects(graph: Fields) -> Iterator[Row]:
    number = count(1)
    for name in ("entities", "relations"):
        found = graph.get(name) or []
        if isinstance(found, list):
            yield from ((f"line {next(number)}", one) for one in found)
        else:
            yield name, Odd("it is no list")


def _findings(at: int, place: str, one: object) -> Iterator[Finding]:
    said = one if isinstance(one, dict) else {}
    start, relation, end = (text_of(said.get(name)) for name in ("from", "relationType", "to"))
    if entity := text_of(said.get("name")):
        kind, observed = text_of(said.get("entityType")), said.get("observations") or []
        named, number = f"{entity} ({kind})" if kind else entity, 0
        for observation in observed if isinstance(observed, list) else [observed]:
            if isinstance(observation, str):
                yield _found(f"{entity}#{number}", f"{named}: {observation}", at, entity, kind)
                number += 1
            else:
                problem = f"an observation is {type(observation).__name__}, and no text"
                yield LeftOut(entity, UNREADABLE, problem)
        if not observed:
            is_said = _found(entity, f"{entity} is a {kind}", at, entity, kind)
            yield is_said if kind else LeftOut(entity, "empty")
    elif start and relation and end:
        told = f"{start} {relation.replace('_', ' ')} {end}"
        yield _found(f"{start}>{relation}>{end}", told, at, start, "relation")
    else:
        yield LeftOut(place, "neither an entity nor a relation")


def _found(source_id: str, content: str, at: int, entity: str, tag: str | None) -> Found:
    return Found(
        source_id=source_id, content=content, created_at=at, entity_id=entity, tags=(tag,) if tag else ()
    )


SOURCE = Source("knowledge-graph", "memory.json of the MCP knowledge graph server", recognises, read)
