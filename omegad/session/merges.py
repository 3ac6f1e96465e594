"""The merges and pulls of a work tree, as git keeps them: in its log of where HEAD was; see git-reflog(1)."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from omegad.runtime.repository import GITDIR, LEVELS_MAX, first_line

TAIL_BYTES = 64 << 10
MERGES_MAX = 16
WHAT_CHARACTERS = 200

_LINE = re.compile(r"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t]*> ([0-9]{1,12}) [+-][0-9]{4}\t(.*)")
_MERGES = re.compile(r"(?:pull|merge|commit \(merge\)|rebase)\b")
_PARTS = re.compile(r"(?:pull|rebase)\b.* \((?!finish)\w+\): ")
"""What rebasing does on the way; before it stands the command, whose addresses have colons, too."""
_SWITCH = "checkout: moving from "
_HEAD = "ref: "


class Merge(NamedTuple):
    """A merge: the work tree and branch that it went into, from which commit to which, in git's own word,
    and when, in microseconds since 1970.
    """

    worktree: str
    ref: str | None
    before: str
    after: str
    what: str
    at_us: int


def merges(folder: str) -> tuple[Merge, ...]:
    """Return the latest merges of the work tree that holds *folder*, the oldest first; none outside git."""
    with suppress(OSError, RuntimeError, ValueError):
        start = Path(folder).resolve()
        for root in (start, *start.parents)[:LEVELS_MAX]:
            git = root / ".git"
            if git.is_file():
                git = root / first_line(str(git)).removeprefix(GITDIR)
            if git.is_dir():
                return tuple(_merges(str(root), git))[:MERGES_MAX][::-1]
    return ()


def after(found: tuple[Merge, ...], latest: tuple[str, int] | None, since_us: int) -> tuple[Merge, ...]:
    """Return what came after the latest that is known, by its commit and time, which is earlier than git's
    where that was in the future; where none is, what came since a time.
    """
    places = [place for place, one in enumerate(found, 1) if (one.after, one.at_us) == latest]
    if latest is not None and not places:
        places = [
            place for place, one in enumerate(found, 1) if one.after == latest[0] and one.at_us > latest[1]
        ][:1]
    if places:
        return found[places[-1] :]
    return tuple(one for one in found if one.at_us > (since_us if latest is None else latest[1]))


def _merges(worktree: str, git: Path) -> Iterator[Merge]:
    """Yield the merges of a work tree, the newest first."""
    with (git / "logs" / "HEAD").open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
        lines = file.read(TAIL_BYTES).decode(errors="replace").splitlines()
    head = first_line(str(git / "HEAD"))
    ref = head.removeprefix(_HEAD) if head.startswith(_HEAD) else None
    for line in reversed(lines):
        if (found := _LINE.fullmatch(line)) is None:
            continue
        before, now, seconds, what = found.groups()
        if what.startswith(_SWITCH):
            name = what.removeprefix(_SWITCH).partition(" to ")[0]
            ref = None if re.fullmatch(r"[0-9a-f]{40,64}", name) else f"refs/heads/{name}"
        elif _MERGES.match(what) and not _PARTS.match(what) and (before != now or "(finish)" in what):
            yield Merge(worktree, ref, before, now, what[:WHAT_CHARACTERS], int(seconds) * 1_000_000)
