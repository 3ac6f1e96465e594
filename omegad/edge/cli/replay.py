"""The verb that asks logged queries again, in this process, beside a daemon or without one."""

import os
import signal
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import projections
from omegad.catalog.events import CODEC
from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    counted,
    cut,
    moment,
    one_line,
    painted,
    tell,
    warn,
    write_json,
    write_table,
)
from omegad.edge.transfer import log_file
from omegad.operations import seal
from omegad.operations.replay_report import Difference, Replayed
from omegad.operations.replaying import Home, Otherwise, Wanted, replay
from omegad.runtime import config, telemetry
from omegad.runtime.errors import Refused
from omegad.search import model

NICENESS = 10
LIMIT, LIMIT_MAX = 1_000, 10_000
SHOWN = 20
WITHOUT_MAX = 10_000  # memories, of which each is taken out for each question
FILE_BYTES_MAX = 1 << 20
WITHIN_S = 600
TEXT_COLUMNS = 100
UNLIKE = {"ranking": "another ranking", "embedder": "another model", "unknown": "what is not known"}


def run(arguments: Namespace, instance: Instance) -> None:
    """Ask again, and show what is answered otherwise."""
    if arguments.weights_out:
        target = Path(arguments.weights_out).expanduser()
        log_file.check_outside(target, instance.paths.home)
        try:
            with target.open("xb") as out:
                out.write(model.written())
        except OSError as error:
            raise Refused(f"{target} cannot be written: {error.strerror}", hint="name a new file") from error
        tell(arguments, {"file": str(target)}, f"the weights in force are written to {target}")
        return
    numbers = {
        name: given if (given := getattr(arguments, name)) is not None else default
        for name, default in (("limit", LIMIT), ("limit_shown", SHOWN), ("within", WITHIN_S))
    }
    if not 1 <= numbers["limit"] <= LIMIT_MAX or numbers["limit_shown"] < 0 or numbers["within"] < 1:
        raise WrongUsage(f"--limit is 1 to {LIMIT_MAX:,}, --within at least 1, --limit-shown not negative")
    otherwise = Otherwise(
        without=frozenset(_ids(arguments.without or [])),
        weights=model.read(_read(arguments.weights)) if arguments.weights else None,
        embedder=arguments.embedder,
    )
    wanted = Wanted(
        arguments.since, arguments.until, arguments.project, numbers["limit"], float(numbers["within"])
    )
    telemetry.configure("warning")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # which lets go of everything
    with suppress(OSError):  # a service may not be allowed to
        os.nice(NICENESS)
    seal.unlock(instance.paths)
    home = Home(instance.paths, config.load(instance.paths, instance.environ), CODEC, projections.ALL)
    shown = numbers["limit"] if arguments.json and arguments.limit_shown is None else numbers["limit_shown"]
    with counted("replaying") as progress:
        found = replay(home, wanted, otherwise, shown, progress)
    if arguments.json:
        write_json(found)
    else:
        _show(found)


def _ids(given: list[str]) -> set[str]:
    """Return the ids that were given, with commas between, or one a line in a file."""
    found = set[str]()
    for one in given:
        words = _words(one[1:]) if one.startswith("@") else one.split(",")
        found.update(word.strip() for word in words if word.strip())
    if len(found) > WITHOUT_MAX:
        raise WrongUsage(f"--without names {len(found):,} memories, and may name {WITHOUT_MAX:,}")
    return found


def _words(name: str) -> list[str]:
    try:
        return _read(name).decode().split()
    except UnicodeDecodeError as error:
        raise WrongUsage(f"{name} is no text in UTF-8") from error


def _read(name: str) -> bytes:
    path = Path(name).expanduser()
    if not path.is_file():
        raise WrongUsage(f"there is no file {path}")
    if (size := path.stat().st_size) > FILE_BYTES_MAX:
        raise WrongUsage(f"{path} has {size:,} bytes, and may have {FILE_BYTES_MAX:,}")
    return path.read_bytes()


def _show(found: Replayed) -> None:
    if not found.asked + found.left_out + found.unreadable + found.aged:
        print("no question that was asked then and there is in the log")
        return
    questions = "1 question" if found.asked == 1 else f"{found.asked:,} questions"
    print(
        f"{questions} asked again: {found.same:,} are answered the same, {found.changed:,}"
        f" otherwise; {found.left:,} memories left the answers, {found.came:,} came;"
        f" {found.abstentions_gained:,} have no answer any more, {found.abstentions_lost:,} have one that had"
        " none"
    )
    if found.known:
        print(
            f"what was right is known of {found.known:,}: recall {_change(found.recall, '.3f')}, MRR"
            f" {_change(found.mrr, '.3f')}; of what was rated badly they show {_change(found.wrong, ',')}"
        )
    else:
        print("what was right is known of none of them: nothing that they showed was rated helpful, or used")
    if found.unlike_log:
        by = ", ".join(
            f"{count:,} by {UNLIKE.get(name, name)}" for name, count in found.unlike_log_by.items()
        )
        print(f"with nothing otherwise, {found.unlike_log:,} are not as they were answered then: {by}")
    for difference in found.differences:
        _show_difference(difference)
    if (more := found.changed - len(found.differences)) > 0:
        print(painted(f"{more:,} more are answered otherwise: --limit-shown shows them", "dim"))
    for memory_id in sorted(found.in_no_answer):
        warn(f"{memory_id} is in no answer")
    if found.aged:
        warn(
            f"{found.aged:,} cannot be asked again: what they asked was let go of, since its time was over"
            " (`omegad retention`)"
        )
    if found.unreadable:
        warn(f"{found.unreadable:,} were erased, or written by another version, and are left out")
    if found.left_out:
        warn(f"there was no time for {found.left_out:,}: --within gives more, --limit asks fewer")


def _change(pair: Sequence[float], form: str) -> str:
    return " → ".join(format(value, form) for value in pair)


def _show_difference(one: Difference) -> None:
    text = cut(one_line(one.text), TEXT_COLUMNS)
    print(f"\n{moment(one.at)}  {painted(text, 'bold')}  {one.query_id}")
    if not one.before or not one.after:
        print(f"  {'nothing is answered any more' if one.before else 'nothing was answered'}")
    write_table(
        ("", "RANK", "MEMORY", "CONTENT"),
        [
            (
                "left" if it.after is None else "came" if it.before is None else "moved",
                " → ".join(str(rank or "-") for rank in (it.before, it.after)),
                it.memory_id + {True: " (right)", False: " (wrong)", None: ""}[it.is_right],
                cut(one_line(it.text), TEXT_COLUMNS),
            )
            for it in one.moved
        ],
    )
