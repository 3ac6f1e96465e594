"""In which team this home is, and what of it the team is told."""

import socket
from contextlib import suppress
from functools import partial
from typing import Annotated

from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.memory.types import MemoryTypes
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.requests.verb import Verb
from omegad.runtime.errors import Invalid, NotFound, OmegadError, Refused
from omegad.sharing.events import ShareChosen, ShareJoined, ShareLeft, ShareWithdrawn
from omegad.sharing.outgoing import NEVER
from omegad.sharing.standing import PREVIEWED, go_count
from omegad.sharing.state import Sharing, Team, new_origin

Project = Annotated[Name, Meta(description="the project")]


class JoinTeam(Command, frozen=True, kw_only=True, tag="share.join"):
    """Share with a team from now on: what is chosen, and nothing before something is.

    `omegad share join` asks the server first, and keeps the password where the daemon finds it.
    """

    team: Annotated[Name, Meta(description="the team's name at the server")]
    person: Annotated[Name, Meta(description="who shares, as the team is shown")]
    machine: Annotated[Name | None, Meta(description="on which machine; this one's name where left out")] = (
        None
    )


class Joined(Acknowledged, frozen=True, kw_only=True):
    """As which origin this home shares."""

    origin: str


class LeaveTeam(Command, frozen=True, kw_only=True, tag="share.leave"):
    """Share with no team any more. What was received stays, and what was told stays with the team."""


class ChooseProject(Command, frozen=True, kw_only=True, tag="share.choose"):
    """Share the memories of a project with the team: those there are, and those to come.

    Checkpoints, summaries, hand-offs, reminders and completed tasks never are, nor what is on probation.
    """

    project: Project
    types: Annotated[
        tuple[Name, ...], Meta(max_length=32, description="these types alone; every one that can be shared")
    ] = ()
    on_probation: Annotated[
        bool, Meta(description="what others store there counts for less here until it proves itself")
    ] = False


class Chosen(Acknowledged, frozen=True, kw_only=True):
    """How many memories of the project there are that go; None where the views could not be read."""

    go_count: int | None = None


class WithdrawProject(Command, frozen=True, kw_only=True, tag="share.withdraw"):
    """Share nothing more of a project. What was shared stays with the team until it is deleted or erased."""

    project: Project


async def prepare_join(services: Services, command: JoinTeam, _context: RequestContext) -> tuple[str, str]:
    """Return the machine's name, and one for its origin."""
    return command.machine or socket.gethostname() or "a machine", new_origin(services)


def join(command: JoinTeam, named: tuple[str, str], state: DecisionState, _now_us: int) -> Decision:
    """Decide it. Raises `Refused` where the home is in a team."""
    if team := state[Sharing].team():
        raise Refused(
            f"this home shares with {team.team} as {team.person}", hint="`omegad share leave` ends that"
        )
    machine, origin = named
    joined = ShareJoined(team=command.team, origin=origin, person=command.person, machine=machine)
    return Decision(events=(NewEvent(event=joined),), answer=Joined(origin=joined.origin))


def leave(_command: LeaveTeam, state: DecisionState, _now_us: int) -> Decision:
    """Decide it. Raises `NotFound` where there is no team."""
    team = _team(state)
    return Decision(events=(NewEvent(event=ShareLeft(team=team.team)),), answer=Acknowledged())


async def prepare_choice(services: Services, command: ChooseProject, context: RequestContext) -> int | None:
    """Return how many memories go, None where views cannot be read. Raises `Invalid` for types that there are
    not, or that are never shared.
    """
    for name in command.types:
        services[MemoryTypes].check(name)
        if name in NEVER:
            raise Invalid(
                f"memories of type {name} are never shared", hint=f"nor are {', '.join(sorted(NEVER))}"
            )
    with suppress(OmegadError):
        count = partial(go_count, project=command.project, types=command.types)
        return await services.look(
            lambda connection, _: count(connection),
            at_least=max(context.written, context.acknowledged),
            names=PREVIEWED,
        )
    return None


def choose(command: ChooseProject, count: int | None, state: DecisionState, _now_us: int) -> Decision:
    """Decide it. Raises `NotFound` where there is no team."""
    _team(state)
    chosen = ShareChosen(
        project=command.project, types=tuple(sorted(set(command.types))), on_probation=command.on_probation
    )
    return Decision(events=(NewEvent(event=chosen, project=command.project),), answer=Chosen(go_count=count))


def withdraw(command: WithdrawProject, state: DecisionState, _now_us: int) -> Decision:
    """Decide it. Raises `NotFound` where the project is not shared."""
    _team(state)
    if command.project not in state[Sharing].choices():
        raise NotFound(f"{command.project} is not shared", hint="`omegad share status` shows what is")
    gone = NewEvent(event=ShareWithdrawn(project=command.project), project=command.project)
    return Decision(events=(gone,), answer=Acknowledged())


def _team(state: DecisionState) -> Team:
    team = state[Sharing].team()
    if team is None:
        raise NotFound("this home shares with no team", hint="`omegad share join` joins one")
    return team


METHODS = (
    CommandMethod(params=JoinTeam, answer=Joined, prepare=prepare_join, decide=join, verb=None),
    CommandMethod(params=LeaveTeam, answer=Acknowledged, decide=leave, verb=None),
    CommandMethod(
        params=ChooseProject,
        answer=Chosen,
        prepare=prepare_choice,
        decide=choose,
        verb=Verb(by="sharing.choose", examples=("omegad share choose shop",)),
    ),
    CommandMethod(
        params=WithdrawProject,
        answer=Acknowledged,
        decide=withdraw,
        verb=Verb(says="nothing more of {project} is shared", examples=("omegad share withdraw shop",)),
    ),
)
