"""The hash chain that makes any change to the log show.

Each link covers the one before it, every field of the envelope and the payload's own hash, over the stored
values as MessagePack, where each stands behind its type and length, so that no two different rows read alike.
A payload's hash is salted and apart, so that the payload can be erased and the chain still verifies.
"""

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

DIGEST_BYTES = 32
SALT_BYTES = 16
GENESIS = bytes(DIGEST_BYTES)

_encode = msgspec.msgpack.Encoder().encode


def payload_hash(salt: bytes, body: bytes) -> bytes:
    """Hash a payload together with its salt, without which short payloads could be guessed from their
    hashes.
    """
    digest = blake2b(salt, digest_size=DIGEST_BYTES, person=b"omegad/payload")
    digest.update(body)
    return digest.digest()


def link(previous: bytes, envelope: Sequence[object]) -> bytes:
    """Return the chain after a row whose fields, in the order of the table, are *envelope*: integers,
    texts, bytes or None.
    """
    return blake2b(previous + _encode(envelope), digest_size=DIGEST_BYTES, person=b"omegad/chain").digest()
