"""`append`: durable appends in this process, the log alone."""

import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio

from omegad import daemon
from omegad.daemon import VOCABULARY
from omegad.log import event_log
from omegad.log.event_log import EventLog
from omegad.runtime.clock import Clock
from omegad.session.tool_calls import RecordToolCall
from omegad.storage.driver import Connection, sqlite
from tests.bench import homes
from tests.bench.figures import Effort, Figure, Report, Timer, of_calls, of_rounds

WAITERS = 64


def run(effort: Effort, report: Report) -> None:
    """Measure one waiter, call by call in turns with bare commits in the same directory, and 64 in rounds."""
    with homes.directory() as home:
        for figure in daemon.run(partial(_measure, home, effort)):
            report(figure)


async def _measure(home: Path, effort: Effort) -> list[Figure]:
    one, bare_one = Timer(), Timer()
    many: list[float] = []
    bare_many: list[float] = []
    rounds, singles, batches = effort.pick(7, 3), effort.pick(200, 100), effort.pick(100, 30)
    async with (
        event_log.opened(home / "log.db", Clock(), VOCABULARY) as log,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(log.run)
        row_bytes = await _row_bytes(log)
        with closing(bare(home / "bare.db")) as connection:
            for number in range(rounds):
                for command in _commands(singles, f"one-{number}"):  # by turns: what else wants the disk
                    commits(connection, 1, 1, row_bytes, bare_one)
                    await _one_after_the_other(log, [command], one)
                timer = Timer()
                commits(connection, batches, WAITERS, row_bytes, timer)
                bare_many.append(batches * WAITERS / sum(timer.ms) * 1e3)
                many.append(
                    await _together(
                        log, [_commands(batches, f"many-{number}-{waiter}") for waiter in range(WAITERS)]
                    )
                )
        await log.drain()
    middle = sorted(bare_many)[len(bare_many) // 2]
    floor_one, floor_many = of_calls("", bare_one.ms).median, middle
    note = f"{row_bytes} bytes an event"
    return [
        of_calls(
            "append, 1 waiter",
            one.ms,
            goal="within 2 x",
            floors={"bare commit of one row": floor_one},
            note=note,
        ),
        of_rounds(
            "append, 64 waiters",
            "events/s",
            many,
            goal=">= 10,000 events/s",
            floors={"bare commits of 64 rows": floor_many},
        ),
    ]


async def _row_bytes(log: EventLog) -> int:
    """Return how many bytes the rows of one event hold."""
    await log.append(homes.proposal_of(homes.tool_call(1, "size")))
    columns = " + ".join(
        f"length({name})"
        for name in ("event_id", "tag", "origin", "session_id", "project", "client", "payload_hash", "chain")
    )
    sql = f"SELECT {columns} + 5 * 8 + length(salt) + length(body) FROM events JOIN payloads USING (position)"
    return int(await log._readers.read(lambda connection: connection.execute(sql).fetchone()[0]))


def _commands(count: int, session_id: str) -> list[RecordToolCall]:
    return [homes.tool_call(number, session_id) for number in range(count)]


async def _one_after_the_other(log: EventLog, commands: Sequence[RecordToolCall], timer: Timer) -> None:
    for command in commands:
        proposal = homes.proposal_of(command)  # as a request comes in: just before it is appended
        with timer.lap():
            await log.append(proposal)


async def _together(log: EventLog, work: Sequence[Sequence[RecordToolCall]]) -> float:
    """Return the events per second of as many waiters as there are lists, each appending its own one after
    the other.
    """
    started = time.perf_counter()
    async with anyio.create_task_group() as waiters:
        for commands in work:
            waiters.start_soon(partial(_one_after_the_other, log, commands, Timer()))
    return sum(map(len, work)) / (time.perf_counter() - started)


def bare(path: Path) -> Connection:
    """Open a database as the log's is: a write-ahead log, and a wait for the disk at every commit."""
    connection: Connection = sqlite.connect(str(path), isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT")
    return connection


def commits(connection: Connection, count: int, rows: int, row_bytes: int, timer: Timer) -> None:
    """Insert rows of so many bytes, so many to a commit."""
    body = b"x" * row_bytes
    for _ in range(count):
        with timer.lap():
            connection.execute("BEGIN IMMEDIATE")
            for _ in range(rows):
                connection.execute("INSERT INTO rows (body) VALUES (?)", (body,))
            connection.execute("COMMIT")
