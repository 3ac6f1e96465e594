"""Proof that the views equal the log: replay it into a file of its own and compare what both say."""

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from omegad.log.event import Position
from omegad.log.event_log import EventLog
from omegad.projection import Projection
from omegad.storage.database import open_reader
from omegad.storage.digest import Digest
from omegad.storage.driver import Connection
from omegad.views import generation
from omegad.views.applying import Lookup
from omegad.views.building import Progress, integrity_problem, state
from omegad.views.checkpoints import Checkpoint
from omegad.views.driver import Driver
from omegad.views.generation import Generation

VECTOR_TOLERANCE = 1e-4
_END = (None, None)


class ViewReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a view equals a replay of the log up to its position, and where not, what is wrong."""

    rows: int
    position: Position
    live_digest: str
    replay_digest: str
    equal: bool
    problem: str | None = None


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


async def _problem(live: Generation, fresh: Generation, projection: Projection) -> str | None:
    damaged = await live.writer.run(partial(integrity_problem, projections=[projection]))
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
