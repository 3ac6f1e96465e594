"""The verbs about the daemon itself: serve, start, stop, status."""

from argparse import Namespace

from omegad import config
from omegad.cli import starting
from omegad.cli.connection import Answer, ask
from omegad.cli.place import Place
from omegad.cli.printing import duration, size, warn, write_fields, write_json, write_table
from omegad.errors import OmegadError


def serve(arguments: Namespace, place: Place) -> int:
    """Be the daemon until told to stop."""
    from omegad import daemon  # noqa: PLC0415  everything a daemon needs, which no other verb does

    del arguments
    try:
        daemon.serve(place.paths, config.load(place.paths, place.environ))
    except BaseExceptionGroup as group:
        # What goes wrong beside running tasks comes wrapped as often as tasks are nested.
        known = group.subgroup(OmegadError)
        if known is None:
            raise
        raise _first(known) from group
    return 0


def _first(group: BaseExceptionGroup[OmegadError]) -> OmegadError:
    leaf: BaseException = group
    while isinstance(leaf, BaseExceptionGroup):
        leaf = leaf.exceptions[0]
    assert isinstance(leaf, OmegadError)
    return leaf


def start(arguments: Namespace, place: Place) -> int:
    """Start the daemon unless it runs."""
    for warning in config.unknown_variables(place.environ):
        warn(warning)
    pid = starting.answering(place.paths)
    is_new = pid is None
    if pid is None:
        pid = starting.start(place)
    if arguments.json:
        write_json({"pid": pid, "started": is_new, "home": str(place.paths.home), "socket": str(place.paths.socket)})
    else:
        print(f"omegad {'runs' if is_new else 'runs already'}: process {pid}, home {place.paths.home}")
    return 0


def stop(arguments: Namespace, place: Place) -> int:
    """Stop the daemon if it runs."""
    pid = starting.stop(place.paths)
    if arguments.json:
        write_json({"pid": pid, "stopped": pid is not None})
    else:
        print(f"omegad has stopped: process {pid}" if pid is not None else "no omegad was running")
    return 0


def status(arguments: Namespace, place: Place) -> int:
    """Show how the daemon is."""
    answer = ask(place, "system.status")
    if arguments.json:
        write_json(answer)
        return 0
    log, embedding = answer["log"], answer["embedding"]
    model = f"{embedding['model'] or 'no model'}, {embedding['state']}, {embedding['mirror_vectors']:,} vectors in memory"
    write_fields(
        [
            ("omegad", f"{answer['version']}, process {answer['pid']}, up {duration(answer['uptime_s'])}"),
            ("home", answer["home"]),
            ("socket", answer["socket"]),
            ("log", f"{log['head']:,} events, {size(log['bytes'])}"),
            ("embedding", model),
            ("memory", size(answer["rss_bytes"])),
            ("clients", f"{answer['connections']} connected, {answer['requests']:,} requests so far"),
        ]
    )
    print()
    write_table(("VIEW", "STATE", "POSITION", "LAG"), [_view(name, view) for name, view in answer["views"].items()])
    for trouble in answer["degraded"]:
        warn(trouble)
    return 0


def _view(name: str, view: Answer) -> tuple[object, ...]:
    return name, view["state"], f"{view['position']:,}", f"{view['lag']:,}"
