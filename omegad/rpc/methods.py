"""The methods there are: one for each command and query, by the tag of its Struct."""

import typing

import msgspec

from omegad.commands import Command
from omegad.errors import Invalid
from omegad.queries import Query
from omegad.rpc.protocol import MethodNotFound

Request = Command | Query

METHODS: dict[str, type[msgspec.Struct]] = {str(kind.__struct_config__.tag): kind for kind in typing.get_args(Request)}
"""The Struct of each method's parameters, by the method's name."""

_DECODERS = {name: msgspec.json.Decoder(kind) for name, kind in METHODS.items()}


def parse(method: str, params: bytes) -> Request:
    """Read a call's parameters; raises `MethodNotFound`, or `Invalid` saying which parameter is wrong and why."""
    decoder = _DECODERS.get(method)
    if decoder is None:
        raise MethodNotFound(f"there is no method {method[:60]!r}", hint=f"the methods are {', '.join(METHODS)}")
    try:
        request: Request = decoder.decode(params or b"{}")  # type: ignore[assignment]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{method}: {error}".replace("Object", "params", 1)) from error
    return request
