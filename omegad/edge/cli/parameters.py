"""From what was given on the command line to the parameters of a method, and its answer."""

import sys
from argparse import Namespace
from collections.abc import Callable
from functools import wraps

import msgspec

from omegad.edge.cli.arguments import WrongUsage, methods
from omegad.edge.cli.connection import Answer, ask
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import moment, warn, warn_if_stale, write_json
from omegad.runtime.json_types import Fields

Show = Callable[[Answer, Namespace], None]
Verb = Callable[[Namespace, Instance], int]

STDIN_BYTES_MAX = 1024 * 1024  # more than the daemon takes, so that it is the one to refuse it


def asked(arguments: Namespace, instance: Instance) -> Answer:
    """Return what the verb's method answers to all that was given, and warn where it is of the past, and may
    not be what was given then. Raises `WrongUsage` as `parameters` does.
    """
    answer = ask(instance, arguments.method, **parameters(arguments))
    then = None if arguments.json else answer.pop("as_of", None)
    if not then:
        return answer
    warn(f"as of position {then['position']:,}, {moment(then['at'])}")
    for name, (before, present) in then["changed"].items():
        warn(f"{name} was {before} then and is {present}: this may not be what was answered")
    if then["query_id"] and not then["is_comparable"]:
        warn("with which versions it was answered then is not recorded")
    if then["erased"]:
        warn(f"{then['erased']} events up to there were erased since, and are not shown")
    return answer


def parameters(arguments: Namespace) -> dict[str, object]:
    """Return all that was given to the verb's method, None for what was left out. Raises `WrongUsage` for
    what is not of its kind.
    """
    known = methods()[arguments.method].get("parameters", ())
    return {
        parameter["name"]: _value(parameter, getattr(arguments, parameter["name"], None))
        for parameter in known
    }


def answered(show: Show) -> Verb:
    """Return the verb that asks its method and shows people the answer, which programs get as it is."""

    @wraps(show)
    def verb(arguments: Namespace, instance: Instance) -> int:
        answer = asked(arguments, instance)
        if arguments.json:
            write_json(answer)
        else:
            show(answer, arguments)
        if "stale_by" in answer:
            warn_if_stale(answer)
        return 0

    return verb


def _value(parameter: Fields, given: object) -> object:
    if given == "-" and parameter["name"] == "content":
        return standard_input()
    if parameter["kind"] == "json" and isinstance(given, str):
        return _json(parameter["name"], given)
    return given


def standard_input() -> str:
    """Return what standard input says, without the line ends after it. Raises `WrongUsage` for what is not
    UTF-8.
    """
    data = sys.stdin.buffer.read(STDIN_BYTES_MAX) if sys.stdin else b""
    try:
        return data.decode().rstrip("\n")
    except UnicodeDecodeError as error:
        raise WrongUsage(f"standard input is not UTF-8: {error}") from error


def _json(name: str, text: str) -> object:
    wanted, kind = (dict[str, object], "a JSON object") if name == "metadata" else (object, "JSON")
    try:
        return msgspec.json.decode(text, type=wanted)
    except msgspec.DecodeError as error:
        raise WrongUsage(f"{name} is not {kind}: {error}") from error
