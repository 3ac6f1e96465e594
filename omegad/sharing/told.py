"""What this home writes down of its telling: how far it has come, and under which name."""

import msgspec

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent, Position
from omegad.requests.command import Acknowledged
from omegad.runtime.errors import Refused
from omegad.sharing.events import FactsTold, ShareRenewed
from omegad.sharing.state import Sharing, Team


class NoteTold(msgspec.Struct, frozen=True, kw_only=True):
    """It is to be noted that the team was told all there was up to a position."""

    origin: str
    seq: int
    told_to: Position
    memories: tuple[str, ...] = ()


class RenewOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The home is to go on under another name, since it was copied or restored; `seq` facts of the old name
    are its own, the last of them of the event at `told_to`.
    """

    before: str
    origin: str
    seq: int
    told_to: Position
    is_lost: bool = False


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
        is_lost=command.is_lost,
    )
    return Decision(events=(NewEvent(event=renewed),), answer=Acknowledged())


def _known(state: DecisionState, origin: str) -> Team:
    team = state[Sharing].team()
    if team is None or team.origin != origin:
        raise Refused(f"this home does not share as {origin} any more")
    return team
