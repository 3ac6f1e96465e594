"""What other systems wrote, one module a format: each reads files into memories, and stores nothing."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from omegad.edge.transfer.found import ODD, UNREADABLE, Beginning, Finding, Found, LeftOut, Source
from omegad.edge.transfer.reading import beginning_of, check_kind, database
from omegad.edge.transfer.sources import (
    claude_mem,
    instructions,
    knowledge_graph,
    mcp_memory_service,
    mem0,
    omega_memory,
    transcripts,
)
from omegad.runtime.errors import Invalid

HEAD_BYTES = 64 * 1024
SQLITE = b"SQLite format 3\0"
GZIP = b"\x1f\x8b"

ALL: Mapping[str, Source] = MappingProxyType(
    {
        module.SOURCE.name: module.SOURCE
        for module in (
            omega_memory,
            mcp_memory_service,
            claude_mem,
            instructions,
            transcripts,
            knowledge_graph,
            mem0,
        )
    }
)


def source_of(path: Path, name: str | None = None) -> Source:
    """Return the format *name*, or the one that the file's content shows. Raises `Invalid` where that is
    none.
    """
    known = "; ".join(f"{source.name}: {source.about}" for source in ALL.values())
    if name is not None and name not in ALL:
        raise Invalid(f"unknown format {name!r}", hint=f"known are {known}")
    check_kind(path)
    if name is not None:
        return ALL[name]
    beginning = _beginning(path)
    for source in ALL.values():
        if source.recognises(path, beginning):
            return source
    if beginning.head.startswith(GZIP):
        raise Invalid(f"{path} is compressed", hint="uncompress it first: `gunzip`")
    raise Invalid(f"{path} is of no known format", hint=f"name it with --from; known are {known}")


def read(path: Path, source: Source) -> Iterator[Finding]:
    """Yield what a file holds, and last what of it cannot be read. Raises `Invalid` where that is all
    there is: it is not of that format.
    """
    count, odd = 0, list[LeftOut]()
    try:
        for one in source.read(path):
            if isinstance(one, LeftOut) and one.problem:
                odd.append(one)
            else:
                count += isinstance(one, Found)
                yield one
    except Invalid as error:
        if not count:
            raise
        odd.append(LeftOut(path.name, UNREADABLE, str(error)))
    except ODD as error:
        odd.append(LeftOut(path.name, UNREADABLE, repr(error)[:200]))
    if odd and not count:
        raise Invalid(
            f"{path} is not as {source.name} writes it: {odd[0].source_id}: {odd[0].problem}",
            hint="name another format with --from",
        )
    yield from odd


def _beginning(path: Path) -> Beginning:
    if path.is_dir():
        return Beginning(b"", {})
    head = beginning_of(path, HEAD_BYTES)
    if not head.startswith(SQLITE):
        return Beginning(head, {})
    columns: dict[str, set[str]] = {}
    with database(path) as connection:
        for table, column in connection.execute(
            "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c"
            " WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%'"
        ):
            columns.setdefault(table, set()).add(column)
    return Beginning(b"", columns)
