"""Keys of providers: of the system's keyring, or of a file that is its owner's alone.

What is wrong with a key is said without a word of it, and a name that may be one by mistake is redacted.
"""

import os
import re
import stat
from pathlib import Path

from omegad.runtime.config import ConsultedModel
from omegad.runtime.errors import Unavailable
from omegad.text.redaction import redact

BYTES_MAX = 4096
_KEY = re.compile(r"[!-~]{8,}")
"""What a header can carry, and an answer be searched for."""


def key_of(model: ConsultedModel, home: Path) -> str | None:
    """Return the key of a model, None where it needs none. Raises `Unavailable`."""
    if model.key_file:
        place = redact(model.key_file)[0]
        key = _in_file(model.key_file, home, place)
    elif model.keyring:
        place = f"the keyring's {redact(model.keyring)[0]}"
        key = _in_keyring(model.keyring, place)
    else:
        return None
    if not _KEY.fullmatch(key):
        raise Unavailable(
            f"{place} does not hold a key", hint="put the key alone there: one line of 8 characters or more"
        )
    return key


def _in_file(name: str, home: Path, place: str) -> str:
    if not name.startswith(("/", "~/")):
        raise Unavailable(f"key_file {place} is no absolute path", hint="begin it with / or ~/")
    path = Path(os.path.realpath(Path(name).expanduser()))  # which takes a link to itself as it is
    if path.is_relative_to(os.path.realpath(home)):
        raise Unavailable(
            f"{place} is in omegad's home, whose files hold no key", hint="move it, to ~/.config for example"
        )
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(
            f"{place} cannot be read: {error.strerror}", hint=f"write the key to it, and chmod 600 {place}"
        ) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o177:
            raise Unavailable(
                f"{place} is not a file of yours alone (mode {stat.S_IMODE(found.st_mode):04o})",
                hint=f"chmod 600 {place}; where others could read the key, have another made",
            )
        return os.read(descriptor, BYTES_MAX).decode(errors="replace").strip()
    finally:
        os.close(descriptor)


def _in_keyring(name: str, place: str) -> str:
    try:
        import keyring  # noqa: PLC0415  an extra, and dear
        from keyring.errors import KeyringError  # noqa: PLC0415
    except ImportError:
        raise Unavailable(
            "the package keyring is not installed", hint="pip install 'omegad[keyring]', or use key_file"
        ) from None
    service, _, user = name.partition("/")
    try:
        key = keyring.get_password(service, user)
    except KeyringError as error:
        raise Unavailable(
            f"{place} cannot be read: {type(error).__name__}", hint="unlock the keyring, or use key_file"
        ) from None
    if key is None:
        raise Unavailable(
            f"{place} is empty", hint=f"run `keyring set {redact(service)[0]} {redact(user)[0]}`"
        )
    return key.strip()
