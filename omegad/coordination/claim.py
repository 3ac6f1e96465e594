"""Claim files and branches for a session, let go of them, and end what is held by those who are gone.

All that a request names is claimed in one decision, or nothing of it. Nobody waits for a claim: who is
refused does something else and asks again, so that no two can wait for each other.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from omegad.coordination.claim_state import Claims, ClaimState
from omegad.coordination.events import (
    PATHS_MAX,
    BranchClaimed,
    ClaimsContested,
    ClaimsReleased,
    Contest,
    FilesClaimed,
)
from omegad.coordination.targets import Target, branches, folder_for, found_files, same_files
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Event, NewEvent, Position
from omegad.requests.command import Acknowledged, Command, Name, Reason
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.requests.verb import AgentTool, Verb
from omegad.runtime.errors import Invalid, NotFound, Refused
from omegad.runtime.repository import project_of
from omegad.runtime.times import rfc3339
from omegad.session.hook_state import Hooks
from omegad.session.liveness import MINUTE_US, Activity, Liveness
from omegad.text.quoting import name
from omegad.text.redaction import redact_name

Path = Annotated[str, Meta(min_length=1, max_length=4_096)]
PathList = Annotated[
    tuple[Path, ...], Meta(max_length=PATHS_MAX, description="files; relative ones are the folder's")
]
Folder = Annotated[
    str,
    Meta(
        max_length=4_096, description="where it is asked from; for files, that of the session where left out"
    ),
]
Ref = Annotated[
    str, Meta(min_length=1, max_length=1_024, description="a branch, like main or refs/heads/main")
]
Intent = Annotated[str, Meta(max_length=1_000, description="what for, in a few words that others are told")]
Asking = Annotated[Name, Meta(description="which session asks")]
Force = Annotated[bool, Meta(description="take it from whoever holds it; asks for a reason")]


class ClaimFiles(Command, frozen=True, kw_only=True, tag="claim.files"):
    """Claim files of a work tree for a session, all or none, until it lets go of them, ends, or is silent
    for 30 minutes.
    """

    session_id: Asking
    paths: Annotated[
        tuple[Path, ...],
        Meta(min_length=1, max_length=PATHS_MAX, description="files; relative ones are the folder's"),
    ]
    folder: Folder | None = None
    intent: Intent | None = None
    force: Force = False
    reason: Reason = ""


class ClaimBranch(Command, frozen=True, kw_only=True, tag="claim.branch"):
    """Claim a branch of the repository that a folder is in, in all its work trees, as files are claimed."""

    session_id: Asking
    ref: Ref
    folder: Folder
    intent: Intent | None = None
    force: Force = False
    reason: Reason = ""


class ReleaseClaims(Command, frozen=True, kw_only=True, tag="claim.release"):
    """Let go of files and branches, or of all that a session holds where none is named; with force, of
    what others hold.
    """

    session_id: Annotated[
        Name | None, Meta(description="which session asks; left out by a person, who needs force")
    ] = None
    paths: PathList = ()
    refs: Annotated[
        tuple[Ref, ...], Meta(max_length=PATHS_MAX, description="branches of the folder's repository")
    ] = ()
    folder: Folder | None = None
    force: Annotated[bool, Meta(description="whoever holds them; asks for a reason")] = False
    reason: Reason = ""


class ExpireClaims(Command, frozen=True, kw_only=True, tag="claim.expire"):
    """Record that sessions are gone that hold something."""

    session_ids: tuple[str, ...]


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a file or branch (`name`), in which work tree, since when, when they were heard of last,
    and what for; `position` is the token.
    """

    name: str
    worktree: str
    session_id: str
    host: str | None
    since: str
    seen: str
    intent: str | None
    position: Position


class Claimed(Acknowledged, frozen=True, kw_only=True):
    """What is held from now on. `position` is the fencing token: whoever claims any of it later has a greater
    one.

    `beside` are those who hold the same files in other work trees, so that the two will meet at a merge.
    """

    beside: list[Holder] = msgspec.field(default_factory=list)


class Released(Acknowledged, frozen=True, kw_only=True):
    """How many claims ended."""

    count: int


class Wanted(NamedTuple):
    """What is to be claimed, and what is known beside the log of those who may hold it."""

    session_id: str
    targets: Sequence[Target]
    activity: Activity
    project: str | None = None
    how: Literal["edit", "asked"] = "asked"
    intent: str | None = None
    at_us: int | None = None
    """When it was wanted, where that was before."""


class Ruling(NamedTuple):
    """What a claim comes to: events, or those who hold what was wanted; those who hold it elsewhere; and
    the token of what was held before.
    """

    events: tuple[NewEvent, ...] = ()
    held: tuple[ClaimState, ...] = ()
    beside: tuple[ClaimState, ...] = ()
    position: Position = 0


def ruled(wanted: Wanted, state: DecisionState, now_us: int, reason: str = "") -> Ruling:
    """Decide a claim; with a *reason* it is taken from whoever holds it. What the gone held is free, and
    their end is recorded.
    """
    free, mine, held, beside, gone = (
        list[Target](),
        list[ClaimState](),
        list[ClaimState](),
        list[ClaimState](),
        dict[str, ClaimState](),
    )
    for target in wanted.targets:
        own = None
        for claim in _on(target, state):
            if claim.session_id == wanted.session_id:
                own = claim if claim.worktree == target.worktree else own
            elif wanted.activity.status(claim.session_id, claim.seen_us, now_us) == "gone":
                gone[claim.session_id] = claim
            else:
                (held if claim.worktree == target.worktree else beside).append(claim)
        if own is None:
            free.append(target)
        else:
            mine.append(own)
    position = max((claim.position for claim in mine), default=0)
    if held and not reason:
        return Ruling((), tuple(held), tuple(beside), position)
    ended = [_expired(claim.session_id, claim.seen_us, wanted.activity, now_us) for claim in gone.values()]
    taken = _let_go(
        held, f"taken over by {wanted.session_id} because {reason}", by=wanted.session_id, how="taken_over"
    )
    ours = [
        NewEvent(event=event, session_id=wanted.session_id, project=wanted.project, occurred_at=wanted.at_us)
        for event in _claims(free, wanted)
    ]
    return Ruling((*ended, *taken, *ours), (), tuple(beside) if free else (), position)


def _on(target: Target, state: DecisionState) -> list[ClaimState]:
    return (state[Claims].on_branch if target.is_branch else state[Claims].on_file)(
        target.repository, target.name
    )


def _claims(targets: Iterable[Target], wanted: Wanted) -> Iterator[Event]:
    for (repository, worktree, is_branch), group in groupby(
        sorted(set(targets)), lambda one: (one.repository, one.worktree, one.is_branch)
    ):
        names = tuple(target.name for target in group)
        if is_branch:
            yield from (BranchClaimed(repository=repository, ref=ref, intent=wanted.intent) for ref in names)
        else:
            for some in _some(names):
                yield FilesClaimed(
                    repository=repository, worktree=worktree, paths=some, how=wanted.how, intent=wanted.intent
                )


def _expired(session_id: str, recorded_us: int, activity: Activity, now_us: int) -> NewEvent:
    minutes = (now_us - activity.seen_us(session_id, recorded_us, now_us)) // MINUTE_US
    return NewEvent(
        event=ClaimsReleased(how="expired", reason=f"silent {minutes} min", is_all=True),
        session_id=session_id,
    )


def _let_go(
    claims: Iterable[ClaimState], reason: str, *, by: str | None, how: Literal["released", "taken_over"]
) -> Iterator[NewEvent]:
    for session_id, what in _by_holder(claims):
        yield NewEvent(
            event=ClaimsReleased(how=how, reason=reason, by=by, **what._asdict()), session_id=session_id
        )


def contested(
    claims: Iterable[ClaimState], how: Contest, tool_use_id: str | None = None
) -> Iterator[ClaimsContested]:
    """Return the events of a session that came upon what others hold."""
    return (
        ClaimsContested(how=how, holder=holder, tool_use_id=tool_use_id, **what._asdict())
        for holder, what in _by_holder(claims)
    )


class Held(NamedTuple):
    """Files of one work tree, or branches of its repository, as events name them."""

    repository: str
    worktree: str
    paths: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()


def _by_holder(claims: Iterable[ClaimState]) -> Iterator[tuple[str, Held]]:
    """Return each holder, and what it has in one work tree, or of branches, which are in none; as much at a
    time as an event takes.
    """

    def held_by(claim: ClaimState) -> tuple[str, str, str]:
        return claim.session_id, claim.repository, claim.worktree

    for (session_id, repository, worktree), group in groupby(sorted(claims, key=held_by), held_by):
        is_branch = bool(repository) and not worktree
        for names in _some(tuple(dict.fromkeys(claim.name for claim in group))):
            yield session_id, Held(repository, worktree, **{"refs" if is_branch else "paths": names})


def _some(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield as many names as an event holds, and again until there are none."""
    return (names[first : first + PATHS_MAX] for first in range(0, len(names), PATHS_MAX))


async def prepare_files(services: Services, command: ClaimFiles, _context: RequestContext) -> Wanted:
    """Find where the files are. Raises `Invalid`."""
    folder = await folder_for(services, command.session_id, command.paths, command.folder)
    targets = await found_files(services, command.paths, folder)
    project = await services.reach(partial(project_of, folder), folder) if folder else None
    targets += await same_files(services, command.session_id, targets)
    return _wanted(services, command, targets, None if project is None else redact_name(project))


async def prepare_branch(services: Services, command: ClaimBranch, _context: RequestContext) -> Wanted:
    """Find the repository. Raises `Invalid`."""
    return _wanted(
        services,
        command,
        await services.reach(partial(branches, (command.ref,), command.folder), command.folder),
        None,
    )


def _wanted(
    services: Services, command: ClaimFiles | ClaimBranch, targets: Sequence[Target], project: str | None
) -> Wanted:
    _check_reason(command)
    services[Liveness].hear(command.session_id)
    return Wanted(
        command.session_id, targets, services[Liveness].activity(), project, "asked", command.intent
    )


def _check_reason(command: ClaimFiles | ClaimBranch | ReleaseClaims) -> None:
    if command.force and not command.reason.strip():
        raise Invalid("force asks for a reason", hint="the holder is told why")


def claim(command: ClaimFiles | ClaimBranch, wanted: Wanted, state: DecisionState, now_us: int) -> Decision:
    """Claim all that is wanted, or raise `Refused`, naming who holds what."""
    ruling = ruled(wanted, state, now_us, command.reason.strip() if command.force else "")
    if ruling.held:
        told = [sentence(holder(one, state, wanted.activity, now_us), now_us) for one in ruling.held]
        raise Refused(
            "; ".join(told[:3]) + (f"; and {len(told) - 3} more" if told[3:] else ""),
            hint="ask again later, or use force with a reason",
        )
    beside = [holder(one, state, wanted.activity, now_us) for one in ruling.beside]
    return Decision(
        events=ruling.events, answer=Claimed(position=0 if ruling.events else ruling.position, beside=beside)
    )


def holder(one: ClaimState, state: DecisionState, activity: Activity, now_us: int) -> Holder:
    """Return what others are told of who holds something."""
    session = state[Hooks].session(one.session_id)
    return Holder(
        name=one.name,
        worktree=one.worktree,
        session_id=one.session_id,
        host=session.host if session else None,
        since=rfc3339(one.since_us),
        seen=rfc3339(activity.seen_us(one.session_id, one.seen_us, now_us)),
        intent=one.intent,
        position=one.position,
    )


def sentence(one: Holder, now_us: int) -> str:
    """Say who holds something, in one line."""
    host = f" ({name(one.host)})" if one.host else ""
    day = "" if one.since[:10] == rfc3339(now_us)[:10] else f"{one.since[:10]} "
    return (
        f"{name(one.name)} is held by session {name(one.session_id)}{host} since {day}{one.since[11:16]} UTC,"
        f" seen {one.seen[11:16]}"
    )


async def prepare_release(
    services: Services, command: ReleaseClaims, _context: RequestContext
) -> list[Target]:
    """Find what is meant. Raises `Invalid`."""
    _check_reason(command)
    if command.session_id is None and not (command.force and (command.paths or command.refs)):
        raise Invalid("whose claims?", hint="name the session_id, or with force the paths or refs")
    folder = await folder_for(services, command.session_id, command.paths, command.folder)
    found = await found_files(services, command.paths, folder)
    return found + (
        await services.reach(partial(branches, command.refs, command.folder), command.folder)
        if command.refs
        else []
    )


def release(
    command: ReleaseClaims, targets: Sequence[Target], state: DecisionState, _now_us: int
) -> Decision:
    """End claims; raises `NotFound` for what nobody holds, `Refused` for what another holds, unless by
    force.
    """
    reason = command.reason.strip() or "released"
    if not targets and command.session_id is not None:
        count = state[Claims].count(command.session_id)
        event = ClaimsReleased(how="released", reason=reason, is_all=True)
        return Decision(
            events=(NewEvent(event=event, session_id=command.session_id),) if count else (),
            answer=Released(count=count),
        )
    found = [one for target in targets for one in _on(target, state) if one.worktree == target.worktree]
    others = [one for one in found if one.session_id != command.session_id]
    if not found:
        raise NotFound("nobody holds that", hint="claim.list shows what is held")
    if others and not command.force:
        told = f"{name(others[0].name)} is held by session {name(others[0].session_id)}"
        raise Refused(told, hint="force with a reason lets go of it all the same")
    own = _let_go(
        [one for one in found if one.session_id == command.session_id], reason, by=None, how="released"
    )
    by = command.session_id or "a person"
    taken = _let_go(others, f"released by {by} because {reason}", by=by, how="released")
    return Decision(events=(*own, *taken), answer=Released(count=len(found)))


async def prepare_expiry(services: Services, _command: Command, _context: RequestContext) -> Activity:
    """Return what this process has heard of sessions."""
    return services[Liveness].activity()


def expire(command: ExpireClaims, activity: Activity, state: DecisionState, now_us: int) -> Decision:
    """End the claims of those who are gone; those who were heard of meanwhile keep theirs."""
    seen = {
        session_id: seen_us
        for session_id in command.session_ids
        if (seen_us := state[Claims].seen_us(session_id)) is not None
    }
    gone = [one for one in seen.items() if activity.status(*one, now_us) == "gone"]
    return Decision(events=tuple(_expired(*one, activity, now_us) for one in gone), answer=Acknowledged())


METHODS = (
    CommandMethod(
        params=ClaimFiles,
        answer=Claimed,
        prepare=prepare_files,
        decide=claim,
        verb=Verb(
            examples=("omegad claim files s-1 src/billing.py src/invoices.py",),
            says="claimed at position {position}",
        ),
    ),
    CommandMethod(
        params=ClaimBranch,
        answer=Claimed,
        prepare=prepare_branch,
        decide=claim,
        verb=Verb(examples=("omegad claim branch s-1 main .",), says="claimed {ref} at position {position}"),
    ),
    CommandMethod(
        params=ReleaseClaims,
        answer=Released,
        prepare=prepare_release,
        decide=release,
        verb=Verb(
            says="let go of {count}",
            examples=(
                "omegad claim release --session-id s-7 --path src/ledger.py",
                'omegad claim release --ref fix-ledger --force --reason "its owner is gone"',
            ),
        ),
        tool=AgentTool(
            "omega_coord release",
            by="coordinating.released",
            takes={"session_id": "session.itself", "folder": "session.folder"},
        ),
    ),
    CommandMethod(
        params=ExpireClaims, answer=Acknowledged, prepare=prepare_expiry, decide=expire, is_internal=True
    ),
)
