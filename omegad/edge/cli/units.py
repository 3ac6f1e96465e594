"""The verbs that have the operating system run the daemon: `omegad service install`, `uninstall` and
`status`.
"""

import subprocess
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence

from omegad.edge.cli import setup, starting
from omegad.edge.cli.findings import Finding, doubtful, failed, ok
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import painted, write_json
from omegad.edge.setup import planning, units
from omegad.edge.setup.planning import Change, World
from omegad.edge.setup.units import Service, Step
from omegad.rpc import endpoint
from omegad.runtime.errors import NoDaemon, Refused, Unavailable

MANAGER_S = 330.0  # longer than a start may take, see TimeoutStartSec in the unit
LOGS = {False: "journalctl --user -u", True: "omegad.log in the home;"}


def install(arguments: Namespace, instance: Instance) -> int:
    """Show the service's files, write them, and start it; where all is as it should be, nothing is done."""
    service, world = _of(instance)
    changes = units.plan(service, world)
    is_right = all(change.state == "right" for change in changes)
    if arguments.dry_run:
        return _show(arguments, changes, written=False)
    _need_manager(world)
    if is_right and all(_active(service, world).values()):
        return _show(arguments, changes, written=False)
    _refuse_problems(changes)
    _carry_out(units.letting_go(service, world), world)
    starting.stop(instance.paths)
    endpoint.private_directory(instance.paths.home, "OMEGAD_HOME")
    endpoint.private_directory(instance.paths.socket.parent)
    for change in changes:
        planning.carry_out(change, world)
    _carry_out(units.taking_up(service, world), world)
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
    changes = units.plan(service, world, removing=True)
    if arguments.dry_run or all(change.state == "right" for change in changes):
        return _show(arguments, changes, written=False)
    _need_manager(world)
    _refuse_problems(changes)
    _carry_out(units.letting_go(service, world), world)
    for change in reversed(changes):  # the folders that were made for the first go last
        planning.carry_out(change, world, removing=True)
    _carry_out(units.taking_up(service, world, removing=True), world)
    return _show(arguments, changes, written=True)


def status(arguments: Namespace, instance: Instance) -> int:
    """Say whether the files are as `omegad service install` writes them, and what the manager makes of
    them.
    """
    service, world = _of(instance)
    changes, active = units.plan(service, world), _active(service, world)
    is_well = all(change.state == "right" for change in changes) and all(active.values())
    if arguments.json:
        write_json(
            {
                "ok": is_well,
                "files": {str(change.path): _state(change) for change in changes},
                "active": active,
            }
        )
        return 0 if is_well else 1
    for change in changes:
        print(f"{change.path}: {_state(change)}")
    for name, is_active in active.items():
        print(f"{name}: {'active' if is_active else 'not active'}")
    if not is_well:
        print("run `omegad service install`")
    return 0 if is_well else 1


def examine(instance: Instance) -> Iterator[Finding]:
    """Check, for `omegad doctor`, a service that is installed."""
    service, world = _of(instance)
    if not units.is_installed(service, world):
        yield ok(
            "service",
            "none; the first verb that needs the daemon starts it. `omegad service install` has the system"
            " do it",
        )
        return
    differing = [str(change.path) for change in units.plan(service, world) if change.state != "right"]
    sleeping = [
        name
        for name, is_active in _active(service, world).items()
        if not is_active and not name.endswith(".service")
    ]
    if differing:
        yield doubtful(
            "service",
            f"{', '.join(differing)} differ from what this omegad writes",
            "run `omegad service install`",
        )
    if sleeping:
        yield failed("service", f"not active: {', '.join(sleeping)}", "run `omegad service install`")
    if not (differing or sleeping):
        yield ok("service", f"{service.name} is installed, and its socket is listened on")


def runs_another(instance: Instance) -> bool:
    """Say whether a service is installed that runs another omegad than this one."""
    service, world = _of(instance)
    return units.is_installed(service, world) and any(
        change.state != "right" for change in units.plan(service, world)
    )


def _of(instance: Instance) -> tuple[Service, World]:
    world = setup.world_of(instance)
    return (
        units.service(
            world, instance.paths.home, instance.paths.socket, starting.package_path(instance.environ)
        ),
        world,
    )


def _state(change: Change) -> str:
    return change.problem or {"right": "as it should be", "create": "not installed"}.get(
        change.state, "differs"
    )


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


def _refuse_problems(changes: Iterable[Change]) -> None:
    for change in changes:
        if change.problem:
            raise Refused(f"{change.path}: {change.problem}", hint=change.hint)


def _active(service: Service, world: World) -> dict[str, bool]:
    return {name: _run(words, world) is None for name, words in units.looking(service, world).items()}


def _need_manager(world: World) -> None:
    if (problem := _run(units.asking(world), world)) is not None:
        raise Unavailable(
            f"no service manager of yours answers: {problem}",
            hint=(
                "log in as yourself, not by su or sudo; where there is none, as in containers, `omegad start`"
                " runs the daemon"
            ),
        )


def _carry_out(steps: Iterable[Step], world: World) -> None:
    for step in steps:
        problem = _run(step.words, world)
        if problem is not None and step.is_needed:
            raise Unavailable(
                f"`{' '.join(step.words)}` failed: {problem}",
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
