"""`rebuild`: the views built again from the log, every vector in the cache.

One event in five stores a memory. Of 100,000 events 20,000 are memory.stored, 20,000 are their memory.embedded and 60,000 tool.called;
events per second count all of them.
"""

import time
from functools import partial
from pathlib import Path

import anyio
import numpy as np

from omegad import daemon
from omegad.clock import SystemClock
from omegad.commands import tool
from omegad.config import Config
from omegad.daemon import Daemon, composed
from omegad.embedding.cache import text_hash
from omegad.events.fact import NewEvent
from omegad.events.tool import ToolCalled
from omegad.log import reading
from omegad.storage.database import open_reader
from tests.bench import homes, texts
from tests.bench.figures import Effort, Report, of_rounds
from tests.bench.texts import DIMENSIONS, Note

READ_AT_ONCE = 500
SESSIONS = 40


def run(effort: Effort, report: Report) -> None:
    """Measure whole rebuilds, checks and swap included, in turns with reading and decoding the same log."""
    with homes.directory() as place:
        daemon.run(partial(_measure, place, effort, report))


async def _measure(home: Path, effort: Effort, report: Report) -> None:
    events, rounds = effort.pick(100_000, 20_000), effort.pick(3, 2)
    whole: list[float] = []
    showing: list[float] = []
    bare: list[float] = []
    async with composed(homes.paths_of(home), Config(model="none"), SystemClock()) as service, anyio.create_task_group() as tasks:
        tasks.start_soon(service.parts.log.run)
        await _fill(service, texts.notes(events // 5, "rebuilt"))
        assert service.parts.log.head == events
        for _ in range(rounds):
            bare.append(events / await anyio.to_thread.run_sync(_scan, service.parts.log._path, events))
            seconds, showing_s = await _rebuild(service, events)
            assert await homes.indexed(service) == events // 5
            whole.append(events / seconds)
            showing.append(events / showing_s)
        await service.parts.log.drain()
        tasks.cancel_scope.cancel()
    floors = {"read and decode the log alone": sorted(bare)[len(bare) // 2]}
    report(of_rounds(f"rebuild, {events:,} events", "events/s", whole, goal=">= 15,000 events/s", floors=floors))
    report(
        of_rounds("  of which showing them to the projections", "events/s", showing, floors=floors, note="the rest: integrity checks, swap, digests")
    )


async def _fill(service: Daemon, notes: list[Note]) -> None:
    """Append a memory's two events and three tool calls in turns; put the vectors in the cache."""
    choose = np.random.default_rng(5)
    log, cache = service.parts.log, service.parts.near.embedder._cache
    for start in range(0, len(notes), homes.NOTES_AT_ONCE):
        part = notes[start : start + homes.NOTES_AT_ONCE]
        raw = choose.normal(size=(len(part), DIMENSIONS))
        vectors = (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype("<f4")
        await cache.put_many(homes.INSTANT_ID, {text_hash(note.content): row.tobytes() for note, row in zip(part, vectors, strict=True)})
        events: list[NewEvent] = []
        for number, note in enumerate(part, start):
            related = [notes[int(choose.integers(number))].memory_id for _ in range(min(2, number))]
            events += [*homes.events_of(note, homes.INSTANT_ID, related), *(_tool_called(3 * number + place) for place in range(3))]
        await homes.append(log, events)


def _tool_called(number: int) -> NewEvent:
    command = homes.tool_call(number // SESSIONS, f"session-{number % SESSIONS}")
    cut = tool.cut(command)
    event = ToolCalled(
        tool_name=command.tool_name,
        status=command.status,
        call_index=number // SESSIONS + 1,
        tool_use_id=command.tool_use_id,
        duration_ms=command.duration_ms,
        tool_input=cut.tool_input,
        result=cut.result,
    )
    return NewEvent(event=event, session_id=command.session_id, project=command.project)


def _scan(path: Path, events: int) -> float:
    """Return the seconds that reading and decoding every event takes."""
    connection = open_reader(path)
    started, after = time.perf_counter(), 0
    while batch := reading.read(connection, after, READ_AT_ONCE):
        after = batch[-1].position
    seconds = time.perf_counter() - started
    connection.close()
    assert after == events
    return seconds


async def _rebuild(service: Daemon, events: int) -> tuple[float, float]:
    """Return the seconds that a rebuild takes, and those until the last event is shown."""
    shown_at: list[float] = []

    def progress(done: int, _total: int) -> None:
        if done == events:
            shown_at.append(time.perf_counter())

    started = time.perf_counter()
    await service.parts.views.rebuild((), progress)
    return time.perf_counter() - started, shown_at[0] - started
