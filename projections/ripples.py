"""What each memory did to others when it was said: spoke for them, against them, mentioned or echoed them."""

from collections.abc import Iterator

from omegad.knowledge.events import MemoryRippled
from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement, to_json
from omegad.runtime.times import rfc3339

NAME = "ripples"
VERSION = 1
EVENTS = (MemoryRippled,)

SCHEMA = """
CREATE TABLE ripples (
    id         INTEGER PRIMARY KEY, -- position of the event * 1024 + its place in the event
    memory_id  TEXT NOT NULL,       -- what was said
    target_id  TEXT NOT NULL,       -- what that does something to
    side       TEXT NOT NULL,       -- for, against or mentions
    is_echo    INTEGER NOT NULL,    -- 1 for what repeats what its session had been shown, or had said
    similarity REAL NOT NULL,       -- a cosine
    origin     TEXT NOT NULL,       -- the session that said it, or the memory
    theses     TEXT NOT NULL,       -- JSON array of the theses that it touches, and what it is to each
    at         TEXT NOT NULL
) STRICT;
"""
INDEXES = """
CREATE INDEX ripples_by_memory ON ripples (memory_id);
CREATE INDEX ripples_by_target ON ripples (target_id);
"""

CANONICAL = ("SELECT * FROM ripples ORDER BY id",)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryRippled(memory_id=memory_id, origin=origin, effects=effects):
            at = rfc3339(recorded.occurred_at)
            for place, effect in enumerate(effects):
                row = (
                    recorded.position * 1024 + place,
                    memory_id,
                    effect.memory_id,
                    effect.side,
                    effect.is_echo,
                    effect.similarity,
                    origin,
                )
                yield Statement(
                    "INSERT INTO ripples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*row, to_json(effect.theses), at),
                )
