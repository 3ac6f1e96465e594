"""The service of systemd or launchd that runs the daemon: its files, and what a manager is told to take
them up or let them go.
"""

import hashlib
import os
import plistlib
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from omegad.edge.setup.planning import Change, World, planned
from omegad.runtime.errors import Invalid, Refused

LABEL = "io.github.omegad"
MARKS = ("`omegad service install`", f"<string>{LABEL}")
"""Of which one is in every file that is omegad's."""
CARRIED = ("XDG_CACHE_HOME", "PYTHONPATH")
"""What decides where models and modules are found, and has to be the same for the service."""


class Service(NamedTuple):
    """What is to be run: the command without its verb, the variables it needs, and where it listens and
    writes its log records.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    socket: Path
    log: Path


def service(world: World, home: Path, socket: Path, package_path: str) -> Service:
    """Return the service of a home; that of another home than the usual one has a name of its own.
    *package_path* is for `PYTHONPATH`.
    """
    is_usual = home == Path(os.path.realpath(world.path("{home}/.omegad")))
    suffix = "" if is_usual else f"-{hashlib.sha256(os.fsencode(home)).hexdigest()[:8]}"
    given = {**world.environ, "PYTHONPATH": package_path}
    environment = {"OMEGAD_HOME": str(home), "OMEGAD_SOCKET": str(socket)} | {
        name: given[name] for name in CARRIED if given.get(name)
    }
    command = (world.commands.python, "-P", "-m", "omegad")
    for text in (*command, *environment.values()):
        if not text.isprintable():
            raise Invalid(
                f"{text!a} cannot stand in a service file", hint="choose a path without control characters"
            )
    return Service(f"omegad{suffix}", command, environment, socket, home / "omegad.log")


def plan(of: Service, world: World, *, removing: bool = False) -> list[Change]:
    """Return what is to become of the files; one that omegad did not write is left alone."""

    def ours(text: str, before: str | None) -> str | None:
        if before is not None and not any(mark in before for mark in MARKS):
            raise Refused("omegad did not write it", hint="move it away, or leave the service to it")
        return None if removing else text

    return [planned(path, partial(ours, text)) for path, text in _files(of, world).items()]


def is_installed(of: Service, world: World) -> bool:
    """Say whether the service has files of omegad's."""
    return any(change.state == "delete" for change in plan(of, world, removing=True))


def _files(of: Service, world: World) -> dict[Path, str]:
    if world.is_macos:
        label = of.name.replace("omegad", LABEL, 1)
        agent = plistlib.loads(_template(f"launchd/{LABEL}.plist").encode())
        agent |= {
            "Label": label,
            "ProgramArguments": [*of.command, *agent["ProgramArguments"]],
            "EnvironmentVariables": dict(of.environment),
            "StandardErrorPath": str(of.log),
        }
        agent["Sockets"]["Listener"]["SockPathName"] = str(of.socket)
        return {world.path(f"{{home}}/Library/LaunchAgents/{label}.plist"): plistlib.dumps(agent).decode()}
    folder = world.path("{config}/systemd/user")
    words = {
        "@COMMAND@": " ".join(_quoted(word).replace("$", "$$") for word in of.command),
        "@ENVIRONMENT@": " ".join(_quoted(f"{name}={value}") for name, value in of.environment.items()),
        "@SOCKET@": str(of.socket).replace("%", "%%"),
    }
    return {
        folder / f"{of.name}.{kind}": re.sub(
            "|".join(words), lambda found: words[found[0]], _template(f"systemd/omegad.{kind}")
        )
        for kind in ("socket", "service")
    }


def _quoted(word: str) -> str:
    """Write a word as systemd.service(5) has it, where a per cent sign begins a specifier."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _template(name: str) -> str:
    """Return a file of the distribution: beside this one in an installed package, at the top of a
    checkout.
    """
    places = [Path(__file__).parent / name, Path(__file__).parents[3] / name]
    return next(place for place in places if place.exists()).read_text(encoding="utf-8")


Words = tuple[str, ...]


class Orders(NamedTuple):
    """The commands to a service manager."""

    asking: Words
    """Succeeds where the person's service manager answers."""
    letting_go: Words
    """Ends the service and forgets that it is to be started; fails where there is none."""
    taking_up: tuple[Words, ...]
    """Have it read the files as they are, and start the service."""
    taken_away: tuple[Words, ...]
    """Have it see that the files are gone."""
    looking: Mapping[str, Words]
    """By what is asked about, what succeeds where that is active."""


def orders(of: Service, world: World) -> Orders:
    """Return what the system's manager is told about a service."""
    if world.is_macos:
        domain, label = f"gui/{os.getuid()}", of.name.replace("omegad", LABEL, 1)
        (agent,) = _files(of, world)
        return Orders(
            asking=("launchctl", "print", domain),
            letting_go=("launchctl", "bootout", f"{domain}/{label}"),
            taking_up=(("launchctl", "bootstrap", domain, str(agent)),),
            taken_away=(),
            looking={label: ("launchctl", "print", f"{domain}/{label}")},
        )
    systemctl, names = ("systemctl", "--user"), (f"{of.name}.socket", f"{of.name}.service")
    reload = (*systemctl, "daemon-reload")
    return Orders(
        asking=(*systemctl, "show", "--property=Version"),
        letting_go=(*systemctl, "disable", "--now", *names),
        taking_up=(reload, (*systemctl, "enable", "--now", *names)),
        taken_away=(reload,),
        looking={name: (*systemctl, "is-active", "--quiet", name) for name in names},
    )
