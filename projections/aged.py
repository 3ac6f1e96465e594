"""Up to when details are gone since their time was over, by kind."""

from collections.abc import Iterator

from omegad.log.aging import PayloadsAged
from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement

NAME = "aged"
VERSION = 1
EVENTS = (PayloadsAged,)
AGED_BY = (PayloadsAged,)
DAY_US = 86_400_000_000

SCHEMA = """
CREATE TABLE details_aged (
    kind     TEXT PRIMARY KEY,
    through  INTEGER NOT NULL, -- position up to which they are gone
    until_us INTEGER NOT NULL  -- what was recorded before lacks them; microseconds since 1970
) STRICT, WITHOUT ROWID;
"""

CANONICAL = ("SELECT * FROM details_aged ORDER BY kind",)

_AGE = """
INSERT INTO details_aged VALUES (?, ?, ?) ON CONFLICT DO UPDATE
  SET through = max(through, excluded.through), until_us = max(until_us, excluded.until_us)
"""


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case PayloadsAged(kind=kind, days=days, through=through):
            yield Statement(_AGE, (kind, through, recorded.recorded_at - days * DAY_US))
