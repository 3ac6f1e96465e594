"""What this home writes down of its telling: how far it has come, and under which name."""

from typing import Annotated

from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent, Position
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod
from omegad.runtime.errors import Refused
from omegad.sharing.events import FactsTold, ShareRenewed
from omegad.sharing.state import Sharing, Team


class NoteTold(Command, frozen=True, kw_only=True, tag="share.note_told"):
    """Note that the team was told all there was up to a position."""

    origin: Name
    seq: Annotated[int, Meta(ge=0)]
    told_to: Position
    memories: tuple[Name, ...] = ()


class RenewOrigin(Command, frozen=True, kw_only=True, tag="share.renew"):
    """Go on under another name, since this home was copied or restored; `seq` facts of the old name are its
    own, the last of them of the event at `told_to`.
    """

    before: Name
    origin: Name
    seq: Annotated[int, Meta(ge=0)]
    told_to: Position


def note_told(command: NoteTold, state: DecisionState, _now_us: int) -> Decision:
    """Decide it. Raises `Refused` where this home is another by now."""
    _known(state, command.origin)
    told = FactsTold(
        origin=command.origin, seq=command.seq, told_to=command.told_to, memories=command.memories
    )
    return Decision(events=(NewEvent(event=told),), answer=Acknowledged())


def renew(command: RenewOrigin, state: DecisionState, _now_us: int) -> Decision:
    """Decide it. Raises `Refused` where this home is another by now."""
    team = _known(state, command.before)
    renewed = ShareRenewed(
        team=team.team,
        origin=command.origin,
        before=command.before,
        seq=command.seq,
        told_to=command.told_to,
    )
    return Decision(events=(NewEvent(event=renewed),), answer=Acknowledged())


def _known(state: DecisionState, origin: str) -> Team:
    team = state[Sharing].team()
    if team is None or team.origin != origin:
        raise Refused(f"this home does not share as {origin} any more")
    return team


METHODS = (
    CommandMethod(params=NoteTold, answer=Acknowledged, decide=note_told, is_internal=True),
    CommandMethod(params=RenewOrigin, answer=Acknowledged, decide=renew, is_internal=True),
)
