"""What is known of the person: a value for each key of the profile."""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement
from omegad.person.events import ProfileUpdated
from omegad.runtime.times import rfc3339

NAME = "facts"
VERSION = 1
EVENTS = (ProfileUpdated,)

SCHEMA = """
CREATE TABLE facts (
    key        TEXT PRIMARY KEY,
    value      TEXT NOT NULL,
    position   INTEGER NOT NULL, -- of the event that set it
    session_id TEXT,             -- in which it was set
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""

CANONICAL = ("SELECT * FROM facts ORDER BY key",)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case ProfileUpdated(facts=facts):
            for key, value in facts.items():
                if value is None:
                    yield Statement("DELETE FROM facts WHERE key = ?", (key,))
                else:
                    yield Statement(
                        "INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?, ?)",
                        (
                            key,
                            str(value),
                            recorded.position,
                            recorded.session_id,
                            rfc3339(recorded.occurred_at),
                        ),
                    )
