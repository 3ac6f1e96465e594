"""Builds views from the log into a file of their own, in a process beside the daemon: `building` folds,
`workers` starts and hears it.

Nothing points at the file before it is whole, so while it is built nothing waits for the disk, and whoever is
stopped leaves a file to remove.
"""

import os
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from omegad.log import reading
from omegad.log.checkpoint import Checkpoint
from omegad.log.codec import Codec, tag_of
from omegad.log.event import Position
from omegad.log.folding import Progress
from omegad.log.projection import Projection
from omegad.runtime.errors import ViewFailed
from omegad.storage.database import open_reader, open_unfinished, translated
from omegad.storage.digest import Digest, digest
from omegad.storage.driver import Connection, sqlite
from omegad.views import checkpoints, generation
from omegad.views.applying import Lookup, ViewFold, noun


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


class RebuiltView(msgspec.Struct, frozen=True, kw_only=True):
    """A view that was built again: how many canonical rows it has at its position, and their digest."""

    rows: int
    position: Position
    digest: str


class Builder:
    """Builds views of some projections."""

    def __init__(self, projections: Sequence[Projection], codec: Codec, lookup: Lookup) -> None:
        """Take everything from outside; *lookup* finds vectors."""
        self._projections = tuple(projections)
        self._codec = codec
        self._lookup = lookup

    def build(self, order: Order, tell: Progress) -> dict[str, RebuiltView]:
        """Make the file, whole and on the disk; *tell* is told how many events of how many are shown.

        Raises `ViewFailed` where a projection fails or is damaged, `LogBroken`, and storage errors; then the
        file is there in part.
        """
        with translated():
            if order.source is not None:
                with closing(open_reader(order.source)) as live:
                    generation.copy_to(live, order.target)
            with closing(open_unfinished(order.target)) as connection, closing(open_reader(order.log)) as log:
                said = self._fill(connection, log, order, tell)
        with order.target.open("rb") as file:
            os.fsync(file.fileno())
        return said

    def _fill(
        self, connection: Connection, log: Connection, order: Order, tell: Progress
    ) -> dict[str, RebuiltView]:
        built = [projection for projection in self._projections if projection.NAME in order.names]
        marks = generation.begin(connection, order.names, self._projections)
        fold = ViewFold(self._projections, marks, self._lookup)
        read = reading.source(log, self._codec, of_other_nouns(self._codec, self._projections))
        fold.catch_up(connection, read, lambda: dict.fromkeys(fold.projections, reading.head(log)), tell)
        failed = next(
            (
                mark
                for mark in marks.values()
                if mark.name in order.names and mark.failed_position is not None
            ),
            None,
        )
        if failed and not order.is_failed_accepted:
            raise ViewFailed(
                f"the rebuilt view {failed.name!r} failed at position {failed.failed_position}:"
                f" {failed.error}"
            )
        generation.make_indexes(connection, built)
        if problem := integrity_problem(connection, built):
            raise ViewFailed(f"a rebuilt view is damaged: {problem}")
        marks, digests = state(connection, built)
        return {
            name: RebuiltView(rows=found.rows, position=marks[name].position, digest=found.digest)
            for name, found in digests.items()
        }


def of_other_nouns(codec: Codec, projections: Sequence[Projection]) -> list[str]:
    """Return the tags that none of *projections* could ask for; all of a noun that one shows are read, since
    a newer version may have written them.
    """
    nouns = {noun(tag_of(kind)) for projection in projections for kind in projection.EVENTS}
    return [tag for tag in codec.kinds if noun(tag) not in nouns]


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


def state(
    connection: Connection, projections: Sequence[Projection]
) -> tuple[dict[str, Checkpoint], dict[str, Digest]]:
    """Read the checkpoints and the digest of each of *projections*, of one moment."""
    return checkpoints.load(connection), {
        projection.NAME: digest(connection, projection) for projection in projections
    }
