"""The hash chain that makes any change to the log show.

Each link covers the one before it, every field of the envelope and the payload's own hash, over the stored bytes, each field
behind its length so that no two different rows read alike. A payload's hash is salted and apart, so that the payload can be
erased and the chain still verifies.
"""

from collections.abc import Iterable
from hashlib import blake2b

DIGEST_BYTES = 32
SALT_BYTES = 16
GENESIS = bytes(DIGEST_BYTES)


def payload_hash(salt: bytes, body: bytes) -> bytes:
    """Hash a payload together with its salt, without which short payloads could be guessed from their hashes."""
    digest = blake2b(salt, digest_size=DIGEST_BYTES, person=b"omegad/payload")
    digest.update(body)
    return digest.digest()


def link(previous: bytes, envelope: Iterable[object]) -> bytes:
    """Return the chain after a row whose fields, in the order of the table, are *envelope*."""
    parts = [previous]
    for field in envelope:
        data = b"" if field is None else field if isinstance(field, bytes) else str(field).encode()
        parts.append(b"%c%d:" % (45 if field is None else 43, len(data)))
        parts.append(data)
    return blake2b(b"".join(parts), digest_size=DIGEST_BYTES, person=b"omegad/chain").digest()
