"""Memories and their edges as another system has them, and the requests that store them here."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, get_args
from urllib.parse import quote

import msgspec

from omegad.errors import Invalid
from omegad.events.memory import EdgeType
from omegad.json_text import flattened, mended
from omegad.memory_types import BUILT_IN, TTL_SECONDS_MAX
from omegad.projects import project_of
from omegad.storage.driver import Connection, sqlite
from omegad.times import EPOCH, MICROSECOND, rfc3339

TAGS_MAX, TAG_CHARACTERS_MAX, NAME_CHARACTERS_MAX = 32, 64, 256
METADATA_BYTES_MAX = 15 * 1024
FILE_BYTES_MAX = 512 * 1024 * 1024
EDGE_TYPES = frozenset(get_args(EdgeType))
MILLISECONDS_FROM = 100_000_000_000  # a number of seconds that large is in the year 5138
SECOND_US = 1_000_000


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A memory of another system. `created_at` is in microseconds since 1970; `event_type` is the other's own word for it."""

    source_id: str
    content: str
    created_at: int
    event_type: str = "memory"
    tags: tuple[str, ...] = ()
    project: str | None = None
    session_id: str | None = None
    entity_id: str | None = None
    priority: int | None = None
    ttl_seconds: int | None = None
    confidence: float = 1.0
    on_probation: bool = False
    metadata: dict[str, Any] = {}


class LeftOut(msgspec.Struct, frozen=True):
    """What the other system has and does not find itself, or what says nothing, and why."""

    source_id: str
    why: str


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """How one memory of the other system leads to another, in its own word. `weight` is 0 to 1."""

    source_id: str
    target_id: str
    edge_type: str
    weight: float


Finding = Found | LeftOut | Edge


class Source(NamedTuple):
    """A format: its name, what files of it are, how to tell one by its content, how to read it, its words for our types of memories and edges."""

    name: str
    about: str
    recognises: Callable[[Path, "Beginning"], bool]
    read: Callable[[Path], Iterator[Finding]]
    types: Mapping[str, str] = {}
    edge_types: Mapping[str, str] = {}


class Beginning(NamedTuple):
    """What a file is known by: its first bytes; of a database, the columns of its tables."""

    head: bytes
    tables: Mapping[str, frozenset[str]]


def request(found: Found, source: Source) -> dict[str, object]:
    """Return the parameters of `memory.upsert` for a memory; the same memory is always the same request."""
    event_type = source.types.get(found.event_type, found.event_type)
    tags = [tag.strip()[:TAG_CHARACTERS_MAX] for tag in found.tags if tag.strip()]
    if event_type not in BUILT_IN:
        tags, event_type = [*tags, event_type[:TAG_CHARACTERS_MAX]], "memory"
    is_forgotten = BUILT_IN[event_type].ttl_seconds is not None  # unless the other system's own time to live is told, or that it has none
    wanted: dict[str, object] = {
        "content": found.content,
        "event_type": event_type,
        "tags": list(dict.fromkeys(tags))[:TAGS_MAX],
        "project": _name(_project(found.project)),
        "session_id": _name(found.session_id),
        "entity_id": _name(found.entity_id),
        "priority": None if found.priority is None else min(max(found.priority, 1), 5),
        "ttl_seconds": found.ttl_seconds or (TTL_SECONDS_MAX if is_forgotten else None),
        "confidence": found.confidence,
        "probation": found.on_probation,
        "source": f"import:{source.name}",
        "timestamp": rfc3339(found.created_at),
        "metadata": _metadata(found, source),
        "ack": "durable",
    }
    params = {name: value for name, value in wanted.items() if value is not None}
    digest = sha256(msgspec.json.encode((found.source_id, params), order="sorted")).hexdigest()
    return params | {"request_id": f"import-{source.name}-{digest[:32]}"}


def link(edge: Edge, source: Source, ids: Mapping[str, str]) -> dict[str, object] | None:
    """Return the parameters of `memory.link` for an edge, *ids* having ours by theirs; None where it does not lead from one of ours to another."""
    ends = ids.get(edge.source_id), ids.get(edge.target_id)
    if None in ends or ends[0] == ends[1]:
        return None
    edge_type = source.edge_types.get(edge.edge_type, edge.edge_type)
    params: dict[str, object] = {
        "memory_id": ends[0],
        "target_id": ends[1],
        "edge_type": edge_type if edge_type in EDGE_TYPES else "related",
        "weight": min(1.0, max(0.0, edge.weight)),
    }
    return params | {"request_id": f"import-{source.name}-{sha256(msgspec.json.encode(params, order='sorted')).hexdigest()[:32]}"}


def expires_at(found: Found) -> int | None:
    """Return when the other system forgets a memory, in microseconds since 1970."""
    return None if found.ttl_seconds is None else found.created_at + found.ttl_seconds * SECOND_US


def moment(value: object, otherwise: int) -> int:
    """Read a time as programs write them, in microseconds since 1970: seconds or milliseconds, or ISO 8601, UTC where it names no zone."""
    if isinstance(value, int | float) and value > 0:
        return int(value * (1_000 if value >= MILLISECONDS_FROM else SECOND_US))
    if isinstance(value, str):
        try:
            read = datetime.fromisoformat(value.strip())
        except ValueError:
            return otherwise
        return ((read if read.tzinfo else read.replace(tzinfo=UTC)) - EPOCH) // MICROSECOND
    return otherwise


def modified_at(path: Path) -> int:
    """Return when a file was last written, in microseconds since 1970: what has no time of its own is as old."""
    return path.stat().st_mtime_ns // 1_000


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield what each line of a file says, with its number. Raises `Invalid` for a line that is no JSON, unless it is a last one without an end."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield number, json_of(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if line.endswith(b"\n"):
                    raise Invalid(f"{path}, line {number}: {error}", hint="mend the line, or remove it") from error


def json_file(path: Path) -> Any:  # noqa: ANN401  any JSON
    """Return what a file of JSON says. Raises `Invalid`."""
    if path.stat().st_size > FILE_BYTES_MAX:
        raise Invalid(f"{path} is larger than {FILE_BYTES_MAX // 2**20} MiB", hint="split it")
    try:
        return json_of(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{path}: {error}", hint="is it whole?") from error


def json_of(data: bytes) -> Any:  # noqa: ANN401  any JSON
    """Return what JSON says: text cut inside a character with U+FFFD for what is left of it, what is nested too deeply with null in its place.

    Raises `DecodeError`, `UnicodeDecodeError` or `RecursionError` for what is no JSON.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(flattened(mended(data)))


@contextmanager
def database(path: Path) -> Iterator[Connection]:
    """Open another program's database to read it, and nothing else. Raises `Invalid` where that fails."""
    try:
        with closing(sqlite.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None)) as connection:
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.text_factory = lambda data: data.decode(errors="replace")
            yield connection
    except sqlite.Error as error:
        raise Invalid(f"{path} cannot be read: {error}", hint="stop the program that it belongs to, or pass a copy") from error


def rows(connection: Connection, table: str, order: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of *table*, whatever columns it has."""
    found = connection.execute(f'SELECT * FROM "{table}" ORDER BY {order}')
    names = [column[0] for column in found.description]
    yield from (dict(zip(names, row, strict=True)) for row in found)


def rows_if_any(connection: Connection, table: str, order: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table that not every version of the other system has."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)).fetchone():
        yield from rows(connection, table, order)


def decoded(text: object, kind: type) -> Any:  # noqa: ANN401  what *kind* says
    """Return the JSON that a column holds, an empty *kind* where it holds none of it."""
    try:
        value = json_of(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else text
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    return value if isinstance(value, kind) else kind()


def texts(values: object) -> tuple[str, ...]:
    """Return the texts of a list, none where it is no list."""
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def text_of(value: object) -> str | None:
    """Return a text that says something, None for anything else."""
    return value if isinstance(value, str) and value.strip() else None


def columns_of(tables: Mapping[str, frozenset[str]], table: str, names: Iterable[str]) -> bool:
    """Say whether there is a table with these columns."""
    return set(names) <= tables.get(table, frozenset())


def _name(name: str | None) -> str | None:
    return name[:NAME_CHARACTERS_MAX] if name else None


def _project(project: str | None) -> str | None:
    """Return the name of a project that is told as a folder."""
    if not project or not project.startswith(("/", "~")):
        return project
    return project_of(project.rstrip("/"))


def _metadata(found: Found, source: Source) -> dict[str, object]:
    origin = {"from": source.name, "id": found.source_id, "event_type": found.event_type, "project": found.project}
    imported: dict[str, object] = {"imported": {name: value for name, value in origin.items() if value is not None}}
    whole = found.metadata | imported
    return whole if len(msgspec.json.encode(whole)) <= METADATA_BYTES_MAX else imported
