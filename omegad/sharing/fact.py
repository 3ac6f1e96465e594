"""One thing shared: what travels between homes, and the hash chain that each origin's facts are in.

An *origin* is one home's stream of what it shared; its facts are numbered 1, 2, 3 … A fact's envelope says
everything about it but its words, which stand beside it under their own salted hash, so that they can be
erased and the chain still proves.
"""

from hashlib import blake2b

import msgspec

from omegad.log.chain import DIGEST_BYTES, GENESIS, payload_hash
from omegad.log.event import Position

__all__ = ["GENESIS", "Fact", "envelope", "link", "opened", "row_hash", "says_what_it_said"]

_encode = msgspec.msgpack.Encoder().encode


class Envelope(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True, gc=False
):
    """What is hashed of a fact, in this order.

    Times are microseconds since 1970, the offset is in minutes. `position` is where the event stands in the
    log of the home that shared it.
    """

    origin: str
    seq: int
    hlc: int
    event_id: str
    tag: str
    subject: str
    occurred_at: int
    tz_offset: int
    project: str | None
    agent: str | None
    position: Position
    payload_hash: bytes


class Fact(Envelope, frozen=True, kw_only=True, array_like=False, gc=False):
    """A fact as it travels: what its envelope says, and its salt and body, which are None once erased."""

    salt: bytes | None
    body: bytes | None


_FIELDS = Envelope.__struct_fields__
_decode = msgspec.msgpack.Decoder(Envelope).decode


def envelope(fact: Fact) -> bytes:
    """Return the bytes that are hashed of a fact."""
    return _encode([getattr(fact, name) for name in _FIELDS])


def opened(sealed: bytes, salt: bytes | None, body: bytes | None) -> Fact:
    """Return the fact that `envelope` made these bytes of, with its salt and body.

    Raises `msgspec.DecodeError`, of which `ValidationError` is one, for bytes that are no envelope's.
    """
    said = _decode(sealed)
    return Fact(**{name: getattr(said, name) for name in _FIELDS}, salt=salt, body=body)


def row_hash(fact: Fact) -> bytes:
    """Return the hash of a fact's envelope."""
    return sealed_hash(envelope(fact))


def sealed_hash(sealed: bytes) -> bytes:
    """Return the hash of the bytes that `envelope` made."""
    return blake2b(sealed, digest_size=DIGEST_BYTES, person=b"omegad/fact").digest()


def link(previous: bytes, of_row: bytes) -> bytes:
    """Return the chain after a fact whose row hash is *of_row*; *previous* is the chain before it, `GENESIS`
    before an origin's first.
    """
    return blake2b(previous + of_row, digest_size=DIGEST_BYTES, person=b"omegad/share").digest()


def says_what_it_said(fact: Fact) -> bool:
    """Return whether the body is the one that the envelope was made for; one that was erased is."""
    if fact.salt is None or fact.body is None:
        return fact.salt is None and fact.body is None
    return payload_hash(fact.salt, fact.body) == fact.payload_hash
