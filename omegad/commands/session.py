"""Commands on agents' sessions."""

from omegad.commands.command import Acknowledged, Command, Name, Reason
from omegad.events.session import SessionEnded
from omegad.log.decision import Decision
from omegad.log.event import NewEvent
from omegad.method import CommandMethod
from omegad.state import DecisionState


class EndSession(Command, frozen=True, kw_only=True, tag="session.end"):
    """End a session that has not said itself that it is over."""

    session_id: Name
    reason: Reason


def end(command: EndSession, state: DecisionState, now_us: int) -> Decision:
    """Decide the end of a session; one that is over already, or that no hook told of, is left alone."""
    del now_us
    known = state.session(command.session_id)
    if known is None or not known.is_open:
        return Decision(answer=Acknowledged())
    event = SessionEnded(host=known.host, reason=command.reason, after=known.ended_at, delivery=None)
    return Decision(events=(NewEvent(event=event, session_id=command.session_id, project=known.project),), answer=Acknowledged())


METHODS = (CommandMethod(params=EndSession, answer=Acknowledged, decide=end, is_internal=True),)
