"""The verbs about the daemon itself: serve, start, stop, status, and what is said where no verb is given; and
those that pause it, which ask no daemon: a file of the home says so to all.
"""

import gc
import os
import re
import time
from argparse import Namespace
from contextlib import suppress
from pathlib import Path

from omegad import __version__
from omegad.edge.cli import starting
from omegad.edge.cli.connection import Answer, ask, connected, watch
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    duration,
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
from omegad.runtime import config, interrupting, pausing
from omegad.runtime.errors import Invalid, OmegadError

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
SPAN = re.compile(r"(\d{1,6}) ?([smhdw])")
SPAN_S_MAX = 3_660 * 86_400
PART_SHOWN_BYTES = 64 * 1024
MORE_THAN_ONE = 1.5  # what is rounded to two
IN_STEP = "all views are in step with the log"
VIEW_HEADER = ("VIEW", "STATE", "POSITION", "LAG")
INSTALLING = "  omegad model install        search by meaning too, not by words alone\n"
BEGINNING = """
To begin with:
  omegad store "We deploy with blue-green since May" --type decision
  omegad query "how do we deploy?"
{}  omegad status --watch       see what it does
  omegad doctor               try every part
  omegad --help               all verbs"""


def serve(_arguments: Namespace, instance: Instance) -> None:
    """Be the daemon until told to stop; until it listens to signals Ctrl-C ends it at once."""
    interrupting.end_at_once()
    gc.disable()  # what is imported stays, and looking through it for what could go takes time
    from omegad import daemon  # noqa: PLC0415  everything a daemon needs, which no other verb does

    gc.enable()
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
    """Stop the daemon if it runs. Raises `NoHome` where the home that was named is not there."""
    pid = starting.stop(instance.paths)
    if pid is None and instance.is_named:  # a name may be mistyped
        starting.require_home(instance.paths)
    tell(
        arguments,
        {"pid": pid, "stopped": pid is not None},
        "no omegad was running" if pid is None else f"omegad has stopped: process {pid}",
    )


def status(arguments: Namespace, instance: Instance) -> None:
    """Show how the daemon is, or what its files grow by."""
    if arguments.growth:
        _growth(arguments, ask(instance, "system.growth"))
        return
    answer = ask(instance, "system.status")
    answer["paused"] = answer.get("paused") or _paused_here(instance)
    if arguments.watch:
        from rich.console import Group  # noqa: PLC0415  nothing else needs it
        from rich.text import Text  # noqa: PLC0415

        watch(
            arguments,
            instance,
            {},
            lambda answer: Group(
                table((), _fields(answer)),
                Text(),
                table(VIEW_HEADER, behind) if (behind := _views(answer)) else Text(IN_STEP),
                *(Text(f"! {safe(trouble)}", "yellow") for trouble in answer["degraded"]),
            ),
        )
    if arguments.json:
        write_json(answer)
    else:
        write_fields(_fields(answer))
        print()
        write_table(VIEW_HEADER, _views(answer), none=IN_STEP)
        for trouble in answer["degraded"]:
            warn(trouble)


def _growth(arguments: Namespace, answer: Answer) -> None:
    if arguments.json:
        write_json(answer)
        return
    days = max(min(answer["logged_days"], answer["days"]), 1.0)
    print(f"the log within {f'{days:.0f} days' if days >= MORE_THAN_ONE else 'a day'}")
    rows = [
        (
            one["tag"],
            f"{one['events']:,}",
            size(one["payload_bytes"]),
            size(one["row_bytes"]),
            f"{one['events'] / days:,.0f}",
            size((one["payload_bytes"] + one["row_bytes"]) / days),
        )
        for one in answer["kinds"]
    ]
    write_table(("EVENT", "EVENTS", "PAYLOADS", "ROWS", "A DAY", "BYTES A DAY"), rows, none="no events")
    if rows:
        print(_beside_rows(answer))
    print()
    shown = [one for one in answer["parts"] if one["bytes"] >= PART_SHOWN_BYTES]
    write_table(
        ("FILE", "WHAT", "NAME", "BYTES"),
        [(one["file"], one["kind"], one["name"], size(one["bytes"])) for one in shown],
        none=f"no table has {size(PART_SHOWN_BYTES)} yet",
    )


def _beside_rows(answer: Answer) -> str:
    """Say what events take beside their rows: in figures where those of the whole log were counted."""
    says = "these are rows alone: pages that are not full, indexes and state take more"
    if not answer.get("is_whole"):
        return f"{says}, as below"
    rows = sum(one["payload_bytes"] + one["row_bytes"] for one in answer["kinds"])
    taken = sum(
        one["bytes"]
        for one in answer["parts"]
        if one["file"] == "log" and one["name"] not in {"free", "write-ahead log"}
    )
    return f"{says}: of {size(taken)} in log.db they are {size(rows)}"


def _fields(answer: Answer) -> list[tuple[str, str]]:
    log, embedding = answer["log"], answer["embedding"]
    return [
        ("omegad", f"{answer['version']}, process {answer['pid']}, up {duration(answer['uptime_s'])}"),
        ("home", answer["home"]),
        ("socket", answer["socket"]),
        *([("paused", answer["paused"])] if answer.get("paused") else []),
        ("sealed", f"by the key in {answer['sealed']}" if answer.get("sealed") else "no: files are plain"),
        ("log", f"{log['head']:,} events, {size(log['bytes'])}"),
        ("embedding", _models(embedding)),
        ("upkeep", _upkeep(answer)),
        ("retention", _retention(answer.get("retention"))),
        *([("sharing", _sharing(share))] if (share := answer.get("share")) else []),
        ("memory", size(answer["rss_bytes"])),
        ("clients", f"{answer['connections']} connected, {answer['requests']:,} requests so far"),
    ]


def _models(embedding: Answer) -> str:
    # A daemon before this one tells of the first alone.
    there = embedding.get("models") or {embedding["model"]: embedding["state"]}
    told = "; ".join(
        f"{name or 'no model'}, {'not loaded yet' if state == 'unloaded' else state}"
        for name, state in there.items()
    )
    many = embedding["index_vectors"]
    return f"{told}; {many:,} vector{'s' * (many != 1)} in memory"


def _sharing(share: Answer) -> str:
    touch = "in touch" if share["is_connected"] else "not in touch"
    waits = f"{share['waiting']:,}, since {moment(share['waiting_since'])}" if share["waiting"] else "nothing"
    return f"with {share['team']}, {touch}; waits to be told: {waits}"


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


def _retention(kept: Answer | None) -> str:
    if kept is None:
        return "everything is kept"
    days = ", ".join(f"{kind} after {days} days" for kind, days in kept["days"].items())
    if not kept["is_on"]:
        return f"off: nothing goes by itself; `omegad retention` lets go, after a yes, of details of {days}"
    if not kept.get("is_known", True):
        return f"details of {days}; whether any are about to go is not known yet: ask again in a moment"
    known = f" (busy: as of {moment(kept['known_at'])})" if kept.get("known_at") else ""
    if kept["begins_at"]:
        many = sum(kept["waiting"].values())
        what = f"{many:,} events ({size(kept['waiting_bytes'])})" if many else "what is older"
        return (
            f"details of {days}; from {moment(kept['begins_at'])} on those of {what} go: `omegad retention"
            f" --dry-run` shows which, the settings `retention_…_days` keep them{known}"
        )
    ran = f"last looked at {moment(kept['ran_at'])}" if kept["ran_at"] else "not looked at yet"
    return f"details of {days}; {ran}{known}"


def _views(answer: Answer) -> list[tuple[str, ...]]:
    """Return the views that lag, or are not live."""
    return [
        (name, view["state"], f"{view['position']:,}", f"{view['lag']:,}")
        for name, view in answer["views"].items()
        if view["lag"] or view["state"] != "live"
    ]


def begin(arguments: Namespace, instance: Instance) -> None:
    """Say what to do first, and whether a daemon runs; start none."""
    from omegad.embedding import catalogue  # noqa: PLC0415  no other verb of these needs it

    pid, models = starting.answering(instance.paths), instance.paths.models
    is_whole = all(catalogue.installed(models, model.name) for model in catalogue.USUAL)
    beginning = BEGINNING.format("" if is_whole else INSTALLING)
    home, runs = str(instance.paths.home), f"The daemon runs: process {pid}."
    if pid is None:
        starts = "the first verb or session that needs it starts it"
        makes = "`omegad start`, or the first that is stored, makes the home"
        runs = f"No daemon runs; {starts if instance.paths.home.is_dir() else makes}."
    tell(
        arguments,
        {"version": __version__, "pid": pid, "home": home, "socket": str(instance.paths.socket)},
        f"omegad {__version__}: long-term memory for coding agents\n\n{runs} Home: {safe(home)}\n{beginning}",
    )


def pause(arguments: Namespace, instance: Instance) -> None:
    """Pause the home, for a span or until somebody resumes. Raises `Invalid` for what is no span."""
    until = ""
    if (span := arguments.span) is not None:
        parts = SPAN.findall(span)
        seconds = sum(int(count) * SECONDS[unit] for count, unit in parts)
        if not parts or SPAN.sub("", span).strip() or not 0 < seconds <= SPAN_S_MAX:
            raise Invalid(f"{span[:40]!r} is no span of time", hint="say for how long, like 2h, 30m or 1h30m")
        until = f"{time.time() + seconds:.0f}\n"
    _write(instance, until)
    _say(arguments, instance)


def resume(arguments: Namespace, instance: Instance) -> None:
    """End the pause of the home."""
    if pausing.of_home(str(instance.paths.home)) is not None:
        _write(instance, f"{time.time():.6f}\n")  # of what was silent until then nobody is to wonder
    _say(arguments, instance)


def _write(instance: Instance, text: str) -> None:
    home = instance.paths.home
    starting.make_home(instance.paths)
    part = home / f".{pausing.FILE}.{os.getpid()}"
    part.write_text(text, encoding="ascii")
    part.replace(home / pausing.FILE)


def _paused_here(instance: Instance) -> str | None:
    """Say why the folder that a person is in is paused, None where it is not."""
    with suppress(OSError):
        return pausing.of_folders(str(instance.paths.home), [str(Path.cwd())])
    return None


def _say(arguments: Namespace, instance: Instance) -> None:
    home, folder = pausing.of_home(str(instance.paths.home)), _paused_here(instance)
    tell(
        arguments,
        {"paused": home, "paused_here": folder},
        f"omegad keeps off: {home}" if home else "omegad goes on",
        *([f"this folder is paused all the same: {folder}"] if folder else ()),
    )
