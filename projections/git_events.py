"""Every branch that a push was looked at for, and what came of it; and merges and pulls that git has kept."""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement, to_json
from omegad.runtime.times import rfc3339
from omegad.session.events import CheckedRef, GitMerged, GitPushChecked

NAME = "git_events"
VERSION = 2
EVENTS = (GitPushChecked, GitMerged)

SCHEMA = """
CREATE TABLE coord_git_events (
    id         INTEGER PRIMARY KEY, -- position of the event * 1024 + the place of the branch
    session_id TEXT,
    project    TEXT,
    event      TEXT NOT NULL,       -- push, pull, merge or rebase
    how        TEXT NOT NULL,       -- command (of an agent), hook (git's own) or reflog (whoever did it)
    host       TEXT NOT NULL,
    remote     TEXT NOT NULL,
    ref        TEXT,                -- NULL where it was not known which
    before_sha TEXT,                -- of a merge
    local_sha  TEXT,
    remote_sha TEXT,
    found      TEXT,                -- new, same, ahead, stale, unknown or unasked
    is_forced  INTEGER,
    lacks      INTEGER,             -- how many commits of the remote are not in what is pushed
    commits    TEXT,                -- JSON array: the latest of them
    verdict    TEXT NOT NULL,       -- of the whole push: allowed, warned, asked or denied
    reason     TEXT,
    created_at TEXT NOT NULL
) STRICT;
"""

CANONICAL = ("SELECT * FROM coord_git_events ORDER BY id",)

_INSERT = "INSERT INTO coord_git_events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case GitPushChecked() as push:
            for place, ref in enumerate(push.refs or (None,)):
                known = (
                    recorded.position * 1024 + place,
                    recorded.session_id,
                    recorded.project,
                    "push",
                    push.how,
                    push.host,
                    push.remote,
                )
                yield Statement(
                    _INSERT,
                    (*known, *_columns(ref), push.verdict, push.reason, rfc3339(recorded.occurred_at)),
                )
        case GitMerged(ref=ref, before=before, after=after, what=what):
            whose = (recorded.position * 1024, recorded.session_id, recorded.project)
            event = next((kind for kind in ("pull", "rebase") if what.startswith(kind)), "merge")
            merged = (event, "reflog", "git", "", ref, before, after, *(None,) * 5, "allowed", what)
            yield Statement(_INSERT, (*whose, *merged, rfc3339(recorded.occurred_at)))


def _columns(ref: CheckedRef | None) -> tuple[str | int | None, ...]:
    if ref is None:
        return (None,) * 8
    return (
        ref.ref,
        None,
        ref.local_sha,
        ref.remote_sha,
        ref.found,
        ref.is_forced,
        ref.lacks,
        to_json(ref.commits),
    )
