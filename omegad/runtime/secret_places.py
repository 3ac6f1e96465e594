"""Where secrets are that omegad is told of: the system's keyring, or a file that is its owner's alone,
outside the home.

What is wrong is said without a word of the secret; *place* is how a place is named to the person.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from omegad.runtime import alone
from omegad.runtime.errors import Unavailable


def in_file(name: str, home: Path, place: str, missing: str) -> str:
    """Return what a file holds. Raises `Unavailable` where it is not there, with the hint *missing*, others
    can read it, or it lies in the home.
    """
    try:
        return alone.read(outside(name, home, place), place).decode(errors="replace").strip()
    except FileNotFoundError as error:
        raise Unavailable(f"{place} cannot be read: {error.strerror}", hint=missing) from None


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


def in_keyring(name: str, shown: str, missing: str) -> str:
    """Return what the keyring has under SERVICE/USER, which is *shown* to people. Raises `Unavailable`, with
    the hint *missing* where it has nothing.
    """
    service, _, user = name.partition("/")
    with _keyring(f"the keyring's {shown} cannot be read") as ring:
        found = ring.get_password(service, user)
    if found is None:
        raise Unavailable(f"the keyring's {shown} is empty", hint=missing)
    return str(found)


def keep_in_file(secret: str, path: Path) -> None:
    """Write a new file, for its owner alone, and return when it is on the disk. Raises `Unavailable`, also
    where there is one already.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        alone.write(path, f"{secret}\n".encode())
        alone.sync(path.parent)
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}", hint="name another file") from None


def keep_in_keyring(secret: str, name: str) -> None:
    """Keep a secret in the keyring under SERVICE/USER. Raises `Unavailable`."""
    service, _, user = name.partition("/")
    with _keyring(f"the keyring's {name} cannot be written") as ring:
        ring.set_password(service, user, secret)


def forget_in_keyring(name: str) -> None:
    """Take out of the keyring what it has under SERVICE/USER. Raises `Unavailable`, also where that is
    nothing.
    """
    service, _, user = name.partition("/")
    with _keyring(f"the keyring's {name} cannot be removed") as ring:
        ring.delete_password(service, user)


@contextmanager
def _keyring(failure: str) -> Iterator[ModuleType]:
    try:
        import keyring  # noqa: PLC0415  an extra, and dear
        from keyring.errors import KeyringError  # noqa: PLC0415
    except ImportError:
        raise Unavailable(
            "the package keyring is not installed",
            hint="pip install 'omegad[keyring]', or keep the secret in a file",
        ) from None
    try:
        yield keyring
    except KeyringError as error:
        raise Unavailable(
            f"{failure}: {type(error).__name__}", hint="unlock the keyring, or keep the secret in a file"
        ) from None
