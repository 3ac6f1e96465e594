"""Memories and their edges as another system has them, and the requests that store them here."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeVar, get_args

import msgspec

from omegad.edge.transfer.reading import Odd, Row, database, has_table, json_of, others, rows, whole
from omegad.memory.events import EdgeType
from omegad.memory.lifecycle import COUNT_MAX
from omegad.memory.types import BUILT_IN, TTL_SECONDS_MAX
from omegad.runtime.json_types import Fields, Json
from omegad.runtime.repository import project_of
from omegad.runtime.times import EPOCH, LAST_US, MICROSECOND, rfc3339

TAGS_MAX, TAG_CHARACTERS_MAX, NAME_CHARACTERS_MAX = 32, 64, 256
METADATA_BYTES_MAX = 15 * 1024
CONTENT_BYTES_MAX = 1024 * 1024  # more than is stored, and less than a connection takes
UNREADABLE = "not readable"
EDGE_TYPES = frozenset(get_args(EdgeType))
MILLISECONDS_FROM = 100_000_000_000  # a number of seconds that large is in the year 5138
SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
FIRST_US = (datetime(2, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND
LONG = dict.fromkeys(("feedback_signals", "rating_history", "access_queries"))
"""What tells each time of what is counted, and is let go where it is too long."""
ODD = (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
"""What reading a row ends with that is not as its program writes it."""

T = TypeVar("T")


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What the other system counted of a memory: how often it was found, last at that time in microseconds
    since 1970, and how often it was rated how.
    """

    retrievals: int = 0
    last_retrieved_at: int | None = None
    helpful: int = 0
    unhelpful: int = 0
    outdated: int = 0


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A memory of another system. `created_at`, and `referenced_at`, the time that it speaks of, are in
    microseconds since 1970; `event_type` is the other's own word for it.
    """

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
    referenced_at: int | None = None
    counts: Counts = Counts()
    metadata: Fields = {}


class LeftOut(msgspec.Struct, frozen=True):
    """What the other system has and does not find itself, or what says nothing, and why; of what cannot be
    read, what its *problem* is.
    """

    source_id: str
    why: str
    problem: str = ""


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """How one memory of the other system leads to another, in its own word. `weight` is 0 to 1."""

    source_id: str
    target_id: str
    edge_type: str
    weight: float


class Other(NamedTuple):
    """What else the other system keeps and is nothing of ours: which table or column, in how many rows."""

    what: str
    rows: int


Finding = Found | LeftOut | Edge | Other


class Source(NamedTuple):
    """A format: its name, what files of it are, how to tell one by its content, how to read it, its words
    for our types of memories and edges.
    """

    name: str
    about: str
    recognises: Callable[[Path, "Beginning"], bool]
    read: Callable[[Path], Iterator[Finding]]
    types: Mapping[str, str] = {}
    edge_types: Mapping[str, str] = {}
    names: Callable[[str], object] = lambda _name: False
    """Whether a text can be nothing but the id of a memory, whether or not that is there."""


class Beginning(NamedTuple):
    """What a file is known by: its first bytes; of a database, the columns of its tables."""

    head: bytes
    tables: Mapping[str, Collection[str]]


def each(numbered: Iterable[Row], make: Callable[[str, Json], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield what *make* finds in each row, told where that stands; what cannot be read is left out, and
    the next row is read.
    """
    for place, one in numbered:
        if isinstance(one, Odd):
            yield LeftOut(place, UNREADABLE, one.problem)
            continue
        try:
            yield from [checked(found) for found in make(place, one)]
        except ODD as error:
            yield LeftOut(place, UNREADABLE, repr(error)[:200])


def each_of_tables(
    path: Path,
    made: Mapping[str, Callable[[Fields, int], Finding]],
    read: Mapping[str, Collection[str]],
    more: Callable[[], Iterable[Other]] = tuple,
) -> Iterator[Finding]:
    """Yield what is *made* of each row of a database's tables and the time of its file, oldest first, then
    *more*, and what else it holds beside the columns that are *read*. Every version has the first table.
    """
    at = modified_at(path)
    with database(path) as connection:
        for table, make in made.items():
            if table == next(iter(made)) or has_table(connection, table):
                yield from each(rows(connection, table), partial(_made, make, at))
        yield from more()
        yield from (Other(what, count) for what, count in others(connection, read))


def _made(make: Callable[[Fields, int], Finding], at: int, _place: str, row: Json) -> Iterable[Finding]:
    return (make(row, at),)


def checked(found: Finding) -> Finding:
    """Return a finding all of whose values are of their types, which databases and JSON promise of nothing;
    raise one of `ODD` where it has no text.

    What is said beside the text and is of no use is let go.
    """
    match found:
        case Found():
            content = text_of(found.content)
            if content is None and found.content:
                raise TypeError(f"its content is {type(found.content).__name__}, and no text")
            if content is None:
                return LeftOut(_identifier(found.source_id), "empty")
            if len(content.encode()) > CONTENT_BYTES_MAX:
                raise ValueError(f"its content is larger than {CONTENT_BYTES_MAX // 2**20} MiB")
            ttl = integer(found.ttl_seconds)
            return Found(
                source_id=_identifier(found.source_id),
                content=content,
                created_at=found.created_at,
                event_type=text_of(found.event_type) or "memory",
                tags=tuple(tag for tag in map(text_of, found.tags) if tag),
                project=text_of(found.project),
                session_id=text_of(found.session_id),
                entity_id=text_of(found.entity_id),
                priority=integer(found.priority),
                ttl_seconds=None if ttl is None else min(max(ttl, 0), TTL_SECONDS_MAX) or None,
                confidence=min(1.0, max(0.0, number(found.confidence, 1.0))),
                on_probation=found.on_probation,
                referenced_at=found.referenced_at,
                counts=Counts(
                    retrievals=counted(found.counts.retrievals),
                    last_retrieved_at=found.counts.last_retrieved_at,
                    helpful=counted(found.counts.helpful),
                    unhelpful=counted(found.counts.unhelpful),
                    outdated=counted(found.counts.outdated),
                ),
                metadata=whole(found.metadata),
            )
        case Edge():
            return Edge(
                source_id=_identifier(found.source_id),
                target_id=_identifier(found.target_id),
                edge_type=text_of(found.edge_type) or "related",
                weight=number(found.weight, 1.0),
            )
        case _:
            return found


def request(found: Found, source: Source, types: Collection[str] = BUILT_IN) -> dict[str, object]:
    """Return the parameters of `memory.upsert` for a memory; the same memory is always the same request.

    *types* are those that there are, some of them by the configuration. The `request_id` ends with a digest
    of the text as it is, and so is to be replaced by one that is made with a key before it is sent.
    """
    event_type = found.event_type
    if event_type in BUILT_IN or event_type not in types:
        event_type = source.types.get(event_type, event_type)
    tags = [tag.strip()[:TAG_CHARACTERS_MAX] for tag in found.tags if tag.strip()]
    if event_type not in types:
        tags, event_type = [*tags, event_type[:TAG_CHARACTERS_MAX]], "memory"
    project = found.project
    if project and project.startswith(("/", "~")):  # told as a folder
        project = project_of(project.rstrip("/"))
    is_forgotten = (
        event_type not in BUILT_IN or BUILT_IN[event_type].ttl_seconds is not None
    )  # unless the other system's own time to live is told, or that it has none
    wanted: dict[str, object] = {
        "content": found.content,
        "event_type": event_type,
        "tags": list(dict.fromkeys(tags))[:TAGS_MAX],
        "project": _name(project),
        "session_id": _name(found.session_id),
        "entity_id": _name(found.entity_id),
        "priority": None if found.priority is None else min(max(found.priority, 1), 5),
        "ttl_seconds": found.ttl_seconds or (TTL_SECONDS_MAX if is_forgotten else None),
        "confidence": found.confidence,
        "probation": found.on_probation,
        "source": f"import:{source.name}",
        "timestamp": rfc3339(found.created_at),
        "referenced_date": None if found.referenced_at is None else rfc3339(found.referenced_at),
        "metadata": _metadata(found, source),
        "ack": "durable",
    }
    params = {name: value for name, value in wanted.items() if value is not None}
    digest = sha256(msgspec.json.encode((found.source_id, params), order="sorted")).hexdigest()
    return params | {"request_id": f"import-{source.name}-{digest[:32]}"}


def carry_over(memory_id: str, asked: Fields, counts: Counts, source: Source) -> dict[str, object]:
    """Return the parameters of `memory.carry_over` for what was counted of a memory that was *asked* to be
    stored: of the same memory the same request, whatever was counted of it, so that nothing counts twice.
    """
    one = (source.name, asked["metadata"]["imported"]["id"], asked["content"], asked["timestamp"])
    last = counts.last_retrieved_at
    wanted = msgspec.structs.asdict(counts) | {"last_retrieved_at": None if last is None else rfc3339(last)}
    digest = sha256(msgspec.json.encode(one)).hexdigest()
    told: dict[str, object] = {name: value for name, value in wanted.items() if value}
    return told | {
        "memory_id": memory_id,
        "origin": source.name,
        "request_id": f"import-{source.name}-counts-{digest[:32]}",
    }


def link(edge: Edge, source: Source, ids: Mapping[str, str]) -> dict[str, object] | None:
    """Return the parameters of `memory.link` for an edge, *ids* having ours by theirs; None where it does not
    lead from one of ours to another.

    The `request_id` is as that of `request`.
    """
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
    return params | {
        "request_id": (
            f"import-{source.name}-{sha256(msgspec.json.encode(params, order='sorted')).hexdigest()[:32]}"
        )
    }


def expires_at(found: Found) -> int | None:
    """Return when the other system forgets a memory, in microseconds since 1970."""
    return None if found.ttl_seconds is None else found.created_at + found.ttl_seconds * SECOND_US


def moment(value: object, otherwise: int) -> int:
    """Read a time as programs write them, in microseconds since 1970: seconds or milliseconds, or ISO 8601,
    UTC where it names no zone.

    What is none, or of a year that nobody means, is *otherwise*.
    """
    read_us = 0
    if isinstance(value, int | float) and 0 < value < math.inf:
        read_us = int(min(value * (1_000 if value >= MILLISECONDS_FROM else SECOND_US), LAST_US))
    if isinstance(value, str):
        try:
            read = datetime.fromisoformat(value.strip())
            read_us = ((read if read.tzinfo else read.replace(tzinfo=UTC)) - EPOCH) // MICROSECOND
        except (ValueError, OverflowError):
            return otherwise
    return read_us if FIRST_US <= read_us <= LAST_US - DAY_US and read_us else otherwise


def modified_at(path: Path) -> int:
    """Return when a file was last written, in microseconds since 1970: what has no time of its own is as
    old.
    """
    return path.stat().st_mtime_ns // 1_000


def decoded(text: object, kind: type[T]) -> T:
    """Return the JSON that a column holds, an empty *kind* where it holds none of it."""
    try:
        value = json_of(text) if isinstance(text, str | bytes) else text
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, kind) else kind()


def texts(values: object) -> tuple[str, ...]:
    """Return the texts of a list, none where it is no list."""
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def text_of(value: object) -> str | None:
    """Return a text that says something, also one that a database keeps as bytes; None for anything else."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return None
    return str(whole(value)) if isinstance(value, str) and value.strip() else None


def integer(value: object) -> int | None:
    """Return a whole number, None for anything else."""
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else None


def counted(value: object) -> int:
    """Return how often something was, 0 where that is not told."""
    return min(max(integer(value) or 0, 0), COUNT_MAX)


def number(value: object, otherwise: float) -> float:
    """Return a number that can be compared, *otherwise* for anything else."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else otherwise


def has_columns(table: str, *names: str) -> Callable[[Path, Beginning], bool]:
    """Return what recognises a database by a table with these columns."""
    return lambda _path, beginning: set(names) <= set(beginning.tables.get(table, ()))


def _identifier(value: object) -> str:
    """Return the other system's name for something. Raises `TypeError` where it is none."""
    found = str(value) if isinstance(value, int) else text_of(value)
    if found is None:
        raise TypeError(f"its id is {type(value).__name__}, and no text")
    return found


def _name(name: str | None) -> str | None:
    return name[:NAME_CHARACTERS_MAX] if name else None


def _metadata(found: Found, source: Source) -> dict[str, object]:
    origin = {
        "from": source.name,
        "id": found.source_id,
        "event_type": found.event_type,
        "project": found.project,
    }
    told = {name: value for name, value in origin.items() if value is not None}
    imported: dict[str, object] = {"imported": told}
    for wanted in (found.metadata | imported, found.metadata | LONG | imported, imported):
        try:
            if len(msgspec.json.encode(wanted)) <= METADATA_BYTES_MAX:
                return wanted
        except ODD:  # bytes, or numbers that JSON has not
            continue
    return {"imported": {name: value[:NAME_CHARACTERS_MAX] for name, value in told.items()}}
