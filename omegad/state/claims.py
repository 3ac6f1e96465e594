"""What decisions know of claims: who holds which files and branches, when each holder was heard of last, and which ends it has not been told."""

from collections.abc import Iterator

import msgspec

from omegad.events.claims import BranchClaimed, ClaimsReleased, ClaimsReported, FilesClaimed
from omegad.events.session import PromptSubmitted, SessionCompacted, SessionEnded, SessionStarted, SubagentEnded, TurnEnded
from omegad.events.tool import ToolCalled
from omegad.log.event import Position, RecordedEvent
from omegad.projection import Statement, to_json
from omegad.storage.driver import Connection

NAME = "claims"
VERSION = 1
EVENTS = (
    *(FilesClaimed, BranchClaimed, ClaimsReleased, ClaimsReported),
    *(SessionStarted, PromptSubmitted, TurnEnded, SubagentEnded, SessionCompacted, ToolCalled, SessionEnded),
)
SEEN_EVERY_US = 60_000_000
"""How exactly it is kept when a holder was heard of, so that most appends write nothing here."""

SCHEMA = """
CREATE TABLE state_file_claims (
    repository TEXT NOT NULL,    -- the common folder of git, '' outside
    path       TEXT NOT NULL,    -- relative to the work tree, whole outside
    worktree   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    position   INTEGER NOT NULL, -- of files.claimed: whoever claims it later has a greater one
    since_us   INTEGER NOT NULL, -- microseconds since 1970
    intent     TEXT,
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
CREATE TABLE state_ended_claims ( -- that the session did not end itself and has not been told of
    session_id TEXT NOT NULL,
    name       TEXT NOT NULL,     -- path or ref
    reason     TEXT NOT NULL,
    PRIMARY KEY (session_id, name)
) STRICT, WITHOUT ROWID;
"""
CANONICAL = (
    "SELECT * FROM state_file_claims ORDER BY repository, path, worktree",
    "SELECT * FROM state_branch_claims ORDER BY repository, ref",
    "SELECT * FROM state_claim_holders ORDER BY session_id",
    "SELECT * FROM state_ended_claims ORDER BY session_id, name",
)

_FILES = "INSERT OR REPLACE INTO state_file_claims SELECT ?1, value, ?2, ?3, ?4, ?5, ?6 FROM json_each(?7)"
_BRANCH = "INSERT OR REPLACE INTO state_branch_claims VALUES (?, ?, ?, ?, ?, ?)"
_HOLDER = "INSERT INTO state_claim_holders VALUES (?, ?) ON CONFLICT DO UPDATE SET seen_us = max(seen_us, excluded.seen_us)"
_SEEN = "UPDATE state_claim_holders SET seen_us = ?1 WHERE session_id = ?2 AND seen_us <= ?1 - ?3"
_THESE_FILES = "session_id = ?1 AND (?2 OR (repository = ?3 AND worktree = ?4 AND path IN (SELECT value FROM json_each(?5))))"
_THESE_BRANCHES = "session_id = ?1 AND (?2 OR (repository = ?3 AND ref IN (SELECT value FROM json_each(?4))))"
_FILES_ENDED = f"INSERT OR REPLACE INTO state_ended_claims SELECT session_id, path, ?6 FROM state_file_claims WHERE {_THESE_FILES}"
_BRANCHES_ENDED = f"INSERT OR REPLACE INTO state_ended_claims SELECT session_id, ref, ?5 FROM state_branch_claims WHERE {_THESE_BRANCHES}"
_RELEASE_FILES = f"DELETE FROM state_file_claims WHERE {_THESE_FILES}"
_RELEASE_BRANCHES = f"DELETE FROM state_branch_claims WHERE {_THESE_BRANCHES}"
_HOLDS_NOTHING = """
DELETE FROM state_claim_holders WHERE session_id = ?1 AND NOT EXISTS (SELECT 1 FROM state_file_claims WHERE session_id = ?1)
AND NOT EXISTS (SELECT 1 FROM state_branch_claims WHERE session_id = ?1)
"""
_REPORTED = "DELETE FROM state_ended_claims WHERE session_id = ?"


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    session_id = recorded.session_id or ""
    since = (session_id, recorded.position, recorded.occurred_at)
    match recorded.event:
        case FilesClaimed() as claimed:
            yield Statement(_FILES, (claimed.repository, claimed.worktree, *since, claimed.intent, to_json(claimed.paths)))
            yield Statement(_HOLDER, (session_id, recorded.occurred_at))
        case BranchClaimed() as claimed:
            yield Statement(_BRANCH, (claimed.repository, claimed.ref, *since, claimed.intent))
            yield Statement(_HOLDER, (session_id, recorded.occurred_at))
        case ClaimsReleased() as released:
            yield from _released(session_id, released)
        case ClaimsReported():
            yield Statement(_REPORTED, (session_id,))
        case SessionEnded():
            yield from _released(session_id, ClaimsReleased(how="released", reason="session ended", is_all=True))
            yield Statement(_REPORTED, (session_id,))
        case _:
            yield Statement(_SEEN, (recorded.occurred_at, session_id, SEEN_EVERY_US))


def _released(session_id: str, released: ClaimsReleased) -> Iterator[Statement]:
    files = (session_id, released.is_all, released.repository, released.worktree, to_json(released.paths))
    branches = (session_id, released.is_all, released.repository, to_json(released.refs))
    if released.how != "released" or released.by is not None:
        yield Statement(_FILES_ENDED, (*files, released.reason))
        yield Statement(_BRANCHES_ENDED, (*branches, released.reason))
    yield Statement(_RELEASE_FILES, files)
    yield Statement(_RELEASE_BRANCHES, branches)
    yield Statement(_HOLDS_NOTHING, (session_id,))


class ClaimState(msgspec.Struct, frozen=True):
    """Who holds a file or a branch, in which work tree ("" for a branch), since when, and when the holder was heard of last as the log knows it.

    `position` is the claim's fencing token; times are in microseconds since 1970.
    """

    repository: str
    name: str
    worktree: str
    session_id: str
    position: Position
    since_us: int
    intent: str | None
    seen_us: int


class EndedClaim(msgspec.Struct, frozen=True):
    """A path or ref that a session holds no longer, and why."""

    name: str
    reason: str


_FILE_COLUMNS = "c.repository, c.path, c.worktree, c.session_id, c.position, c.since_us, c.intent, h.seen_us"
_BRANCH_COLUMNS = _FILE_COLUMNS.replace("c.path, c.worktree", "c.ref, ''")
_JOINED = "AS c JOIN state_claim_holders AS h USING (session_id)"
_ON_FILE = f"SELECT {_FILE_COLUMNS} FROM state_file_claims {_JOINED} WHERE c.repository = ? AND c.path = ? ORDER BY c.worktree"
_ON_BRANCH = f"SELECT {_BRANCH_COLUMNS} FROM state_branch_claims {_JOINED} WHERE c.repository = ? AND c.ref = ?"


class Claims:
    """Reads the tables."""

    def __init__(self, connection: Connection) -> None:
        """Read through *connection*, whatever transaction is open there."""
        self._connection = connection

    def on_file(self, repository: str, path: str) -> list[ClaimState]:
        """Return who holds a file, in each work tree of its repository."""
        return [ClaimState(*row) for row in self._connection.execute(_ON_FILE, (repository, path))]

    def on_branch(self, repository: str, ref: str) -> list[ClaimState]:
        """Return who holds a branch: one, or nobody."""
        return [ClaimState(*row) for row in self._connection.execute(_ON_BRANCH, (repository, ref))]

    def seen_us(self, session_id: str) -> int | None:
        """Return when a session that holds something was heard of last, None for one that holds nothing."""
        row = self._connection.execute("SELECT seen_us FROM state_claim_holders WHERE session_id = ?", (session_id,)).fetchone()
        return row[0] if row else None

    def count(self, session_id: str) -> int:
        """Return how many files and branches a session holds."""
        tables = ("state_file_claims", "state_branch_claims")
        counts = (self._connection.execute(f"SELECT count(*) FROM {table} WHERE session_id = ?", (session_id,)).fetchone()[0] for table in tables)
        return sum(counts)

    def ended(self, session_id: str) -> list[EndedClaim]:
        """Return the claims that ended without the session's doing, and of which it was not told."""
        sql = "SELECT name, reason FROM state_ended_claims WHERE session_id = ? ORDER BY name"
        return [EndedClaim(*row) for row in self._connection.execute(sql, (session_id,))]
