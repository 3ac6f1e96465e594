"""`rebuild`: the views built again from the log, every vector in the cache.

In a log at work, 60 of 100 events are tool calls with about 2 KB of input and result, 25 are queries with 10
results each, 10 are stores, and 5 say what becomes of memories, half of them that one was embedded. In a log
of stores, 20 are memory.stored, 20 their memory.embedded, and 60 short tool calls. Events per second count
all of them.
"""

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import anyio
import numpy as np

from omegad import daemon
from omegad.catalog.events import CODEC
from omegad.daemon import Daemon, composed
from omegad.embedding.cache import text_hash
from omegad.log import reading
from omegad.log.event import Event, NewEvent
from omegad.memory.events import MemoryEvolved, MemoryRated, MemoryRepeated, MemorySuperseded
from omegad.runtime.clock import Clock
from omegad.runtime.config import Config
from omegad.search.events import MemoryQueried, Returned
from omegad.session import tool_calls as tool
from omegad.session.events import ToolCalled
from omegad.storage.database import open_reader
from tests.bench import homes, texts
from tests.bench.figures import Effort, Report, of_rounds
from tests.bench.texts import DIMENSIONS, Note
from tests.embedding.fakes import put_many

READ_AT_ONCE = 500
SESSIONS = 40
RESULTS = 10
SHORT, LONG = 1, 3  # how often a tool call repeats its text


def run(effort: Effort, report: Report) -> None:
    """Measure whole rebuilds, checks and swap included, of both logs, each in turns with reading and
    decoding it.
    """
    for name, events_of in (("at work", at_work), ("of stores", _of_stores)):
        with homes.directory() as place:
            daemon.run(partial(_measure, place, name, events_of, effort, report))


async def _measure(
    home: Path,
    name: str,
    events_of: Callable[[list[Note]], Iterator[NewEvent]],
    effort: Effort,
    report: Report,
) -> None:
    events, rounds = effort.pick(100_000, 20_000), effort.pick(3, 2)
    whole: list[float] = []
    showing: list[float] = []
    bare: list[float] = []
    async with (
        composed(homes.paths_of(home), Config(model="none"), Clock()) as service,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(service.services.log.run)
        await fill(service, texts.notes(events // 5, "rebuilt"), events_of, events)
        for _ in range(rounds):
            bare.append(events / await anyio.to_thread.run_sync(_scan, service.services.log.path, events))
            seconds, showing_s = await _rebuild(service, events)
            whole.append(events / seconds)
            showing.append(events / showing_s)
        await service.services.log.drain()
        tasks.cancel_scope.cancel()
    floors = {"read and decode the log alone": sorted(bare)[len(bare) // 2]}
    report(
        of_rounds(
            f"rebuild of a log {name}, {events:,} events",
            "events/s",
            whole,
            goal=">= 12,000 events/s",
            floors=floors,
        )
    )
    report(
        of_rounds(
            "  of which showing them to the projections",
            "events/s",
            showing,
            floors=floors,
            note="the rest: integrity checks, swap, digests",
        )
    )


async def fill(
    service: Daemon, notes: list[Note], events_of: Callable[[list[Note]], Iterator[NewEvent]], events: int
) -> None:
    """Append so many events; put the vectors of *notes*, which follow from nothing, in the cache."""
    choose = np.random.default_rng(5)
    log, cache = service.services.log, service.services.near.embedder._cache
    made = events_of(notes)
    for start in range(0, len(notes), homes.NOTES_AT_ONCE):
        part = notes[start : start + homes.NOTES_AT_ONCE]
        raw = choose.normal(size=(len(part), DIMENSIONS))
        vectors = (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype("<f4")
        await put_many(
            cache,
            homes.INSTANT_ID,
            {text_hash(note.content): row.tobytes() for note, row in zip(part, vectors, strict=True)},
        )
    while log.head < events:
        await homes.append(log, list(islice(made, min(homes.NOTES_AT_ONCE, events - log.head))))


def _of_stores(notes: list[Note]) -> Iterator[NewEvent]:
    choose = random.Random("of stores")  # noqa: S311  nothing is secret
    for number, note in enumerate(notes):
        yield from homes.events_of(
            note, homes.INSTANT_ID, [notes[choose.randrange(number)].memory_id for _ in range(min(2, number))]
        )
        yield from (_tool_called(3 * number + place, SHORT) for place in range(3))


def at_work(notes: list[Note]) -> Iterator[NewEvent]:
    """Return the events of a log at work."""
    choose = random.Random("at work")  # noqa: S311  nothing is secret
    for number, note in enumerate(notes):
        there = notes[: number + 1]
        stored, embedded = homes.events_of(
            note, homes.INSTANT_ID, [one.memory_id for one in choose.choices(there, k=min(2, number))]
        )
        yield stored
        yield from (_tool_called(6 * number + place, LONG) for place in range(6))
        yield from (
            _queried(f"query-{number}-{place}", choose.choice(there), choose.choices(there, k=RESULTS))
            for place in range(2 + number % 2)
        )
        if number % 2 == 0:
            yield (
                embedded if number % 4 == 0 else NewEvent(event=_became(choose, *choose.choices(there, k=2)))
            )


def _queried(query_id: str, asked: Note, results: list[Note]) -> NewEvent:
    event = MemoryQueried(
        query_id=query_id,
        text=asked.question,
        mode="hybrid",
        limit=RESULTS,
        filters={"project": asked.project},
        results=tuple(
            Returned(memory_id=note.memory_id, score=1 / rank) for rank, note in enumerate(results, 1)
        ),
        read_position=1,
        at=time.time_ns() // 1000,
        ranking_version=1,
        embedder_id=homes.INSTANT_ID,
        abstained=False,
        took_us=4_321,
    )
    return NewEvent(event=event, session_id=asked.session_id, project=asked.project)


def _became(choose: random.Random, one: Note, other: Note) -> Event:
    """Return what becomes of a memory: said again, with more, rated, or replaced."""
    wording = f"Also: {other.question}"
    content = f"{one.content}\n{wording}"
    return choose.choice(
        (
            MemoryRepeated(
                memory_id=one.memory_id,
                likeness="cosine",
                similarity=0.97,
                content=one.content,
                tags=("again",),
            ),
            MemoryEvolved(
                memory_id=one.memory_id,
                content=content,
                content_key=text_hash(content),
                wording=wording,
                similarity=0.7,
            ),
            MemoryRated(memory_id=one.memory_id, rating="helpful", points=1),
            MemorySuperseded(memory_id=one.memory_id, superseded_by=other.memory_id, reason="it says more"),
        )
    )


def _tool_called(number: int, length: int) -> NewEvent:
    command = homes.tool_call(number // SESSIONS, f"session-{number % SESSIONS}", length)
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
    while batch := reading.read(connection, CODEC, after, READ_AT_ONCE):
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
    await service.services.views.rebuild((), progress)
    return time.perf_counter() - started, shown_at[0] - started
