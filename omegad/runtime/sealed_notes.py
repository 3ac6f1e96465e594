"""Notes that anybody can seal and only who holds the home's key can open: what hooks leave in the spool.

A note is sealed to a public key that follows from the home's: by a pair of keys of its own (X25519), of which
the private one is thrown away, and what both agree on (HKDF-SHA-256) as the key of ChaCha20-Poly1305. No key
is used twice, so its nonce never repeats. The note's name is bound to it.
"""

TYPE_CHECKING = False  # typing would be most of what importing costs
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

MAGIC = b"omegad-sealed-note-1\n"
_PUBLIC_BYTES = 32
_NONCE = bytes(12)
_FOR_HOOKS = b"omegad: what hooks leave"


def seal(public: bytes, name: bytes, data: bytes) -> bytes:
    """Return *data* sealed to a public key (32 bytes) under a name. Raises `ImportError` without the package
    cryptography.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import (  # noqa: PLC0415  an extra, and dear
        X25519PrivateKey,
        X25519PublicKey,
    )

    own = X25519PrivateKey.generate()
    ours = own.public_key().public_bytes_raw()
    agreed = own.exchange(X25519PublicKey.from_public_bytes(public))
    return MAGIC + ours + _cipher(agreed, ours + public).encrypt(_NONCE, data, name)


def public_of(key: bytes) -> bytes:
    """Return the public key that notes for a home with this key are sealed to."""
    return _private(key).public_key().public_bytes_raw()


def opened(key: bytes, name: bytes, sealed: bytes) -> bytes:
    """Return what was sealed to `public_of(key)` under a name. Raises `ValueError` for anything else."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey  # noqa: PLC0415

    body = len(MAGIC) + _PUBLIC_BYTES
    theirs = sealed[len(MAGIC) : body]
    try:
        agreed = _private(key).exchange(X25519PublicKey.from_public_bytes(theirs))
        return _cipher(agreed, theirs + public_of(key)).decrypt(_NONCE, sealed[body:], name)
    except InvalidTag:
        raise ValueError("the note was not sealed for this home, under this name") from None


def _private(key: bytes) -> "X25519PrivateKey":
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # noqa: PLC0415

    return X25519PrivateKey.from_private_bytes(_derived(key, None, _FOR_HOOKS))


def _cipher(agreed: bytes, between: bytes) -> "ChaCha20Poly1305":
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305  # noqa: PLC0415

    return ChaCha20Poly1305(_derived(agreed, between, MAGIC))


def _derived(secret: bytes, salt: bytes | None, what_for: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

    return HKDF(SHA256(), 32, salt, what_for).derive(secret)
