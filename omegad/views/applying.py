"""Projections whose rows are in a file of views.

A statement that binds a vector is put off until that is at hand. An event that this version cannot read is an
error where the projection shows its noun.
"""

from collections.abc import Callable, Collection, Sequence

from omegad.log.checkpoint import Checkpoint
from omegad.log.codec import tag_of
from omegad.log.event import RecordedEvent, Unknown
from omegad.log.folding import Fold
from omegad.log.projection import Embedding, Projection, Value
from omegad.storage.driver import Connection
from omegad.storage.transaction import writing
from omegad.views import generation

Lookup = Callable[[Embedding], bytes | None]

_DEFER = "INSERT OR IGNORE INTO deferred VALUES (?, ?)"


class UnreadableEvent(Exception):
    """An event that the projection needs was written by a newer version of omegad."""


class ViewFold(Fold):
    """Projections of one file of views; *lookup* finds vectors, on the thread that writes."""

    def __init__(
        self, projections: Sequence[Projection], marks: dict[str, Checkpoint], lookup: Lookup
    ) -> None:
        super().__init__(projections, marks)
        self._lookup = lookup
        self.has_missed = False
        """Whether a vector was not at hand; for whoever asks to set back."""

    def note(self, connection: Connection, reached: Collection[Checkpoint]) -> None:
        """Write the checkpoints."""
        generation.move_checkpoints(connection, reached, len(self.marks))

    def bound(
        self,
        connection: Connection,
        projection: Projection,
        recorded: RecordedEvent,
        values: Sequence[Value],
    ) -> Sequence[Value] | None:
        """Return the values with the bytes of their vectors; note the event as deferred where one is not at
        hand.
        """
        bound = self._bound(values)
        if bound is None:
            self.has_missed = True
            connection.execute(_DEFER, (projection.NAME, recorded.position))
        return bound

    def fill(self, connection: Connection, name: str, recorded: RecordedEvent) -> bool:
        """Run the statements of a projection's deferred event again, now that its vectors may be at hand; say
        whether all were.
        """
        with writing(connection):
            is_complete = True
            for sql, values in self.projections[name].project(recorded):
                if Embedding in map(type, values):
                    bound = self._bound(values)
                    is_complete = is_complete and bound is not None
                    if bound is not None:
                        connection.execute(sql, bound)
            if is_complete:
                connection.execute(
                    "DELETE FROM deferred WHERE name = ? AND position = ?", (name, recorded.position)
                )
        return is_complete

    def _bound(self, values: Sequence[Value]) -> Sequence[Value] | None:
        bound: list[Value] = []
        for value in values:
            found = self._lookup(value) if isinstance(value, Embedding) else value
            if found is None and value is not None:
                return None
            bound.append(found)
        return bound

    def check_unknown(self, projection: Projection, recorded: RecordedEvent, event: Unknown) -> None:
        """Refuse a newer version's event about a noun that the projection shows: to pass over it would be
        silently wrong.
        """
        if noun(recorded.tag) in {noun(tag_of(kind)) for kind in projection.EVENTS}:
            reason = event.problem or "the tag is unknown"
            raise UnreadableEvent(
                f"{recorded.tag} cannot be read by this version of omegad ({reason}); install a newer one"
            )


def noun(tag: str) -> str:
    """Return what the events of a tag are about."""
    return tag.partition(".")[0]
