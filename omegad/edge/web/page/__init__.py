"""The page: what is remembered, for people who look at it in a browser."""

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import BaseRoute, Route

PUBLIC = frozenset({"/"})
"""The paths that need no token: they show nothing of what is remembered."""


def routes(may_write: bool) -> list[BaseRoute]:  # noqa: FBT001
    """Return what the page is made of; some of it changes something where it *may_write*."""
    del may_write

    async def shell(_request: Request) -> HTMLResponse:
        return HTMLResponse("<!doctype html><title>omegad</title>")

    return [Route("/", shell)]
