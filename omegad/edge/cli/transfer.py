"""The verbs that take a log out of a home and put one in: backup, restore, export."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    counted,
    is_terminal,
    tell,
    warn,
)
from omegad.edge.transfer import lines, log_file
from omegad.operations import files
from omegad.rpc import endpoint

STANDARD = "-"
REPLACE = (
    "name another home with --home, or pass --replace, which keeps the log that is there beside the new one"
)
EMPTY = "an export is a whole log: import it into an empty home, with --home"


def backup(arguments: Namespace, instance: Instance) -> None:
    """Copy the log while it is written, verify the copy, and only then give it its name."""
    keep = 1 if arguments.keep is None else arguments.keep
    if keep < 1:
        raise WrongUsage("--keep is 1 or more")
    check = files.nothing_there if keep == 1 else log_file.check_backup
    target = _target(arguments, instance)
    files.check_names(target, keep, check)
    with counted("backing up") as progress, files.unfinished(target) as part:
        report = log_file.copy(instance.paths.log, part, progress)
        files.finish(part, target, keep, check)
    tell(
        arguments,
        {
            "file": str(target),
            "events": report.events,
            "head_hash": report.head_hash,
            "bytes": target.stat().st_size,
        },
        f"{report.events:,} events backed up to {target} and verified, head {report.head_hash[:16]}…",
    )


def restore(arguments: Namespace, instance: Instance) -> None:
    """Put a backup in the place of a home's log, once it has verified; keep the one that was there."""
    source = _given(arguments)
    with (
        _free_home(instance, REPLACE, may_replace=arguments.replace),
        counted("restoring") as progress,
        files.unfinished(instance.paths.log) as part,
    ):
        report = log_file.copy(source, part, progress)
        moved = log_file.put_in_place(part, instance.paths.log, datetime.now(UTC))
    tell(
        arguments,
        {
            "home": str(instance.paths.home),
            "events": report.events,
            "head_hash": report.head_hash,
            "moved": list(map(str, moved)),
        },
        f"{report.events:,} events are the log of {instance.paths.home}; the next start builds the views",
    )
    _tell_moved(arguments, moved)


def export(arguments: Namespace, instance: Instance) -> None:
    """Write the log as JSON Lines, from which `omegad import` makes the same log."""
    if arguments.file == STANDARD:
        if is_terminal(sys.stdout):  # which what others stored would command
            raise WrongUsage("a terminal is no place for a log: redirect it, or name a file")
        lines.export(instance.paths.log, sys.stdout.buffer, lambda _done, _total, _what: None)
        return
    target = _target(arguments, instance)
    files.check_names(target, 1, files.nothing_there)
    with counted("exporting") as progress, files.unfinished(target) as part:
        with part.open("wb") as out:
            header = lines.export(instance.paths.log, out, progress)
        files.finish(part, target)
    tell(
        arguments,
        {"file": str(target), "events": header.head, "head_hash": header.chain},
        f"{header.head:,} events exported to {target}, head {header.chain[:16]}…",
    )


def import_log(arguments: Namespace, instance: Instance, source: Path) -> None:
    """Make the log of an empty home of what `export` wrote."""
    home, moved = instance.paths.home, list[Path]()
    with (
        _free_home(instance, EMPTY),
        counted("importing") as progress,
        files.unfinished(instance.paths.log) as part,
    ):
        with source.open("rb") as stored:
            header = lines.make_log(stored, part, progress)
        if not arguments.dry_run:
            moved = log_file.put_in_place(part, instance.paths.log, datetime.now(UTC))
    are = "would be" if arguments.dry_run else "are"
    tell(
        arguments,
        {
            "home": str(home),
            "events": header.head,
            "head_hash": header.chain,
            "dry_run": arguments.dry_run,
        },
        f"{header.head:,} events {are} the log of {home}, head {header.chain[:16]}…",
    )
    _tell_moved(arguments, moved)


@contextmanager
def _free_home(instance: Instance, hint: str, *, may_replace: bool = False) -> Iterator[None]:
    """Hold a home, which is made if need be, so that no daemon serves it.

    Raises `Refused` where it has a log that may not be replaced, and `AlreadyRunning` where a daemon serves
    it.
    """
    log_file.check_free(instance.paths.log, may_replace=may_replace, hint=hint)
    os.umask(0o077)
    endpoint.private_directory(instance.paths.home, "OMEGAD_HOME")
    with endpoint.lock(instance.paths.lock):
        log_file.check_free(instance.paths.log, may_replace=may_replace, hint=hint)
        yield


def _given(arguments: Namespace) -> Path:
    if not arguments.file:
        raise WrongUsage("name a file")
    return Path(arguments.file).expanduser()


def _target(arguments: Namespace, instance: Instance) -> Path:
    """Return the file to make. Raises `Refused` for one in a home: what the daemon uses there must never
    be moved.
    """
    target = _given(arguments)
    if not target.parent.is_dir():
        raise WrongUsage(f"there is no folder {target.parent}: make it, or name a file elsewhere")
    log_file.check_outside(target, instance.paths.home)
    return target


def _tell_moved(arguments: Namespace, moved: list[Path]) -> None:
    for path in () if arguments.json else moved:
        warn(f"kept aside: {path}")
