"""Who held which files and branches, since when, until when and why, who came upon that; and the sessions,
with their last sign of life.
"""

from collections.abc import Iterable, Iterator

from omegad.coordination.events import (
    BranchClaimed,
    ClaimsContested,
    ClaimsReleased,
    ClaimsReported,
    FilesClaimed,
)
from omegad.log.event import RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, set_right, to_json
from omegad.runtime.times import rfc3339
from omegad.session.events import (
    PromptSubmitted,
    SessionCompacted,
    SessionEnded,
    SessionStarted,
    SubagentEnded,
    ToolCallAged,
    ToolCalled,
    TurnEnded,
)

NAME = "coord_claims"
VERSION = 3
EVENTS = (
    *(FilesClaimed, BranchClaimed, ClaimsReleased, ClaimsContested, ClaimsReported),
    *(SessionStarted, PromptSubmitted, TurnEnded, SubagentEnded, SessionCompacted, ToolCalled, SessionEnded),
    *(ToolCallAged, ClockMended),
)
SEEN_EVERY_US = 60_000_000
"""How exactly a sign of life is shown, so that most tool calls write nothing here."""

SCHEMA = """
CREATE TABLE coord_file_claims (
    id          INTEGER PRIMARY KEY, -- position of files.claimed * 1024 + the place of the path
    session_id  TEXT NOT NULL,
    repository  TEXT NOT NULL,       -- the common folder of git, '' outside
    worktree    TEXT NOT NULL,
    path        TEXT NOT NULL,       -- relative to the work tree, whole outside
    project     TEXT,
    how         TEXT NOT NULL,       -- edit or asked
    intent      TEXT,
    claimed_at  TEXT NOT NULL,
    released_at TEXT,                -- NULL while it is held
    ended       TEXT,                -- released, expired, taken_over or session_ended
    reason      TEXT,
    ended_by    TEXT                 -- who ended it, where that was neither the session nor the time
) STRICT;
CREATE INDEX coord_file_claims_held ON coord_file_claims (session_id) WHERE released_at IS NULL;
CREATE INDEX coord_file_claims_by_path ON coord_file_claims (repository, path) WHERE released_at IS NULL;
CREATE TABLE coord_branch_claims (
    id          INTEGER PRIMARY KEY, -- position of branch.claimed
    session_id  TEXT NOT NULL,
    repository  TEXT NOT NULL,
    ref         TEXT NOT NULL,
    project     TEXT,
    intent      TEXT,
    claimed_at  TEXT NOT NULL,
    released_at TEXT,
    ended       TEXT,
    reason      TEXT,
    ended_by    TEXT
) STRICT;
CREATE INDEX coord_branch_claims_held ON coord_branch_claims (session_id) WHERE released_at IS NULL;
CREATE TABLE coord_contested_claims (
    id          INTEGER PRIMARY KEY, -- position of claims.contested
    session_id  TEXT NOT NULL,       -- that came upon what the holder held
    holder      TEXT NOT NULL,
    how         TEXT NOT NULL,       -- asked, unguarded, warned or shell
    repository  TEXT NOT NULL,
    worktree    TEXT NOT NULL,
    names       TEXT NOT NULL,       -- JSON array: paths or refs
    project     TEXT,
    created_at  TEXT NOT NULL
) STRICT;
CREATE TABLE coord_sessions (
    session_id TEXT PRIMARY KEY,
    host       TEXT,
    project    TEXT,
    folder     TEXT,
    started_at TEXT NOT NULL,
    seen_us    INTEGER NOT NULL,     -- microseconds since 1970, to the minute
    told_at    TEXT,                 -- when it was told last of claims that had ended without it
    ended_at   TEXT,                 -- NULL while it is open
    end_reason TEXT
) STRICT, WITHOUT ROWID;
"""
CANONICAL = (
    "SELECT * FROM coord_file_claims ORDER BY id",
    "SELECT * FROM coord_branch_claims ORDER BY id",
    "SELECT * FROM coord_contested_claims ORDER BY id",
    "SELECT * FROM coord_sessions ORDER BY session_id",
)

SESSION_ENDED = ClaimsReleased(how="released", reason="session ended", is_all=True)
"""What the end of a session says of what it holds."""

_FILES = (
    "INSERT INTO coord_file_claims SELECT ?1 * 1024 + key, ?2, ?3, ?4, value, ?5, ?6, ?7, ?8, NULL, NULL,"
    " NULL, NULL FROM json_each(?9)"
)
_BRANCH = "INSERT INTO coord_branch_claims VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, NULL)"
_AGAIN_FILES = """
UPDATE coord_file_claims SET released_at = ?4, ended = 'taken_over'
WHERE repository = ?1 AND worktree = ?2 AND path IN (SELECT value FROM json_each(?3)) AND released_at IS NULL
"""
_AGAIN_BRANCH = (
    "UPDATE coord_branch_claims SET released_at = ?3, ended = 'taken_over' WHERE repository = ?1 AND ref = ?2"
    " AND released_at IS NULL"
)
_END = (
    "SET released_at = ?1, ended = ?2, reason = ?3, ended_by = ?4 WHERE session_id = ?5 AND released_at IS"
    " NULL AND (?6 OR (repository = ?7 AND"
)
_END_FILES = f"UPDATE coord_file_claims {_END} worktree = ?8 AND path IN (SELECT value FROM json_each(?9))))"
_END_BRANCHES = f"UPDATE coord_branch_claims {_END} ref IN (SELECT value FROM json_each(?8))))"
_SEEN = """
INSERT INTO coord_sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL, NULL, NULL)
ON CONFLICT DO UPDATE SET seen_us = max(seen_us, ?6), host = coalesce(?2, host), project = coalesce(?3,
  project), folder = coalesce(?4, folder),
                          ended_at = NULL, end_reason = NULL
"""
_HEARD = """
UPDATE coord_sessions SET seen_us = max(seen_us, ?1), ended_at = NULL, end_reason = NULL
WHERE session_id = ?2 AND (seen_us <= ?1 - ?3 OR ended_at IS NOT NULL)
"""


def project(recorded: RecordedEvent) -> Iterable[Statement]:
    if isinstance(recorded.event, ToolCalled):  # as most are
        return (Statement(_HEARD, (recorded.occurred_at, recorded.session_id or "", SEEN_EVERY_US)),)
    return _told(recorded)


def _told(recorded: RecordedEvent) -> Iterator[Statement]:
    session_id, at = recorded.session_id or "", rfc3339(recorded.occurred_at)
    match recorded.event:
        case FilesClaimed() as claimed:
            where, paths = (claimed.repository, claimed.worktree), to_json(claimed.paths)
            yield Statement(_AGAIN_FILES, (*where, paths, at))
            yield Statement(
                _FILES,
                (
                    recorded.position,
                    session_id,
                    *where,
                    recorded.project,
                    claimed.how,
                    claimed.intent,
                    at,
                    paths,
                ),
            )
            yield _seen(recorded)
        case BranchClaimed() as claimed:
            yield Statement(_AGAIN_BRANCH, (claimed.repository, claimed.ref, at))
            yield Statement(
                _BRANCH,
                (
                    recorded.position,
                    session_id,
                    claimed.repository,
                    claimed.ref,
                    recorded.project,
                    claimed.intent,
                    at,
                ),
            )
            yield _seen(recorded)
        case ClaimsReleased(how=how) as released:
            yield from _ended(recorded, released, how)
        case ClaimsContested() as met:
            what = (met.holder, met.how, met.repository, met.worktree, to_json(met.paths + met.refs))
            yield Statement(
                "INSERT INTO coord_contested_claims VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (recorded.position, session_id, *what, recorded.project, at),
            )
        case ClaimsReported():
            yield Statement("UPDATE coord_sessions SET told_at = ? WHERE session_id = ?", (at, session_id))
        case SessionEnded(reason=reason):
            yield from _ended(recorded, SESSION_ENDED, "session_ended")
            yield Statement(
                "UPDATE coord_sessions SET ended_at = ?, end_reason = ? WHERE session_id = ?",
                (at, reason, session_id),
            )
        case SessionStarted(host=host, folder=folder):
            yield _seen(recorded, host, folder)
        case (
            PromptSubmitted(host=host)
            | TurnEnded(host=host)
            | SubagentEnded(host=host)
            | SessionCompacted(host=host)
        ):
            yield _seen(recorded, host)
        case ClockMended() as mended:
            yield from set_right(mended, "coord_sessions", "seen_us")


def _seen(recorded: RecordedEvent, host: str | None = None, folder: str | None = None) -> Statement:
    at = rfc3339(recorded.occurred_at)
    return Statement(
        _SEEN, (recorded.session_id or "", host, recorded.project, folder, at, recorded.occurred_at)
    )


def _ended(recorded: RecordedEvent, released: ClaimsReleased, ended: str) -> Iterator[Statement]:
    how = (
        rfc3339(recorded.occurred_at),
        ended,
        released.reason,
        released.by,
        recorded.session_id or "",
        released.is_all,
        released.repository,
    )
    yield Statement(_END_FILES, (*how, released.worktree, to_json(released.paths)))
    yield Statement(_END_BRANCHES, (*how, to_json(released.refs)))
