"""Before an edit of a session that has no task, in a project that has some which are open: it is told, asked
about or stopped, as is configured.
"""

from omegad.agents.hooks.prepared import Notice, PreparedHook
from omegad.coordination.events import TaskMissed
from omegad.coordination.task_state import Tasks
from omegad.log.decision import DecisionState
from omegad.text.quoting import name


def guarded(prepared: PreparedHook, state: DecisionState, _now_us: int) -> Notice:
    """Tell a session of the tasks of its project; where that is all, once."""
    hook, mode, tasks = prepared.hook, prepared.tasks, state[Tasks]
    if mode == "off" or hook.kind != "before_tool" or not hook.files or prepared.project is None:
        return Notice()
    if mode == "warn" and tasks.has_missed(hook.session_id):
        return Notice()
    task_id = tasks.open_of(prepared.project)
    if task_id is None or tasks.claimed_by(hook.session_id, None):
        return Notice()
    line = (
        f"omegad: {name(prepared.project)} has open tasks, and this session has none. Where this edit is part"
        ' of one, claim it first (omega_coord, action "task_list", then "task_claim"); the next is'
        f" {task_id}."
    )
    return Notice([line], [TaskMissed(task_id=task_id)] if mode == "warn" else [], mode)
