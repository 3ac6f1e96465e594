"""What goes through the whole log for views, in a process beside the daemon that `workers` starts: builds
them into a file of their own, makes those of an earlier moment, and proves that they equal the log.

Nothing points at a file before it is whole, so while it is built nothing waits for the disk, and whoever is
stopped leaves a file to remove.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from omegad.log import reading
from omegad.log.checkpoint import Checkpoint, failed
from omegad.log.codec import Codec, tag_of
from omegad.log.event import Event, Position, RecordedEvent
from omegad.log.folding import Progress, Source
from omegad.log.projection import Projection
from omegad.runtime.alone import sync
from omegad.runtime.errors import ViewFailed
from omegad.storage.database import open_reader, open_scratch, open_unfinished, open_untouched, translated
from omegad.storage.digest import Digest, digest
from omegad.storage.driver import Connection, sqlite
from omegad.storage.transaction import snapshot, writing
from omegad.views import generation
from omegad.views.applying import Lookup, ViewFold, noun

VECTOR_TOLERANCE = 1e-4
_END = (None, None, None)


class Order(msgspec.Struct, frozen=True, kw_only=True, tag="build"):
    """What to build: the projections named, from the log, into the file *target*, which is not there yet.

    With a *source*, *target* begins as a copy of it, and what is not named is carried on from there. Where
    *is_failed_accepted*, a projection that fails is kept as far as it came.
    """

    log: Path
    target: Path
    names: tuple[str, ...]
    source: Path | None = None
    is_failed_accepted: bool = False


class PastOrder(msgspec.Struct, frozen=True, kw_only=True, tag="past"):
    """The file to make: *target*, which is not there yet, as of *position* of the log, on from a copy of
    *source* where there is one.
    """

    log: Path
    target: Path
    position: Position
    source: Path | None = None


class Moments(NamedTuple):
    """The views as of one moment after another, in a database that is there for the while alone; `at` brings
    them to a position that is no earlier than the one before, and returns the database.
    """

    log: Connection
    at: Callable[[Position], Connection]


class Verification(msgspec.Struct, frozen=True, kw_only=True, tag="verify"):
    """What to compare: the projections named in the file *live* with a replay of the log into the file
    *target*, which is not there yet.
    """

    log: Path
    live: Path
    target: Path
    names: tuple[str, ...]


class RebuiltView(msgspec.Struct, frozen=True, kw_only=True):
    """A view that was built again: how many canonical rows it has at its position, and their digest."""

    rows: int
    position: Position
    digest: str


class ViewReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a view equals a replay of the log up to its position, and where not, what is wrong.

    `waiting` is how many of its vectors are not at hand and noted to be computed again, which is no
    difference.
    """

    rows: int
    position: Position
    live_digest: str
    replay_digest: str
    equal: bool
    problem: str | None = None
    waiting: int = 0


class Builder(NamedTuple):
    """Builds views of projections, and compares them with the log; *lookup* finds vectors. Progress is how
    many events of how many are shown. All of it raises `LogBroken` and storage errors, and then leaves a
    file behind that is there in part.
    """

    projections: Sequence[Projection]
    codec: Codec
    lookup: Lookup

    def build(self, order: Order, tell: Progress) -> dict[str, RebuiltView]:
        """Make the file, whole and on the disk. Raises `ViewFailed` where a view fails or is damaged."""
        built = self._named(order.names)
        begun = self._begun(order.log, order.target, self.projections, order.names, order.source)
        with begun as (connection, log, fold, read):
            fold.catch_up(connection, read, lambda: dict.fromkeys(fold.projections, reading.head(log)), tell)
            for name in order.names if not order.is_failed_accepted else ():
                if (mark := fold.marks[name]).failed_position is not None:
                    raise ViewFailed(
                        f"the rebuilt view {name!r} failed at position {mark.failed_position}: {mark.error}"
                    )
            generation.make_indexes(connection, built)
            if problem := integrity_problem(connection, built):
                raise ViewFailed(f"a rebuilt view is damaged: {problem}")
            marks, digests = _state(connection, built)
        sync(order.target)
        return {
            name: RebuiltView(rows=found.rows, position=marks[name].position, digest=found.digest)
            for name, found in digests.items()
        }

    def make_past(self, order: PastOrder, tell: Progress) -> Position:
        """Make the file; return what it shows."""
        begun = self._begun(order.log, order.target, self.projections, (), order.source)
        with begun as (connection, log, fold, read):
            ends = dict.fromkeys(fold.projections, order.position)
            fold.catch_up(connection, read, lambda: ends, tell)
            if reading.taken_out(log):
                self._take_out(connection, self._erasures(log, order.position))
            generation.make_indexes(connection, () if order.source else self.projections)
            generation.prepare(connection, self.projections)
        return order.position

    @contextmanager
    def moments(self, log: Path, tell: Progress) -> Iterator[Moments]:
        """Go forward through a log, whoever writes it; nothing of that is left behind, wherever it is broken
        off. `Moments.at` raises `ViewFailed` where a view fails.
        """
        with self._begun(log, None, self.projections) as (connection, events, fold, read):
            generation.make_indexes(connection, self.projections)
            erasures = self._erasures(events, 0)

            def at(position: Position) -> Connection:
                fold.catch_up(connection, read, lambda: dict.fromkeys(fold.projections, position), tell)
                if mark := failed(fold.marks, fold.projections):
                    raise ViewFailed(
                        f"the view {mark.name!r} failed at position {mark.failed_position}: {mark.error}"
                    )
                self._take_out(connection, [one for one in erasures if one.position > position])
                return connection

            yield Moments(events, at)

    def verify(self, wanted: Verification, tell: Progress) -> dict[str, ViewReport]:
        """Compare the live views as they are at one moment with a replay up to where each stands."""
        chosen = self._named(wanted.names)
        with (
            self._begun(wanted.log, wanted.target, chosen) as (fresh, _, fold, read),
            closing(open_reader(wanted.live)) as live,
        ):

            def ends() -> Mapping[str, Position]:
                marks = generation.load_checkpoints(live)
                return {name: marks[name].position for name in fold.projections}

            fold.catch_up(fresh, read, ends, tell)
            # Begun when little is left to replay: what is written to the file waits beside it for its end.
            with snapshot(live):
                fold.catch_up(fresh, read, ends, tell)
                generation.make_indexes(fresh, chosen)
                marks, digests = _state(live, chosen)
                _, replayed = _state(fresh, chosen)
                compared = {one.NAME: _compared(live, fresh, one) for one in chosen}
                problems = {name: marks[name].error or found.problem for name, found in compared.items()}
        return {
            name: ViewReport(
                rows=digests[name].rows,
                position=marks[name].position,
                live_digest=digests[name].digest,
                replay_digest=replayed[name].digest,
                equal=digests[name] == replayed[name] and problem is None,
                problem=problem,
                waiting=compared[name].waiting,
            )
            for name, problem in problems.items()
        }

    def _named(self, names: Collection[str]) -> list[Projection]:
        return [projection for projection in self.projections if projection.NAME in names]

    @contextmanager
    def _begun(
        self,
        events: Path,
        target: Path | None,
        projections: Sequence[Projection],
        names: Collection[str] = (),
        source: Path | None = None,
    ) -> Iterator[tuple[Connection, Connection, ViewFold, Source]]:
        """Open the file to make, a copy of *source* where there is one, or a database of no name where there
        is no *target*, in which the projections named show nothing yet, and the log at *events*; give them
        with what shows the log, and with what reads of it all that any of *projections* could ask for.
        """
        with translated():
            if source is not None and target is not None:
                with closing(open_reader(source)) as live:
                    generation.copy_to(live, target)
            with (
                closing(open_unfinished(target) if target else open_scratch()) as connection,
                closing(open_untouched(events)) as log,
            ):
                marks = generation.begin(connection, names, projections)
                # Of a noun that one shows a newer version may have written others.
                nouns = {noun(tag_of(kind)) for one in projections for kind in one.EVENTS}
                others = [tag for tag in self.codec.kinds if noun(tag) not in nouns]
                read = reading.source(log, self.codec, others)
                yield connection, log, ViewFold(projections, marks, self.lookup), read

    def _erasures(self, log: Connection, after: Position) -> list[RecordedEvent]:
        """Return what was erased or aged after a position, of what projections know."""
        tags = [tag_of(kind) for one in self.projections for kind in _taking_out(one)]
        return [
            recorded
            for position in reading.tagged(log, tags, after)
            for recorded in reading.read_at(log, self.codec, [position])
        ]

    def _take_out(self, connection: Connection, erasures: Collection[RecordedEvent]) -> None:
        """Take out what was erased later: it is not shown as of an earlier moment either."""
        for recorded in erasures:
            with writing(connection):
                take_out(connection, self.projections, recorded)


def take_out(connection: Connection, projections: Iterable[Projection], erasure: RecordedEvent) -> None:
    """Show an erasure to those of *projections* that know it, in the transaction that is open."""
    for projection in projections:
        if isinstance(erasure.event, _taking_out(projection)):
            for sql, values in projection.project(erasure):
                connection.execute(sql, values)


def _taking_out(projection: Projection) -> tuple[type[Event], ...]:
    """Return the events that take out of a projection's rows what it showed, as of earlier moments, too."""
    return (*getattr(projection, "ERASED_BY", ()), *getattr(projection, "AGED_BY", ()))


def integrity_problem(connection: Connection, projections: Collection[Projection]) -> str | None:
    """Run the projections' own integrity checks; return what is wrong, None when nothing is."""
    for projection in projections:
        for statement in getattr(projection, "INTEGRITY", ()):
            try:
                found = connection.execute(statement).fetchall()
            except sqlite.Error as error:
                return f"{projection.NAME}: {error}"
            if found:
                return f"{projection.NAME}: {len(found)} rows are not as they should be, the first {found[0]}"
    return None


def _state(
    connection: Connection, projections: Sequence[Projection]
) -> tuple[dict[str, Checkpoint], dict[str, Digest]]:
    """Read the checkpoints and the digest of each of *projections*, of one moment."""
    return generation.load_checkpoints(connection), {one.NAME: digest(connection, one) for one in projections}


class _Compared(NamedTuple):
    """What is wrong with a view beside its rows, None where nothing is, and how many vectors wait."""

    problem: str | None
    waiting: int = 0


def _compared(live: Connection, fresh: Connection, projection: Projection) -> _Compared:
    if damaged := integrity_problem(live, [projection]):
        return _Compared(damaged)
    noted = {
        row[0] for row in live.execute("SELECT position FROM deferred WHERE name = ?", (projection.NAME,))
    }
    waiting = 0
    for select in getattr(projection, "APPROXIMATE", ()):
        missing, waits, apart = _apart(live, fresh, select, noted)
        waiting += waits
        if missing:
            return _Compared(f"{projection.NAME}: {missing} vectors are missing", waiting)
        if apart:
            return _Compared(
                f"{projection.NAME}: {apart} vectors differ by more than {VECTOR_TOLERANCE}", waiting
            )
    return _Compared(None, waiting)


def _apart(
    connection: Connection, other: Connection, select: str, noted: Collection[Position]
) -> tuple[int, int, int]:
    """Return how many keys that *select* finds here have no vector, how many have none yet, since their event
    is *noted* as deferred, and how many have one that differs from that in *other*.

    Both are read in step, one row of each at a time.
    """
    theirs = other.execute(select)
    key, vector, _ = theirs.fetchone() or _END
    missing = waiting = apart = 0
    for ours, ours_vector, position in connection.execute(select):
        while key is not None and key < ours:
            key, vector, _ = theirs.fetchone() or _END
        if ours_vector is None:
            waiting += position in noted
            missing += position not in noted
        elif key == ours and vector not in (None, ours_vector):
            one, another = np.frombuffer(ours_vector, "<f4"), np.frombuffer(vector, "<f4")
            apart += not np.allclose(one, another, rtol=0, atol=VECTOR_TOLERANCE)
    return missing, waiting, apart
