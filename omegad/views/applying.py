"""One transaction of the views: a batch of events shown by every projection that has not shown them yet.

Runs on the thread of the views' writer. A projection that fails is rolled back to the event before and marked; the others go on.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from omegad.log.codec import tag_of
from omegad.log.event import RecordedEvent, Unknown
from omegad.log.projection import Embedding, Projection, Value
from omegad.runtime.errors import OmegadError
from omegad.storage.database import translated
from omegad.storage.driver import Connection
from omegad.storage.transaction import savepoint, writing
from omegad.views import checkpoints
from omegad.views.checkpoints import Checkpoint

Lookup = Callable[[Embedding], bytes | None]
Bound = str | int | float | bytes | None
Advance = Callable[[Connection, Projection, Checkpoint, Sequence[RecordedEvent], Lookup], Checkpoint]
States = Mapping[str, tuple[Projection, Checkpoint]]

_DEFER = "INSERT OR IGNORE INTO deferred VALUES (?, ?)"


class UnreadableEvent(Exception):
    """An event that the projection needs was written by a newer version of omegad."""


def apply(connection: Connection, batch: Sequence[RecordedEvent], states: States, lookup: Lookup) -> dict[str, Checkpoint]:
    """Show *batch* in each projection of *states*; return the new checkpoints. All is committed together.

    Raises storage errors, and then nothing has changed.
    """
    try:
        return _apply(connection, batch, states, lookup, _advance)
    except OmegadError:
        raise
    except Exception:  # noqa: BLE001  whatever a projection raises is its own failure, found again and named in the second attempt
        return _apply(connection, batch, states, lookup, _advance_to_failure)


def _apply(connection: Connection, batch: Sequence[RecordedEvent], states: States, lookup: Lookup, advance: Advance) -> dict[str, Checkpoint]:
    after: dict[str, Checkpoint] = {}
    with translated(), writing(connection):
        for name, (projection, before) in states.items():
            events = [recorded for recorded in batch if recorded.position > before.position]
            if events:
                after[name] = advance(connection, projection, before, events, lookup)
        checkpoints.move(connection, after.values())
    return after


def fill(connection: Connection, projection: Projection, recorded: RecordedEvent, lookup: Lookup) -> bool:
    """Run the statements of a deferred event again, now that its vectors may be at hand; say whether all were."""
    with writing(connection):
        is_complete = True
        for sql, values in projection.project(recorded):
            if _binds_vectors(values):
                bound = _bound(values, lookup)
                is_complete = is_complete and bound is not None
                if bound is not None:
                    connection.execute(sql, bound)
        if is_complete:
            connection.execute("DELETE FROM deferred WHERE name = ? AND position = ?", (projection.NAME, recorded.position))
    return is_complete


def _advance(connection: Connection, projection: Projection, before: Checkpoint, events: Sequence[RecordedEvent], lookup: Lookup) -> Checkpoint:
    """Show all events, or raise; SQLite does without the pages that a savepoint would keep."""
    _show(connection, projection, events, lookup)
    return msgspec.structs.replace(before, position=events[-1].position, chain=events[-1].chain)


def _advance_to_failure(
    connection: Connection, projection: Projection, before: Checkpoint, events: Sequence[RecordedEvent], lookup: Lookup
) -> Checkpoint:
    """Show events one by one, up to the one that the projection fails on, if it does."""
    for recorded in events:
        try:
            with savepoint(connection), translated():
                _show(connection, projection, [recorded], lookup)
        except OmegadError:
            raise
        except Exception as error:  # noqa: BLE001
            return msgspec.structs.replace(before, failed_position=recorded.position, error=f"{type(error).__name__}: {error}"[:500])
        before = msgspec.structs.replace(before, position=recorded.position, chain=recorded.chain)
    return before


def _show(connection: Connection, projection: Projection, events: Sequence[RecordedEvent], lookup: Lookup) -> None:
    """Run the statements in their order; a run of the same SQL goes to SQLite at once."""
    run, rows, binds_vectors = "", list[Sequence[Value]](), False
    kinds = {*projection.EVENTS, Unknown}
    for recorded in events:
        if type(recorded.event) not in kinds:
            continue
        if isinstance(recorded.event, Unknown):
            _check_readable(projection, recorded, recorded.event)
            continue
        for sql, values in projection.project(recorded):
            if sql != run:
                _flush(connection, run, rows)
                run, rows, binds_vectors = sql, [], _binds_vectors(values)
            bound = _bound(values, lookup) if binds_vectors else values
            if bound is None:
                connection.execute(_DEFER, (projection.NAME, recorded.position))
            else:
                rows.append(bound)
    _flush(connection, run, rows)


def _flush(connection: Connection, sql: str, rows: Sequence[Sequence[Value]]) -> None:
    if len(rows) == 1:  # as most are where the log is followed closely
        connection.execute(sql, rows[0])
    elif rows:
        connection.executemany(sql, rows)


def _check_readable(projection: Projection, recorded: RecordedEvent, event: Unknown) -> None:
    """Refuse a newer version's event about a noun that the projection shows: to pass over it would be silently wrong."""
    noun = recorded.tag.partition(".")[0]
    if any(tag_of(kind).partition(".")[0] == noun for kind in projection.EVENTS):
        reason = event.problem or "the tag is unknown"
        raise UnreadableEvent(f"{recorded.tag} cannot be read by this version of omegad ({reason}); install a newer one")


def _binds_vectors(values: Sequence[Value]) -> bool:
    return Embedding in map(type, values)


def _bound(values: Sequence[Value], lookup: Lookup) -> Sequence[Bound] | None:
    bound: list[Bound] = []
    for value in values:
        if isinstance(value, Embedding):
            found = lookup(value)
            if found is None:
                return None
            bound.append(found)
        else:
            bound.append(value)
    return bound
