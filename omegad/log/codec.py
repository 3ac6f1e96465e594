"""Events to stored bytes and back."""

import typing
from collections.abc import Mapping

import msgspec

from omegad.events import Event
from omegad.events.fact import Erased, Fact, Unknown
from omegad.log.upcasting import UPCASTERS, Upcaster, upcast

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def tag_of(kind: type[Fact]) -> str:
    """Return the stored name of an event class."""
    return str(kind.__struct_config__.tag)


EVENT_TYPES: dict[str, type[Fact]] = {tag_of(kind): kind for kind in typing.get_args(Event)}
"""Every event class of today by its tag."""


def encode(event: Fact) -> bytes:
    """Write an event as JSON that names its tag."""
    return _encoder.encode(event)


def decode(tag: str, body: bytes | str | None, upcasters: Mapping[str, Upcaster] = UPCASTERS) -> Fact | Unknown | Erased:
    """Read a stored payload: `Erased` where there is none, `Unknown` where a newer version wrote its tag, or fields that it has."""
    if body is None:
        return Erased(tag=tag)
    try:
        if tag in EVENT_TYPES:
            event = _decoder.decode(body)
            if isinstance(event, EVENT_TYPES[tag]):
                return event
            return Unknown(tag=tag, body=_bytes(body), problem=f"its payload says {tag_of(type(event))}")
        if tag in upcasters:
            lifted: Event = msgspec.convert(upcast(msgspec.json.decode(body), upcasters), Event)
            return lifted
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Unknown(tag=tag, body=_bytes(body), problem=str(error))
    return Unknown(tag=tag, body=_bytes(body))


def _bytes(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else body
