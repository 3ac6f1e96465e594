"""The verbs about the daemon itself: serve, start, stop, status; and what is said where no verb is given."""

from argparse import Namespace
from typing import TYPE_CHECKING

from omegad import __version__
from omegad.edge.cli import pausing, starting
from omegad.edge.cli.connection import Answer, ask, connected, watch
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    duration,
    grid,
    moment,
    safe,
    size,
    table,
    tell,
    warn,
    write_fields,
    write_json,
    write_table,
)
from omegad.runtime import config
from omegad.runtime.errors import OmegadError

if TYPE_CHECKING:
    from rich.console import RenderableType

VIEW_HEADER = ("VIEW", "STATE", "POSITION", "LAG")
BEGINNING = """
To begin with:
  omegad store "We deploy with blue-green since May" --type decision
  omegad query "how do we deploy?"
  omegad model install        search by meaning too, not by words alone
  omegad status --watch       see what it does
  omegad doctor               try every part
  omegad --help               all verbs"""


def serve(_arguments: Namespace, instance: Instance) -> None:
    """Be the daemon until told to stop."""
    from omegad import daemon  # noqa: PLC0415  everything a daemon needs, which no other verb does

    try:
        daemon.serve(instance.paths, config.load(instance.paths, instance.environ))
    except BaseExceptionGroup as group:
        # What goes wrong beside running tasks comes wrapped as often as tasks are nested.
        known: BaseException | None = group.subgroup(OmegadError)
        while isinstance(known, BaseExceptionGroup):
            known = known.exceptions[0]
        if known is None:
            raise
        raise known from group


def start(arguments: Namespace, instance: Instance) -> None:
    """Start the daemon unless it runs, or an older one does."""
    for warning in config.unknown_variables(instance.environ):
        warn(warning)
    before = starting.answering(instance.paths)
    if before is None:
        starting.start(instance)
    with connected(instance) as client:  # which has an older one replaced
        pid = client.call("system.ping")["pid"]
    is_new, home = pid != before, str(instance.paths.home)
    tell(
        arguments,
        {"pid": pid, "started": is_new, "home": home, "socket": str(instance.paths.socket)},
        f"omegad {'runs' if is_new else 'runs already'}: process {pid}, home {home}",
    )


def stop(arguments: Namespace, instance: Instance) -> None:
    """Stop the daemon if it runs."""
    pid = starting.stop(instance.paths)
    tell(
        arguments,
        {"pid": pid, "stopped": pid is not None},
        "no omegad was running" if pid is None else f"omegad has stopped: process {pid}",
    )


def status(arguments: Namespace, instance: Instance) -> None:
    """Show how the daemon is."""
    answer = ask(instance, "system.status")
    answer["paused"] = answer.get("paused") or pausing.here(instance)
    if arguments.watch:
        watch(arguments, instance, {}, _drawn)
    if arguments.json:
        write_json(answer)
    else:
        write_fields(_fields(answer))
        print()
        write_table(VIEW_HEADER, _views(answer))
        for trouble in answer["degraded"]:
            warn(trouble)


def _drawn(answer: Answer) -> "RenderableType":
    from rich.console import Group  # noqa: PLC0415  no other verb needs it
    from rich.text import Text  # noqa: PLC0415

    troubles = [Text(f"! {safe(trouble)}", "yellow") for trouble in answer["degraded"]]
    return Group(grid(_fields(answer)), Text(), table(VIEW_HEADER, _views(answer)), *troubles)


def _fields(answer: Answer) -> list[tuple[str, str]]:
    log, embedding = answer["log"], answer["embedding"]
    return [
        ("omegad", f"{answer['version']}, process {answer['pid']}, up {duration(answer['uptime_s'])}"),
        ("home", answer["home"]),
        ("socket", answer["socket"]),
        *([("paused", answer["paused"])] if answer.get("paused") else []),
        ("log", f"{log['head']:,} events, {size(log['bytes'])}"),
        (
            "embedding",
            (
                f"{embedding['model'] or 'no model'}, {embedding['state']}, {embedding['index_vectors']:,}"
                " vectors in memory"
            ),
        ),
        ("upkeep", _upkeep(answer)),
        ("memory", size(answer["rss_bytes"])),
        ("clients", f"{answer['connections']} connected, {answer['requests']:,} requests so far"),
    ]


def _upkeep(answer: Answer) -> str:
    last = answer.get("upkeep")
    if "upkeep" not in answer["reactions"]:
        return "off, by the setting `upkeep`"
    if last is None:
        return "not yet; once a day, when no session is at work"
    did = ", ".join(
        f"{last[kind]} {word}"
        for kind, word in (
            ("promoted", "promoted"),
            ("compacted", "summaries made"),
            ("expired", "expired"),
            ("stale", "marked as stale"),
        )
        if last[kind]
    )
    return f"{moment(last['at'])}: {did or 'nothing to do'}{', undone since' if last['undone'] else ''}"


def _views(answer: Answer) -> list[tuple[str, ...]]:
    return [
        (name, view["state"], f"{view['position']:,}", f"{view['lag']:,}")
        for name, view in answer["views"].items()
    ]


def begin(arguments: Namespace, instance: Instance) -> None:
    """Say what to do first, and whether a daemon runs; start none."""
    pid = starting.answering(instance.paths)
    home, runs = str(instance.paths.home), f"The daemon runs: process {pid}."
    if pid is None:
        runs = "No daemon runs; the first verb that needs it starts it."
    tell(
        arguments,
        {"version": __version__, "pid": pid, "home": home, "socket": str(instance.paths.socket)},
        f"omegad {__version__}: long-term memory for coding agents\n\n{runs} Home: {safe(home)}\n{BEGINNING}",
    )
