"""What is answered over HTTP where something goes wrong: the socket's own errors, each with a status."""

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from omegad.edge.web.rules import NOT_SERVED, error_body
from omegad.runtime.errors import Invalid, Kind, OmegadError

INTERNAL = -32603
STATUSES: dict[Kind, HTTPStatus] = {
    "not_found": HTTPStatus.NOT_FOUND,
    "conflict": HTTPStatus.CONFLICT,
    "refused": HTTPStatus.CONFLICT,
    "invalid": HTTPStatus.BAD_REQUEST,
    "stale": HTTPStatus.PRECONDITION_FAILED,
    "overloaded": HTTPStatus.TOO_MANY_REQUESTS,
    "unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "shutting_down": HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The status of each kind of error."""
AGAIN_S = {HTTPStatus.TOO_MANY_REQUESTS: "1", HTTPStatus.SERVICE_UNAVAILABLE: "5"}
"""In how many seconds it may be tried again."""


class WrongMediaType(Invalid):
    """The body is not said to be JSON."""

    hint = "send JSON, with the header Content-Type: application/json"


def answer(error: OmegadError) -> Response:
    """Return an error as the socket has it."""
    status = STATUSES[error.kind]
    if error.code == INTERNAL:
        status = HTTPStatus.INTERNAL_SERVER_ERROR
    elif isinstance(error, WrongMediaType):
        status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    data = {"kind": error.kind, "tag": error.tag, "hint": error.hint}
    message = str(error).encode("utf-8", "backslashreplace").decode()
    headers = {"Retry-After": AGAIN_S[status]} if status in AGAIN_S else {}
    body = error_body(error.code, message, data)
    return Response(body, status.value, headers, media_type="application/json")


async def refused(_request: Request, error: Exception) -> Response:
    """Answer an error of the catalogue that a route raises."""
    assert isinstance(error, OmegadError)
    return answer(error)


async def not_served(_request: Request, error: Exception) -> Response:
    """Answer what no route serves, or none by that verb of HTTP."""
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return Response(NOT_SERVED.body, error.status_code, media_type="application/json")
    data = {"kind": "invalid", "tag": "MEMORY", "hint": "GET /openapi.json says what is served, and how"}
    body = error_body(-32600, error.detail, data)
    return Response(body, error.status_code, error.headers, media_type="application/json")
