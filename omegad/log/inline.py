"""Inline projections: tables of the log's own file, written in the transaction of the append, so that
decisions can rely on them.

One that is new, or of another version, is made from the whole log, batch by batch; it is relied on only once
it is in step.
"""

import asyncio
import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import anyio
import msgspec

from omegad.log import patching, reading
from omegad.log.checkpoint import Checkpoint, create, drop
from omegad.log.codec import Codec
from omegad.log.erasure import Remnant
from omegad.log.event import Erased, Event, NewEvent, Position, RecordedEvent, Unknown
from omegad.log.folding import Fold, run
from omegad.log.projection import Projection
from omegad.runtime.errors import Unavailable
from omegad.storage.database import translated
from omegad.storage.digest import Digest, digest
from omegad.storage.driver import Connection
from omegad.storage.transaction import writing

CATCH_UP_EVENTS = 500


class ProjectionFailed(Unavailable):
    """An inline projection cannot be made from the log, so that nothing can be decided."""

    hint = (
        "reading goes on; the message names the event: install the version of omegad that wrote it, or report"
        " this"
    )


class Inline:
    """The inline projections of a log."""

    def __init__(self, projections: Sequence[Projection]) -> None:
        self.projections = tuple(projections)
        self._projections = {projection.NAME: projection for projection in projections}
        self._by_event: dict[type[Event | Unknown | Erased], tuple[Projection, ...]] = {
            kind: tuple(projection for projection in projections if kind in projection.EVENTS)
            for kind in {kind for projection in projections for kind in projection.EVENTS}
        }

    def fold(self, connection: Connection, *events: RecordedEvent) -> None:
        """Show events to every projection that they concern, in the transaction that is open."""
        run(
            connection,
            (
                statement
                for recorded in events
                for projection in self._by_event.get(type(recorded.event), ())
                for statement in projection.project(recorded)
            ),
        )

    def prepare(self, connection: Connection) -> Position | None:
        """Make the tables that are missing or of another version, empty; in the transaction that is open.
        Return how far those have come that are not in step with the log, None when all are.
        """
        if connection.execute("PRAGMA user_version").fetchone()[0]:
            # A release that has none of this has appended.
            self.reset(connection)
            connection.execute("PRAGMA user_version=0")
        for name, found in _load(connection).items():
            if name not in self._projections or not found.belongs_to(self._projections[name]):
                _remove(connection, found)
        self._create(connection)
        behind: Position | None = connection.execute(
            "SELECT min(position) FROM inline_projections"
        ).fetchone()[0]
        return behind

    def reset(self, connection: Connection) -> None:
        """Empty every projection, to be made from the whole log; in the transaction that is open."""
        for found in _load(connection).values():
            _remove(connection, found)
        self._create(connection)

    def catch_up(self, connection: Connection, codec: Codec, limit: int) -> Position | None:
        """Show up to *limit* more events to those that are behind, in a transaction; return how far that is,
        None when all are in step with the log.

        Raises `ProjectionFailed`, and storage errors; then nothing has changed.
        """
        with translated():
            fold = _Behind(self.projections, _load(connection))
            if part := fold.next(dict.fromkeys(fold.projections, reading.head(connection)), limit):
                batch = reading.source(connection, codec)(part)
                fold.show(connection, batch, part.names)
                return batch[-1].position
            with writing(connection):
                connection.execute("UPDATE inline_projections SET position = NULL")
        return None

    def other_tags(self, codec: Codec) -> list[str]:
        """Return the tags of *codec* whose events concern no projection."""
        return [tag for tag, kind in codec.kinds.items() if kind not in self._by_event]

    def patch(self, connection: Connection, erased: Sequence[Remnant]) -> bool:
        """Change the rows that show events, in the transaction that is open, to what they would be had each
        been what remains of it.

        Return whether that could be done; else they have to be made anew.
        """
        return not erased or all(
            patching.patch(connection, found.tables, self._projections[name], erased)
            for name, found in _load(connection).items()
            if name in self._projections
        )

    def digests(self, connection: Connection) -> dict[str, Digest]:
        """Return what each projection says that is in step with the log."""
        rows = connection.execute("SELECT name FROM inline_projections WHERE position IS NULL")
        return {
            name: digest(connection, self._projections[name])
            for (name,) in rows.fetchall()
            if name in self._projections
        }

    def replica(self, connection: Connection) -> Fold:
        """Make the tables of every projection in a database of their own, where the log is not; return what
        shows them events.
        """
        return Fold(self.projections, {one.NAME: create(connection, one) for one in self.projections})

    def digests_of_replica(self, connection: Connection) -> dict[str, Digest]:
        """Return what each projection says in a database of their own."""
        return {projection.NAME: digest(connection, projection) for projection in self.projections}

    def _create(self, connection: Connection) -> None:
        known = _load(connection)
        begin = 0 if reading.head(connection) else None
        for projection in self.projections:
            if projection.NAME in known:
                continue
            for table in getattr(projection, "REPLACES", ()):
                connection.execute(f'DROP TABLE IF EXISTS "{table}"')
            made = create(connection, projection)
            tables = msgspec.json.encode(made.tables).decode()
            row = (made.name, made.version, made.schema_digest, tables, begin)
            connection.execute("INSERT INTO inline_projections VALUES (?, ?, ?, ?, ?)", row)


class _Behind(Fold):
    """The projections that are made from the log: one that fails ends it."""

    def note(self, connection: Connection, reached: Collection[Checkpoint]) -> None:
        for one in reached:
            if one.failed_position is not None:
                raise ProjectionFailed(failure(one))
            connection.execute(
                "UPDATE inline_projections SET position = ? WHERE name = ?", (one.position, one.name)
            )


@dataclass(frozen=True)
class Vocabulary:
    """The events of a log, what is folded with them, and what decisions are given; made once, at the
    composition root.
    """

    codec: Codec
    inline: Inline = field(default_factory=lambda: Inline(()))
    state: Callable[[Connection], object] = lambda connection: connection
    """Makes, of the connection whose transaction is open, the decision state that a proposal's `decide` is
    called with.
    """
    sanitise: Callable[[NewEvent], NewEvent] = lambda new: new
    """Returns an event as it may enter the log, which keeps its mistakes for ever."""


class CatchingUp:
    """One making of inline projections from the log, part by part, from *position* on; *anew*, with the
    tables emptied first.
    """

    def __init__(self, position: Position, *, anew: bool = False) -> None:
        self.position = position
        self.failure: Unavailable | None = None
        self._is_anew = anew
        self._over = asyncio.Event()
        self._began = (time.monotonic(), position)

    def step(self, connection: Connection, inline: Inline, codec: Codec) -> bool:
        """Show some more events, on the writer's thread; return whether all projections are in step.
        Raises as `Inline.catch_up` does.
        """
        if self._is_anew:
            with writing(connection):
                inline.reset(connection)
            self._is_anew = False
        reached = inline.catch_up(connection, codec, CATCH_UP_EVENTS)
        self.position = self.position if reached is None else reached
        return reached is None

    def end(self, failure: Unavailable | None = None) -> None:
        """Let those who wait go on, or tell them why they cannot."""
        self.failure = failure
        self._over.set()

    def check(self) -> None:
        """Raise what it has failed on, if it has."""
        if self.failure:
            raise type(self.failure)(str(self.failure))

    async def wait(self, head: Position, patience_s: float) -> None:
        """Return when it is over, be it because the log closes. Raises what it fails on, and `Unavailable`
        after *patience_s* seconds.
        """
        with anyio.move_on_after(patience_s) as waiting:
            await self._over.wait()
        if waiting.cancelled_caught:
            seconds, shown = time.monotonic() - self._began[0], self.position - self._began[1]
            left_s = math.ceil(seconds * (head - self.position) / shown) if shown > 0 else 0
            raise Unavailable(
                f"what decisions rely on is being made from the log: it shows {self.position} of {head}"
                f" events{f', about {left_s} s are left' if shown > 0 else ''}",
                hint="ask again then; reading goes on meanwhile, and `omegad status` says how far it is",
            )
        self.check()


def failure(of: Checkpoint) -> str:
    """Say where a projection has failed, and on what."""
    return f"the inline projection {of.name!r} fails at position {of.failed_position}: {of.error}"


def _load(connection: Connection) -> dict[str, Checkpoint]:
    """Return how far each projection has come, as the file says; those in step, to the log's end."""
    rows = connection.execute(
        "SELECT name, version, schema_digest, tables, coalesce(position, ?) FROM inline_projections",
        (reading.head(connection),),
    )
    return {
        name: Checkpoint(name, version, digest, msgspec.json.decode(tables, type=tuple[str, ...]), position)
        for name, version, digest, tables, position in rows
    }


def _remove(connection: Connection, found: Checkpoint) -> None:
    connection.execute("DELETE FROM inline_projections WHERE name = ?", (found.name,))
    drop(connection, found)
