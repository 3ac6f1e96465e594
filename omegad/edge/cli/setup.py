"""The verb that registers omegad with coding agents: `omegad setup`."""

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.findings import Finding
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import confirmed, is_terminal, painted, safe, tell, warn, write_json
from omegad.edge.setup import git_hook, planning, plugin
from omegad.edge.setup.commands import installed
from omegad.edge.setup.files import Originals
from omegad.edge.setup.hosts import Host
from omegad.edge.setup.planning import Change, World
from omegad.runtime.errors import NotFound, OmegadError

COLOURS = {"+": "green", "-": "red", "@": "dim"}
DONE = {"create": "created", "change": "changed", "delete": "deleted"}


def run(arguments: Namespace, instance: Instance) -> int:
    """Set up agents, or the hook of git: show what is to be changed in which files, and do it, if that is
    wanted. Or write a plugin.
    """
    if arguments.agents[:1] == ["plugin"]:
        _write_plugin(arguments)
        return 0
    world = world_of(instance, project=Path.cwd() if arguments.project else None)
    hosts, changes = _planned(arguments, world)
    needed = planning.shared(hosts, world) if arguments.remove else {}
    kept = [change for change in changes if change.path in needed]
    changes = [change for change in changes if change.path not in needed]
    if arguments.check:
        return _check(arguments, hosts, changes)
    if not arguments.json:
        show(changes, with_new_files=arguments.diff or not hosts)
        for change in kept:
            print(f"{change.path}: kept for {', '.join(needed[change.path])}")
    is_to_do = _is_agreed(arguments, changes)
    if is_to_do:
        changes = [_carried_out(change, world, arguments) for change in changes]
    steps = {} if arguments.remove else {host.name: host.steps for host in hosts}
    if arguments.json:
        write_json({"written": is_to_do, "files": [_described(one) for one in changes], "next": steps})
    elif is_to_do and steps:
        _say_what_is_left(steps, is_of_project=arguments.project)
    if is_to_do and any(
        change.path not in needed
        for host in hosts
        for change in (planning.removals(host, world) if arguments.remove else ())
    ):
        warn(
            "another omegad was registered there before, and is again: once more with --remove takes that"
            " out too"
        )
    if is_to_do and steps and instance.paths.home != world.path("{home}/.omegad"):
        warn(
            f"agents must be started with OMEGAD_HOME={instance.paths.home}, or they use the memories in"
            " ~/.omegad"
        )
    return 1 if any(change.problem for change in changes) else 0


def _planned(arguments: Namespace, world: World) -> tuple[list[Host], list[Change]]:
    """Return the hosts that it is about, none where it is the hook of git, and what is to become of files."""
    if arguments.agents[:1] == ["git-hook"]:
        if len(arguments.agents) > 1 or arguments.project:
            raise WrongUsage(
                "`omegad setup git-hook` is about the repository in this folder, and takes nothing else"
            )
        path = git_hook.hook_path(Path.cwd())
        return [], [git_hook.plan(path, world.commands, removing=arguments.remove)]
    if arguments.agents:
        hosts = planning.named(arguments.agents)
    elif arguments.remove:
        hosts = planning.touched(world)
    elif arguments.check:
        hosts = planning.registered(world)
    elif not (hosts := planning.found(world)):
        raise NotFound(
            "no coding agent that is known was found",
            hint="name it, as in `omegad setup claude-code`; `omegad setup --help` lists them",
        )
    return hosts, planning.plan(hosts, world, removing=arguments.remove)


def world_of(instance: Instance, project: Path | None = None) -> World:
    """Return where the hosts' files are, and this omegad's commands; the originals are kept in the home."""
    return World(instance.environ, Originals(instance.paths.home / "setup"), installed(), project)


def agents(instance: Instance) -> Iterator[Finding]:
    """Check, for `omegad doctor`, what the agents that omegad is set up for are told to run."""
    world = world_of(instance)
    hosts = planning.registered(world)
    missing = [path for path in world.commands.files() if hosts and not path.is_file()]
    wrong = [change for change in planning.plan(hosts, world) if change.state != "right"]
    for path in missing:
        yield Finding("agents", "FAIL", f"{path} is not there, and agents run it", "install omegad anew")
    for change in wrong:
        seen = change.problem or f"{change.path} is not as `omegad setup` writes it"
        yield Finding("agents", "warn", seen, change.hint or f"run `omegad setup {' '.join(change.hosts)}`")
    if not (missing or wrong):
        titles = ", ".join(host.title for host in hosts) or "none; `omegad setup` does it"
        yield Finding("agents", "ok", f"set up for {titles}")


def _check(arguments: Namespace, hosts: list[Host], changes: list[Change]) -> int:
    """Say whether every file is as setup would write it."""
    is_right = all(change.state == "right" for change in changes)
    if arguments.json:
        write_json(
            {
                "ok": is_right,
                "agents": [host.name for host in hosts],
                "files": [_described(change) for change in changes],
            }
        )
    elif not (hosts or changes):
        print("omegad is set up for no agent")
    else:
        for change in changes:
            problem = f": {change.problem}" if change.problem else ""
            print(f"{'ok' if change.state == 'right' else 'DIFFERS':<9}{change.path}{problem}")
        print(
            "all is as it should be" if is_right else "run `omegad setup` to see the difference and mend it"
        )
    return 0 if is_right else 1


def show(changes: Iterable[Change], *, with_new_files: bool = True) -> None:
    """Print what is to become of files, as `diff -u` does; of those that are not there yet, on demand only
    how long they will be.
    """
    for change in changes:
        if change.problem:
            warn(f"{change.path} is left alone: {change.problem}")
            print(f"  hint: {change.hint}", file=sys.stderr)
        elif change.state == "right":
            print(painted(f"{change.path} is as it should be", "dim"))
        elif change.state == "create" and not with_new_files:
            print(
                painted(
                    f"{change.path} is new: {len((change.after or '').splitlines())} lines, for"
                    f" {' and '.join(change.what)}",
                    "green",
                )
            )
        else:
            for line in change.diff().splitlines():
                print(painted(safe(line), COLOURS[line[0]]) if line[:1] in COLOURS else safe(line))


def _is_agreed(arguments: Namespace, changes: Iterable[Change]) -> bool:
    """Ask on a terminal; elsewhere only --yes is a yes."""
    if not any(change.state in DONE for change in changes):
        return False
    if arguments.yes:
        return True
    if arguments.json:
        return False
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        print("nothing was written: --yes writes this, --diff shows every line of it")
        return False
    return confirmed("write this?")


def _carried_out(change: Change, world: World, arguments: Namespace) -> Change:
    """Write a change; one that fails becomes its own problem, and the others go on."""
    try:
        planning.carry_out(change, world, removing=arguments.remove)
    except (OmegadError, OSError) as error:
        hint = error.hint if isinstance(error, OmegadError) else "see what the system's error says"
        failed = Change(path=change.path, parts=change.parts, problem=str(error), hint=hint)
        if not arguments.json:
            show([failed])
        return failed
    if not arguments.json and change.state in DONE:
        print(f"{DONE[change.state]} {change.path}")
    return change


def _say_what_is_left(steps: Mapping[str, Iterable[str]], *, is_of_project: bool) -> None:
    """Say what is left to do for the person."""
    for name, about in steps.items():
        for step in about:
            print(f"{painted(name, 'bold')}: {step}")
    if is_of_project:
        print("what was written names paths of this machine: keep it out of what you share")
    project = "--project " if is_of_project else ""
    print(
        f"`omegad setup {project}--remove` undoes it; the files as they were are in the home's folder `setup`"
    )


def _described(change: Change) -> dict[str, object]:
    told: dict[str, object] = {
        "path": str(change.path),
        "agents": change.hosts,
        "what": change.what,
        "state": change.state,
        "diff": change.diff(),
    }
    return told | ({"problem": change.problem, "hint": change.hint} if change.problem else {})


def _write_plugin(arguments: Namespace) -> None:
    """Write the folder of a Claude Code plugin."""
    if len(arguments.agents) != len(("plugin", "DIR")):
        raise WrongUsage("`omegad setup plugin` takes the folder to write")
    folder = Path(arguments.agents[1]).expanduser().absolute()
    written = plugin.write(folder, installed())
    tell(
        arguments,
        {"folder": str(folder), "files": [str(path) for path in written]},
        f"wrote a Claude Code plugin of {len(written)} files to {folder}",
        f"try it with `claude --plugin-dir {folder}`; use it instead of `omegad setup claude-code`, not"
        " beside it: its hooks would run twice",
    )
