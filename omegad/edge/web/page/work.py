"""Work: which sessions are open and on what, who holds which files, tasks, and messages."""

import asyncio
from collections.abc import Mapping

from omegad.edge.web.page.asked import Asking

TASKS_MAX = 100
STATUSES = ("claimed", "open", "completed", "failed", "cancelled")


async def page(ask: Asking) -> Mapping[str, object]:
    """Show who works on what."""
    project = ask.text("project")
    who, claims, tasks, messages = await asyncio.gather(
        ask("session.who", project=project),
        ask("claim.list", project=project),
        ask("task.list", project=project, statuses=list(STATUSES), limit=TASKS_MAX),
        ask("message.list", project=project, limit=50),
    )
    return {
        "who": who,
        "claims": claims["claims"],
        "tasks": [
            (status, [one for one in tasks["tasks"] if one["status"] == status]) for status in STATUSES
        ],
        "messages": messages["messages"],
    }
