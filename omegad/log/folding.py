"""The one loop that reads the log and shows it to projections, whoever keeps their rows, and where.

A batch is read after the position that the last of them has reached, shown to each that has not shown it, and
noted as shown, in one transaction. Whoever drives it says where events come from, how far to go, how much to
take at once, and where rows go; what writes on another thread than it reads on takes the steps itself.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import msgspec

from omegad.log.checkpoint import Checkpoint
from omegad.log.event import Erased, Event, Position, RecordedEvent, Unknown
from omegad.log.projection import Embedding, Projection, Statement, Value
from omegad.runtime.errors import OmegadError
from omegad.runtime.precedence import bulk_gives_way
from omegad.storage.database import translated
from omegad.storage.driver import Connection
from omegad.storage.rows import run_rows
from omegad.storage.transaction import savepoint, writing

BATCH_EVENTS = 3_000
"""Where nobody waits for the latest: larger batches write fewer pages twice."""

Progress = Callable[[Position, Position], None]
"""Is told how many events of how many are shown."""


class Part(NamedTuple):
    """What is to be read next, and for which projections: at most *limit* events after one position, up to
    another.
    """

    names: Sequence[str]
    after: Position
    through: Position
    limit: int


Source = Callable[[Part], Sequence[RecordedEvent]]
"""Reads a part. What none of the projections asks for may be left out, but for the event at `through`;
nothing means that no more is to be shown.
"""

_position = attrgetter("position")
_UNKNOWN = frozenset({Unknown})


class Batch:
    """Events in their order, sorted by kind once for all projections."""

    def __init__(self, events: Sequence[RecordedEvent]) -> None:
        """Take the events, at least one."""
        self.events, self.last = events, events[-1]
        self._of_kind: dict[type[Event | Unknown | Erased], list[RecordedEvent]] = defaultdict(list)
        for recorded in events:
            self._of_kind[type(recorded.event)].append(recorded)

    def after(self, position: Position) -> "Batch | None":
        """Return what comes after a position, None where nothing does."""
        if position < self.events[0].position:
            return self
        events = self.events[bisect_right(self.events, position, key=_position) :]
        return Batch(events) if events else None

    def of(self, kinds: AbstractSet[type[Event | Unknown | Erased]]) -> Sequence[RecordedEvent]:
        """Return the events of some kinds, in their order."""
        found = [events for kind, events in self._of_kind.items() if kind in kinds]
        if len(found) > 1:
            return sorted(chain.from_iterable(found), key=_position)
        return found[0] if found else ()


class Fold:
    """Projections whose rows are in one database, and how far each of them has come: its mark, by name, which
    is moved with it.
    """

    def __init__(self, projections: Sequence[Projection], marks: dict[str, Checkpoint]) -> None:
        self.projections = {projection.NAME: projection for projection in projections}
        self.marks = marks
        self._kinds: dict[str, frozenset[type[Event | Unknown | Erased]]] = {
            one.NAME: frozenset(one.EVENTS) for one in projections
        }

    def note(self, connection: Connection, reached: Collection[Checkpoint]) -> None:
        """Write how far projections have come, in the transaction of their rows."""

    def bound(
        self,
        connection: Connection,
        projection: Projection,
        recorded: RecordedEvent,
        values: Sequence[Value],
    ) -> Sequence[Value] | None:
        """Return the *values* that a statement binds with the bytes of its vectors, None where these are not
        at hand and the statement is put off. Asked only where a statement binds vectors.
        """
        raise NotImplementedError

    def check_unknown(self, projection: Projection, recorded: RecordedEvent, event: Unknown) -> None:
        """Raise where *projection* cannot do without an event that this version cannot read."""

    def next(self, ends: Mapping[str, Position], limit: int) -> Part | None:
        """Return what is to be read for those that stand before their ends, None where none does or all
        that do have failed.
        """
        behind = [
            mark
            for mark in (self.marks[name] for name in ends)
            if mark.failed_position is None and mark.position < ends[mark.name]
        ]
        if not behind:
            return None
        after = min(mark.position for mark in behind)
        through = min(ends[mark.name] for mark in behind)
        return Part([mark.name for mark in behind], after, through, min(limit, through - after))

    def catch_up(
        self,
        connection: Connection,
        read: Source,
        ends: Callable[[], Mapping[str, Position]],
        tell: Progress,
    ) -> None:
        """Show each projection everything up to its end, which is asked for before each batch; one that
        fails stays where it is. Raises storage errors.
        """
        while (part := self.next(goal := ends(), BATCH_EVENTS)) and (batch := read(part)):
            self.marks.update(self.show(connection, batch, part.names))
            tell(batch[-1].position, max(goal.values()))

    def show(
        self, connection: Connection, batch: Sequence[RecordedEvent], names: Collection[str]
    ) -> dict[str, Checkpoint]:
        """Show a batch in each of the projections named, in one transaction; return their new checkpoints.

        One that fails is rolled back to the event before and says so in its checkpoint; the others go on.
        Raises storage errors, and then nothing has changed.
        """
        if not batch:
            return {}
        events = Batch(batch)
        try:
            return self._show(connection, events, names, self._advance)
        except OmegadError:
            raise
        # Whatever a projection raises is its own failure, found again and named in the second attempt
        except Exception:  # noqa: BLE001
            return self._show(connection, events, names, self._advance_to_failure)

    def _show(
        self,
        connection: Connection,
        batch: Batch,
        names: Collection[str],
        advance: Callable[[Connection, Checkpoint, Batch], Checkpoint],
    ) -> dict[str, Checkpoint]:
        reached: dict[str, Checkpoint] = {}
        with translated(), writing(connection):
            for name in names:
                before = self.marks[name]
                if left := batch.after(before.position):
                    reached[name] = advance(connection, before, left)
            self.note(connection, reached.values())
        return reached

    def _advance(self, connection: Connection, before: Checkpoint, batch: Batch) -> Checkpoint:
        """Show all events, or raise; SQLite does without the pages that a savepoint would keep."""
        projection = self.projections[before.name]
        for recorded in batch.of(_UNKNOWN):
            assert isinstance(recorded.event, Unknown)
            self.check_unknown(projection, recorded, recorded.event)
        if events := batch.of(self._kinds[before.name]):
            if together := getattr(projection, "project_together", None):
                run(connection, together(events))
            else:
                self._run(connection, projection, events)
        return msgspec.structs.replace(before, position=batch.last.position, chain=batch.last.chain)

    def _advance_to_failure(self, connection: Connection, before: Checkpoint, batch: Batch) -> Checkpoint:
        """Show events one by one, up to the one that the projection fails on, if it does."""
        for recorded in batch.events:
            try:
                with savepoint(connection), translated():
                    before = self._advance(connection, before, Batch([recorded]))
            except OmegadError:
                raise
            except Exception as error:  # noqa: BLE001
                return msgspec.structs.replace(
                    before,
                    failed_position=recorded.position,
                    error=f"{type(error).__name__}: {error}"[:500],
                )
        return before

    def _run(self, connection: Connection, projection: Projection, events: Sequence[RecordedEvent]) -> None:
        """Run the statements in their order; a run of the same SQL goes to SQLite at once."""
        same, rows, needs_binding = "", list[Sequence[Value]](), False
        for number, recorded in enumerate(events):
            bulk_gives_way(number)
            for sql, values in projection.project(recorded):
                if sql != same:
                    run_rows(connection, same, rows)
                    same, rows, needs_binding = sql, [], Embedding in map(type, values)
                bound = self.bound(connection, projection, recorded, values) if needs_binding else values
                if bound is not None:
                    rows.append(bound)
        run_rows(connection, same, rows)


def run(connection: Connection, statements: Iterable[Statement]) -> None:
    """Run statements that bind no vectors in their order; a run of the same SQL goes to SQLite at once."""
    same, rows = "", list[Sequence[Value]]()
    for number, (sql, values) in enumerate(statements):
        bulk_gives_way(number)
        if sql != same:
            run_rows(connection, same, rows)
            same, rows = sql, []
        rows.append(values)
    run_rows(connection, same, rows)
