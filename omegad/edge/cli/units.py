"""The verbs that have the operating system run the daemon: `omegad service install`, `uninstall` and
`status`.
"""

import subprocess
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence

from omegad.edge.cli import setup, starting
from omegad.edge.cli.findings import Finding
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import painted, tell, write_json
from omegad.edge.setup import planning, units
from omegad.edge.setup.planning import Change, World
from omegad.edge.setup.units import Orders, Service, Words
from omegad.rpc import endpoint
from omegad.runtime import derived
from omegad.runtime.errors import NoDaemon, Refused, Unavailable

MANAGER_S = 330.0  # longer than a start may take, see TimeoutStartSec in the unit
LOGS = {False: "journalctl --user -u", True: "omegad.log in the home;"}


def install(arguments: Namespace, instance: Instance) -> int:
    """Show the service's files, write them, and start it; where all is as it should be, nothing is done."""
    service, world = _of(instance)
    changes, orders = units.plan(service, world), units.orders(service, world)
    is_right = all(change.state == "right" for change in changes)
    if arguments.dry_run or (is_right and all(_active(orders, world).values())):
        return _show(arguments, changes, written=False)
    _let_go(changes, orders, world)
    starting.stop(instance.paths)
    starting.make_home(instance.paths)
    endpoint.private_directory(instance.paths.socket.parent)
    for change in changes:
        planning.carry_out(change, world)
    _carry_out(orders.taking_up, world)
    pid = starting.answering(instance.paths)
    if pid is None:
        raise NoDaemon(
            "the service does not answer", hint=f"{LOGS[world.is_macos]} {service.name} may say why"
        )
    status = _show(arguments, changes, written=True)
    if not arguments.json:
        print(f"omegad runs as a service: process {pid}")
        print(
            "it ends when you log out, but where `loginctl enable-linger` was run"
            if not world.is_macos
            else "it starts when you log in"
        )
    return status


def uninstall(arguments: Namespace, instance: Instance) -> int:
    """End the service and take its files away; the memories stay."""
    service, world = _of(instance)
    changes, orders = units.plan(service, world, removing=True), units.orders(service, world)
    if arguments.dry_run or all(change.state == "right" for change in changes):
        return _show(arguments, changes, written=False)
    _let_go(changes, orders, world)
    for change in reversed(changes):  # the folders that were made for the first go last
        planning.carry_out(change, world, removing=True)
    _carry_out(orders.taken_away, world)
    return _show(arguments, changes, written=True)


def status(arguments: Namespace, instance: Instance) -> int:
    """Say whether the files are as `omegad service install` writes them, and what the manager makes of
    them.
    """
    service, world = _of(instance)
    changes, active = units.plan(service, world), _active(units.orders(service, world), world)
    is_well = all(change.state == "right" for change in changes) and all(active.values())
    states = {"right": "as it should be", "create": "not installed"}
    files = {str(change.path): change.problem or states.get(change.state, "differs") for change in changes}
    tell(
        arguments,
        {"ok": is_well, "files": files, "active": active},
        *(f"{path}: {state}" for path, state in files.items()),
        *(f"{name}: {'active' if is_active else 'not active'}" for name, is_active in active.items()),
        *(() if is_well else ("run `omegad service install`",)),
    )
    return 0 if is_well else 1


def examine(instance: Instance) -> Iterator[Finding]:
    """Check, for `omegad doctor`, a service that is installed."""
    service, world = _of(instance)
    if not units.is_installed(service, world):
        yield Finding(
            "service",
            "ok",
            "none; the first verb or session that needs the daemon starts it. `omegad service install` has"
            " the system do it",
        )
        return
    differing = [str(change.path) for change in units.plan(service, world) if change.state != "right"]
    sleeping = [
        name
        for name, is_active in _active(units.orders(service, world), world).items()
        if not is_active and not name.endswith(".service")
    ]
    if differing:
        yield Finding(
            "service",
            "warn",
            f"{', '.join(differing)} differ from what this omegad writes",
            "run `omegad service install`",
        )
    if sleeping:
        yield Finding("service", "FAIL", f"not active: {', '.join(sleeping)}", "run `omegad service install`")
    if not (differing or sleeping):
        yield Finding("service", "ok", f"{service.name} is installed, and its socket is listened on")


def runs_another(instance: Instance) -> bool:
    """Say whether a service is installed that runs another omegad than this one."""
    service, world = _of(instance)
    return units.is_installed(service, world) and any(
        change.state != "right" for change in units.plan(service, world)
    )


def _of(instance: Instance) -> tuple[Service, World]:
    world = setup.world_of(instance)
    path = derived.importing(instance.environ).get("PYTHONPATH", "")
    return units.service(world, instance.paths.home, instance.paths.socket, path), world


def _show(arguments: Namespace, changes: Sequence[Change], *, written: bool) -> int:
    if arguments.json:
        write_json(
            {
                "written": written,
                "files": [{"path": str(one.path), "state": one.state, "diff": one.diff()} for one in changes],
            }
        )
    else:
        setup.show(changes)
        if not written and any(change.state != "right" for change in changes):
            print(painted("nothing was written", "dim"))
    return 1 if any(change.problem for change in changes) else 0


def _active(orders: Orders, world: World) -> dict[str, bool]:
    return {name: _run(words, world) is None for name, words in orders.looking.items()}


def _let_go(changes: Iterable[Change], orders: Orders, world: World) -> None:
    """Have the service end; raises `Unavailable` and `Refused` where nothing can be done about it."""
    if (problem := _run(orders.asking, world)) is not None:
        raise Unavailable(
            f"no service manager of yours answers: {problem}",
            hint=(
                "log in as yourself, not by su or sudo; where there is none, as in containers, `omegad start`"
                " runs the daemon"
            ),
        )
    for change in changes:
        if change.problem:
            raise Refused(f"{change.path}: {change.problem}", hint=change.hint)
    _run(orders.letting_go, world)


def _carry_out(commands: Iterable[Words], world: World) -> None:
    for words in commands:
        if (problem := _run(words, world)) is not None:
            raise Unavailable(
                f"`{' '.join(words)}` failed: {problem}",
                hint="`omegad service status` shows how far it came; `omegad doctor`",
            )


def _run(words: Sequence[str], world: World) -> str | None:
    """Give the manager a command; return None where it succeeds, else what it said."""
    try:
        done = subprocess.run(  # noqa: S603
            words, env=dict(world.environ), capture_output=True, text=True, timeout=MANAGER_S, check=False
        )
    except FileNotFoundError:
        return f"there is no {words[0]}"
    except subprocess.TimeoutExpired:
        return f"it took longer than {MANAGER_S:.0f} s"
    said = (done.stderr or done.stdout).strip()
    return None if done.returncode == 0 else said or f"it ended with status {done.returncode}"
