"""What an erasure leaves: files of the home that hold the memory and are not the daemon's to change."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from omegad.storage.searching import Held, holding
from omegad.views import generation

_LIVE = ("log.db", "embeddings.db", generation.POINTER)
_LIVE_FOLDERS = ("asof", "spool")
NOTES = "*/SKILL.md"
YOURS = "a file of yours: take it out there, and out of its git history"


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the home that still holds it and is not the daemon's to change, and what to do about it."""

    file: str
    hint: str


def files_that_hold(
    home: Path, skills: Iterable[Path], pieces: Sequence[bytes], parts: Sequence[bytes], *, is_done: bool
) -> list[Left]:
    """Return the files of *home* that hold one of *pieces*; those that are changed, or removed, as a memory
    is erased only once that is done.

    With them the skills in the folders *skills* that hold one of *parts*, wherever they are: lessons are cut
    from what was said.
    """
    live = {
        f"{name}{suffix}"
        for name in (*_LIVE, *(path.name for path in generation.files(home)))
        for suffix in generation.SUFFIXES
    }
    changed = set() if is_done else {*live, *_LIVE_FOLDERS}
    found = [
        path
        for path in sorted(home.rglob("*"))
        if not path.is_symlink() and path.relative_to(home).parts[0] not in changed
    ]
    left = {
        path: Left(file=str(path), hint=_hint(path, home, held, live))
        for path, held in holding(found, pieces).items()
    }
    notes = [path for folder in skills for path in sorted(folder.glob(NOTES)) if path not in left]
    return [
        *left.values(),
        *(
            Left(file=str(path), hint=YOURS)
            for path, held in holding(notes, parts).items()
            if held != "unread"
        ),
    ]


def _hint(path: Path, home: Path, held: Held, live: set[str]) -> str:
    if held == "unread":
        return "it cannot be read, so it may hold it: make it readable and look, or remove it"
    within = path.relative_to(home).parts[0]
    if within in live:
        return (
            "it stands in a name, as of a session or project, which is not erased; or it was said again"
            " meanwhile: `omegad log` shows it"
        )
    if path.name.startswith("log.db.replaced-") or ".of-another-log-" in path.name:
        return "it was set aside, with what it holds: remove it"
    if within in {"identity", "skills", "setup"}:
        return YOURS
    if held == "database":
        return "a copy: `omegad backup FILE`, outside the home, makes one without it; then remove this one"
    return "remove the file, or take it out there"
