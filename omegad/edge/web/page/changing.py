"""What the page may change, and how each change is taken back."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from omegad.edge.web.page.asked import Ask, Query
from omegad.runtime.errors import Invalid, Refused
from omegad.runtime.json_types import Json

BODY_BYTES_MAX = 600 * 1024
CHANGES = frozenset(
    {
        *("memory.delete", "memory.restore", "memory.edit", "memory.rate", "memory.promote", "memory.demote"),
        *("memory.supersede", "memory.settle", "memory.link", "memory.unlink", "lint.dismiss"),
    }
)
"""The methods that may change something."""
FOUND = ("active", "probation")
OPPOSITE = {"helpful": ("unhelpful",), "unhelpful": ("helpful",), "outdated": ("helpful", "helpful")}
"""Ratings that together take one back."""


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """A method with its parameters."""

    method: str
    params: dict[str, Any]


async def do(request: Request) -> Response:
    """Make a change, and return what takes it back, as the changes to make then. Raises what the daemon
    raises, and `Refused` for what the page does not change.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES_MAX:
            raise Invalid(f"the body may have {BODY_BYTES_MAX:,} bytes")
    try:
        change = msgspec.json.decode(bytes(body), type=Change)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Invalid(f"the body is no change: {error}", hint='send {"method": …, "params": {…}}') from error
    if change.method not in CHANGES:
        raise Refused(
            f"the page does not change anything by {change.method[:80]}", hint="use the command line"
        )
    ask: Ask = request.app.state.ask
    back = await taken_back(ask, change.method, change.params)
    answer = await ask(change.method, **change.params)
    command = Query(change.method, change.params).command
    return JSONResponse({"command": command, "answer": answer, "undo": back})


async def taken_back(ask: Ask, method: str, params: Mapping[str, Any]) -> list[Json]:
    """Return the changes that take a change back, read off how things stand before it; none where nothing
    does.
    """
    memory_id = params.get("memory_id")
    if method == "lint.dismiss" or not isinstance(memory_id, str):
        return []
    before: Json = await ask("memory.get", memory_id=memory_id)
    is_on_probation, is_hidden = before["status"] == "probation", before["status"] not in FOUND
    if is_hidden and method != "memory.restore":
        return []
    ends = {name: params.get(name) for name in ("target_id", "edge_type")}
    edge = {**ends, "weight": _weight(before, ends)}
    replaced = {"superseded_by": before["superseded_by"]}
    back: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "memory.delete": [("memory.restore", {})],
        "memory.supersede": [("memory.restore", {})],
        "memory.restore": [
            ("memory.supersede", replaced) if replaced["superseded_by"] else ("memory.delete", {})
        ],
        "memory.edit": [("memory.edit", {"content": before["content"]})],
        "memory.rate": [
            ("memory.rate", {"rating": one}) for one in OPPOSITE.get(str(params.get("rating")), ())
        ],
        "memory.demote": [("memory.promote", {})],
        "memory.link": [("memory.link", edge) if edge["weight"] is not None else ("memory.unlink", ends)],
        "memory.settle": [("memory.restore", {"memory_id": ends["target_id"]})],
    }
    found = back.get(method, []) if params.get("verdict") in (None, "supersedes") else []
    if is_on_probation and method in ("memory.rate", "memory.promote"):
        found = [*found, ("memory.demote", {})]
    return [{"method": name, "params": {"memory_id": memory_id, **more}} for name, more in found]


def _weight(memory: Json, ends: Mapping[str, object]) -> float | None:
    """Return the weight of an edge that a memory has, None where it has none."""
    known = ((one["memory_id"], one["edge_type"], one["direction"], one["weight"]) for one in memory["edges"])
    wanted = (ends["target_id"], ends["edge_type"], "out")
    return next((weight for *edge, weight in known if tuple(edge) == wanted), None)
