"""Which daemon a command is about: its home, its socket, and the environment that one started for it gets."""

import os
from argparse import Namespace

import msgspec

from omegad.edge.hook.launching import NO_SPAWN
from omegad.runtime.config import Paths, find_paths


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """A home, whether its daemon may be started, and whether the home was named on the command line."""

    paths: Paths
    environ: dict[str, str]
    may_spawn: bool = True
    is_named: bool = False

    @property
    def handed(self) -> dict[str, str]:
        """The environment of what takes the place of this process, and starts daemons itself."""
        return self.environ if self.may_spawn else {**self.environ, NO_SPAWN: "1"}


def find(arguments: Namespace) -> Instance:
    """Return the one that the options name, else the environment; raises `BadConfiguration`."""
    environ = dict(os.environ)
    if arguments.home:
        environ["OMEGAD_HOME"] = arguments.home
        environ.pop("OMEGAD_SOCKET", None)  # which belongs to the environment's home
    if arguments.socket:
        environ["OMEGAD_SOCKET"] = arguments.socket
    return at(environ, may_spawn=not arguments.no_spawn, is_named=bool(arguments.home))


def at(environ: dict[str, str], *, may_spawn: bool, is_named: bool = False) -> Instance:
    """Return the one that *environ* names, with its paths made absolute for processes that start
    elsewhere.
    """
    paths = find_paths(environ)
    absolute = {"OMEGAD_HOME": str(paths.home)}
    if environ.get("OMEGAD_SOCKET"):
        absolute["OMEGAD_SOCKET"] = str(paths.socket)
    return Instance(paths=paths, environ=environ | absolute, may_spawn=may_spawn, is_named=is_named)
