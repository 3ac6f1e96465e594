"""After a shell command: whether what others hold has changed while it ran, whatever the command says. Nobody is kept from anything.

A file counts that changed, or went, after the command began, and a branch whose ref was written. Those are left out whose holder edited them or
ran a command of its own meanwhile, since either may have been it. What a checkout does to held files is seen; that it went to a held branch is
not, until something is committed there. A ref that is packed, or lies in a reftable, is not seen.
"""

from functools import partial

from omegad.commands.claims import Target
from omegad.hooks.hosts import Hook
from omegad.liveness import LEASE_US
from omegad.method import Moment, Services
from omegad.projects import changed_us, places_of
from omegad.redaction import redact_name
from omegad.storage.driver import Connection
from omegad.times import rfc3339

SHELLS = ("bash", "shell", "exec_command", "run_shell_command")
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
_ITSELF = f"""
SELECT 1 FROM coord_audit WHERE session_id = ? AND created_at >= ? AND (file IN (?, ?) OR lower(tool_name) IN {SHELLS}) LIMIT 1
"""


async def changed(services: Services, hook: Hook, last_us: int | None, ended_us: int) -> list[Target]:
    """Return what others hold in the work tree and has changed since a command began, or since *last_us*, when its session was heard of before it."""
    since_us = last_us if hook.duration_ms is None else ended_us - int(hook.duration_ms * 1_000) - STARTING_US
    others = (ended_us - seen_us < LEASE_US for session_id, seen_us in services.liveness.signs().seen.items() if session_id != hook.session_id)
    if since_us is None or hook.folder is None or not any(others):
        return []
    found = await services.look(partial(_changed, hook=hook, since_us=since_us), at_least=0, names=("coord_claims", "audit"), wait_s=LOOK_S)
    return [target for session_id, target in found if not services.liveness.is_running(session_id)]


def _changed(connection: Connection, moment: Moment, *, hook: Hook, since_us: int) -> list[tuple[str, Target]]:
    del moment
    place = places_of((".omegad",), hook.folder)[0]
    if place is None:
        return []
    repository, found = redact_name(place.repository), list[tuple[str, Target]]()
    asked = {"repository": repository, "worktree": redact_name(place.worktree), "session": hook.session_id}
    for session_id, worktree, name, has_been, is_branch in connection.execute(_HELD, asked):
        path = f"{repository if is_branch else worktree}/{name}" if worktree or is_branch else name
        if changed_us(path, has_been=has_been) < since_us:
            continue
        if connection.execute(_ITSELF, (session_id, rfc3339(since_us), name, path)).fetchone() is None:
            found.append((session_id, Target(repository, worktree, name, is_branch=bool(is_branch))))
    return found
