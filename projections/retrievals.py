"""What every query returned: which memory, at which rank, with which score, to which session; and what is
counted of that once its time is over.
"""

from collections.abc import Iterator

from omegad.log.aging import PayloadsAged
from omegad.log.event import RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, to_json
from omegad.memory.events import ProofsAged
from omegad.runtime.times import rfc3339
from omegad.search.events import MemoryQueried, QueryAged, Returned
from omegad.session.events import MemorySurfaced, SurfacingAged

NAME = "retrievals"
VERSION = 6
EVENTS = (MemoryQueried, MemorySurfaced, QueryAged, SurfacingAged, ProofsAged, PayloadsAged, ClockMended)
AGED_BY = (PayloadsAged,)

SCHEMA = """
CREATE TABLE retrieval_queries (
    id              INTEGER PRIMARY KEY, -- position of the event
    query_id        TEXT UNIQUE NOT NULL,
    session_id      TEXT,
    project         TEXT,
    text            TEXT NOT NULL,
    mode            TEXT NOT NULL,       -- for what was shown unasked: briefing, prompt, edit, file or error
    filters         TEXT NOT NULL,       -- JSON object; of what was shown unasked, to which agent that works
                                         -- for the session's own, where it was not that itself
    read_position   INTEGER NOT NULL,    -- of the views that answered
    ranking_version INTEGER,             -- NULL for what was shown unasked
    embedder_id     TEXT,
    returned        INTEGER NOT NULL,
    abstained       INTEGER NOT NULL,
    degraded        TEXT,
    at              TEXT NOT NULL,
    took_us         INTEGER              -- NULL for what was shown unasked
) STRICT;

CREATE TABLE retrievals (
    id         INTEGER PRIMARY KEY, -- position of the event * 1024 + rank
    query_id   TEXT NOT NULL,
    session_id TEXT,
    memory_id  TEXT NOT NULL,
    rank       INTEGER NOT NULL,    -- from 1
    score      REAL NOT NULL,
    at         TEXT NOT NULL,
    how        TEXT NOT NULL        -- query, or as the mode of what was shown unasked
) STRICT;

CREATE TABLE retrievals_aged ( -- of which there is no row any more
    session_id TEXT PRIMARY KEY,
    times      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE proofs_aged ( -- sure answers without rows, of which a memory on probation was among the best
    memory_id TEXT NOT NULL,
    used_in   TEXT NOT NULL, -- session, or day where none was named
    PRIMARY KEY (memory_id, used_in)
) STRICT, WITHOUT ROWID;
"""
INDEXES = """
CREATE INDEX retrievals_by_memory ON retrievals (memory_id);
CREATE INDEX retrievals_by_session ON retrievals (session_id);
"""

CANONICAL = (
    "SELECT * FROM retrieval_queries ORDER BY id",
    "SELECT * FROM retrievals ORDER BY id",
    "SELECT * FROM retrievals_aged ORDER BY session_id",
    "SELECT * FROM proofs_aged ORDER BY memory_id, used_in",
)
# Of versions 4, which counts nothing of what is over, so that who asks for that waits for the view of what
# is; and 5, of which what an agent was shown that works for another counts as shown to that one.
READABLE = frozenset({"7759a62cab459cea", "d3318f597dc00b49"})

_COUNT = """
INSERT INTO retrievals_aged VALUES (?, ?) ON CONFLICT DO UPDATE SET times = times + excluded.times
"""
_COUNT_SHOWN = """
INSERT INTO retrievals_aged SELECT session_id, count(*) FROM retrievals
WHERE id > ? AND id <= ? AND how NOT IN ('briefing', 'review', 'reminder', 'warning')
  AND session_id IS NOT NULL GROUP BY 1
ON CONFLICT DO UPDATE SET times = times + excluded.times
"""
_AGE = """
UPDATE retrieval_queries SET text = '', filters = '{}'
WHERE id > ? AND id <= ? AND mode NOT IN ('briefing', 'review', 'reminder', 'warning')
"""
_AGE_SHOWN = (
    "DELETE FROM retrievals WHERE id > ? AND id <= ? AND how NOT IN ('briefing', 'review', 'reminder',"
    " 'warning')"
)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryQueried() as query:
            at = rfc3339(query.at)
            yield Statement(
                "INSERT INTO retrieval_queries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    recorded.position,
                    query.query_id,
                    recorded.session_id,
                    recorded.project,
                    query.text,
                    query.mode,
                    to_json(query.filters),
                    query.read_position,
                    query.ranking_version,
                    query.embedder_id,
                    query.returned if isinstance(query, QueryAged) else len(query.results),
                    query.abstained,
                    query.degraded,
                    at,
                    query.took_us,
                ),
            )
            yield from _shown(recorded, query.query_id, query.results, at, "query")
            yield from _counted(recorded, query)
        case MemorySurfaced() as surfaced:
            at = rfc3339(surfaced.at)
            known = (
                recorded.position,
                surfaced.query_id,
                recorded.session_id,
                recorded.project,
                surfaced.subject,
                surfaced.how,
                to_json({"agent_id": surfaced.agent_id} if surfaced.agent_id else {}),
            )
            rest = (
                surfaced.read_position,
                None,
                surfaced.embedder_id,
                surfaced.returned if isinstance(surfaced, SurfacingAged) else len(surfaced.results),
                False,
                None,
                at,
                None,
            )
            yield Statement(
                "INSERT INTO retrieval_queries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*known, *rest),
            )
            yield from _shown(recorded, surfaced.query_id, surfaced.results, at, surfaced.how)
            yield from _counted(recorded, surfaced)
        case ProofsAged(proofs=proofs):
            for one in proofs:
                yield Statement(
                    "INSERT OR IGNORE INTO proofs_aged VALUES (?, ?)", (one.memory_id, one.used_in)
                )
        case PayloadsAged(kind="queries", after=after, through=through):
            rows = after * 1024 + 1023, through * 1024 + 1023
            yield Statement(_COUNT_SHOWN, rows)
            yield Statement(_AGE_SHOWN, rows)
            yield Statement(_AGE, (after, through))
        case ClockMended(to_us=to_us):
            yield Statement("UPDATE retrieval_queries SET at = ?1 WHERE at > ?1", (rfc3339(to_us),))
            yield Statement("UPDATE retrievals SET at = ?1 WHERE at > ?1", (rfc3339(to_us),))


def _shown(
    recorded: RecordedEvent, query_id: str, results: tuple[Returned, ...], at: str, how: str
) -> Iterator[Statement]:
    for rank, result in enumerate(results, 1):
        row = (
            recorded.position * 1024 + rank,
            query_id,
            recorded.session_id,
            result.memory_id,
            rank,
            result.score,
            at,
            how,
        )
        yield Statement("INSERT INTO retrievals VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def _counted(recorded: RecordedEvent, asked: MemoryQueried | MemorySurfaced) -> Iterator[Statement]:
    if isinstance(asked, QueryAged | SurfacingAged) and asked.returned and recorded.session_id is not None:
        yield Statement(_COUNT, (recorded.session_id, asked.returned))
