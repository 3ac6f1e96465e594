"""Now: what is well and what is not, what the agents did last and were shown, and what happens."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from omegad.edge.cli.printing import duration
from omegad.edge.web.page.asked import Asking, Query
from omegad.runtime.json_types import Json
from omegad.runtime.times import rfc3339

EVENTS_MAX = 40
TEXTS = ("content", "statement", "prompt", "title", "text", "message", "tool_name", "subject", "reason", "method")
"""Fields of an event that say what it is about, the most telling first."""
OF_MEMORY = "mem-"
READS = "memory.read@"
OWN = "omegad-web"
"""What the page is called at the daemon."""


class Check(NamedTuple):
    """Something that is well or not, in words, and by which query that is known."""

    is_well: bool
    text: str
    query: Query


async def page(ask: Asking) -> Mapping[str, object]:
    """Show how things are."""
    status, today, sessions = await asyncio.gather(
        ask("system.status"), ask("upkeep.today"), ask("session.list", last_of_each=True, limit=12)
    )
    head = status["log"]["head"]
    log = await ask("log.read", after=max(0, head - 3 * EVENTS_MAX), limit=3 * EVENTS_MAX)
    heard = [told(event) for event in log["events"] if is_heard(event)]
    checks = [*checked(status), *stopped(today)]
    return {
        "status": status,
        "today": today,
        "sessions": sessions["sessions"],
        "events": heard[-EVENTS_MAX:][::-1],
        "head": log["head"],
        "wrong": [one for one in checks if not one.is_well],
        "well": [one for one in checks if one.is_well],
    }


def checked(status: Json) -> Iterator[Check]:
    """Yield what the status says, in sentences."""
    asked = Query("system.status", {})
    for trouble in status["degraded"]:
        yield Check(is_well=False, text=trouble, query=asked)
    if status["paused"]:
        yield Check(is_well=False, text=f"nothing is kept of what hosts tell: {status['paused']}", query=asked)
    views = status["views"]
    failed = [name for name, one in views.items() if one["state"] == "failed"]
    behind = max((one["lag"] for one in views.values()), default=0)
    if not failed:
        lag = "none is behind" if not behind else f"the slowest is {behind:,} events behind"
        yield Check(is_well=True, text=f"{len(views)} views follow the log; {lag}", query=asked)
    check = status["self_check"]
    if check is None:
        yield Check(is_well=True, text="the log has not been proved yet; that happens by itself", query=asked)
    elif not check["problems"]:
        yield Check(is_well=True, text=f"log and views were proved {rfc3339(check['at_us'])[:10]}", query=asked)
    if status["embedding"]["state"] in ("ready", "unloaded"):
        vectors = status["embedding"]["index_vectors"]
        held = f", {vectors:,} vectors at hand" if vectors else ", loaded when it is needed"
        yield Check(is_well=True, text=f"search by meaning works ({status['embedding']['model']}{held})", query=asked)
    elif not any("model" in one or "embedd" in one for one in status["degraded"]):
        yield Check(is_well=False, text="search goes by words alone: no model is in use", query=asked)
    if not status["spool"]["waiting"]:
        yield Check(is_well=True, text="no hook waits to be taken in", query=asked)
    idle = [one for one in status["reactions"].values() if one["trouble"]]
    if not idle:
        text = f"what follows from events is done: {len(status['reactions'])} reactions, none in trouble"
        yield Check(is_well=True, text=text, query=asked)
    yield Check(is_well=True, text=f"the service has run for {duration(status['uptime_s'])}", query=asked)


def stopped(today: Json) -> Iterator[Check]:
    """Yield the hosts whose hooks stopped arriving."""
    for one in today["waiting"]:
        if one["command"] == "omegad doctor":
            yield Check(is_well=False, text=one["text"], query=Query("upkeep.today", {}))


def is_heard(event: Json) -> bool:
    """Say whether the list shows an event; what the page makes by looking is left out."""
    return not event["tag"].startswith(READS) and (event["client"] != OWN or not event["tag"].startswith("tool.called@"))


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
