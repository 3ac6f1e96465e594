"""How an address of a post is given on the command line, and its password, which is never an argument: of a
file, of standard input, or asked for on the terminal.
"""

import sys
from argparse import Namespace
from getpass import getpass
from pathlib import Path

from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.printing import is_terminal, warn
from omegad.runtime.errors import Unavailable
from omegad.sharing.post import address
from omegad.sharing.post.address import Address

BYTES_MAX = 4_096
ADDRESS = "postgresql://LOGIN@HOST/DATABASE"


def required(value: str | None, name: str) -> str:
    """Return what was given. Raises `WrongUsage` where nothing was."""
    if not value:
        raise WrongUsage(f"{name} is needed")
    return value


def address_given(arguments: Namespace) -> Address:
    """Read the address, and say what becomes of a password in it. Raises `WrongUsage`, `BadAddress`,
    `NotEncrypted`.
    """
    where = address.read(required(arguments.url, f"the address of the post, {ADDRESS},"))
    if where.password:
        warn("the shell remembers the password in the address: take the line out of its history")
    return _of_file(arguments, where)


def _of_file(arguments: Namespace, where: Address) -> Address:
    name = arguments.password_file
    if not name:
        return where
    try:
        with Path(name).expanduser().open("rb") as file:
            return where.with_password(_one_line(file.read(BYTES_MAX)))
    except OSError as error:
        raise Unavailable(
            f"{name} cannot be read: {error.strerror}", hint="--password-file names a file with the password"
        ) from None


def password_given(arguments: Namespace, where: Address) -> Address:
    """Return the address with a password: its own, else one asked for on the terminal, or the first line of
    standard input.
    """
    if where.password or arguments.password_file:
        return where
    if is_terminal(sys.stdin):
        return asked_for(where)
    return where.with_password(_one_line(sys.stdin.buffer.readline(BYTES_MAX) if sys.stdin else b""))


def asked_for(where: Address) -> Address:
    """Return the address with a password that is typed without being shown."""
    return where.with_password(getpass(f"password of {where.user} at {where.place}: "))


def _one_line(said: bytes) -> str:
    try:
        return said.decode().partition("\n")[0].rstrip("\r")
    except UnicodeDecodeError:
        raise WrongUsage("the password is not UTF-8") from None
