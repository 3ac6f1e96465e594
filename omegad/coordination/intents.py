"""What sessions have said that they will do, and which of it is about the same files."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import One, Query, ViewAnswer
from omegad.storage.driver import Connection

PATHS_MAX = 16
SHOWN_MAX = 32
_INTENTS = """
SELECT session_id, project, text, paths, created_at FROM coord_intents
WHERE status = 'current' AND expires_us > :now_us AND project IS :project AND session_id IS NOT :session_id
ORDER BY id DESC LIMIT :limit
"""

Path = Annotated[str, Meta(min_length=1, max_length=256)]
Paths = Annotated[
    tuple[Path, ...],
    Meta(max_length=PATHS_MAX, description="a file, folder or pattern, from the repository's root"),
]


class CheckIntents(Query, frozen=True, kw_only=True, tag="intent.check"):
    """Show what other sessions are about to do in a project; where paths are given, only what is about the
    same files.
    """

    project: Annotated[One | None, Meta(description="which project")] = None
    paths: Paths = ()
    session_id: Annotated[One | None, Meta(description="the session that asks, whose own is left out")] = None


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is about to do, to which files."""

    session_id: str
    project: str | None
    text: str
    paths: list[str]
    announced_at: str


class Intents(ViewAnswer, frozen=True):
    """Intents that hold, the latest first."""

    intents: list[Intent]


def overlap(some: Sequence[str], others: Sequence[str]) -> bool:
    """Say whether paths name the same files: the same one, one within a folder, or one that a pattern
    matches.

    Two patterns overlap where one's beginning, up to its first wildcard, is that of the other. An absolute
    path is taken for its end.
    """
    return any(_meet(_plain(one), _plain(other)) for one in some for other in others)


def _meet(one: str, other: str) -> bool:
    start, begin = _start(one), _start(other)
    if start != one and begin != other:
        return start.startswith(begin) or begin.startswith(start)
    if start != one or begin != other:
        pattern, path = (one, other) if start != one else (other, one)
        return fnmatchcase(path, pattern) or _start(pattern).startswith(f"{path}/")
    return any(
        f"{a}/".startswith(f"{b}/") or f"/{a}".endswith(f"/{b}") for a, b in ((one, other), (other, one))
    )


def _start(path: str) -> str:
    return path[: min((place for mark in "*?[" if (place := path.find(mark)) >= 0), default=len(path))]


def _plain(path: str) -> str:
    return path.removeprefix("./").rstrip("/")


def check(connection: Connection, query: CheckIntents, moment: Moment) -> Intents:
    """Read the intents of others."""
    values = {
        "now_us": moment.now_us,
        "project": query.project,
        "session_id": query.session_id,
        "limit": SHOWN_MAX,
    }
    found = [
        Intent(
            session_id=who,
            project=project,
            text=text,
            paths=msgspec.json.decode(paths, type=list[str]),
            announced_at=at,
        )
        for who, project, text, paths, at in connection.execute(_INTENTS, values)
    ]
    shown = [one for one in found if not query.paths or overlap(one.paths, query.paths)]
    return Intents(intents=shown, **moment.shown)


METHODS = (QueryMethod(params=CheckIntents, answer=Intents, views=("coord_intents",), read=check),)
