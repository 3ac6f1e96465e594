"""What each file of the identity says, and since when."""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement
from omegad.person.events import IdentityChanged
from omegad.runtime.times import rfc3339

NAME = "identity"
VERSION = 1
EVENTS = (IdentityChanged,)

SCHEMA = """
CREATE TABLE identity_files (
    file       TEXT PRIMARY KEY,
    content    TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    revision   TEXT,             -- commit in the repository of these files
    position   INTEGER NOT NULL, -- of the event
    changed_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""

CANONICAL = ("SELECT * FROM identity_files ORDER BY file",)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case IdentityChanged(file=file, content=str(content), sha256=sha256, revision=revision):
            values = (file, content, sha256, revision, recorded.position, rfc3339(recorded.occurred_at))
            yield Statement("INSERT OR REPLACE INTO identity_files VALUES (?, ?, ?, ?, ?, ?)", values)
        case IdentityChanged(file=file):
            yield Statement("DELETE FROM identity_files WHERE file = ?", (file,))
