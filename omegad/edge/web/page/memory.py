"""Memory: what one says and said, its life, what is around it, and who was shown it; and the list of them."""

import asyncio
from collections.abc import Mapping, Sequence

import anyio.to_thread

from omegad.edge.web.page import drawing
from omegad.edge.web.page.asked import Asking
from omegad.edge.web.page.now import said
from omegad.runtime.json_types import Json

DRAWN = 60
DRAWN_MAX = 150
PAGE = 50
UNTOLD = frozenset({"type", "content_key", "text_hashes", "memory_id", "content", "embedder_id"})
WORDINGS = ("memory.stored", "memory.edited", "memory.evolved", "memory.upserted")


async def page(ask: Asking) -> Mapping[str, object]:
    """Show one memory, or the newest where none is named."""
    if not (memory_id := ask.given["id"]):
        kind = ask.text("event_types")
        listed = await ask(
            "memory.list",
            limit=PAGE,
            project=ask.text("project"),
            person=ask.text("person"),
            event_types=[kind] if kind else None,
            cursor=ask.text("cursor"),
        )
        return {"memory": None, "listed": listed}
    drawn = ask.number("drawn", DRAWN, DRAWN_MAX)
    memory, life, graph, receipts = await asyncio.gather(
        ask("memory.get", memory_id=memory_id),
        ask("memory.history", memory_id=memory_id, limit=1_000),
        ask("memory.traverse", memory_id=memory_id, max_hops=2, limit=500),
        ask("receipts.list", memory_id=memory_id, limit=50),
    )
    picture = await anyio.to_thread.run_sync(drawing.neighbourhood, graph["nodes"], graph["edges"], drawn)
    texts = {node["memory_id"]: node["content"] for node in graph["nodes"]}
    return {
        "memory": memory,
        "life": [lived(event, memory_id) for event in life["events"]],
        "wordings": wordings(life["events"], memory),
        "graph": graph,
        "texts": texts,
        "picture": picture,
        "drawn": drawn,
        "receipts": receipts,
    }


def lived(event: Json, memory_id: str) -> Mapping[str, object]:
    """Return an event of a life: when, what, by whom, and what it says beside."""
    data = event["data"] if isinstance(event["data"], dict) else {}
    other = data.get("memory_id")
    told = [
        (name.replace("_", " "), value)
        for name, value in data.items()
        if name not in UNTOLD
        and value not in (None, "", [], {}, False)
        and not isinstance(value, list | dict)
    ]
    return {
        "position": event["position"],
        "at": event["occurred_at"],
        "what": event["tag"].partition("@")[0].replace("memory.", "").replace("_", " "),
        "by": event["session_id"] or event["client"],
        "person": event["person"],
        "machine": event["machine"],
        "session_id": event["session_id"],
        "told": told,
        "of_other": other if other != memory_id and isinstance(other, str) else None,
        "is_erased": event["data"] is None,
    }


def wordings(events: Sequence[Json], memory: Json) -> Sequence[Mapping[str, object]]:
    """Return the wordings that a memory had before the one it has, the latest first."""
    found = []
    for event in events:
        data = event["data"]
        if event["tag"].partition("@")[0] in WORDINGS and isinstance(data, dict):
            text = data.get("content")
            if data.get("memory_id") == memory["memory_id"] and isinstance(text, str) and said(text):
                found.append({"at": event["occurred_at"], "text": text, "position": event["position"]})
    return [one for one in found if one["text"] != memory["content"]][::-1]
