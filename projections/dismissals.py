"""Which findings were dismissed, and how often."""

from collections.abc import Iterator

from omegad.knowledge.events import FindingDismissed
from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement
from omegad.runtime.times import rfc3339

NAME = "dismissals"
VERSION = 1
EVENTS = (FindingDismissed,)

SCHEMA = """
CREATE TABLE finding_dismissals (
    rule    TEXT NOT NULL,
    subject TEXT NOT NULL,    -- the id of what the finding was about
    times   INTEGER NOT NULL,
    at      TEXT NOT NULL,
    PRIMARY KEY (rule, subject)
) STRICT, WITHOUT ROWID;
"""

CANONICAL = ("SELECT * FROM finding_dismissals ORDER BY rule, subject",)

_DISMISSED = """
INSERT INTO finding_dismissals VALUES (?, ?, 1, ?) ON CONFLICT DO UPDATE
  SET times = times + 1, at = excluded.at
"""


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case FindingDismissed(rule=rule, ids=ids):
            for subject in dict.fromkeys(ids):
                yield Statement(_DISMISSED, (rule, subject, rfc3339(recorded.occurred_at)))
