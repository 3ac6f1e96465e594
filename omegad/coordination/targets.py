"""What claims are on: where the files and branches are that a request names."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from omegad.requests.method import Services
from omegad.runtime.errors import Invalid, PathHangs, Stale, Unavailable
from omegad.session.liveness import Liveness
from omegad.session.projects import Location, by_disk, locations_of, repository_of, same_as
from omegad.storage.readers import Turn
from omegad.text.redaction import redact_name

HEADS = "refs/heads/"
LOOK_S = 0.05
HELD_MAX = 1_000
_HELD_BY_OTHERS = """
SELECT repository, worktree, path FROM coord_file_claims INDEXED BY coord_file_claims_held
WHERE released_at IS NULL AND session_id != ? LIMIT ?
"""


class Target(NamedTuple):
    """A file of a work tree, or a branch."""

    repository: str
    worktree: str
    name: str
    is_branch: bool = False


async def folder_for(
    services: Services, session_id: str | None, paths: Sequence[str], told: str | None
) -> str | None:
    """Return where relative paths begin: in the folder that is told, else in that of the session which
    names them.
    """
    if told is not None or session_id is None or all(path.startswith("/") for path in paths):
        return told
    found = await services.look(
        lambda connection, _: connection.execute(
            "SELECT folder FROM coord_sessions WHERE session_id = ?", (session_id,)
        ).fetchone(),
        at_least=services.head,
        names=("coord_claims",),
    )
    return found[0] if found else None


def files(paths: Sequence[str], folder: str | None) -> list[Target]:
    """Say what files are claimed by. Raises `Invalid` for what is no file's path."""
    places = locations_of(paths, folder)
    found = targets_of(places)
    if len(found) < len(paths):
        wrong = paths[places.index(None)]
        raise Invalid(
            f"{wrong[:80]!r} is not the path of a file",
            hint="give whole paths, or the folder that they start from",
        )
    return found


def targets_of(places: Iterable[Location | None]) -> list[Target]:
    """Say by what names files are claimed, which the log can hold."""
    return [
        Target(redact_name(one.repository), redact_name(one.worktree), redact_name(one.path))
        for one in places
        if one is not None
    ]


async def found_files(services: Services, paths: Sequence[str], folder: str | None) -> list[Target]:
    """Say what files are claimed by, wherever they lie. Raises `Invalid`, and `PathHangs` where a disk
    does not answer.
    """
    found = list[Target]()
    for near, some in by_disk(paths, folder, services.disk):
        found += await services.reach(partial(files, some, folder), near)
    return found


async def held_within(services: Services, session_id: str, targets: Sequence[Target]) -> list[Target]:
    """Return what others hold of files, and of all that lies in folders."""
    return _within(targets, await _others(services, session_id)) if targets else []


def _within(targets: Sequence[Target], others: Mapping[str, Target]) -> list[Target]:
    wholes = {_path(one) for one in targets}
    folders = tuple(f"{whole}/" for whole in wholes)
    return [one for path, one in others.items() if path in wholes or path.startswith(folders)]


async def _others(services: Services, session_id: str) -> dict[str, Target]:
    """Return what other sessions hold, by its path; nothing where the views cannot be read now."""
    if not services[Liveness].activity().seen.keys() - {session_id}:
        return {}
    try:
        held = await services.look(
            lambda connection, _: connection.execute(_HELD_BY_OTHERS, (session_id, HELD_MAX)).fetchall(),
            at_least=services.head,
            names=("coord_claims",),
            wait_s=LOOK_S,
            turn=Turn.FIRST,
        )
    except (Stale, Unavailable):
        return {}
    return {_path(one): one for one in (Target(*row) for row in held)}


async def same_files(services: Services, session_id: str, targets: Sequence[Target]) -> list[Target]:
    """Return what others hold of the same files under other names, and in them where they are folders; it
    is claimed with them.
    """
    others = await _others(services, session_id)
    found = _within(targets, others)

    def find(own: Sequence[str], its: Sequence[str]) -> list[Target]:
        return [others[path] for one in own for path in same_as(one, its)]

    beside = {services.disk(near): paths for near, paths in by_disk(others, None, services.disk)}
    for near, paths in by_disk(map(_path, targets), None, services.disk):
        if its := beside.get(
            services.disk(near)
        ):  # on another disk, which may not answer, a file has no other name
            with suppress(PathHangs):
                found += await services.reach(partial(find, paths, its), near)
    return [one for one in dict.fromkeys(found) if one not in targets]


def _path(target: Target) -> str:
    return f"{target.worktree}/{target.name}" if target.worktree else target.name


def branches(refs: Sequence[str], folder: str | None) -> list[Target]:
    """Say what branches are claimed by. Raises `Invalid` outside git."""
    repository = repository_of(folder) if folder else ""
    if not repository:
        raise Invalid(
            f"{(folder or '')[:80]!r} is in no repository",
            hint="name a folder of the repository that the branch is in",
        )
    return [
        Target(redact_name(repository), "", redact_name(HEADS + ref.removeprefix(HEADS)), is_branch=True)
        for ref in refs
    ]
