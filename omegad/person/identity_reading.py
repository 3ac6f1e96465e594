"""The files that say who an agent is, and for whom it works, as they were recorded last."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import Query
from omegad.requests.verb import Verb
from omegad.storage.driver import Connection

FILES_MAX = 16
_FILES = f"SELECT file, content, sha256, revision, position, changed_at FROM identity_files ORDER BY file LIMIT {FILES_MAX}"
_COMMENT, _COMMENT_ENDS = "<!--", "-->"


class GetIdentity(Query, frozen=True, kw_only=True, tag="identity.get"):
    """Show what the identity says, file by file."""


class IdentityFile(msgspec.Struct, frozen=True):
    """A file of the identity: its text with its SHA-256, the commit it is of, the event that told of it, and when."""

    file: str
    content: str
    sha256: str
    revision: str | None
    position: int
    changed_at: str

    @property
    def said(self) -> str:
        """What it says beside its comments."""
        text, start = self.content, 0
        kept = list[str]()
        while (begins := text.find(_COMMENT, start)) >= 0 and (ends := text.find(_COMMENT_ENDS, begins)) >= 0:
            kept.append(text[start:begins])
            start = ends + len(_COMMENT_ENDS)
        return "".join((*kept, text[start:])).strip()


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The identity's files by name."""

    files: Annotated[list[IdentityFile], Meta(max_length=FILES_MAX)]
    position: int
    stale_by: int


def files(connection: Connection) -> list[IdentityFile]:
    """Return the files as they were recorded last."""
    return [IdentityFile(*row) for row in connection.execute(_FILES)]


def get(connection: Connection, query: GetIdentity, moment: Moment) -> Identity:
    """Read the identity."""
    del query
    return Identity(files=files(connection), position=moment.position, stale_by=moment.stale_by)


METHODS = (
    QueryMethod(
        params=GetIdentity,
        answer=Identity,
        views=("identity",),
        read=get,
        verb=Verb("identity show", by="identity.show"),
    ),
)
