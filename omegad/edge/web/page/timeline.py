"""Timeline: what was remembered, day by day, folded by project and session; and the story of one session."""

import asyncio
from collections.abc import Mapping

from omegad.edge.web.page.asked import Asking
from omegad.runtime.json_types import Json

DAYS, DAYS_MAX = 7, 366
MEMORIES_MAX = 500
SESSIONS_MAX = 40
STEPS_MAX = 300


async def page(ask: Asking) -> Mapping[str, object]:
    """Show the days."""
    days, project, until = ask.number("days", DAYS, DAYS_MAX), ask.text("project"), ask.text("until")
    told, sessions = await asyncio.gather(
        ask("memory.timeline", days=days, project=project, until=until, limit=MEMORIES_MAX),
        ask("session.list", project=project, limit=SESSIONS_MAX),
    )
    folded = [
        {**one, "memories": [{**each, **_named(each)} for each in one["memories"]]} for one in told["days"]
    ]
    return {"days": folded, "for_days": days, "truncated": told["truncated"], "sessions": sessions}


def _named(memory: Json) -> dict[str, str]:
    """Return by what a memory is folded."""
    return {name: memory[name] or "" for name in ("project", "session_id")}


async def session(ask: Asking) -> Mapping[str, object]:
    """Show what happened in a session."""
    after = int(said) if (said := ask.given.get("after", "")).isdigit() and len(said) < 19 else 0  # noqa: PLR2004
    told, summaries = await asyncio.gather(
        ask("session.get", session_id=ask.given["id"], after=after, limit=STEPS_MAX),
        ask("memory.list", session_id=ask.given["id"], event_types=["session_summary"], limit=1),
    )
    return {"session": told, "summary": next(iter(summaries["memories"]), None)}
