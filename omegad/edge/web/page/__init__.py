"""The page: where people see what their agents remember. A static shell without data, whose one script
fetches fragments of HTML with the token that it was opened with; each is there as JSON, too.

`/` and `/page/…` are the shell at every address that a page has, `/static/…` its script and style. What says
anything is at `/data/…`, and asks for the token.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from omegad.edge.web.errors import STATUSES
from omegad.edge.web.page import changing, memory, now, review, search, showing, theses, timeline, work
from omegad.edge.web.page.asked import Asking, Query
from omegad.runtime.errors import Invalid, NotFound, OmegadError
from omegad.runtime.json_types import Json

PUBLIC = frozenset({"/", "/page/", "/static/"})
"""What is served without a token: `/`, and what is below the others."""

Handler = Callable[[Asking], Awaitable[Mapping[str, object]]]


async def query(ask: Asking) -> Mapping[str, object]:
    """Ask one method by itself, and show what it answers. Raises `Invalid`."""
    try:
        params = msgspec.json.decode(ask.given.get("params") or "{}", type=dict[str, object])
    except (msgspec.DecodeError, RecursionError) as error:
        raise Invalid("params is a JSON object", hint="change the address") from error
    answer = await ask(ask.given.get("method", ""), **params)
    return {"answer": msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()}


PAGES: dict[str, tuple[str, Handler]] = {
    "now": ("Now", now.page),
    "today": ("Since yesterday", now.today),
    "search": ("Search", search.page),
    "memory": ("Memory", memory.page),
    "timeline": ("Timeline", timeline.page),
    "session": ("Session", timeline.session),
    "theses": ("Theses", theses.page),
    "thesis": ("Thesis", theses.thesis),
    "review": ("Review", review.page),
    "work": ("Work", work.page),
    "query": ("Query", query),
}
"""Each page's title, and what it asks and shows; its template has its name."""


def routes(may_write: bool) -> list[BaseRoute]:  # noqa: FBT001  the contract with who serves it
    """Return the page's routes; those that change something only where *may_write*.

    Each asks by `request.app.state.ask(method, **params)`, and hears of events by
    `request.app.state.follow(after=…)`, which `request.app.state.begin(after=…)` refuses before.
    """
    found: list[BaseRoute] = [
        Route("/", shell),
        Route("/page/{path:path}", shell),
        Mount("/static", StaticFiles(directory=showing.PLACE / "static")),
        Route("/data/events", events),
        Route("/data/{name}", partial(data, may_write)),
        Route("/data/{name}/{id:path}", partial(data, may_write)),
    ]
    return [Route("/data/do", changing.do, methods=["POST"]), *found] if may_write else found


async def shell(_request: Request) -> Response:
    """Return the shell, which is the same at every address."""
    return HTMLResponse(showing.fragment("shell", {}))


async def data(may_write: bool, request: Request) -> Response:  # noqa: FBT001  bound by its place
    """Return a page's fragment or, where its address ends in .json, what was asked and answered."""
    path = request.url.path.removeprefix("/data/")
    is_json = path.endswith(".json")
    name, _, what = path.removesuffix(".json").partition("/")
    ask = Asking(request.app.state.ask, {**request.query_params, "id": what})
    try:
        if name not in PAGES:
            raise NotFound("there is no such page", hint="the pages are: " + ", ".join(PAGES))
        title, page = PAGES[name]
        shown = await page(ask)
    except OmegadError as error:
        if is_json:
            raise
        values = {"error": error, "asked": ask.asked, "address": "", "title": "Error"}
        return HTMLResponse(showing.fragment("error", values), STATUSES[error.kind])
    if is_json:
        return Response(in_json(ask.asked), media_type="application/json")
    values = {
        "title": title,
        "page": name,
        "may_write": may_write,
        "asked": ask.asked,
        "given": defaultdict(str, ask.given),
        "address": f"{path}.json" + (f"?{request.url.query}" if request.url.query else ""),
    }
    return HTMLResponse(showing.fragment(name, {**values, **shown}))


def in_json(asked: list[tuple[Query, Json]]) -> bytes:
    """Return what was asked and answered."""
    told = [
        {"method": one.method, "params": one.params, "command": one.command, "answer": answer}
        for one, answer in asked
    ]
    return msgspec.json.encode({"asked": told})


async def events(request: Request) -> Response:
    """Return a line of JSON for each event after a position, as it comes: its position, and its HTML. It
    ends where the daemon does. Raises what is refused.
    """
    after = Asking(request.app.state.ask, request.query_params).number("after", 0, 2**62, least=0)
    await request.app.state.begin(after=after)
    if request.method == "HEAD":  # of an answer that would not end
        return Response(media_type="application/x-ndjson")

    async def lines() -> AsyncIterator[bytes]:
        with suppress(OmegadError):  # the page asks again
            async for event in request.app.state.follow(after=after):
                if now.is_heard(event):
                    html = showing.fragment("event", {"event": now.told(event)})
                    yield msgspec.json.encode({"position": event["position"], "html": html}) + b"\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")
