"""The key of a sealed home: what `seal.toml` says of it, where it is kept, and how people write it down."""

import hmac
import re
from base64 import b32decode, b32encode
from binascii import Error as NotBase32
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from omegad.runtime import alone, sealed_notes, secret_places
from omegad.runtime.config import Paths
from omegad.runtime.errors import Invalid, Refused, Sealed, SealerMissing, Unavailable
from omegad.storage.sealing import KEY_BYTES
from omegad.storage.wiping import overwrite

SERVICE = "omegad"
_GROUP = 4
_CHECK_BYTES = 3


class Seal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `seal.toml` says."""

    key_file: str = ""
    keyring: str = ""
    check: str
    """What tells whether a key is the right one."""
    hooks: str
    """The public key that hooks seal to what they leave in the spool."""
    packages: str
    """Where hooks find the package that they seal it with."""

    @property
    def place(self) -> str:
        """Where the key is, in words."""
        return f"the keyring's {self.keyring}" if self.keyring else self.key_file


def made(key: bytes, *, key_file: str = "", keyring: str = "") -> Seal:
    """Return what `seal.toml` says of a key that is kept there. Raises `SealerMissing`."""
    try:
        import cryptography  # noqa: PLC0415  an extra

        public = sealed_notes.public_of(key)
    except ImportError:
        raise SealerMissing("the package cryptography is not there") from None
    packages = str(Path(cryptography.__file__).parents[1])
    return Seal(
        key_file=key_file, keyring=keyring, check=check_of(key), hooks=public.hex(), packages=packages
    )


def kept(key: bytes, paths: Paths, *, key_file: str = "", keyring: str = "") -> Seal:
    """Keep a key, read it back, and return what `seal.toml` says of it.

    Raises `Refused` where a file is there already, and `Unavailable`.
    """
    seal = made(key, key_file=key_file, keyring=keyring)
    if keyring:
        secret_places.keep_in_keyring(written(key), keyring)
    else:
        path = secret_places.outside(key_file, paths.home, key_file)
        _check_free(path)
        secret_places.keep_in_file(written(key), path)
    key_of(seal, paths.home)
    return seal


def _check_free(path: Path) -> None:
    """Raise `Refused` where a file is there already, and say what it is."""
    if not path.exists():
        return
    with suppress(Unavailable, Invalid):
        read_key(alone.read(path, str(path)).decode(errors="replace").strip())
        raise Refused(
            f"{path} is there already, and holds a key of omegad's",
            hint="name another file; or remove that one where it is of a sealing that was broken off, and no"
            " home's seal.toml names it",
        )
    raise Refused(f"{path} is there already, and is no key", hint="name another file")


def forget(seal: Seal) -> None:
    """Keep no longer the key of a seal, by which nothing is sealed. Raises `Unavailable`."""
    if seal.keyring:
        secret_places.forget_in_keyring(seal.keyring)
    else:
        with suppress(OSError):
            overwrite(Path(seal.key_file))


def written(key: bytes) -> str:
    """Return a key as people write it down: groups of letters and digits, the last of them a check."""
    text = b32encode(key + sha256(key).digest()[:_CHECK_BYTES]).decode()
    return "-".join(text[at : at + _GROUP] for at in range(0, len(text), _GROUP))


def read_key(text: str) -> bytes:
    """Read what `written` wrote, however it is spaced. Raises `Invalid`, without a word of it."""
    letters = re.sub(r"[\s-]", "", text).upper()
    try:
        found = b32decode(letters)
    except (NotBase32, ValueError):
        found = b""
    key, check = found[:KEY_BYTES], found[KEY_BYTES:]
    if len(key) != KEY_BYTES or not hmac.compare_digest(check, sha256(key).digest()[:_CHECK_BYTES]):
        raise Invalid(
            "that is no key of omegad's, or not as it was written down",
            hint="it has 14 groups of four letters and digits",
        )
    return key


def key_of(seal: Seal, home: Path) -> bytes:
    """Return the key that *seal* tells of. Raises `Sealed` where it is not there, or is another."""
    missing = Sealed.hint
    try:
        text = (
            secret_places.in_keyring(seal.keyring, seal.keyring, missing)
            if seal.keyring
            else secret_places.in_file(seal.key_file, home, seal.key_file, missing)
        )
        key = read_key(text)
    except Invalid:
        raise Sealed(f"{seal.place} does not hold the home's key") from None
    except Unavailable as error:
        raise Sealed(f"the home is sealed, and its key is not at hand: {error}", hint=error.hint) from None
    if not hmac.compare_digest(seal.check, check_of(key)):
        raise Sealed(f"the key in {seal.place} is not the one that this home is sealed by")
    return key


def check_of(key: bytes) -> str:
    """Return what tells whether a key is the right one, and nothing of it."""
    return hmac.digest(key, b"omegad: the right key", "sha256")[:8].hex()
