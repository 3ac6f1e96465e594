"""The verbs that seal a home and open it again. No daemon serves it meanwhile."""

import os
import secrets
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getpass
from pathlib import Path

from omegad.edge.cli import starting
from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.asking_first import is_wanted
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import counted, is_terminal, tell, warn
from omegad.operations import home_key
from omegad.operations import seal as home_seal
from omegad.operations.home_key import Seal
from omegad.rpc import endpoint
from omegad.runtime.config import Paths
from omegad.runtime.errors import Refused
from omegad.storage import sealing
from omegad.storage.driver import sqlite

KEY_BYTES_MAX = 4_096
LEFT = (
    "what was plain is overwritten here; it may be left in backups and exports made before, in snapshots of"
    " the file system, and in blocks that an SSD or a copy-on-write file system has put elsewhere"
)
STILL_PLAIN = "identity/, skills/, setup/, config.toml, share.toml and omegad.log stay plain"


def seal(arguments: Namespace, instance: Instance) -> int:
    """Make a key, keep it, show it for the person to write down, and seal the home by it; with --recover take
    the key in again. Exit with status 1 where the person does not go on.
    """
    if arguments.key_file and arguments.keyring:
        raise WrongUsage("pass --key-file or --keyring, not both")
    if arguments.key_file == "":  # as of a variable that is not set
        raise WrongUsage("--key-file needs a path")
    if not (arguments.recover or arguments.yes or is_terminal(sys.stdin)):
        warn(
            "nothing was sealed: it shows a key, and asks whether that is written down; run it at a terminal,"
            " or with --yes and keep the key that it prints"
        )
        return 1
    with held(instance) as paths:
        sqlite.seal()
        if arguments.recover:
            return _recover(arguments, paths)
        if left := home_seal.broken_off(paths):
            warn(f"a sealing was broken off before; nothing is sealed by its key, which is in {left.place}")
        if (found := home_seal.enter(paths)) is not None:
            raise Refused(
                f"the home is sealed already; its key is in {found.place}",
                hint="`omegad unseal` makes it plain",
            )
        home_seal.check_apart(paths)
        key = sealing.new_key()
        with _kept(key, arguments, paths) as told:
            print(f"The recovery key of {paths.home}:\n\n  {home_key.written(key)}\n", file=sys.stderr)
            print(
                f"It will be kept in {told.place}. Write it down and keep it elsewhere: without it, and"
                " without that, nobody can read the home, or its backups.",
                file=sys.stderr,
            )
            if not arguments.yes and not is_wanted(
                "Is it written down, and the home to be sealed?",
                "nothing was sealed, and the key is kept nowhere",
            ):
                return 1
            sealing.hold(key)
            with _told_where_interrupted(paths), counted("sealing") as progress:
                home_seal.seal_home(paths, told, progress)
    tell(
        arguments,
        {"home": str(paths.home), "key": told.place, "recovery_key": home_key.written(key)},
        f"{paths.home} is sealed by the key in {told.place}; {STILL_PLAIN}",
    )
    if not arguments.json:
        warn(LEFT)
    return 0


def unseal(arguments: Namespace, instance: Instance) -> int:
    """Write all of a sealed home plain. Exit with status 1 where the person does not go on."""
    starting.require_home(instance.paths)
    with held(instance) as paths:
        if (told := home_seal.enter(paths)) is None:
            raise Refused("the home is not sealed", hint="`omegad seal` encrypts it")
        if not arguments.yes and not is_wanted(
            "Everybody who has the files can read them then. Go on?", "nothing was changed: run it with --yes"
        ):
            return 1
        with _told_where_interrupted(paths), counted("unsealing") as progress:
            home_seal.unseal_home(paths, progress)
        sealed = list(map(str, home_seal.still_sealed(paths)))
    tell(
        arguments,
        {"home": str(paths.home), "key": told.place, "still_sealed": sealed},
        f"{paths.home} is plain; its key stays in {told.place}, for backups made while it was sealed",
    )
    if sealed and not arguments.json:
        warn(f"set aside before, and sealed still by that key: {', '.join(sealed)}")
    return 0


def _recover(arguments: Namespace, paths: Paths) -> int:
    """Keep a key that the person has, where it is asked to be, as that of the home."""
    text = (
        getpass("The recovery key, which is not shown: ")
        if is_terminal(sys.stdin)
        else sys.stdin.read(KEY_BYTES_MAX)
    )
    key = home_key.read_key(text)
    sealing.hold(key)
    home_seal.check_recovered(paths, key)
    with _kept(key, arguments, paths) as told:
        home_seal.recover(paths, told)
    tell(
        arguments,
        {"home": str(paths.home), "key": told.place},
        f"the key of {paths.home} is in {told.place}: `omegad start` serves the home, `omegad restore FILE`"
        " takes in backups that are sealed by it",
    )
    return 0


@contextmanager
def _kept(key: bytes, arguments: Namespace, paths: Paths) -> Iterator[Seal]:
    """Keep a key where it is asked to be, and no longer than the block where the home is not sealed by it
    then.
    """
    name = secrets.token_hex(4)
    if arguments.keyring:
        seal = home_key.kept(key, paths, keyring=f"{home_key.SERVICE}/home-{name}")
    else:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser().absolute()
        given = Path(arguments.key_file).expanduser().absolute() if arguments.key_file else None
        seal = home_key.kept(key, paths, key_file=str(given or folder / "omegad" / f"home-{name}.key"))
    try:
        yield seal
    finally:
        if home_seal.told(paths) != seal:
            home_key.forget(seal)


@contextmanager
def _told_where_interrupted(paths: Paths) -> Iterator[None]:
    """Say what the home is where Ctrl-C breaks the block off."""
    try:
        yield
    except KeyboardInterrupt:
        seal = home_seal.told(paths)
        is_so = f"sealed, by the key in {seal.place}" if seal else "plain"
        warn(f"broken off: the home is {is_so}; what is left to do, the next start does")
        raise


@contextmanager
def held(instance: Instance) -> Iterator[Paths]:
    """Hold a home, which is made if need be, so that no daemon serves it. Raises `AlreadyRunning`."""
    os.umask(0o077)
    starting.make_home(instance.paths)
    with endpoint.lock(instance.paths.lock):
        yield instance.paths
