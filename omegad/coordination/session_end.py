"""The end of a session that has not said itself that it is over: a host that is killed says nothing, so one
of which nothing has been heard for hours is over.
"""

from collections.abc import Iterator

from omegad.coordination.claim import prepare_expiry
from omegad.coordination.claim_state import Claims
from omegad.coordination.task_state import Tasks
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.reactions.contract import Reader
from omegad.requests.command import Acknowledged, Command, Name, Reason
from omegad.requests.method import CommandMethod
from omegad.session.events import SessionEnded
from omegad.session.hook_state import Hooks
from omegad.session.liveness import Activity
from omegad.session.tool_state import ToolCalls

IDLE_US = 2 * 3_600_000_000
"""After so long without a sign of life a session is over."""


NAME = "idle_sessions"
VERSION = 1
EVERY = 300
VIEWS = ("conversations",)


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


def end(command: EndSession, activity: Activity, state: DecisionState, now_us: int) -> Decision:
    """Decide the end of a session; one that is over already, or was heard of meanwhile, is left alone."""
    if not is_open(command.session_id, state) or now_us - activity.seen.get(command.session_id, 0) < IDLE_US:
        return Decision(answer=Acknowledged())
    known = state[Hooks].session(command.session_id)
    host, project, after = (known.host, known.project, known.ended_at) if known else ("unknown", None, 0)
    event = SessionEnded(host=host, reason=command.reason, after=after, delivery=None)
    return Decision(
        events=(NewEvent(event=event, session_id=command.session_id, project=project),), answer=Acknowledged()
    )


def due(_slot: int, reader: Reader) -> Iterator[EndSession]:
    """Name the open sessions in which nothing has happened for as long."""
    sql = "SELECT session_id FROM agent_sessions WHERE ended_at IS NULL AND last_us < ? ORDER BY session_id"
    for (session_id,) in reader.connection.execute(sql, (reader.now_us - IDLE_US,)).fetchall():
        yield EndSession(session_id=session_id, reason="idle")


METHODS = (
    CommandMethod(
        params=EndSession, answer=Acknowledged, prepare=prepare_expiry, decide=end, is_internal=True
    ),
)
