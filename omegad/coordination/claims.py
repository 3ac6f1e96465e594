"""Who holds which files and branches, and who did.

What sessions hold that have been silent for as long as a lease lasts is let go: a host that is killed says
nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.coordination.claim import ExpireClaims
from omegad.coordination.events import PATHS_MAX
from omegad.coordination.targets import Target, found_files
from omegad.reactions.contract import Reader
from omegad.requests.method import Moment, QueryMethod, RequestContext, Services
from omegad.requests.query import Query, ViewAnswer
from omegad.requests.verb import AgentTool, Option, Table, Verb
from omegad.runtime.times import rfc3339
from omegad.session.liveness import LEASE_US
from omegad.storage.driver import Connection

_EVERY = """
SELECT 'file' AS kind, id / 1024 AS position, session_id, repository, worktree, path AS name, project, intent,
  claimed_at, released_at, ended, reason
FROM coord_file_claims
UNION ALL
SELECT 'branch', id, session_id, repository, '', ref, project, intent, claimed_at, released_at, ended, reason
  FROM coord_branch_claims
"""
_COLUMNS = """
c.kind, c.position, c.session_id, s.host, c.repository, c.worktree, c.name, c.project,
c.intent, c.claimed_at, s.seen_us, c.released_at, c.ended, c.reason
"""
_LIST = f"""
SELECT {_COLUMNS} FROM ({_EVERY}) AS c JOIN coord_sessions AS s USING (session_id)
WHERE (:ended OR c.released_at IS NULL) AND (:session IS NULL OR c.session_id = :session)
  AND (:project IS NULL OR c.project = :project)
AND (:repository IS NULL OR c.repository = :repository) ORDER BY c.position DESC, c.name LIMIT :limit
"""
_ON_FILE = f"""
SELECT {_COLUMNS} FROM ({_EVERY}) AS c JOIN coord_sessions AS s USING (session_id)
WHERE c.kind = 'file' AND c.repository = ? AND c.name = ? AND c.released_at IS NULL ORDER BY c.worktree
"""


NAME = "silent_holders"
VERSION = 1
EVERY = 60
VIEWS = ("coord_claims",)
_GONE = """
SELECT DISTINCT session_id FROM coord_sessions AS s WHERE seen_us < ? AND (
    EXISTS (SELECT 1 FROM coord_file_claims AS f WHERE f.session_id = s.session_id AND f.released_at IS NULL)
    OR EXISTS (SELECT 1 FROM coord_branch_claims AS b WHERE b.session_id = s.session_id
      AND b.released_at IS NULL)
) ORDER BY session_id LIMIT 500
"""


class ListClaims(Query, frozen=True, kw_only=True, tag="claim.list"):
    """Show who holds which files and branches, the newest first; with `ended`, those too that are over,
    and why.
    """

    project: Annotated[str | None, Meta(description="of this project")] = None
    repository: Annotated[
        str | None, Meta(description="of this repository: its common folder, like /src/shop/.git")
    ] = None
    session_id: Annotated[str | None, Meta(description="of this session")] = None
    ended: Annotated[bool, Meta(description="those that are over, too")] = False
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many")] = 100


class CheckClaims(Query, frozen=True, kw_only=True, tag="claim.check"):
    """Show who holds files, in any work tree of their repository; claims nothing."""

    paths: Annotated[
        tuple[str, ...],
        Meta(min_length=1, max_length=PATHS_MAX, description="files; relative ones are the folder's"),
    ]
    folder: Annotated[str, Meta(max_length=4_096, description="where it is asked from")] | None = None


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim: on a `file` of a work tree or a `branch` (kind), whose, what for, since when, and until when
    and why where it is over.

    `position` is its fencing token; `seen` is when the log shows the last sign of life of its session, to the
    minute.
    """

    kind: str
    position: int
    session_id: str
    host: str | None
    repository: str
    worktree: str
    name: str
    project: str | None
    intent: str | None
    since: str
    seen: str
    until: str | None
    ended: str | None
    reason: str | None


class ClaimList(ViewAnswer, frozen=True):
    """Some claims."""

    claims: list[Claim]


def list_claims(connection: Connection, query: ListClaims, moment: Moment) -> ClaimList:
    """Read claims."""
    values = {name: getattr(query, name) for name in ("project", "repository", "ended", "limit")} | {
        "session": query.session_id
    }
    return ClaimList(claims=[_claim(row) for row in connection.execute(_LIST, values)], **moment.shown)


async def prepare_check(services: Services, query: CheckClaims, _context: RequestContext) -> list[Target]:
    """Find where the files are. Raises `Invalid`."""
    return await found_files(services, query.paths, query.folder)


def check(
    connection: Connection, _query: CheckClaims, targets: Sequence[Target], moment: Moment
) -> ClaimList:
    """Read the claims on files."""
    found = [claim for target in targets for claim in on_file(connection, target.repository, target.name)]
    return ClaimList(claims=found, **moment.shown)


def on_file(connection: Connection, repository: str, path: str) -> list[Claim]:
    """Return the claims on a file in any work tree of its repository."""
    return [_claim(row) for row in connection.execute(_ON_FILE, (repository, path))]


def due(_slot: int, reader: Reader) -> Iterator[ExpireClaims]:
    """Name the sessions that hold something, and of which the log has shown nothing for as long as a lease
    lasts; whether the daemon has heard of them meanwhile is for the command to say.
    """
    if gone := reader.connection.execute(_GONE, (reader.now_us - LEASE_US,)).fetchall():
        yield ExpireClaims(session_ids=tuple(session_id for (session_id,) in gone))


def _claim(row: Sequence[object]) -> Claim:
    values = dict(zip(Claim.__struct_fields__, row, strict=True))
    return msgspec.convert({**values, "seen": rfc3339(int(str(values["seen"])))}, Claim)


METHODS = (
    QueryMethod(
        params=ListClaims,
        answer=ClaimList,
        views=VIEWS,
        read=list_claims,
        verb=Verb(
            "claims",
            by="sentences.again",
            examples=("omegad claims", "omegad claims --project shop --watch"),
            table=Table(
                "claims",
                (
                    ("SINCE", "{since:moment}"),
                    ("SEEN", "{seen:moment}"),
                    ("SESSION", "{session_id}"),
                    ("HOST", "{host}"),
                    ("NAME", "{name}"),
                    ("IN", "{worktree|repository}"),
                    ("UNTIL", "{until:moment}"),
                    ("WHY", "{reason|ended|intent}"),
                ),
                none="nobody holds anything",
            ),
            options=(Option("watch", "go on showing them, every two seconds, until interrupted", "flag"),),
        ),
        tool=AgentTool(
            "omega_coord claims", by="coordinating.held", takes={"project": "session.project"}, limit=20
        ),
    ),
    QueryMethod(
        params=CheckClaims,
        answer=ClaimList,
        views=VIEWS,
        prepare=prepare_check,
        read=check,
        verb=Verb(examples=("omegad claim check src/billing.py",)),
    ),
)
