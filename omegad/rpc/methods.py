"""The methods there are: one for each command and query, by the tag of its Struct."""

import typing
import unicodedata

import msgspec

from omegad.commands import Command
from omegad.errors import Invalid
from omegad.queries import Query
from omegad.rpc.protocol import MethodNotFound

Request = Command | Query

METHODS: dict[str, type[msgspec.Struct]] = {str(kind.__struct_config__.tag): kind for kind in typing.get_args(Request)}
"""The Struct of each method's parameters, by the method's name."""

VERBATIM = frozenset({"content", "tool_input", "result"})
"""Parameters that are cleaned elsewhere, or kept as they came."""

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
    return _composed(request)


def _composed(request: Request) -> Request:
    """Return a request whose names are in NFC, so that what looks the same is the same; what tools took and gave stays as it is."""
    changes: dict[str, object] = {}
    for name in request.__struct_fields__:
        value = getattr(request, name)
        if name not in VERBATIM and isinstance(value, str | tuple | dict) and (composed := _nfc(value)) != value:
            changes[name] = composed
    return msgspec.structs.replace(request, **changes) if changes else request


def _nfc(value: object) -> object:
    match value:
        case str():
            return value if value.isascii() else unicodedata.normalize("NFC", value)
        case tuple() | list():
            return type(value)(map(_nfc, value))
        case dict():
            return {_nfc(key): _nfc(item) for key, item in value.items()}
        case _:
            return value
