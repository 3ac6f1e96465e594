"""Proof that the views equal the log: replay it into a file of its own and compare what both say."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from omegad.errors import ViewFailed
from omegad.log.event import Position
from omegad.log.event_log import EventLog
from omegad.projection import Projection
from omegad.storage.database import open_reader
from omegad.storage.digest import Digest, digest
from omegad.storage.driver import Connection
from omegad.views import checkpoints, generation
from omegad.views.applying import Lookup
from omegad.views.checkpoints import Checkpoint
from omegad.views.driver import Driver
from omegad.views.generation import Generation

VECTOR_TOLERANCE = 1e-4
_END = (None, None)

Progress = Callable[[Position, Position], None]


class ViewReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a view equals a replay of the log up to its position, and where not, what is wrong."""

    rows: int
    position: Position
    live_digest: str
    replay_digest: str
    equal: bool
    problem: str | None = None


class RebuiltView(msgspec.Struct, frozen=True, kw_only=True):
    """A view that was built again: how many canonical rows it has at its position, and their digest."""

    rows: int
    position: Position
    digest: str


async def compare(
    log: EventLog, live: Generation, projections: Sequence[Projection], lookup: Lookup, *, scratch: Path, progress: Progress
) -> dict[str, ViewReport]:
    """Replay *projections* into a new file at *scratch*, each up to where its live view stands, and compare; the file is removed."""
    names = [projection.NAME for projection in projections]
    generation.remove(scratch)
    marks, digests = await live.readers.read(lambda connection: state(connection, projections))
    fresh = await Generation.opened(scratch, projections, reader_count=1)
    try:
        await Driver(log, fresh, projections, lookup).catch_up(progress, {name: marks[name].position for name in names})
        problems = {p.NAME: await _problem(live, fresh, p) for p in projections}
        _, replayed = await fresh.readers.read(lambda connection: state(connection, projections))
    finally:
        await fresh.discard()
    return {name: _report(marks[name], digests[name], replayed[name], problems[name]) for name in names}


async def check_integrity(target: Generation, projections: Collection[Projection]) -> str | None:
    """Run the projections' own integrity checks; return what is wrong, None when nothing is."""
    for projection in projections:
        for statement in getattr(projection, "INTEGRITY", ()):
            try:
                found = await target.writer.run(lambda connection, sql=statement: connection.execute(sql).fetchall())  # type: ignore[misc]
                if found:
                    return f"{projection.NAME}: {len(found)} rows are not as they should be, the first {found[0]}"
            except Exception as error:  # noqa: BLE001  whatever the check raises is its finding
                return f"{projection.NAME}: {error}"
    return None


async def check_built(driver: Driver, projections: Sequence[Projection], *, is_failed_accepted: bool) -> None:
    """Raise `ViewFailed` where one of *projections*, which were built again, has failed or is damaged."""
    failed = driver.failure([projection.NAME for projection in projections])
    if failed and not is_failed_accepted:
        raise ViewFailed(f"the rebuilt view {failed.name!r} failed at position {failed.failed_position}: {failed.error}")
    problem = await check_integrity(driver.generation, projections)
    if problem:
        raise ViewFailed(f"a rebuilt view is damaged: {problem}")


async def complete(fresh: Generation, built: Sequence[Projection]) -> dict[str, RebuiltView]:
    """Make the indexes of what was built, see to it that the file is on the disk, and say what each of *built* holds."""
    # SQLite sorts rows for an index while Python hashes them.
    indexing = fresh.writer.run(partial(generation.make_indexes, built=built))
    said, _ = await asyncio.gather(fresh.readers.read(partial(_rebuilt, projections=built)), indexing)
    await fresh.writer.run(generation.finished)
    return said


def _rebuilt(connection: Connection, projections: Sequence[Projection]) -> dict[str, RebuiltView]:
    marks, digests = state(connection, projections)
    return {name: RebuiltView(rows=found.rows, position=marks[name].position, digest=found.digest) for name, found in digests.items()}


def _report(mark: Checkpoint, live: Digest, replayed: Digest, problem: str | None) -> ViewReport:
    problem = mark.error or problem
    return ViewReport(
        rows=live.rows,
        position=mark.position,
        live_digest=live.digest,
        replay_digest=replayed.digest,
        equal=live == replayed and problem is None,
        problem=problem,
    )


def state(connection: Connection, projections: Sequence[Projection]) -> tuple[dict[str, Checkpoint], dict[str, Digest]]:
    """Read the checkpoints and the digest of each of *projections*, of one moment."""
    return checkpoints.load(connection), {projection.NAME: digest(connection, projection) for projection in projections}


async def _problem(live: Generation, fresh: Generation, projection: Projection) -> str | None:
    damaged = await check_integrity(live, [projection])
    if damaged:
        return damaged
    for select in getattr(projection, "APPROXIMATE", ()):
        missing, apart = await live.readers.read(partial(_apart, other=fresh.path, select=select))
        if missing:
            return f"{projection.NAME}: {missing} vectors are missing"
        if apart:
            return f"{projection.NAME}: {apart} vectors differ by more than {VECTOR_TOLERANCE}"
    return None


def _apart(connection: Connection, other: Path, select: str) -> tuple[int, int]:
    """Return how many keys that *select* finds here have no vector, and how many have one that differs from that in the file *other*.

    Both are read in step, one row of each at a time.
    """
    with closing(open_reader(other)) as beside:
        theirs = beside.execute(select)
        key, vector = theirs.fetchone() or _END
        missing = apart = 0
        for ours, ours_vector in connection.execute(select):
            while key is not None and key < ours:
                key, vector = theirs.fetchone() or _END
            missing += ours_vector is None
            apart += key == ours and not _are_close(ours_vector, vector)
        return missing, apart


def _are_close(one: bytes | None, other: bytes | None) -> bool:
    if one is None or other is None or one == other:
        return True
    return bool(np.allclose(np.frombuffer(one, "<f4"), np.frombuffer(other, "<f4"), rtol=0, atol=VECTOR_TOLERANCE))
