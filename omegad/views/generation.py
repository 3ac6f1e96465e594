"""One file of views, `views-<number>.db`, and the name `views.db` that points at the current one."""

import os
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from errno import ENOSPC
from functools import partial
from importlib import resources
from pathlib import Path

import anyio
import msgspec
import structlog
from anyio import to_thread

from omegad.log.checkpoint import Checkpoint, create, drop
from omegad.log.projection import Projection, indexes
from omegad.runtime.errors import StorageFailed, StorageFull, Unavailable, ViewFailed
from omegad.storage import own_files, readers
from omegad.storage.checkpointer import Checkpointer
from omegad.storage.database import Database
from omegad.storage.driver import Connection
from omegad.storage.readers import Readers, Reading, Turn
from omegad.storage.transaction import run_script, writing
from omegad.views import kept

POINTER = "views.db"
SCRATCH = "views-verify.tmp"
UNFINISHED = ".unfinished"
SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Of the files that belong to a database, it among them."""
BELONGING = "(?:-wal|-shm|-journal)?"
"""The same as a pattern."""
PAST, COPY_PREFIX = "asof", "copy-"
"""The folder of views of earlier moments, and how copies in it begin."""
COPY = re.compile(rf"{COPY_PREFIX}([0-9]{{1,18}})-[0-9a-f]{{16}}\.db")
_NAME = re.compile(r"views-([1-9][0-9]{0,17})\.db")
_UNFINISHED = re.compile(rf"{_NAME.pattern}{re.escape(UNFINISHED)}{BELONGING}")
REBUILD_CACHE_KIB = (
    16_384  # what a batch touches is all over the file; where it does not fit, it is written twice
)

_MOVE_ALL_CHECKPOINTS = "UPDATE checkpoints SET position = ?, chain = ?, failed_position = ?, error = ?"
_MOVE_CHECKPOINTS = f"{_MOVE_ALL_CHECKPOINTS} WHERE name IN (SELECT value FROM json_each(?))"

_log = structlog.get_logger(__name__)


class Generation:
    """An open file of views: its writer, its readers, and the checkpoints as they were when it was opened."""

    def __init__(self, path: Path, writer: Database, reading_from: Readers, stack: AsyncExitStack) -> None:
        self.path = path
        self.writer = writer
        self.readers = reading_from
        self.checkpointer = Checkpointer(path)
        self.checkpoints: dict[str, Checkpoint] = {}
        self.whole_from = 0
        """The position from which on it can be read; 0 where whoever made it saw to that."""
        self._stack = stack

    @classmethod
    async def opened(cls, path: Path, projections: Sequence[Projection], reading: Reading) -> "Generation":
        """Open *path* with so many readers, and one each for hooks and for long reads, make the tables that
        are missing, and read the checkpoints.

        Raises `StorageCorrupt` where the file is damaged.
        """
        stack = AsyncExitStack()
        async with stack:
            writer = await Database.writer(path, durable=False)
            stack.push_async_callback(writer.close)
            found = await writer.run(partial(prepare, projections=projections))
            reading_from = await stack.enter_async_context(
                readers.opened(path, *reading, own=(Turn.FIRST, Turn.LONG))
            )
            generation = cls(path, writer, reading_from, stack.pop_all())
            generation.checkpoints = found
            return generation
        raise AssertionError

    def try_again(self, projections: Sequence[Projection]) -> None:
        """Let what failed in an earlier run be tried once more, and log what another version has made."""
        for projection in projections:
            checkpoint = self.checkpoints[projection.NAME]
            if not checkpoint.belongs_to(projection):
                _log.info(
                    "views.outdated",
                    view=checkpoint.name,
                    version=checkpoint.version,
                    can_be_read=checkpoint.can_be_read(projection),
                )
            elif checkpoint.failed_position is not None:
                self.checkpoints[checkpoint.name] = msgspec.structs.replace(
                    checkpoint, failed_position=None, error=None
                )

    def check_versions(self, projections: Sequence[Projection]) -> None:
        """Refuse what another version of omegad has built: it may have been installed since this process
        was started. Raises `ViewFailed`.
        """
        for projection in projections:
            if not self.checkpoints[projection.NAME].belongs_to(projection):
                message = (
                    f"the view {projection.NAME!r} was built by another version of omegad than the one that"
                    " runs"
                )
                raise ViewFailed(message, hint="restart the daemon: `omegad stop`, then `omegad start`")

    async def close(self) -> None:
        """Close the connections, after the reads that are under way."""
        await self.readers.drain()
        try:
            await self.writer.run(self.checkpointer.truncate)
        except Unavailable as error:  # the WAL is read at the next start
            _log.warning("views.not_checkpointed", error=str(error))
        await self._stack.aclose()

    async def discard(self) -> None:
        """Close the connections and remove the file."""
        await self.readers.drain()
        await self._stack.aclose()
        remove(self.path)


def files(home: Path) -> list[Path]:
    """Return the files of every generation that the home has, oldest name first; what merely has a similar
    name is somebody's.
    """
    return own_files.named(home, _NAME)


def current(home: Path) -> Path | None:
    """Return the file that `views.db` points at, None where there is none. Raises `StorageFailed` where it
    can never be one.
    """
    pointer = home / POINTER
    if not pointer.is_symlink():
        if pointer.is_dir():
            raise StorageFailed(
                f"{pointer} is a directory, and has to be the name of the current views", hint="move it away"
            )
        return None
    target = home / pointer.readlink().name
    return target if _NAME.fullmatch(target.name) and target.exists() else None


def point_at(path: Path) -> None:
    """Make `views.db` point at *path*, at once for everyone who opens it. Raises `StorageFull` or
    `StorageFailed`.
    """
    fresh = path.with_name(POINTER + ".new")
    with translated():
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(path.name)
        fresh.replace(path.with_name(POINTER))


def next_path(home: Path, latest: Path | None) -> Path:
    """Return the file for the next generation, numbered above every one of the home and above *latest*,
    which may not be there yet.
    """
    number = max(map(_number, [*files(home), *([latest] if latest else [])]), default=0) + 1
    return home / f"views-{number}.db"


@asynccontextmanager
async def scratch(home: Path) -> AsyncIterator[Path]:
    """Give the name of a file that is there for the block alone."""
    path = home / SCRATCH
    await to_thread.run_sync(remove, path)
    try:
        yield path
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(remove, path)


def make_indexes(connection: Connection, built: Collection[Projection]) -> None:
    """Make the indexes of what was built."""
    with writing(connection):
        for projection in built:
            run_script(connection, indexes(projection))


def unfinished(path: Path) -> Path:
    """Return the name that the file of a generation has while it is built."""
    return path.with_name(path.name + UNFINISHED)


def finish(path: Path) -> None:
    """Give a generation that was built its own name. Raises `StorageFailed`."""
    with translated():
        unfinished(path).rename(path)


def remove_others(home: Path, *keep: Path) -> None:
    """Remove the generations but those to *keep*, and what an interrupted rebuild or verification left
    behind.
    """
    for path in (*files(home), *own_files.named(home, _UNFINISHED), home / SCRATCH):
        if path not in keep:
            remove(path)


def remove_all(home: Path) -> None:
    """Remove every file of views, and what is left of a check of them: they are made of the log again."""
    remove_others(home)
    (home / POINTER).unlink(missing_ok=True)


def previous(current: Path) -> list[Path]:
    """Return the file of the generation that *current* took the place of; older ones are no more."""
    return [path for path in files(current.parent) if _number(path) < _number(current)]


def remove_previous(current: Path) -> None:
    """Remove the generation that *current* took the place of."""
    for path in previous(current):
        remove(path)


def _number(path: Path) -> int:
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else 0


def remove(path: Path) -> None:
    """Remove a database file and what belongs to it. Raises `StorageFailed` where something else has its
    name.
    """
    with translated():
        for suffix in SUFFIXES:
            path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def translated(hint: str = "move away what has the name of a file of views") -> Iterator[None]:
    """Turn what the system says of a name in the home into an error of the catalogue."""
    try:
        yield
    except OSError as error:
        if error.errno == ENOSPC:
            raise StorageFull from error
        raise StorageFailed(f"{error.filename}: {error.strerror}", hint=hint) from error


def prepare(connection: Connection, projections: Sequence[Projection]) -> dict[str, Checkpoint]:
    """Make the tables that are missing, and what reads them for people's own SQL; return the checkpoints."""
    with writing(connection):
        run_script(
            connection,
            resources.files("omegad.views").joinpath("checkpoints.sql").read_text(encoding="utf-8"),
        )
        found = load_checkpoints(connection)
        for projection in projections:
            if projection.NAME not in found:
                found[projection.NAME] = save_checkpoint(connection, create(connection, projection))
        for projection in projections:
            if found[projection.NAME].belongs_to(projection):  # or a table may have the name of a view
                run_script(connection, getattr(projection, "SQL_VIEWS", ""))
    return found


def copy_to(connection: Connection, target: Path) -> None:
    """Copy the whole file of *connection* to *target*, as it is now."""
    is_reader = connection.execute("PRAGMA query_only").fetchone()[0]
    connection.execute(
        "PRAGMA query_only=OFF"
    )  # or SQLite takes the new file for one that it must not write either
    try:
        connection.execute("VACUUM INTO ?", (os.fspath(target),))
    finally:
        connection.execute(f"PRAGMA query_only={is_reader}")


def begin(
    connection: Connection, names: Collection[str], projections: Sequence[Projection]
) -> dict[str, Checkpoint]:
    """Make ready for a rebuild: make what is missing, empty the projections named, without their `INDEXES`,
    let the disk wait, and keep more pages.

    Nothing points at the file yet; it is removed when the building of it is broken off.
    """
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute(f"PRAGMA cache_size=-{REBUILD_CACHE_KIB}")
    found = prepare(connection, ())
    with writing(connection):
        kept.forget(connection)
        for name in found.keys() & names:
            drop(connection, found.pop(name))
            connection.execute("DELETE FROM deferred WHERE name = ?", (name,))
            connection.execute("DELETE FROM checkpoints WHERE name = ?", (name,))
        for projection in projections:
            if projection.NAME not in found:
                found[projection.NAME] = save_checkpoint(
                    connection, create(connection, projection, bare=True)
                )
    return found


def load_checkpoints(connection: Connection) -> dict[str, Checkpoint]:
    """Read every checkpoint of the file, by projection name."""
    rows = connection.execute(
        "SELECT name, version, schema_digest, tables, position, chain, failed_position, error FROM"
        " checkpoints"
    )
    return {
        name: Checkpoint(name, version, digest, msgspec.json.decode(tables, type=tuple[str, ...]), *rest)
        for name, version, digest, tables, *rest in rows
    }


def save_checkpoint(connection: Connection, checkpoint: Checkpoint) -> Checkpoint:
    """Write the checkpoint of a projection whose tables were made, in the same transaction; return it."""
    name, version, digest, tables, *rest = msgspec.structs.astuple(checkpoint)
    row = (name, version, digest, msgspec.json.encode(tables).decode(), *rest)
    connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    return checkpoint


def move_checkpoints(connection: Connection, reached: Iterable[Checkpoint], of: int) -> None:
    """Write how far projections have come, which are among so many whose checkpoints are there, in the
    transaction of the rows.
    """
    alike = defaultdict[tuple[object, ...], list[str]](list)
    for one in reached:
        alike[one.position, one.chain, one.failed_position, one.error].append(one.name)
    for moved, names in alike.items():
        if len(names) == of:  # as nearly always
            connection.execute(_MOVE_ALL_CHECKPOINTS, moved)
        else:
            connection.execute(_MOVE_CHECKPOINTS, (*moved, msgspec.json.encode(names).decode()))
