"""Now: what is well and what is not, what the agents did last and were shown, and what happens."""

import asyncio
from collections.abc import Mapping

from omegad.edge.cli.printing import duration
from omegad.edge.web.page.asked import Asking
from omegad.runtime.json_types import Json
from omegad.runtime.times import rfc3339

EVENTS_MAX = 40
TEXTS = (
    *("content", "statement", "prompt", "title", "text", "message", "tool_name", "subject", "reason"),
    "method",
)
"""Fields of an event that say what it is about, the most telling first."""
OF_MEMORY = "mem-"
STOPPED = "omegad doctor"
"""What is said to do about hooks that stopped arriving."""
READS = "memory.read@"
OWN = "omegad-web"
"""What the page is called at the daemon."""


async def page(ask: Asking) -> Mapping[str, object]:
    """Show how things are."""
    status, sessions = await asyncio.gather(
        ask("system.status"), ask("session.list", last_of_each=True, limit=12)
    )
    head = status["log"]["head"]
    log = await ask("log.read", after=max(0, head - 3 * EVENTS_MAX), limit=3 * EVENTS_MAX)
    heard = [told(event) for event in log["events"] if is_heard(event)]
    wrong, well = checked(status)
    return {
        "status": status,
        "sessions": sessions["sessions"],
        "events": heard[-EVENTS_MAX:][::-1],
        "head": log["head"],
        "wrong": wrong,
        "well": well,
    }


async def today(ask: Asking) -> Mapping[str, object]:
    """Show what happened by itself and what waits, which takes longer than the rest where there is much."""
    told = await ask("upkeep.today")
    return {"today": told, "stopped": [one["text"] for one in told["waiting"] if one["command"] == STOPPED]}


def checked(status: Json) -> tuple[list[str], list[str]]:
    """Return what is not well, and what is, in words."""
    embedding, check, views = status["embedding"], status["self_check"], status["views"].values()
    wrong = list(status["degraded"])
    if status["paused"]:
        wrong.append(f"nothing is kept of what hosts tell: {status['paused']}")
    behind = max((one["lag"] for one in views), default=0)
    lag = f"the slowest is {behind:,} events behind" if behind else "none is behind"
    proved = (
        f"were proved {rfc3339(check['at_us'])[:10]}"
        if check
        else "are yet to be proved, which happens by itself"
    )
    well = [
        f"{len(views)} views follow the log; {lag}",
        f"log and views {proved}",
        f"{len(status['reactions'])} reactions do what follows from events",
        f"the service has run for {duration(status['uptime_s'])}",
    ]
    if not status["spool"]["waiting"]:
        well.append("no hook waits to be taken in")
    if embedding["state"] in ("ready", "unloaded"):
        vectors = embedding["index_vectors"]
        held = (
            f"{vectors:,} vector{'' if vectors == 1 else 's'} at hand"
            if vectors
            else "loaded when it is needed"
        )
        well.append(f"search by meaning works ({embedding['model']}, {held})")
    elif not any("model" in one or "embed" in one for one in wrong):
        wrong.append("search goes by words alone: no model is in use")
    return wrong, well


def is_heard(event: Json) -> bool:
    """Say whether the list shows an event; what the page makes by looking is left out."""
    return not event["tag"].startswith(READS) and (
        event["client"] != OWN or not event["tag"].startswith("tool.called@")
    )


def told(event: Json) -> Mapping[str, object]:
    """Return an event as the list shows it: when, what, about what, and where that leads."""
    data = event["data"] if isinstance(event["data"], dict) else {}
    noun, _, what = event["tag"].partition("@")[0].partition(".")
    text = next((one for name in TEXTS if (one := said(data.get(name)))), "")
    memory_id = data.get("memory_id")
    session_id = event["session_id"]
    link = None
    if isinstance(memory_id, str) and memory_id.startswith(OF_MEMORY):
        link = f"/page/memory/{memory_id}"
    elif isinstance(data.get("thesis_id"), str):
        link = f"/page/thesis/{data['thesis_id']}"
    return {
        "position": event["position"],
        "at": event["recorded_at"],
        "what": f"{noun} {what.replace('_', ' ')}",
        "text": text if event["data"] is not None else "(erased)",
        "session_id": session_id,
        "project": event["project"],
        "link": link,
    }


def said(value: object) -> str:
    """Return what a field of an event says, "" where it is no text."""
    if isinstance(value, dict):
        value = value.get("head")
    return value[:400] if isinstance(value, str) else ""
