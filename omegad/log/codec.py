"""Events to stored bytes and back."""

import typing
from collections.abc import Callable, Mapping
from functools import cache
from types import UnionType

import msgspec

from omegad.log.event import Erased, Event, Unknown

Payload = dict[str, object]
Upcaster = Callable[[Payload], Payload]
"""Lifts the decoded JSON of one version to that of the next, with `type` set to its tag. Total and pure."""


@cache
def tag_of(kind: type[Event]) -> str:
    """Return the stored name of an event class."""
    return str(kind.__struct_config__.tag)


class Codec:
    """Reads and writes the events of one vocabulary: a union of event classes, and the steps that lift what
    older versions wrote, by the tag that each begins from.
    """

    def __init__(self, events: UnionType, upcasters: Mapping[str, Upcaster]) -> None:
        self.kinds: dict[str, type[Event]] = {tag_of(kind): kind for kind in typing.get_args(events)}
        self.upcasters = upcasters
        self._union = events
        self._encode = msgspec.json.Encoder().encode
        self._decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(events)

    def encode(self, event: Event) -> bytes:
        """Write an event as JSON that names its tag."""
        return self._encode(event)

    def decode(self, tag: str, body: bytes | str | None) -> Event | Unknown | Erased:
        """Read a stored payload: `Erased` where there is none, `Unknown` where a newer version wrote its
        tag, or fields that it has.
        """
        if body is None:
            return Erased(tag=tag)
        try:
            if tag in self.kinds:
                event = self._decoder.decode(body)
                if isinstance(event, self.kinds[tag]):
                    return event
                return Unknown(tag=tag, body=_bytes(body), problem=f"its payload says {tag_of(type(event))}")
            if tag in self.upcasters:
                payload = msgspec.json.decode(body, type=Payload)
                while step := self.upcasters.get(str(payload.get("type"))):
                    payload = step(payload)
                lifted: Event = msgspec.convert(payload, self._union)
                return lifted
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Unknown(tag=tag, body=_bytes(body), problem=str(error))
        return Unknown(tag=tag, body=_bytes(body))


def _bytes(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else body
