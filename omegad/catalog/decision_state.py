"""What a decision may rely on: inline projections, one for each noun, whose rows are written in the transaction of the append.

Views lag and never guard anything.
"""

from omegad.coordination import claim_state, message_state, task_state
from omegad.knowledge import thesis_state
from omegad.log.projection import Projection
from omegad.memory import state as memory_state
from omegad.person import reminder_state, skill_state
from omegad.session import hook_state, tool_state

ALL: tuple[Projection, ...] = (
    memory_state,
    tool_state,
    hook_state,
    thesis_state,
    reminder_state,
    skill_state,
    task_state,
    message_state,
    claim_state,
)
