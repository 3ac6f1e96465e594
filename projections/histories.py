"""Which events each memory's life is made of."""

from collections.abc import Iterator

from omegad.log.event import Event, RecordedEvent, declared_in
from omegad.log.projection import Statement
from omegad.memory import events

NAME = "histories"
VERSION = 1
EVENTS = declared_in(events)

SCHEMA = """
CREATE TABLE memory_history (
    memory_id TEXT NOT NULL,
    position  INTEGER NOT NULL, -- of an event that is about the memory, or names it
    PRIMARY KEY (memory_id, position)
) STRICT, WITHOUT ROWID;
"""

CANONICAL = ("SELECT * FROM memory_history ORDER BY memory_id, position",)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    for memory_id in dict.fromkeys(_named(recorded.event)):
        yield Statement("INSERT INTO memory_history VALUES (?, ?)", (memory_id, recorded.position))


def _named(event: object) -> Iterator[str]:
    """Yield the memory that an event is about, and the other one that it is also about, where there is
    one.
    """
    if isinstance(event, Event):
        for name in ("memory_id", "superseded_by", "contradicted_by", "target_id"):
            if memory_id := getattr(event, name, None):
                yield memory_id
