"""Proof that the views equal the log: replay it into a file of its own and compare what both say, in a
process beside the daemon.
"""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np

from omegad.log import reading
from omegad.log.codec import Codec
from omegad.log.event import Position
from omegad.log.folding import Progress
from omegad.log.projection import Projection
from omegad.storage.database import open_reader, open_unfinished, translated
from omegad.storage.driver import Connection
from omegad.storage.transaction import snapshot
from omegad.views import checkpoints, generation
from omegad.views.applying import Lookup, ViewFold
from omegad.views.building import integrity_problem, of_other_nouns, state

VECTOR_TOLERANCE = 1e-4
_END = (None, None)


class Verification(msgspec.Struct, frozen=True, kw_only=True, tag="verify"):
    """What to compare: the projections named in the file *live* with a replay of the log into the file
    *scratch*, which is not there yet.
    """

    log: Path
    live: Path
    scratch: Path
    names: tuple[str, ...]


class ViewReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a view equals a replay of the log up to its position, and where not, what is wrong."""

    rows: int
    position: Position
    live_digest: str
    replay_digest: str
    equal: bool
    problem: str | None = None


def verify(
    wanted: Verification, projections: Sequence[Projection], codec: Codec, lookup: Lookup, tell: Progress
) -> dict[str, ViewReport]:
    """Compare the live views as they are at one moment with a replay up to where each stands; *tell* is told
    how many events of how many.

    Raises storage errors; the scratch file is left behind.
    """
    chosen = [projection for projection in projections if projection.NAME in wanted.names]
    with (
        translated(),
        closing(open_reader(wanted.log)) as log,
        closing(open_reader(wanted.live)) as live,
        closing(open_unfinished(wanted.scratch)) as fresh,
    ):
        fold = ViewFold(chosen, generation.begin(fresh, (), chosen), lookup)
        read = reading.source(log, codec, of_other_nouns(codec, chosen))
        fold.catch_up(fresh, read, lambda: _positions(live, chosen), tell)
        # Begun when little is left to replay: what is written to the file waits beside it for its end.
        with snapshot(live):
            fold.catch_up(fresh, read, lambda: _positions(live, chosen), tell)
            generation.make_indexes(fresh, chosen)
            marks, digests = state(live, chosen)
            _, replayed = state(fresh, chosen)
            problems = {p.NAME: marks[p.NAME].error or _problem(live, fresh, p) for p in chosen}
    return {
        name: ViewReport(
            rows=digests[name].rows,
            position=marks[name].position,
            live_digest=digests[name].digest,
            replay_digest=replayed[name].digest,
            equal=digests[name] == replayed[name] and problem is None,
            problem=problem,
        )
        for name, problem in problems.items()
    }


def _positions(live: Connection, chosen: Sequence[Projection]) -> dict[str, Position]:
    marks = checkpoints.load(live)
    return {projection.NAME: marks[projection.NAME].position for projection in chosen}


def _problem(live: Connection, fresh: Connection, projection: Projection) -> str | None:
    if damaged := integrity_problem(live, [projection]):
        return damaged
    for select in getattr(projection, "APPROXIMATE", ()):
        missing, apart = _apart(live, fresh, select)
        if missing:
            return f"{projection.NAME}: {missing} vectors are missing"
        if apart:
            return f"{projection.NAME}: {apart} vectors differ by more than {VECTOR_TOLERANCE}"
    return None


def _apart(connection: Connection, other: Connection, select: str) -> tuple[int, int]:
    """Return how many keys that *select* finds here have no vector, and how many have one that differs from
    that in *other*.

    Both are read in step, one row of each at a time.
    """
    theirs = other.execute(select)
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
    return bool(
        np.allclose(np.frombuffer(one, "<f4"), np.frombuffer(other, "<f4"), rtol=0, atol=VECTOR_TOLERANCE)
    )
