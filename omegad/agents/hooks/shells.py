"""After a shell command: whether what others hold has changed while it ran, whatever the command says. Nobody
is kept from anything.

A file counts that changed, or went, after the command began, and a branch whose ref was written. Left out is
what is told already, and what its holder has edited since, or ended a command of its own since, which may
have been it. What a checkout does to held files is seen; that it went to a held branch is not, until
something is committed there. A ref that is packed, or lies in a reftable, is not seen.
"""

from functools import partial
from typing import NamedTuple

from omegad.agents.hooks.hosts import SHELL_TOOLS, Hook
from omegad.agents.hooks.prepared import looked
from omegad.coordination.targets import Target
from omegad.requests.method import Moment, Services
from omegad.runtime.errors import PathHangs
from omegad.runtime.times import rfc3339
from omegad.session.liveness import LEASE_US, Liveness
from omegad.session.projects import Location, changed_us, locations_of
from omegad.storage.driver import Connection
from omegad.text.redaction import redact_name

STARTING_US = 1_000_000
"""How much later than its command's end a hook may begin, whose host says how long the command took."""
LOOK_S = 0.05
HELD_MAX = 64

_HELD = f"""
SELECT session_id, worktree, path, how = 'edit' AS has_been, 0 AS is_branch FROM coord_file_claims
WHERE repository = :repository AND worktree = :worktree AND session_id != :session AND released_at IS NULL
UNION ALL
SELECT session_id, '', ref, 0, 1 FROM coord_branch_claims
WHERE repository = :repository AND session_id != :session AND released_at IS NULL LIMIT {HELD_MAX}
"""
_EXCUSED = f"""
SELECT 1 FROM coord_audit WHERE session_id = :holder AND created_at >= :since
  AND (file IN (:name, :path) OR lower(tool_name) IN {SHELL_TOOLS})
UNION ALL
SELECT 1 FROM coord_contested_claims WHERE session_id = :session AND created_at >= :changed
  AND :name IN (SELECT value FROM json_each(names)) LIMIT 1
"""


class _Held(NamedTuple):
    """What another session holds, and where it lies; `has_been` says that it was edited before, so that it
    may be gone.
    """

    holder: str
    target: Target
    path: str
    has_been: bool


async def changed(services: Services, hook: Hook, last_us: int | None, ended_us: int) -> list[Target]:
    """Return what others hold in the work tree and has changed since a command began, or since *last_us*,
    when its session was heard of before it.
    """
    since_us = last_us if hook.duration_ms is None else ended_us - int(hook.duration_ms * 1_000) - STARTING_US
    others = (
        ended_us - seen_us < LEASE_US
        for session_id, seen_us in services[Liveness].activity().seen.items()
        if session_id != hook.session_id
    )
    if since_us is None or hook.folder is None or not any(others):
        return []
    look = partial(looked, services, at_least=0, names=("coord_claims", "audit"), wait_s=LOOK_S)
    try:
        place = (await services.reach(partial(locations_of, (".omegad",), hook.folder), hook.folder))[0]
        held: list[_Held] = (
            [] if place is None else await look(partial(_held, hook=hook, place=place), list[_Held]())
        )
        if not held:
            return []
        times = await services.reach(
            lambda: [changed_us(one.path, has_been=one.has_been) for one in held], hook.folder
        )
    except PathHangs:
        return []
    since = [(one, at_us) for one, at_us in zip(held, times, strict=True) if at_us >= since_us]

    def unexcused(connection: Connection, _moment: Moment) -> list[Target]:
        asked = {"session": hook.session_id, "since": rfc3339(since_us)}
        return [
            one.target
            for one, at_us in since
            if not connection.execute(
                _EXCUSED,
                asked
                | {
                    "holder": one.holder,
                    "name": one.target.name,
                    "path": one.path,
                    "changed": rfc3339(at_us),
                },
            ).fetchone()
        ]

    return await look(unexcused, list[Target]()) if since else []


def _held(connection: Connection, _moment: Moment, *, hook: Hook, place: Location) -> list[_Held]:
    repository, found = redact_name(place.repository), list[_Held]()
    asked = {"repository": repository, "worktree": redact_name(place.worktree), "session": hook.session_id}
    for holder, worktree, name, has_been, is_branch in connection.execute(_HELD, asked):
        path = f"{repository if is_branch else worktree}/{name}" if worktree or is_branch else name
        found.append(
            _Held(holder, Target(repository, worktree, name, is_branch=bool(is_branch)), path, bool(has_been))
        )
    return found
