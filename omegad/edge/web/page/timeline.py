"""Timeline: what was remembered, day by day, folded by project and session; and the story of one session."""

import asyncio
from collections.abc import Mapping
from itertools import groupby

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
        {"day": one["day"], "count": len(one["memories"]), "projects": by_project(one["memories"])}
        for one in told["days"]
    ]
    return {"days": folded, "for_days": days, "truncated": told["truncated"], "sessions": sessions}


def by_project(memories: list[Json]) -> list[Mapping[str, object]]:
    """Fold a day's memories by project, and these by session."""

    def project(one: Json) -> str:
        return one["project"] or ""

    def session_of(one: Json) -> str:
        return one["session_id"] or ""

    found = list[Mapping[str, object]]()
    for name, group in groupby(sorted(memories, key=project), key=project):
        of_project = sorted(group, key=session_of)
        sessions = [
            {"session_id": session_id, "memories": list(of_session)}
            for session_id, of_session in groupby(of_project, key=session_of)
        ]
        found.append({"project": name, "count": len(of_project), "sessions": sessions})
    return found


async def session(ask: Asking) -> Mapping[str, object]:
    """Show what happened in a session."""
    after = int(said) if (said := ask.given.get("after", "")).isdigit() and len(said) < 19 else 0  # noqa: PLR2004
    told = await ask("session.get", session_id=ask.given["id"], after=after, limit=STEPS_MAX)
    summary = next(
        (
            one
            for one in told["steps"][::-1]
            if one["what"] == "stored" and one["status"] == "session_summary"
        ),
        None,
    )
    return {"session": told, "summary": summary}
