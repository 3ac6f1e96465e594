"""What other systems wrote, one module a format: each reads files into memories, and stores nothing."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from omegad.errors import Invalid
from omegad.transfer.found import Beginning, Finding, Source, database
from omegad.transfer.sources import claude_mem, instructions, knowledge_graph, mcp_memory_service, mem0, omega_memory, transcripts

HEAD_BYTES = 64 * 1024
SQLITE = b"SQLite format 3\0"

ALL: Mapping[str, Source] = MappingProxyType(
    {module.SOURCE.name: module.SOURCE for module in (omega_memory, mcp_memory_service, claude_mem, instructions, transcripts, knowledge_graph, mem0)}
)


def source_of(path: Path, name: str | None = None) -> Source:
    """Return the format *name*, or the one that the file's content shows. Raises `Invalid` where that is none."""
    known = "; ".join(f"{source.name}: {source.about}" for source in ALL.values())
    if name is not None and name not in ALL:
        raise Invalid(f"unknown format {name!r}", hint=f"known are {known}")
    if not path.exists():
        raise Invalid(f"there is no file {path}")
    if name is not None:
        return ALL[name]
    beginning = _beginning(path)
    for source in ALL.values():
        if source.recognises(path, beginning):
            return source
    raise Invalid(f"{path} is of no known format", hint=f"name it with --from; known are {known}")


def read(path: Path, source: Source) -> Iterator[Finding]:
    """Yield what a file holds. Raises `Invalid` where it is not of that format."""
    try:
        yield from source.read(path)
    except (KeyError, TypeError, AttributeError, IsADirectoryError) as error:
        raise Invalid(f"{path} is not as {source.name} writes it: {error!r}", hint="name another format with --from") from error


def _beginning(path: Path) -> Beginning:
    if path.is_dir():
        return Beginning(b"", {})
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head.startswith(SQLITE):
        return Beginning(head, {})
    with database(path) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")]
        columns = {name: frozenset(row[1] for row in connection.execute("SELECT * FROM pragma_table_info(?)", (name,))) for name in names}
    return Beginning(b"", {name: frozenset(row) for name, row in columns.items()})
