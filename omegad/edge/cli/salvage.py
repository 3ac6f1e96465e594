"""The verb for a log that was lost: write what the views still hold as commands, go on with the log as it is,
and store the rest again.

What the views hold is read from their file, since the daemon does not serve it. Only active memories are
written: their texts and what is said of them, not their edges, ratings and receipts.
"""

import sys
from argparse import Namespace
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import msgspec

from omegad.edge.cli.connection import connected
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import warn
from omegad.rpc import endpoint
from omegad.runtime.errors import Invalid, NotFound, OmegadError
from omegad.storage.database import open_reader, translated
from omegad.views import generation, log_check

METHOD = "memory.upsert"  # it has the time at which something was learned
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


class Line(msgspec.Struct, frozen=True):
    """A memory as a request of the socket, which stores it once however often it is sent."""

    params: dict[str, object]
    id: str
    method: str = METHOD
    jsonrpc: str = "2.0"


def run(arguments: Namespace, instance: Instance) -> int:
    """Do what the options ask for."""
    if arguments.restore:
        return _restore(Path(arguments.restore), instance)
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


def salvage(views_file: Path, out: TextIO) -> int:
    """Write each active memory of *views_file* to *out* as a line of JSON, oldest first; return how many.

    What an earlier version had no column for is left out. Raises `Invalid` for a file without memories, and
    storage errors.
    """
    count = 0
    with translated(), closing(open_reader(views_file)) as connection:
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


def _restore(lines: Path, instance: Instance) -> int:
    refused = count = 0
    with lines.open("rb") as stored, connected(instance) as client:
        for number, line in enumerate(stored, 1):
            try:
                one = msgspec.json.decode(line, type=Line)
            except msgspec.MsgspecError as error:
                raise Invalid(
                    f"line {number} of {lines} is none that `omegad salvage` wrote: {error}"
                ) from error
            try:
                client.call(METHOD, **one.params)
                count += 1
            except OmegadError as error:
                if error.kind not in {"refused", "invalid"}:
                    raise
                refused += 1
                warn(f"{one.id} is not stored: {error}")
    print(f"{count} memories are stored, {refused} are not")
    return 1 if refused else 0
