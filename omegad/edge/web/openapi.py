"""The routes for programs in words: an OpenAPI 3.1 document, made of what the methods take and answer."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple

from omegad import __version__
from omegad.edge.web.asking import FOLLOW
from omegad.edge.web.errors import STATUSES
from omegad.edge.web.rules import BODY_BYTES_MAX
from omegad.runtime.json_types import Fields

KEY = "Idempotency-Key"
KEY_CHARACTERS = 254  # with quotes around it, as the draft of the header has it, no longer than a request_id
CLIENT = "Omegad-Client"
CLIENT_CHARACTERS = 200
PRINTED = "^[!-~]+$"
"""What names in headers are made of."""
PROGRESS = "progress_token"
REQUEST_ID = "request_id"
LINES = "application/jsonl"

Table = Mapping[str, Fields]
"""What there is to say of every method, by its name."""


class Path(NamedTuple):
    """A path of a memory, or of several: the method that it asks, and the one instead where a parameter is
    given.
    """

    verb: str
    path: str
    method: str
    given: str = ""
    instead: str = ""

    def methods(self) -> tuple[str, ...]:
        """Return the methods that it may ask."""
        return (self.method, self.instead) if self.instead else (self.method,)


PATHS = (
    Path("get", "/memory", "memory.list", given="text", instead="memory.query"),
    Path("post", "/memory/upsert", "memory.upsert"),
    Path("get", "/memory/{memory_id}", "memory.get"),
    Path("delete", "/memory/{memory_id}", "memory.delete"),
)

ABOUT = f"""\
Everything that the socket of omegad answers, over HTTP on the loopback interface. Every request shows the
token (`omegad web --token`). Errors are those of the socket. A body has at most {BODY_BYTES_MAX:,} bytes.
"""

ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "description": "what went wrong, as on the socket",
            "required": ["code", "message", "data"],
            "properties": {
                "code": {"type": "integer"},
                "message": {"type": "string"},
                "data": {
                    "type": "object",
                    "required": ["kind", "tag", "hint"],
                    "properties": {
                        "kind": {"enum": sorted(STATUSES)},
                        "tag": {"enum": ["MEMORY", "RETRIEVAL", "RUNTIME_ENV"]},
                        "hint": {"type": "string", "description": "what to do"},
                    },
                },
            },
        }
    },
}

REFUSED: dict[HTTPStatus, str] = {
    HTTPStatus.BAD_REQUEST: "the parameters are not valid, or it is no HTTP",
    HTTPStatus.UNAUTHORIZED: "the token is missing or wrong",
    HTTPStatus.FORBIDDEN: "another site's page asks",
    HTTPStatus.NOT_FOUND: "there is nothing by that name",
    HTTPStatus.REQUEST_TIMEOUT: "the request did not come in time",
    HTTPStatus.CONFLICT: "it does not apply to how things stand, or the key was used for another request",
    HTTPStatus.PRECONDITION_FAILED: "the views do not show the position that was asked for yet",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "the body is too large",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "the body is not said to be JSON",
    HTTPStatus.MISDIRECTED_REQUEST: "the host is not served here",
    HTTPStatus.TOO_MANY_REQUESTS: "too much is waiting, or it took too long to read",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "the head of the request is too large",
    HTTPStatus.INTERNAL_SERVER_ERROR: "an unforeseen error inside omegad",
    HTTPStatus.SERVICE_UNAVAILABLE: "a part of omegad cannot be used now, or none answers",
}


def document(table: Table, schemas: Fields) -> Fields:
    """Return the document that describes every route."""
    paths: dict[str, Fields] = {}
    for one in PATHS:
        paths.setdefault(one.path, {})[one.verb] = _of_path(one, table)
    for name in table:
        paths[f"/rpc/{name}"] = {"post": _posted(name, table[name]) | {"operationId": name}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "omegad", "version": __version__, "description": ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {**schemas, "Error": ERROR},
            "responses": {status.name: _refused(why) for status, why in REFUSED.items()},
        },
    }


def takes(described: Fields) -> Fields:
    """Return the schema of what a method takes over HTTP, where nobody is told of progress."""
    schema = dict(described["takes"])
    schema["properties"] = {name: of for name, of in schema["properties"].items() if name != PROGRESS}
    return schema


def _of_path(one: Path, table: Table) -> Fields:
    name = "_".join([one.verb, *one.path.strip("/").replace("{", "").replace("}", "").split("/")])
    if one.verb == "post":
        return _posted(one.method, table[one.method]) | {"operationId": name}
    in_path = [part[1:-1] for part in one.path.split("/") if part.startswith("{")]
    described = [table[method] for method in one.methods()]
    return {
        "operationId": name,
        "tags": ["memory"],
        "summary": "; ".join(each["about"] for each in described),
        "parameters": [
            *({"name": part, "in": "path", "required": True, "schema": NAME} for part in in_path),
            *_queried([takes(each)["properties"] for each in described], {*in_path, REQUEST_ID}),
            *_headers(described[0]),
        ],
        "responses": _responses([each["answers"] for each in described]),
    }


NAME = {"type": "string", "minLength": 1, "maxLength": 256}


def _queried(properties: Sequence[Fields], besides: set[str]) -> list[Fields]:
    """Return the parameters of a query, each of the schema that it has in one method, or in several."""
    found: dict[str, list[Fields]] = {}
    for each in properties:
        for name, schema in each.items():
            if name not in besides and schema not in found.setdefault(name, []):
                found[name].append(schema)
    return [
        {"name": name, "in": "query", "schema": _without_null(of[0] if len(of) == 1 else {"anyOf": of})}
        for name, of in found.items()
        if name not in besides
    ]


def _without_null(schema: Fields) -> Fields:
    """Return a schema without null, which no query can say."""
    kinds = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if not kinds:
        return schema
    rest = {name: of for name, of in schema.items() if name not in {"anyOf", "default"}}
    return rest | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds})


def _posted(name: str, described: Fields) -> Fields:
    schema = takes(described)
    answers = _responses([described["answers"]])
    if name == FOLLOW:
        event = {"schema": {"type": "string", "description": "an event a line, as log.read has them"}}
        answers["200"]["content"] = {LINES: event}
    return {
        "tags": [name.partition(".")[0]],
        "summary": described["about"],
        "description": schema.pop("description"),
        "parameters": _headers(described),
        "requestBody": {
            "required": bool(schema["required"]),
            "content": {"application/json": {"schema": schema}},
        },
        "responses": answers,
    }


def _headers(described: Fields) -> list[Fields]:
    """Return the headers that a request may have."""
    client = NAME | {"maxLength": CLIENT_CHARACTERS, "pattern": PRINTED}
    named = {"name": CLIENT, "in": "header", "schema": client}
    named["description"] = "who asks: the log says so, and keys count by it"
    if REQUEST_ID not in described["takes"]["properties"]:
        return [named]
    key = {"name": KEY, "in": "header", "schema": NAME | {"maxLength": KEY_CHARACTERS, "pattern": PRINTED}}
    key["description"] = "the request_id: the same request under the same key gets the first answer"
    return [named, key]


def _responses(answers: Sequence[Fields]) -> Fields:
    schema = answers[0] if len(answers) == 1 else {"anyOf": list(answers)}
    answered = {"description": "the answer", "content": {"application/json": {"schema": schema}}}
    refused = {str(status.value): {"$ref": f"#/components/responses/{status.name}"} for status in REFUSED}
    return {"200": answered} | refused


def _refused(why: str) -> Fields:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": why, "content": {"application/json": {"schema": schema}}}
