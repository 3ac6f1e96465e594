"""The process that carries out one call of a tool by which agents consult other models.

The call comes in on standard input and the answer goes out on standard output, both as JSON: a key is read
here and nowhere else, and is gone with the process.
"""

import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from omegad.client.blocking import Client
from omegad.edge.consult import offering, routing
from omegad.edge.consult.consulting import configured, consult, prepared, told
from omegad.runtime import config, pausing
from omegad.runtime.errors import Invalid, NoDaemon, NotFound, OmegadError, Refused
from omegad.text.quoting import inert

STORING_S = 20.0
STARTING_S = 5.0  # of a daemon that is started with the session
POLL_S = 0.1
ID_CHARACTERS = 256

Given = TypeVar("Given", bound=msgspec.Struct)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool, and whose it is."""

    name: str
    arguments: dict[str, Any] = {}
    client: str = ""
    session_id: str | None = None
    project: str | None = None
    folder: str | None = None
    request_id: str | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `omega_consult` takes."""

    question: str
    context: str = ""
    model: str | None = None
    store: bool = False


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `omega_route` takes."""

    task: str


def answered(call: Call, environ: Mapping[str, str]) -> str:
    """Return what a call comes to, in words. Raises an error of the catalogue."""
    paths = config.find_paths(environ)
    home = str(paths.home)
    if why := pausing.of_home(home) or pausing.of_folders(home, pausing.named(msgspec.to_builtins(call))):
        raise Refused(f"omegad keeps off: {why}. Nothing was sent", hint="go on without it")
    settings = configured(config.load(paths, environ).consult)
    if call.name == "omega_route":
        name, why = routing.route(_read(call, Task).task, settings.models)
        return inert(f"{name}: {why}." if name else f"None fits: {why}.")
    given, name = _read(call, Question), None
    if call.name != "omega_consult":
        families = offering.families({name: one.model for name, one in settings.models.items()})
        name = families.get(call.name.removeprefix("omega_consult_"))
        if name is None or given.model is not None:
            raise NotFound(f"{call.name} asks no model, or one alone", hint="call omega_consult")
    asking = prepared(settings, given.question, given.context, name or given.model)

    def store(**params: object) -> Any:  # noqa: ANN401  what the method answers
        request_id = call.request_id and f"consult/{call.request_id}"[:ID_CHARACTERS]
        known = {"session_id": call.session_id, "project": call.project, "request_id": request_id}
        params |= {name: value for name, value in known.items() if value}
        until = time.monotonic() + STARTING_S
        while True:
            try:
                with Client(paths.socket, name=call.client or "consult", timeout_s=STORING_S) as daemon:
                    return daemon.call("memory.store", **params)
            except NoDaemon:
                if time.monotonic() > until:
                    raise
            time.sleep(POLL_S)

    return told(consult(settings, paths, asking, store if given.store else None), settings)


def _read(call: Call, kind: type[Given]) -> Given:
    given = {name: value for name, value in call.arguments.items() if value is not None}
    try:
        return msgspec.convert(given, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        known = ", ".join(kind.__struct_fields__)
        raise Invalid(
            f"{call.name}: {error}".replace("Object", "the call", 1), hint=f"call it again; it takes {known}"
        ) from None


def carried_out(asked: bytes, environ: Mapping[str, str]) -> bytes:
    """Return the answer to a call, which may be what went wrong and what to do."""
    try:
        try:
            call = msgspec.json.decode(asked, type=Call)
        except msgspec.MsgspecError as error:
            raise Invalid(f"the call cannot be read: {error}", hint="send text in UTF-8") from None
        text, is_error = answered(call, environ), False
    except OmegadError as error:
        text, is_error = inert(f"{str(error).removesuffix('.')}. What to do: {error.hint}"), True
    answer = {"content": [{"type": "text", "text": text}], "structured": None, "is_error": is_error}
    return msgspec.json.encode(answer)


if __name__ == "__main__":
    answer = carried_out(sys.stdin.buffer.read(), os.environ)
    with suppress(BrokenPipeError):  # nobody waits for it any more
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
