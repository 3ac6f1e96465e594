"""Theses: what each says, what speaks for and against it, and how strongly it was believed after every event
that touched it.

The confidence is for / (for + against + 1), by weight: the share of what was said, beside one imagined
objection.
"""

from collections.abc import Iterator

from omegad.knowledge.events import (
    ThesisEvidenced,
    ThesisEvidenceRetracted,
    ThesisPredicted,
    ThesisResolved,
    ThesisRevised,
    ThesisStated,
)
from omegad.log.event import RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, set_right
from omegad.runtime.times import rfc3339

NAME = "theses"
VERSION = 3
EVENTS = (
    ThesisStated,
    ThesisEvidenced,
    ThesisEvidenceRetracted,
    ThesisRevised,
    ThesisPredicted,
    ThesisResolved,
    ClockMended,
)

SCHEMA = """
CREATE TABLE theses (
    id             INTEGER PRIMARY KEY, -- position of thesis.stated
    thesis_id      TEXT UNIQUE NOT NULL,
    version        INTEGER NOT NULL,
    memory_id      TEXT NOT NULL,       -- the memory that says it
    statement      TEXT NOT NULL,
    domain         TEXT,
    project        TEXT,
    session_id     TEXT,                -- that says it
    probability    REAL,                -- as it was given last
    due_us         INTEGER,             -- microseconds since 1970
    criterion      TEXT,
    outcome        TEXT,                -- yes, no or n/a; NULL while it is open
    source         TEXT,                -- of the outcome
    for_count      INTEGER NOT NULL DEFAULT 0,
    against_count  INTEGER NOT NULL DEFAULT 0,
    mention_count  INTEGER NOT NULL DEFAULT 0,
    echo_count     INTEGER NOT NULL DEFAULT 0,
    for_weight     REAL NOT NULL DEFAULT 0,
    against_weight REAL NOT NULL DEFAULT 0,
    for_origins    INTEGER NOT NULL DEFAULT 0, -- independent ones
    against_origins INTEGER NOT NULL DEFAULT 0,
    confidence     REAL NOT NULL DEFAULT 0,
    stated_at      TEXT NOT NULL,
    last_evaluated_us INTEGER NOT NULL, -- when evidence was given or retracted last, microseconds since 1970
    resolved_at    TEXT
) STRICT;

CREATE TABLE thesis_evidence (
    id          INTEGER PRIMARY KEY, -- position of the event that gave it last
    evidence_id TEXT UNIQUE NOT NULL,
    thesis_id   TEXT NOT NULL,
    version     INTEGER NOT NULL,
    memory_id   TEXT NOT NULL,
    side        TEXT NOT NULL,       -- for, against or mentions
    is_echo     INTEGER NOT NULL,    -- 1 for what repeats what its session saw or its origin said
    weight      REAL NOT NULL,       -- 0 to 1
    origin      TEXT NOT NULL,       -- the session that said it, or the memory
    given_by    TEXT NOT NULL,       -- hand or rule
    why         TEXT,
    similarity  REAL,
    retracted   TEXT,                -- why, '' without a reason; NULL while it counts
    at          TEXT NOT NULL
) STRICT;

CREATE TABLE thesis_history (
    id            INTEGER PRIMARY KEY, -- position of the event
    thesis_id     TEXT NOT NULL,
    version       INTEGER NOT NULL,
    what          TEXT NOT NULL,       -- stated, evidenced, retracted, revised, predicted or resolved
    memory_id     TEXT,                -- the evidence, or what says the thesis from now on
    side          TEXT,
    is_echo       INTEGER,
    for_count     INTEGER NOT NULL,
    against_count INTEGER NOT NULL,
    echo_count    INTEGER NOT NULL,
    before        REAL NOT NULL,       -- the confidence before the event
    confidence    REAL NOT NULL,       -- and after it
    probability   REAL,
    at            TEXT NOT NULL
) STRICT;
"""
INDEXES = """
CREATE INDEX theses_by_memory ON theses (memory_id);
CREATE INDEX thesis_evidence_by_thesis ON thesis_evidence (thesis_id, version);
CREATE INDEX thesis_evidence_by_memory ON thesis_evidence (memory_id);
CREATE INDEX thesis_history_by_thesis ON thesis_history (thesis_id, id);
"""

CANONICAL = (
    "SELECT * FROM theses ORDER BY id",
    "SELECT * FROM thesis_evidence ORDER BY id",
    "SELECT * FROM thesis_history ORDER BY id",
)

_STATED = """
INSERT INTO theses (id, thesis_id, version, memory_id, statement, domain, project, session_id, probability,
  due_us, criterion, stated_at,
                    last_evaluated_us)
VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_EVIDENCED = "REPLACE INTO thesis_evidence VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)"
_RETRACTED = "UPDATE thesis_evidence SET retracted = ? WHERE evidence_id = ?"
_REVISED = (
    "UPDATE theses SET version = ?, memory_id = ?, statement = ?, session_id = ?, probability = NULL WHERE"
    " thesis_id = ?"
)
_PREDICTED = (
    "UPDATE theses SET probability = ?, due_us = coalesce(?, due_us), criterion = coalesce(?, criterion)"
    " WHERE thesis_id = ?"
)
_RESOLVED = "UPDATE theses SET outcome = ?, source = ?, resolved_at = ? WHERE thesis_id = ?"
_WEIGHED = """
UPDATE theses SET
    (for_count, against_count, mention_count, echo_count, for_weight, against_weight, for_origins,
      against_origins, confidence) = (
        SELECT count(*) FILTER (WHERE side = 'for' AND NOT is_echo), count(*) FILTER (WHERE side = 'against'
        AND NOT is_echo),
               count(*) FILTER (WHERE side = 'mentions'), count(*) FILTER (WHERE is_echo),
               total(weight) FILTER (WHERE side = 'for'), total(weight) FILTER (WHERE side = 'against'),
               count(DISTINCT origin) FILTER (WHERE side = 'for' AND weight > 0),
               count(DISTINCT origin) FILTER (WHERE side = 'against' AND weight > 0),
               total(weight) FILTER (WHERE side = 'for') / (total(weight) FILTER (WHERE side IN ('for',
               'against')) + 1)
        FROM thesis_evidence AS e WHERE e.thesis_id = theses.thesis_id AND e.version = theses.version
        AND retracted IS NULL
    ),
    last_evaluated_us = max(last_evaluated_us, ?)
WHERE thesis_id = ?
"""
_HISTORY = """
INSERT INTO thesis_history
SELECT ?1, thesis_id, version, ?2, ?3, ?4, ?7, for_count, against_count, echo_count,
       coalesce((SELECT h.confidence FROM thesis_history AS h WHERE h.thesis_id = ?5 ORDER BY h.id DESC
       LIMIT 1), 0), confidence, probability, ?6
FROM theses WHERE thesis_id = ?5
"""


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    at, now_us = rfc3339(recorded.occurred_at), recorded.occurred_at
    match recorded.event:
        case ThesisStated() as stated:
            said = (
                recorded.position,
                stated.thesis_id,
                stated.memory_id,
                stated.statement,
                stated.domain,
                recorded.project,
                recorded.session_id,
            )
            yield Statement(_STATED, (*said, stated.prior, stated.due_at, stated.criterion, at, now_us))
            yield _told(recorded, stated.thesis_id, "stated", stated.memory_id)
        case ThesisEvidenced() as given:
            yield Statement(
                _EVIDENCED,
                (
                    recorded.position,
                    given.evidence_id,
                    given.thesis_id,
                    given.version,
                    given.memory_id,
                    given.side,
                    given.is_echo,
                    given.weight,
                    given.origin,
                    given.by,
                    given.why,
                    given.similarity,
                    at,
                ),
            )
            yield Statement(_WEIGHED, (now_us, given.thesis_id))
            yield _told(recorded, given.thesis_id, "evidenced", given.memory_id, (given.side, given.is_echo))
        case ThesisEvidenceRetracted() as retracted:
            yield Statement(_RETRACTED, (retracted.why or "", retracted.evidence_id))
            yield Statement(_WEIGHED, (now_us, retracted.thesis_id))
            yield _told(recorded, retracted.thesis_id, "retracted")
        case ThesisRevised() as revised:
            yield Statement(
                _REVISED,
                (
                    revised.version,
                    revised.memory_id,
                    revised.statement,
                    recorded.session_id,
                    revised.thesis_id,
                ),
            )
            yield Statement(_WEIGHED, (now_us, revised.thesis_id))
            yield _told(recorded, revised.thesis_id, "revised", revised.memory_id)
        case ThesisPredicted() as predicted:
            yield Statement(
                _PREDICTED,
                (predicted.probability, predicted.due_at, predicted.criterion, predicted.thesis_id),
            )
            yield _told(recorded, predicted.thesis_id, "predicted")
        case ThesisResolved() as resolved:
            yield Statement(_RESOLVED, (resolved.outcome, resolved.source, at, resolved.thesis_id))
            yield _told(recorded, resolved.thesis_id, "resolved")
        case ClockMended() as mended:
            yield from set_right(mended, "theses", "last_evaluated_us")


def _told(
    recorded: RecordedEvent,
    thesis_id: str,
    what: str,
    memory_id: str | None = None,
    given: tuple[str | None, bool | None] = (None, None),
) -> Statement:
    side, is_echo = given
    return Statement(
        _HISTORY,
        (recorded.position, what, memory_id, side, thesis_id, rfc3339(recorded.occurred_at), is_echo),
    )
