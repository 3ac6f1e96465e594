"""What a decision may rely on: inline projections, one file per noun, each with the small reader of its tables beside its fold.

Their rows are written in the transaction of the append; views lag and never guard anything.
To add one: write its file, its test, its name in `ALL`, and its reader in `DecisionState`.
"""

from omegad.coordination import claim_state as claims
from omegad.coordination import message_state as messages
from omegad.coordination import task_state as tasks
from omegad.coordination.claim_state import Claims, ClaimState
from omegad.coordination.message_state import Messages
from omegad.coordination.task_state import Tasks, TaskState
from omegad.knowledge import thesis_state as theses
from omegad.knowledge.thesis_state import Theses, ThesisState
from omegad.log.projection import Projection
from omegad.memory import state as memories
from omegad.memory.state import Memories, MemoryState
from omegad.person import reminder_state as reminders
from omegad.person import skill_state as skills
from omegad.person.reminder_state import Reminders
from omegad.person.skill_state import Skills
from omegad.session import hook_state as hooks
from omegad.session import tool_state as tool_calls
from omegad.session.hook_state import AgentSessionState, Hooks
from omegad.session.tool_state import ToolCalls, ToolCallState
from omegad.storage.driver import Connection

__all__ = ["ALL", "AgentSessionState", "ClaimState", "DecisionState", "MemoryState", "TaskState", "ThesisState", "ToolCallState"]

ALL: tuple[Projection, ...] = (memories, tool_calls, hooks, theses, reminders, skills, tasks, messages, claims)


class DecisionState:
    """What a decision is made on, including what earlier proposals of the same transaction wrote."""

    def __init__(self, connection: Connection) -> None:
        """Read through the connection whose transaction is open."""
        found = Memories(connection)
        self.memory = found.get
        self.holder = found.holder
        self.is_embedded = found.is_embedded
        self.expired_since = found.expired_since
        calls = ToolCalls(connection)
        self.tool_call = calls.get
        self.calls = calls.count
        self.calls_from = calls.kept_from
        hooks = Hooks(connection)
        self.has_come = hooks.has_come
        self.deliveries_from = hooks.kept_from
        self.session = hooks.session
        self.has_surfaced = hooks.has_surfaced
        theses = Theses(connection)
        self.thesis = theses.get
        self.thesis_of = theses.of_memory
        self.has_evidence = theses.has_evidence
        self.has_counted = theses.has_counted
        self.is_told = Reminders(connection).is_told
        self.untold_skills = Skills(connection).untold
        self.tasks = Tasks(connection)
        self.messages = Messages(connection)
        self.claims = Claims(connection)
