"""What decisions know of claims: who holds which files and branches, when each holder was heard of last,
and what it has yet to be told of them.
"""

from collections.abc import Iterator

import msgspec

from omegad.coordination.events import (
    BranchClaimed,
    ClaimsContested,
    ClaimsReleased,
    ClaimsReported,
    FilesClaimed,
)
from omegad.log.decision import Tables
from omegad.log.event import Position, RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement, set_right, to_json
from omegad.session.events import DeliveriesExpired, SessionEnded, ToolCalled
from projections import coord_claims

NAME = "claims"
VERSION = 4
EVENTS = (*coord_claims.EVENTS, DeliveriesExpired)

SCHEMA = """
CREATE TABLE state_file_claims (
    repository TEXT NOT NULL,    -- the common folder of git, '' outside
    path       TEXT NOT NULL,    -- relative to the work tree, whole outside
    worktree   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    position   INTEGER NOT NULL, -- of files.claimed: whoever claims it later has a greater one
    since_us   INTEGER NOT NULL, -- microseconds since 1970
    intent     TEXT,
    asked_by   TEXT,             -- the session that the person was asked about last: whether it may edit this
    asked_use  TEXT,             -- in which of its calls
    PRIMARY KEY (repository, path, worktree)
) STRICT, WITHOUT ROWID;
CREATE INDEX state_file_claims_by_session ON state_file_claims (session_id);
CREATE TABLE state_branch_claims (
    repository TEXT NOT NULL,
    ref        TEXT NOT NULL,
    session_id TEXT NOT NULL,
    position   INTEGER NOT NULL, -- of branch.claimed
    since_us   INTEGER NOT NULL, -- microseconds since 1970
    intent     TEXT,
    PRIMARY KEY (repository, ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX state_branch_claims_by_session ON state_branch_claims (session_id);
CREATE TABLE state_claim_holders (
    session_id TEXT PRIMARY KEY,
    seen_us    INTEGER NOT NULL  -- microseconds since 1970, to the minute
) STRICT, WITHOUT ROWID;
CREATE TABLE state_claim_news ( -- what became of claims without the session, or against others
    session_id TEXT NOT NULL,
    name       TEXT NOT NULL,    -- path or ref
    how        TEXT NOT NULL,    -- ended; unguarded or shell, of its own; with own_ before it: what it did
    detail     TEXT NOT NULL,    -- the reason, or which other session
    position   INTEGER NOT NULL,
    PRIMARY KEY (session_id, name)
) STRICT, WITHOUT ROWID;
"""
CANONICAL = (
    "SELECT * FROM state_file_claims ORDER BY repository, path, worktree",
    "SELECT * FROM state_branch_claims ORDER BY repository, ref",
    "SELECT * FROM state_claim_holders ORDER BY session_id",
    "SELECT * FROM state_claim_news ORDER BY session_id, name",
)

_FILES = (
    "INSERT OR REPLACE INTO state_file_claims SELECT ?1, value, ?2, ?3, ?4, ?5, ?6, NULL, NULL FROM"
    " json_each(?7)"
)
_HOLDER = (
    "INSERT INTO state_claim_holders VALUES (?, ?) ON CONFLICT DO UPDATE SET seen_us = max(seen_us,"
    " excluded.seen_us)"
)
_SEEN = "UPDATE state_claim_holders SET seen_us = ?1 WHERE session_id = ?2 AND seen_us <= ?1 - ?3"
_THESE_FILES = (
    "session_id = ?1 AND (?2 OR (repository = ?3 AND worktree = ?4 AND path IN (SELECT value FROM"
    " json_each(?5))))"
)
_THESE_BRANCHES = "session_id = ?1 AND (?2 OR (repository = ?3 AND ref IN (SELECT value FROM json_each(?4))))"
_FILES_ENDED = (
    "INSERT OR REPLACE INTO state_claim_news SELECT session_id, path, 'ended', ?6, ?7 FROM state_file_claims"
    f" WHERE {_THESE_FILES}"
)
_BRANCHES_ENDED = (
    "INSERT OR REPLACE INTO state_claim_news SELECT session_id, ref, 'ended', ?5, ?6 FROM"
    f" state_branch_claims WHERE {_THESE_BRANCHES}"
)
_RELEASE_FILES = f"DELETE FROM state_file_claims WHERE {_THESE_FILES}"
_RELEASE_BRANCHES = f"DELETE FROM state_branch_claims WHERE {_THESE_BRANCHES}"
_HOLDS_NOTHING = """
DELETE FROM state_claim_holders WHERE session_id = ?1
  AND NOT EXISTS (SELECT 1 FROM state_file_claims WHERE session_id = ?1)
AND NOT EXISTS (SELECT 1 FROM state_branch_claims WHERE session_id = ?1)
"""
_REPORTED = "DELETE FROM state_claim_news WHERE session_id = ?"
_ASKED = f"UPDATE state_file_claims SET asked_by = ?6, asked_use = ?7 WHERE {_THESE_FILES}"
_NEWS = "INSERT OR REPLACE INTO state_claim_news SELECT ?1, value, ?2, ?3, ?5 FROM json_each(?4)"


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    session_id = recorded.session_id or ""
    since = (session_id, recorded.position, recorded.occurred_at)
    match recorded.event:
        case ToolCalled():  # first, as most are
            yield _sign_of_life(recorded)
        case FilesClaimed() as claimed:
            yield Statement(
                _FILES, (claimed.repository, claimed.worktree, *since, claimed.intent, to_json(claimed.paths))
            )
            yield Statement(_HOLDER, (session_id, recorded.occurred_at))
        case BranchClaimed() as claimed:
            yield Statement(
                "INSERT OR REPLACE INTO state_branch_claims VALUES (?, ?, ?, ?, ?, ?)",
                (claimed.repository, claimed.ref, *since, claimed.intent),
            )
            yield Statement(_HOLDER, (session_id, recorded.occurred_at))
        case ClaimsReleased() as released:
            yield from _released(recorded, released)
        case ClaimsContested() as met:
            yield from _contested(recorded, met)
        case ClaimsReported():
            yield Statement(_REPORTED, (session_id,))
        case SessionEnded():
            yield from _released(recorded, coord_claims.SESSION_ENDED)
            yield Statement(_REPORTED, (session_id,))
        case DeliveriesExpired(before=before):
            yield Statement("DELETE FROM state_claim_news WHERE position < ?", (before,))
        case ClockMended() as mended:
            yield from set_right(mended, "state_file_claims", "since_us")
            yield from set_right(mended, "state_branch_claims", "since_us")
            yield from set_right(mended, "state_claim_holders", "seen_us")
        case _:
            yield _sign_of_life(recorded)


def _sign_of_life(recorded: RecordedEvent) -> Statement:
    values = recorded.occurred_at, recorded.session_id or "", coord_claims.SEEN_EVERY_US
    return Statement(_SEEN, values)


def _contested(recorded: RecordedEvent, met: ClaimsContested) -> Iterator[Statement]:
    session_id, position = recorded.session_id or "", recorded.position
    if met.how == "asked":
        where = (met.holder, False, met.repository, met.worktree, to_json(met.paths))
        yield Statement(_ASKED, (*where, session_id, met.tool_use_id))
        return
    names, how = to_json(met.paths + met.refs), "shell" if met.how == "shell" else "unguarded"
    yield Statement(_NEWS, (met.holder, how, session_id, names, position))
    if met.how != "warned":
        yield Statement(_NEWS, (session_id, f"own_{met.how}", met.holder, names, position))


def _released(recorded: RecordedEvent, released: ClaimsReleased) -> Iterator[Statement]:
    session_id = recorded.session_id or ""
    files = (session_id, released.is_all, released.repository, released.worktree, to_json(released.paths))
    branches = (session_id, released.is_all, released.repository, to_json(released.refs))
    if released.how != "released" or released.by is not None:
        yield Statement(_FILES_ENDED, (*files, released.reason, recorded.position))
        yield Statement(_BRANCHES_ENDED, (*branches, released.reason, recorded.position))
    yield Statement(_RELEASE_FILES, files)
    yield Statement(_RELEASE_BRANCHES, branches)
    yield Statement(_HOLDS_NOTHING, (session_id,))


class ClaimState(msgspec.Struct, frozen=True):
    """Who holds a file or a branch, in which work tree ("" for a branch), since when, and when the holder was
    heard of last as the log knows it.

    `position` is the claim's fencing token; times are in microseconds since 1970. `asked_by` is the session
    of which the person was asked last whether it may edit the file, in the call `asked_use`.
    """

    repository: str
    name: str
    worktree: str
    session_id: str
    position: Position
    since_us: int
    intent: str | None
    seen_us: int
    asked_by: str | None = None
    asked_use: str | None = None


class ClaimNews(msgspec.Struct, frozen=True):
    """What became of a path or ref that a session holds, or held, or of one that another does: how, and
    why or by whom.
    """

    name: str
    how: str
    detail: str


_BRANCH_COLUMNS = "c.repository, c.ref, '', c.session_id, c.position, c.since_us, c.intent, h.seen_us"
_FILE_COLUMNS = _BRANCH_COLUMNS.replace("c.ref, ''", "c.path, c.worktree") + ", c.asked_by, c.asked_use"
_JOINED = "AS c JOIN state_claim_holders AS h USING (session_id)"
_ON_FILE = (
    f"SELECT {_FILE_COLUMNS} FROM state_file_claims {_JOINED} WHERE c.repository = ? AND c.path = ? ORDER BY"
    " c.worktree"
)
_ON_BRANCH = (
    f"SELECT {_BRANCH_COLUMNS} FROM state_branch_claims {_JOINED} WHERE c.repository = ? AND c.ref = ?"
)


class Claims(Tables):
    """Reads the tables."""

    def on_file(self, repository: str, path: str) -> list[ClaimState]:
        """Return who holds a file, in each work tree of its repository."""
        return [ClaimState(*row) for row in self._connection.execute(_ON_FILE, (repository, path))]

    def on_branch(self, repository: str, ref: str) -> list[ClaimState]:
        """Return who holds a branch: one, or nobody."""
        return [ClaimState(*row) for row in self._connection.execute(_ON_BRANCH, (repository, ref))]

    def seen_us(self, session_id: str) -> int | None:
        """Return when a session that holds something was heard of last, None for one that holds nothing."""
        row = self._connection.execute(
            "SELECT seen_us FROM state_claim_holders WHERE session_id = ?", (session_id,)
        ).fetchone()
        return row[0] if row else None

    def count(self, session_id: str) -> int:
        """Return how many files and branches a session holds."""
        counts = (
            self._connection.execute(
                f"SELECT count(*) FROM {table} WHERE session_id = ?", (session_id,)
            ).fetchone()[0]
            for table in ("state_file_claims", "state_branch_claims")
        )
        return sum(counts)

    def news(self, session_id: str) -> list[ClaimNews]:
        """Return what the session has yet to be told of claims, the same kind together."""
        sql = "SELECT name, how, detail FROM state_claim_news WHERE session_id = ? ORDER BY how, detail, name"
        return [ClaimNews(*row) for row in self._connection.execute(sql, (session_id,))]
