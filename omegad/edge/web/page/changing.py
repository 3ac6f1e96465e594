"""What the page may change, and how each change is taken back."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from omegad.edge.web.page.asked import Ask, Query
from omegad.runtime.errors import Invalid, Refused
from omegad.runtime.json_types import Json

BODY_BYTES_MAX = 600 * 1024
DONE = {
    "memory.delete": "dropped",
    "memory.restore": "restored",
    "memory.edit": "edited",
    "memory.rate": "rated",
    "memory.promote": "kept",
    "memory.demote": "on probation again",
    "memory.supersede": "merged",
    "memory.settle": "settled",
    "memory.link": "linked",
    "memory.unlink": "unlinked",
    "lint.dismiss": "set aside",
}
"""The methods that may change something, and what is said of each."""

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
    if change.method not in DONE:
        raise Refused(f"the page does not change anything by {change.method[:80]}", hint="use the command line")
    ask: Ask = request.app.state.ask
    back = await taken_back(ask, change.method, change.params)
    answer = await ask(change.method, **change.params)
    query = Query(change.method, change.params)
    told = {"said": DONE[change.method], "command": query.command, "answer": answer, "undo": back}
    return JSONResponse(told)


async def taken_back(ask: Ask, method: str, params: Mapping[str, Any]) -> Sequence[Mapping[str, object]]:
    """Return the changes that take a change back, read off how things stand before it; none where nothing
    does.
    """
    memory_id = params.get("memory_id")
    of_one = {"memory_id": memory_id, "reason": "undone"}
    if method in ("lint.dismiss", "memory.unlink") or not isinstance(memory_id, str):
        return []
    before: Json = await ask("memory.get", memory_id=memory_id)
    match method:
        case "memory.delete" if before["status"] in ("active", "probation"):
            return [_change("memory.restore", of_one)]
        case "memory.supersede":
            return [_change("memory.restore", of_one)]
        case "memory.restore" if before["status"] == "deleted":
            return [_change("memory.delete", of_one)]
        case "memory.restore" if before["status"] == "superseded":
            return [_change("memory.supersede", of_one | {"superseded_by": before["superseded_by"]})]
        case "memory.edit":
            return [_change("memory.edit", of_one | {"content": before["content"]})]
        case "memory.rate":
            ratings = OPPOSITE.get(str(params.get("rating")), ())
            undone = [_change("memory.rate", of_one | {"rating": rating}) for rating in ratings]
            return undone + ([_change("memory.demote", of_one)] if before["status"] == "probation" else [])
        case "memory.promote" if before["status"] == "probation":
            return [_change("memory.demote", of_one)]
        case "memory.demote":
            return [_change("memory.promote", of_one)]
        case "memory.settle" if params.get("verdict") == "supersedes":
            return [_change("memory.restore", {"memory_id": params.get("target_id"), "reason": "undone"})]
        case "memory.link":
            return [_unlinked(before, params)]
    return []


def _unlinked(before: Json, params: Mapping[str, Any]) -> Mapping[str, object]:
    """Return what makes an edge as it was."""
    ends = {name: params.get(name) for name in ("memory_id", "target_id", "edge_type")}
    for edge in before["edges"]:
        if edge["direction"] == "out" and (edge["memory_id"], edge["edge_type"]) == (ends["target_id"], ends["edge_type"]):
            return _change("memory.link", ends | {"weight": edge["weight"]})
    return _change("memory.unlink", ends)


def _change(method: str, params: Mapping[str, object]) -> Mapping[str, object]:
    return {"method": method, "params": {name: value for name, value in params.items() if name != "reason" or method != "memory.link"}}
