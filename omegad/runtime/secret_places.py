"""Where secrets are that omegad is told of: the system's keyring, or a file that is its owner's alone,
outside the home.

What is wrong is said without a word of the secret; *place* is how a place is named to the person.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from omegad.runtime.errors import Unavailable

BYTES_MAX = 4096


def in_file(name: str, home: Path, place: str) -> str:
    """Return what a file holds. Raises `Unavailable` where it is not there, others can read it, or it lies in
    the home.
    """
    path = outside(name, home, place)
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


def outside(name: str, home: Path, place: str) -> Path:
    """Return the file that is named, with links followed. Raises `Unavailable` where that is no absolute
    path, or in the home.
    """
    if not name.startswith(("/", "~/")):
        raise Unavailable(f"key_file {place} is no absolute path", hint="begin it with / or ~/")
    path = Path(os.path.realpath(Path(name).expanduser()))  # which takes a link to itself as it is
    if path.is_relative_to(os.path.realpath(home)):
        raise Unavailable(
            f"{place} is in omegad's home, whose files hold no key", hint="move it, to ~/.config for example"
        )
    return path


def in_keyring(name: str, shown: str) -> str:
    """Return what the keyring has under SERVICE/USER, which is *shown* to people. Raises `Unavailable`."""
    service, _, user = name.partition("/")
    with _keyring(f"the keyring's {shown} cannot be read") as ring:
        found = ring.get_password(service, user)
    if found is None:
        command = f"keyring set {shown.replace('/', ' ', 1)}"
        raise Unavailable(f"the keyring's {shown} is empty", hint=f"run `{command}`")
    return str(found).strip()


def keep_in_file(secret: str, path: Path) -> None:
    """Write a new file, for its owner alone, and return when it is on the disk. Raises `Unavailable`, also
    where there is one already.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{secret}\n")
            file.flush()
            os.fsync(descriptor)
        _sync(path.parent)
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}", hint="name another file") from None


def keep_in_keyring(secret: str, name: str) -> None:
    """Keep a secret in the keyring under SERVICE/USER. Raises `Unavailable`."""
    service, _, user = name.partition("/")
    with _keyring(f"the keyring's {name} cannot be written") as ring:
        ring.set_password(service, user, secret)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _keyring(failure: str) -> Iterator[ModuleType]:
    try:
        import keyring  # noqa: PLC0415  an extra, and dear
        from keyring.errors import KeyringError  # noqa: PLC0415
    except ImportError:
        raise Unavailable(
            "the package keyring is not installed", hint="pip install 'omegad[keyring]', or use key_file"
        ) from None
    try:
        yield keyring
    except KeyringError as error:
        raise Unavailable(
            f"{failure}: {type(error).__name__}", hint="unlock the keyring, or use key_file"
        ) from None
