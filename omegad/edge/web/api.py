"""The routes for programs: every method of the socket under /rpc, and memories under /memory. All are made of
the table of methods.
"""

import re
from collections.abc import AsyncIterator, Mapping
from functools import partial
from http import HTTPStatus
from typing import cast
from uuid import uuid4

import msgspec
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from omegad.edge.web import errors, openapi
from omegad.edge.web.asking import CALL_S, FOLLOW, Asking
from omegad.edge.web.openapi import (
    CLIENT,
    CLIENT_CHARACTERS,
    KEY,
    KEY_CHARACTERS,
    LINES,
    PATHS,
    PRINTED,
    PROGRESS,
    REQUEST_ID,
)
from omegad.rpc.protocol import UNREADABLE, MethodNotFound
from omegad.runtime import derived
from omegad.runtime.errors import Invalid, OmegadError
from omegad.runtime.json_types import Fields

HELLO = "system.hello"
LONG_S = 600.0  # for what tells of its progress on the socket

BY_PATH = {
    path: {one.verb: one for one in PATHS if one.path == path}
    for path in dict.fromkeys(one.path for one in PATHS)
}
"""What each path does, by the verb of HTTP."""

INTEGER = re.compile(r"-?[0-9]{1,18}")
WORDS: dict[str, object] = {"true": True, "false": False}


def routes() -> list[BaseRoute]:
    """Return the routes; raises `OSError` where what they are made of cannot be derived."""
    made = msgspec.json.decode(derived.read(derived.SCHEMAS))
    table = cast("openapi.Table", made["methods"])
    document = msgspec.json.encode(openapi.document(table, made["schemas"]))

    async def described(_request: Request) -> Response:
        return Response(document, media_type="application/json")

    async def called(request: Request) -> Response:
        name = request.path_params["method"]
        if name not in table:
            raise MethodNotFound(f"there is no method {name[:60]!r}")
        return await _answer(request, name, table[name], await _body(request))

    return [
        Route("/openapi.json", described),
        Route("/rpc/{method}", called, methods=["POST"]),
        *(
            Route(path, partial(_memory, verbs, table), methods=[verb.upper() for verb in verbs])
            for path, verbs in BY_PATH.items()
        ),
    ]


async def _memory(verbs: Mapping[str, openapi.Path], table: openapi.Table, request: Request) -> Response:
    own = BY_PATH.get(request.url.path, verbs)
    if own is not verbs:  # a path of its own, and no memory's
        raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(own).upper()})
    one = verbs[request.method.lower().replace("head", "get")]
    if one.verb == "post":
        return await _answer(request, one.method, table[one.method], await _body(request))
    method = one.instead if one.given and one.given in request.query_params else one.method
    params = _queried(request.query_params, openapi.takes(table[method])["properties"])
    return await _answer(request, method, table[method], params | request.path_params)


async def _answer(request: Request, method: str, described: Fields, params: Fields) -> Response:
    """Return what a method answers to parameters, which are checked by the daemon; raises what it refuses."""
    asking: Asking = request.app.state.asking
    client = _name_in(request, CLIENT, CLIENT_CHARACTERS) or asking.name
    if PROGRESS in params:
        raise Invalid(f"{method}: nobody is told of progress over HTTP", hint=f"leave out {PROGRESS}")
    takes = described["takes"]["properties"]
    if REQUEST_ID in takes:
        params = _named(request, params)
    if method == FOLLOW:
        after = await asking.begin(**params)
        return StreamingResponse(_lines(asking, after), media_type=LINES)
    if method == HELLO:  # of the connection, which many have together
        answer = await asking.ask_apart(method, params)
    else:
        answer = await asking.ask_as(client, method, params, LONG_S if PROGRESS in takes else CALL_S)
    return Response(msgspec.json.encode(answer), media_type="application/json")


async def _lines(asking: Asking, after: int) -> AsyncIterator[bytes]:
    try:
        async for event in asking.follow(after=after):
            yield msgspec.json.encode(event) + b"\n"
    except OmegadError as error:
        yield bytes(errors.answer(error).body) + b"\n"


def _named(request: Request, params: Fields) -> Fields:
    """Return a command's parameters with the id that makes it safe to send again: the header's, or one that
    is made for who gives none, because a call is made again where the daemon ends under it.
    """
    key, own = _name_in(request, KEY, KEY_CHARACTERS), params.get(REQUEST_ID)
    if key and own is not None and own != key:
        raise Invalid(f"the header {KEY} and {REQUEST_ID} differ", hint="give one of them")
    return {**params, REQUEST_ID: (key or uuid4().hex) if own is None else own}


def _name_in(request: Request, header: str, most: int) -> str | None:
    """Return the name that a header says, without quotes around it, None where there is no such header.
    Raises `Invalid`.
    """
    said = request.headers.get(header)
    if said is None:
        return None
    name = said[1:-1] if said[:1] == said[-1:] == '"' else said
    if len(name) > most or not re.fullmatch(PRINTED, name):
        raise Invalid(f"the header {header} holds 1 to {most} printed characters of ASCII, and no spaces")
    return name


async def _body(request: Request) -> Fields:
    """Return the parameters that the body is; none where there is no body. Raises `Invalid`, and
    `UnsupportedMediaType`.
    """
    body = await request.body()
    if not body:
        return {}
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise errors.WrongMediaType(f"the body is {kind[:60]!r}")
    try:
        found = msgspec.json.decode(body)
    except UNREADABLE as error:
        raise Invalid(f"the body is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Invalid("the body is no JSON object", hint="send the method's parameters as one")
    return found


def _queried(given: QueryParams, properties: Mapping[str, Fields]) -> Fields:
    """Return the parameters that a query says, each read as its schema has it; what is not of its kind is
    passed on, for the daemon to refuse.
    """
    params: Fields = {}
    for name in given:
        values: list[object] = [_read(value, properties.get(name, {})) for value in given.getlist(name)]
        is_many = len(values) > 1 or "array" in _kinds(properties.get(name, {}))
        params[name] = values if is_many else values[0]
    return params


def _read(text: str, schema: Fields) -> object:
    kinds = _kinds(schema)
    if "array" in kinds:
        return _read(text, schema.get("items", {}))
    if kinds & {"integer", "number"} and INTEGER.fullmatch(text):
        return int(text)
    if "boolean" in kinds and text in WORDS:
        return WORDS[text]
    if kinds & {"number", "object"}:
        try:
            return msgspec.json.decode(text)
        except UNREADABLE:
            return text
    return text


def _kinds(schema: Fields) -> set[str]:
    """Return the types that a schema allows."""
    own = {schema["type"]} if "type" in schema else set()
    return own.union(*(_kinds(one) for one in schema.get("anyOf", ())))
