"""The verbs that take a log out of a home and put one in: backup, restore, export. And the one for a log that
was lost: it writes what the views still hold as commands, goes on with the log as it is, and stores the rest
again.

What the views hold is read from their file, since the daemon does not serve it. Only active memories are
written: their texts and what is said of them, not their edges, ratings and receipts.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import msgspec

from omegad.edge.cli import starting
from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.connection import connected
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    counted,
    is_terminal,
    tell,
    warn,
)
from omegad.edge.transfer import lines, log_file
from omegad.operations import files, seal
from omegad.rpc import endpoint
from omegad.runtime.errors import Invalid, NotFound, OmegadError, StorageFailed
from omegad.storage import sealing
from omegad.storage.database import open_reader, translated
from omegad.views import generation, log_check

STORE = "memory.upsert"  # it has the time at which something was learned
AS_THEY_ARE = (
    "content",
    "event_type",
    "session_id",
    "project",
    "entity_id",
    "priority",
    "referenced_date",
    "ttl_seconds",
)
COLUMNS = (*AS_THEY_ARE, "node_id", "tags", "metadata", "source", "confidence", "on_probation", "created_at")
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
    seal.unlock(instance.paths)
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
    source = given(arguments)
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
    if seal.unlock(instance.paths):
        warn("the export is plain: whoever has it can read it")
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
    seal.unlock(instance.paths)
    log_file.check_free(instance.paths.log, may_replace=may_replace, hint=hint)
    os.umask(0o077)
    starting.make_home(instance.paths)
    with endpoint.lock(instance.paths.lock):
        log_file.check_free(instance.paths.log, may_replace=may_replace, hint=hint)
        yield


def given(arguments: Namespace) -> Path:
    """Return the file that a verb was told. Raises `WrongUsage` where it was told none."""
    if not arguments.file:
        raise WrongUsage("name a file")
    return Path(arguments.file).expanduser()


def _target(arguments: Namespace, instance: Instance) -> Path:
    """Return the file to make. Raises `Refused` for one in a home: what the daemon uses there must never
    be moved.
    """
    target = given(arguments)
    if not target.parent.is_dir():
        raise WrongUsage(f"there is no folder {target.parent}: make it, or name a file elsewhere")
    log_file.check_outside(target, instance.paths.home)
    return target


def _tell_moved(arguments: Namespace, moved: list[Path]) -> None:
    for path in () if arguments.json else moved:
        warn(f"kept aside: {path}")


class Line(msgspec.Struct, frozen=True):
    """A memory as a request of the socket, which stores it once however often it is sent."""

    params: dict[str, object]
    id: str
    method: str = STORE
    jsonrpc: str = "2.0"


def save(arguments: Namespace, instance: Instance) -> int:
    """Do what the options ask for."""
    if arguments.restore:
        return _store_again(Path(arguments.restore), instance)
    if seal.unlock(instance.paths):
        warn("what is written is plain: whoever has it can read it")
    if arguments.accept_log:
        with endpoint.lock(instance.paths.lock):
            moved = log_check.set_aside(instance.paths.home, datetime.now(UTC))
        for path in moved:
            print(path)
        return 0
    latest = max(generation.files(instance.paths.home), key=lambda path: path.stat().st_mtime, default=None)
    file = Path(arguments.file) if arguments.file else generation.current(instance.paths.home) or latest
    if file is None or not file.is_file():
        raise NotFound(
            f"there is no file of views {arguments.file or f'in {instance.paths.home}'}",
            hint="name one: `omegad salvage FILE`",
        )
    warn(f"{salvage(file, sys.stdout)} memories written from {file}")
    return 0


@contextmanager
def _readable(views_file: Path) -> Iterator[None]:
    """Say what to do where the storage fails in a folder that cannot be written."""
    try:
        yield
    except StorageFailed as error:
        if not os.access(views_file.parent, os.W_OK):
            raise StorageFailed(
                f"{views_file} cannot be read where SQLite may write nothing beside it",
                hint=f"copy {views_file.name}, and {views_file.name}-wal where there is one, to a folder of"
                " yours, and name the copy: `omegad salvage FILE`",
            ) from error
        raise


def salvage(views_file: Path, out: TextIO) -> int:
    """Write each active memory of *views_file* to *out* as a line of JSON, oldest first; return how many.

    What an earlier version had no column for is left out. Raises `Invalid` for a file without memories, and
    storage errors.
    """
    count = 0
    with (
        _readable(views_file),
        translated(),
        sealing.as_is(views_file),
        closing(open_reader(views_file)) as connection,
    ):
        there = {row[1] for row in connection.execute("PRAGMA table_info(memories)")}
        if not there:
            raise Invalid(f"{views_file} has no memories", hint="name a file of views, as `views-1.db`")
        columns = ", ".join(name if name in there else "NULL" for name in COLUMNS)
        for row in connection.execute(f"SELECT {columns} FROM memories WHERE status = 'active' ORDER BY id"):
            memory = dict(zip(COLUMNS, row, strict=True))
            given = {name: memory[name] for name in AS_THEY_ARE} | {
                "tags": msgspec.json.decode(memory["tags"] or "[]"),
                "metadata": msgspec.json.decode(memory["metadata"] or "{}"),
                "source": memory["source"] or "salvage",
                "confidence": 1.0 if memory["confidence"] is None else memory["confidence"],
                "probation": bool(memory["on_probation"]),
                "timestamp": memory["created_at"],
                "ack": "durable",
                "request_id": f"salvage-{memory['node_id']}",
            }
            params = {name: value for name, value in given.items() if value is not None}
            out.write(msgspec.json.encode(Line(params, memory["node_id"])).decode() + "\n")
            count += 1
    return count


def _store_again(source: Path, instance: Instance) -> int:
    refused = count = 0
    with source.open("rb") as stored, connected(instance, makes_home=True) as client:
        for number, line in enumerate(stored, 1):
            try:
                one = msgspec.json.decode(line, type=Line)
            except msgspec.MsgspecError as error:
                raise Invalid(
                    f"line {number} of {source} is none that `omegad salvage` wrote: {error}"
                ) from error
            try:
                client.call(STORE, **one.params)
                count += 1
            except OmegadError as error:
                if error.kind not in {"refused", "invalid"}:
                    raise
                refused += 1
                warn(f"{one.id} is not stored: {error}")
    print(f"{count} memories are stored, {refused} are not")
    return 1 if refused else 0
