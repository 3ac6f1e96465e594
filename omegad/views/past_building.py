"""Makes a file of views as they stood at one position, in a process beside the daemon."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from omegad.log import reading
from omegad.log.codec import Codec, tag_of
from omegad.log.event import Position
from omegad.log.folding import Progress
from omegad.log.projection import Projection
from omegad.storage.database import open_reader, open_unfinished, translated
from omegad.storage.driver import Connection
from omegad.storage.transaction import writing
from omegad.views import generation
from omegad.views.applying import Lookup, ViewFold
from omegad.views.building import of_other_nouns


class PastOrder(msgspec.Struct, frozen=True, kw_only=True, tag="past"):
    """The file to make: *target*, which is not there yet, as of *position* of the log, on from a copy of
    *source* where there is one.
    """

    log: Path
    target: Path
    position: Position
    source: Path | None = None


def make(
    order: PastOrder, projections: Sequence[Projection], codec: Codec, lookup: Lookup, tell: Progress
) -> None:
    """Make the file; *tell* is told how many events of how many are shown. Raises storage errors, and then
    it is there in part.
    """
    with translated():
        if order.source is not None:
            with closing(open_reader(order.source)) as source:
                generation.copy_to(source, order.target)
        with closing(open_unfinished(order.target)) as connection, closing(open_reader(order.log)) as log:
            fold = ViewFold(projections, generation.begin(connection, (), projections), lookup)
            ends = dict.fromkeys(fold.projections, order.position)
            fold.catch_up(
                connection,
                reading.source(log, codec, of_other_nouns(codec, projections)),
                lambda: ends,
                tell,
            )
            if reading.erased(log, order.position):
                _take_out_erased(connection, log, projections, codec, order.position)
            generation.make_indexes(connection, () if order.source else projections)
            generation.prepare(connection, projections)


def _take_out_erased(
    connection: Connection, log: Connection, projections: Sequence[Projection], codec: Codec, after: Position
) -> None:
    """Show the projections that know them the erasures since: what was erased is not shown as of an
    earlier moment either.
    """
    tags = [
        tag_of(kind)
        for kind in {kind for projection in projections for kind in getattr(projection, "ERASED_BY", ())}
    ]
    for position in reading.tagged(log, tags, after):
        (recorded,) = reading.read_at(log, codec, [position])
        with writing(connection):
            for projection in projections:
                if isinstance(recorded.event, getattr(projection, "ERASED_BY", ())):
                    for sql, values in projection.project(recorded):
                        connection.execute(sql, values)
