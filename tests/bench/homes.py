"""Homes to measure in: made of events that go straight into the log, and served in this process or by a
daemon of its own.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

import anyio
import msgspec

from omegad import daemon
from omegad.client.blocking import Client
from omegad.daemon import Daemon
from omegad.embedding.cache import text_hash
from omegad.embedding.catalogue import (
    BUILDER_VERSION,
    GRAPH,
    MANIFEST,
    MINILM,
    FileRecord,
    Manifest,
    folder_of,
)
from omegad.log.decision import Decision, DecisionState, Proposal
from omegad.log.event import NewEvent
from omegad.log.event_log import EventLog
from omegad.memory.events import MemoryEmbedded, MemoryStored, Relation
from omegad.rpc import endpoint
from omegad.runtime import config, telemetry
from omegad.runtime.clock import Clock
from omegad.runtime.config import Paths
from omegad.runtime.errors import NoDaemon
from omegad.search import answering
from omegad.search.model import fitted
from omegad.session import tool_calls as tool
from omegad.session.tool_calls import RecordToolCall
from tests.bench.texts import InstantModel, Note
from tests.embedding.fakes import put_many

INSTANT_ID = "instant"
NOTES_AT_ONCE = 500
PATIENCE_S = 60.0
LOOK_EVERY_S = 0.001


class _Done(msgspec.Struct, frozen=True):
    """Nobody waits for the answer."""


@contextmanager
def directory() -> Iterator[Path]:
    """Make a directory, and remove it in the end; TMPDIR says on which disk."""
    path = Path(tempfile.mkdtemp(prefix="omegad-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def environment(home: Path, model: str) -> dict[str, str]:
    """Return the environment of a daemon for *home*, free of the settings of whoever measures: with
    PYTHONDONTWRITEBYTECODE each start would compile all of omegad, as no installed one does.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OMEGAD_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    return kept | {"OMEGAD_HOME": str(home), "OMEGAD_MODEL": model, "OMEGAD_LOG_LEVEL": "warning"}


def paths_of(home: Path) -> Paths:
    """Return where a home's files are."""
    return config.find_paths(environment(home, "none"))


def tool_call(number: int, session_id: str, length: int = 1) -> RecordToolCall:
    """Return a tool call: a command of 150 bytes, and 600 bytes of output, which stands there *length*
    times.
    """
    return RecordToolCall(
        session_id=session_id,
        tool_name="Bash",
        tool_input={
            "command": f"pytest -q tests/part_{number % 97} --maxfail=3 " + "-k 'not slow' " * 6,
            "description": "Run the tests of a part",
        },
        result=f"collected {number % 300} items\n"
        + "tests/part/test_something.py ........................ [ 42%]\n" * 10 * length,
        tool_use_id=f"{session_id}-{number}",
        duration_ms=1234.5,
        project="atlas",
    )


def proposal_of(command: RecordToolCall) -> Proposal:
    """Return what recording a tool call proposes to the log, as the daemon does it."""
    return Proposal(decide=partial(tool.record, command, tool.cut(command)), client="bench")


def events_of(note: Note, embedder_id: str, related: Iterable[str] = ()) -> list[NewEvent]:
    """Return the two events of a memory: stored, and embedded."""
    stored = MemoryStored(
        memory_id=note.memory_id,
        content=note.content,
        content_key=text_hash(note.content),
        event_type=note.event_type,
        tags=("bench", note.event_type),
        related=tuple(Relation(memory_id=other, similarity=0.5) for other in related),
    )
    embedded = MemoryEmbedded(
        memory_id=note.memory_id, embedder_id=embedder_id, text_hashes=(text_hash(note.content),)
    )
    return [
        NewEvent(event=stored, session_id=note.session_id, project=note.project),
        NewEvent(event=embedded, session_id=note.session_id, project=note.project, follows=True),
    ]


async def populate(service: Daemon, notes: list[Note], embedder_id: str, model: InstantModel) -> None:
    """Append the events of *notes* in large commits, each related to two before it, and wait until the
    views show them, vectors and all.
    """
    choose = random.Random("related")  # noqa: S311  nothing is secret
    for start in range(0, len(notes), NOTES_AT_ONCE):
        part = notes[start : start + NOTES_AT_ONCE]
        # The vectors come first: an event that is shown before its vector is there would be put off.
        await put_many(
            service.services.near.embedder._cache, embedder_id, model.by_hash([note.content for note in part])
        )
        earlier = [
            [notes[choose.randrange(number)].memory_id for _ in range(min(2, number))]
            for number in range(start, start + len(part))
        ]
        await append(
            service.services.log,
            [
                event
                for note, related in zip(part, earlier, strict=True)
                for event in events_of(note, embedder_id, related)
            ],
        )
    await caught_up(service)
    assert await indexed(service) == len(notes)


async def indexed(service: Daemon) -> int:
    """Return how many vectors the views hold."""
    sql = "SELECT count(*) FROM memory_vectors WHERE vector IS NOT NULL"
    return int(await service.services.views.read(lambda connection: connection.execute(sql).fetchone()[0]))


async def append(log: EventLog, events: list[NewEvent]) -> None:
    """Append *events* as they are, in one commit."""

    def decide(guards: DecisionState, now_us: int) -> Decision:
        del guards, now_us
        return Decision(events=tuple(events), answer=_Done())

    await log.append(Proposal(decide=decide))


def put_instant_model(paths: Paths, embedder_id: str) -> None:
    """Make it look as if a model were installed: `served_here` loads another in its place."""
    folder = folder_of(paths.models, MINILM.name)
    folder.mkdir(mode=0o700, parents=True)
    (folder / GRAPH).write_bytes(b"graph")
    manifest = Manifest(
        name=MINILM.name,
        embedder_id=embedder_id,
        pooling=MINILM.pooling,
        tokens_max=MINILM.tokens_max,
        query_prefix="",
        dimensions=384,
        precision="int8",
        builder_version=BUILDER_VERSION,
        files={GRAPH: FileRecord("", 5)},
        source=MINILM.source,
        verified=False,
    )
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))


@asynccontextmanager
async def served_here(
    home: Path, model: InstantModel, embedder_id: str = INSTANT_ID
) -> AsyncIterator[Daemon]:
    """Run a home's service in this process, without its socket, and with a model that answers at once.

    It never abstains: how sure an answer is was fitted to the cosines of real models.
    """
    telemetry.configure("warning")
    endpoint.private_directory(home)
    paths = msgspec.structs.replace(paths_of(home), models=home / "models")
    put_instant_model(paths, embedder_id)
    async with (
        daemon.composed(paths, config.Config(), Clock()) as service,
        anyio.create_task_group() as tasks,
    ):
        service.services.near.embedder._load = lambda _folder, _manifest: (
            model
        )  # the only place where a model enters
        for part in (
            service.services.log,
            service.services.views,
            service.services.near.embedder,
            service.reactions,
        ):
            tasks.start_soon(part.run)
        tasks.start_soon(service.services.near.keep_words, service.services.views)
        never = msgspec.structs.replace(fitted(), floor=0.0)
        with patch.object(answering, "fitted", lambda: never):
            yield service
        await service.services.log.drain()
        tasks.cancel_scope.cancel()


async def caught_up(service: Daemon) -> None:
    """Wait until the views show the whole log."""
    await service.services.views.wait_for(service.services.log.head, service.services.views.names)


def make_home(home: Path, notes: list[Note], embedder_id: str) -> None:
    """Make a home that holds *notes*, its views in step."""
    daemon.run(partial(_make_home, home, notes, embedder_id))


async def _make_home(home: Path, notes: list[Note], embedder_id: str) -> None:
    model = InstantModel()
    async with served_here(home, model, embedder_id) as service:
        await populate(service, notes, embedder_id, model)
    shutil.rmtree(home / "models")


@dataclass(frozen=True)
class Running:
    """A daemon in a process of its own, started at a moment of `time.perf_counter`; what it prints goes to
    *output*.
    """

    process: subprocess.Popen[bytes]
    paths: Paths
    started_s: float
    output: Path


@contextmanager
def served(home: Path, model: str = "none") -> Iterator[Running]:
    """Start a daemon process for *home*, and stop it in the end. It need not answer yet when the block
    begins.
    """
    paths, printed = paths_of(home), home.parent / f"{home.name}.out"
    with printed.open("wb") as output:
        started_s = time.perf_counter()
        command = [sys.executable, "-m", "omegad", "serve"]
        process = subprocess.Popen(
            command, env=environment(home, model), stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )
        try:
            yield Running(process, paths, started_s, printed)
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


@contextmanager
def connected(running: Running, timeout_s: float = PATIENCE_S) -> Iterator[Client]:
    """Connect as soon as the daemon listens; calls may take *timeout_s*."""
    with ExitStack() as stack:
        yield _connect(stack, running, timeout_s)


def _connect(stack: ExitStack, running: Running, timeout_s: float) -> Client:
    while True:
        try:
            return stack.enter_context(Client(running.paths.socket, timeout_s=timeout_s))
        except NoDaemon:
            if running.process.poll() is not None or time.perf_counter() > running.started_s + PATIENCE_S:
                raise RuntimeError(
                    f"the daemon does not listen: {running.output.read_text(encoding='utf-8')}"
                ) from None
            time.sleep(LOOK_EVERY_S)
