"""Where this home finds the post, and its password there: `share.toml`, a file that is its owner's alone. The
password is in it, or in the system's keyring under the entry that it names.

What is wrong with them is said without a word of the password.
"""

import os
import secrets
import stat
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import ModuleType

import anyio
import msgspec

from omegad.runtime.errors import Unavailable
from omegad.sharing.post import address, post
from omegad.sharing.post.address import Address
from omegad.sharing.post.post import Deadlines, Post
from omegad.sharing.state import Team

HINT = "`omegad share join` asks for the address and the password, and keeps them anew"
SERVICE = "omegad"
BYTES_MAX = 65_536
KEYRING_S = 10.0  # for one that asks the person first
_HEADER = "# Where the team's post is, and the password there, which nobody else may read.\n"


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str
    password: str = ""
    keyring: str = ""


@asynccontextmanager
async def connected(path: Path, team: Team) -> AsyncIterator[Post]:
    """Connect to the post as the home's file says. Raises what `read` and `post.connected` do."""
    try:
        with anyio.fail_after(KEYRING_S):
            where = await anyio.to_thread.run_sync(read, path, abandon_on_cancel=True)
    except TimeoutError:
        raise Unavailable(f"the keyring did not answer in {KEYRING_S:g} s", hint="unlock it") from None
    async with post.connected(where, team.team, Deadlines()) as connection:
        yield connection


def read(path: Path) -> Address:
    """Return where the post is, with the password.

    Raises `Unavailable` for a file that is not there, others can read, or that says something else, and for a
    keyring that does not tell; `BadAddress`.
    """
    kept = _kept(path)
    password = _in_keyring(kept.keyring) if kept.keyring else kept.password
    return address.read(kept.url).with_password(password)


def keep(path: Path, where: Address, *, in_keyring: bool = False) -> None:
    """Write where the post is and the password, there or in the keyring, in the place of what was written.
    Raises `Unavailable`.
    """
    before, fields = _entry(path), {"url": where.url}
    if in_keyring:
        fields["keyring"] = f"share-{secrets.token_hex(8)}"
        with _keyring() as ring:
            ring.set_password(SERVICE, fields["keyring"], where.password)
    else:
        fields["password"] = where.password
    text = _HEADER + "".join(f"{name} = {_in_toml(value)}\n" for name, value in fields.items())
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)  # whatever the umask says
            file.write(text.encode())
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        _forget(fields.get("keyring", ""))
        raise Unavailable(f"{path} cannot be written: {error.strerror}") from None
    _forget(before)


def forget(path: Path) -> None:
    """Remove the file, and what it names in the keyring."""
    _forget(_entry(path))
    path.unlink(missing_ok=True)


def _kept(path: Path) -> _Kept:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Unavailable(f"{path}, which says where the post is, is not there", hint=HINT) from None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}", hint=HINT) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise Unavailable(
                f"{path} is not a file of yours alone (mode {stat.S_IMODE(found.st_mode):04o})",
                hint=f"chmod 600 {path}; where others could read the password, ask for another",
            )
        text = os.read(descriptor, BYTES_MAX).decode()
        return msgspec.convert(tomllib.loads(text), _Kept)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError):
        # Without its own words, which may be of the password
        raise Unavailable(f"{path} does not say what `omegad share join` writes", hint=HINT) from None
    finally:
        os.close(descriptor)


def _in_toml(value: str) -> str:
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


@contextmanager
def _keyring() -> Iterator[ModuleType]:
    """Hand out the system's keyring."""
    try:
        import keyring  # noqa: PLC0415  an extra, and dear
        from keyring.errors import KeyringError  # noqa: PLC0415
    except ImportError:
        raise Unavailable(
            "the package keyring is not installed",
            hint="pip install 'omegad[keyring]', or leave out --keyring",
        ) from None
    try:
        yield keyring
    except KeyringError as error:
        raise Unavailable(
            f"the keyring cannot be used: {type(error).__name__}",
            hint="unlock the keyring, or join without --keyring",
        ) from None


def _in_keyring(entry: str) -> str:
    with _keyring() as ring:
        password = ring.get_password(SERVICE, entry)
    if password is None:
        raise Unavailable(f"the keyring has no entry {entry} of {SERVICE}", hint=HINT)
    return str(password)


def _entry(path: Path) -> str:
    """Return the entry of the keyring that the file names, nothing where there is none."""
    try:
        return _kept(path).keyring
    except Unavailable:
        return ""


def _forget(entry: str) -> None:
    if entry:
        with suppress(Unavailable), _keyring() as ring:
            ring.delete_password(SERVICE, entry)
