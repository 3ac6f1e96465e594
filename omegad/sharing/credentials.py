"""Where this home finds the post, and its password there: `share.toml`, a file that is its owner's alone. The
password is in it, or in the system's keyring under the entry that it names.

What is wrong with them is said without a word of the password.
"""

import os
import secrets
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import msgspec

from omegad.runtime import alone, secret_places
from omegad.runtime.errors import Unavailable
from omegad.sharing.post import address, post
from omegad.sharing.post.address import Address
from omegad.sharing.post.post import Deadlines, Post
from omegad.sharing.state import Team

HINT = "`omegad share join` asks for the address and the password, and keeps them anew"
SERVICE = "omegad"
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
    name = _named(kept.keyring)
    password = secret_places.in_keyring(name, name, HINT) if kept.keyring else kept.password
    return address.read(kept.url).with_password(password)


def keep(path: Path, where: Address, *, in_keyring: bool = False) -> None:
    """Write where the post is and the password, there or in the keyring, in the place of what was written.
    Raises `Unavailable`.
    """
    before, fields = _entry(path), {"url": where.url}
    if in_keyring:
        fields["keyring"] = f"share-{secrets.token_hex(8)}"
        secret_places.keep_in_keyring(where.password, _named(fields["keyring"]))
    else:
        fields["password"] = where.password
    text = _HEADER + "".join(f"{name} = {_in_toml(value)}\n" for name, value in fields.items())
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.unlink(missing_ok=True)
        alone.write(part, text.encode())
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
        text = alone.read(path, str(path)).decode()
        return msgspec.convert(tomllib.loads(text), _Kept)
    except FileNotFoundError:
        raise Unavailable(f"{path}, which says where the post is, is not there", hint=HINT) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError):
        # Without its own words, which may be of the password
        raise Unavailable(f"{path} does not say what `omegad share join` writes", hint=HINT) from None


def _in_toml(value: str) -> str:
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


def _named(entry: str) -> str:
    return f"{SERVICE}/{entry}"


def _entry(path: Path) -> str:
    """Return the entry of the keyring that the file names, nothing where there is none."""
    try:
        return _kept(path).keyring
    except Unavailable:
        return ""


def _forget(entry: str) -> None:
    if entry:
        with suppress(Unavailable):
            secret_places.forget_in_keyring(_named(entry))
