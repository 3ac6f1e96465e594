"""Events to stored bytes and back."""

import typing
from collections.abc import Mapping

import msgspec

from omegad.events import AnyEvent
from omegad.log.event import Erased, Event, Unknown
from omegad.log.upcasting import UPCASTERS, Upcaster, upcast

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def tag_of(kind: type[Event]) -> str:
    """Return the stored name of an event class."""
    return str(kind.__struct_config__.tag)


EVENT_TYPES: dict[str, type[Event]] = {tag_of(kind): kind for kind in typing.get_args(AnyEvent)}
"""Every event class of today by its tag."""


def encode(event: Event) -> bytes:
    """Write an event as JSON that names its tag."""
    return _encoder.encode(event)


def decode(tag: str, body: bytes | str | None, upcasters: Mapping[str, Upcaster] = UPCASTERS) -> Event | Unknown | Erased:
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
            lifted: AnyEvent = msgspec.convert(upcast(msgspec.json.decode(body), upcasters), AnyEvent)
            return lifted
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Unknown(tag=tag, body=_bytes(body), problem=str(error))
    return Unknown(tag=tag, body=_bytes(body))


def _bytes(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else body
