"""The service of systemd or launchd that runs the daemon: its files, and what a manager is told to take
them up or let them go.
"""

import hashlib
import os
import plistlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from omegad.edge.setup import files
from omegad.edge.setup.planning import Change, World
from omegad.runtime.errors import Invalid, OmegadError

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
    return [_planned(path, None if removing else text) for path, text in _files(of, world).items()]


def is_installed(of: Service, world: World) -> bool:
    """Say whether the service has files of omegad's."""
    return any(change.state == "delete" for change in plan(of, world, removing=True))


def _planned(path: Path, after: str | None) -> Change:
    try:
        before = files.read(path)
    except OmegadError as error:
        return Change(path=path, parts=(), problem=str(error), hint=error.hint)
    if before is not None and not any(mark in before for mark in MARKS):
        return Change(
            path=path,
            parts=(),
            problem="omegad did not write it",
            hint="move it away, or leave the service to it",
        )
    return Change(path=path, parts=(), before=before, after=after)


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
        path = world.path(f"{{home}}/Library/LaunchAgents/{label}.plist")
        return {path: plistlib.dumps(agent).decode()}
    folder = world.path("{config}/systemd/user")
    words = {
        "@COMMAND@": " ".join(_quoted(word).replace("$", "$$") for word in of.command),
        "@ENVIRONMENT@": " ".join(_quoted(f"{name}={value}") for name, value in of.environment.items()),
        "@SOCKET@": str(of.socket).replace("%", "%%"),
    }
    texts = {}
    for kind in ("socket", "service"):
        text = _template(f"systemd/omegad.{kind}")
        for placeholder, word in words.items():
            text = text.replace(placeholder, word)
        texts[folder / f"{of.name}.{kind}"] = text
    return texts


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


class Step(NamedTuple):
    """A command to a service manager, and whether it has to succeed."""

    words: tuple[str, ...]
    is_needed: bool = True


def asking(world: World) -> tuple[str, ...]:
    """Return the command that succeeds where the person's service manager answers."""
    return (
        ("launchctl", "print", f"gui/{os.getuid()}")
        if world.is_macos
        else ("systemctl", "--user", "show", "--property=Version")
    )


def letting_go(of: Service, world: World) -> list[Step]:
    """Return what ends the service and forgets that it is to be started."""
    if world.is_macos:
        return [
            Step(
                ("launchctl", "bootout", f"gui/{os.getuid()}/{of.name.replace('omegad', LABEL, 1)}"),
                is_needed=False,
            )
        ]
    return [
        Step(
            ("systemctl", "--user", "disable", "--now", f"{of.name}.socket", f"{of.name}.service"),
            is_needed=False,
        )
    ]


def taking_up(of: Service, world: World, *, removing: bool = False) -> list[Step]:
    """Return what has the manager read the files as they are, and start the service unless they were taken
    away.
    """
    if world.is_macos:
        (agent,) = _files(of, world)
        return [] if removing else [Step(("launchctl", "bootstrap", f"gui/{os.getuid()}", str(agent)))]
    reload = Step(("systemctl", "--user", "daemon-reload"))
    return (
        [reload]
        if removing
        else [
            reload,
            Step(("systemctl", "--user", "enable", "--now", f"{of.name}.socket", f"{of.name}.service")),
        ]
    )


def looking(of: Service, world: World) -> dict[str, tuple[str, ...]]:
    """Return, by what is asked about, the commands that succeed where it is active."""
    if world.is_macos:
        label = of.name.replace("omegad", LABEL, 1)
        return {label: ("launchctl", "print", f"gui/{os.getuid()}/{label}")}
    return {
        f"{of.name}.{kind}": ("systemctl", "--user", "is-active", "--quiet", f"{of.name}.{kind}")
        for kind in ("socket", "service")
    }
