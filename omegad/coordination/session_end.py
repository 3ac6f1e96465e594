"""Commands on agents' sessions."""

from omegad.coordination.claim_state import Claims
from omegad.coordination.task_state import Tasks
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.requests.command import Acknowledged, Command, Name, Reason
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.session.events import SessionEnded
from omegad.session.hook_state import Hooks
from omegad.session.liveness import Activity, Liveness
from omegad.session.tool_state import ToolCalls

IDLE_US = 2 * 3_600_000_000
"""After so long without a sign of life a session is over."""
UNKNOWN = "unknown"


class EndSession(Command, frozen=True, kw_only=True, tag="session.end"):
    """End a session that has not said itself that it is over."""

    session_id: Name
    reason: Reason


def is_open(session_id: str, state: DecisionState) -> bool:
    """Say whether there is something to end: an open session, or what one has done or holds whose
    beginning no hook told of.
    """
    known = state[Hooks].session(session_id)
    is_at_work = known.is_open if known is not None else state[ToolCalls].count(session_id) > 0
    return (
        is_at_work
        or state[Claims].count(session_id) > 0
        or bool(state[Tasks].claimed_by(session_id, before=None))
    )


async def prepare(services: Services, _command: EndSession, _context: RequestContext) -> Activity:
    """Return what this process has heard of sessions."""
    return services[Liveness].activity()


def end(command: EndSession, activity: Activity, state: DecisionState, now_us: int) -> Decision:
    """Decide the end of a session; one that is over already, or was heard of meanwhile, is left alone."""
    if not is_open(command.session_id, state) or now_us - activity.seen.get(command.session_id, 0) < IDLE_US:
        return Decision(answer=Acknowledged())
    known = state[Hooks].session(command.session_id)
    host, project, after = (known.host, known.project, known.ended_at) if known else (UNKNOWN, None, 0)
    event = SessionEnded(host=host, reason=command.reason, after=after, delivery=None)
    return Decision(
        events=(NewEvent(event=event, session_id=command.session_id, project=project),), answer=Acknowledged()
    )


METHODS = (
    CommandMethod(params=EndSession, answer=Acknowledged, prepare=prepare, decide=end, is_internal=True),
)
