"""`memory`: storing and asking beyond the embedding, in this process, with a model that answers at once."""

import random
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import msgspec

from omegad import daemon
from omegad.daemon import Daemon
from omegad.index import terms
from omegad.memory.store import Stored
from omegad.rpc.peer import Call, Peer
from omegad.search import Answer
from omegad.storage.database import open_reader
from tests.bench import appends, homes, texts
from tests.bench.figures import Effort, Report, Timer, of_calls
from tests.bench.texts import InstantModel, Note

CANDIDATES = 100
STORE_BYTES = 1_500  # of the rows of a memory's two events
WARM_UP = 5
QUERY_GOALS = {1_000: "<= 5 ms p50", 10_000: "<= 5 ms p50", 100_000: "<= 25 ms p50"}
STORE_GOAL = "<= 6 ms p50"
KNN_SQL = "SELECT rowid, vec_distance_cosine(embedding, ?) AS away FROM memories_vec ORDER BY away LIMIT ?"
WORDS_SQL = (
    "SELECT rowid, bm25(memories_fts, 1.0, 0.5, 0.5, 0.5) AS score FROM memories_fts WHERE memories_fts MATCH"
    " ? ORDER BY score LIMIT ?"
)

KNN, WORDS, COMMIT = "nearest neighbours in SQL alone", "FTS5 match alone", "bare commit of one row"
BESIDE = {"memory.store": (KNN, COMMIT), "memory.query, semantic": (KNN,), "memory.query, keyword": (WORDS,)}
"""The floors that a figure stands beside, where these are not both indexes."""

Handle = Callable[[str, dict[str, object]], Awaitable[object]]


def run(effort: Effort, report: Report) -> None:
    """Measure at 1,000 and 10,000 memories, and at 100,000 where it is asked for."""
    for count in (1_000, 10_000, *([100_000] if effort.large else [])):
        with homes.directory() as place:
            daemon.run(partial(_measure, place / "home", count, effort, report))


async def _measure(home: Path, count: int, effort: Effort, report: Report) -> None:
    model, calls, rounds = InstantModel(), effort.pick(60, 30), effort.pick(5, 2)
    there, new = texts.notes(count, "there"), texts.notes(rounds * calls * 2 + WARM_UP, "new")
    asked = random.Random("asked").sample(there, calls)  # noqa: S311  nothing is secret
    model.learn(*(note.content for note in new), *(note.question for note in asked))
    timers: dict[str, Timer] = {}
    async with homes.served_here(home, model) as service:
        await homes.populate(service, there, homes.INSTANT_ID, model)
        handle, fresh = _handler(service), iter(new)
        for note in asked[:WARM_UP]:
            await handle("memory.query", {"text": note.question})
            await handle("memory.store", _params(next(fresh)))
        for _ in range(rounds):
            await _floors(service, model, asked, timers)
            await _queries(handle, asked, timers)
            await homes.caught_up(service)
            await _stores(handle, [next(fresh) for _ in range(calls)], timers)
            await homes.caught_up(service)
            await _both(handle, [next(fresh) for _ in range(calls - WARM_UP)], asked, timers)
            await homes.caught_up(service)
    _report(count, timers, report)


def _handler(service: Daemon) -> Handle:
    """Return what the socket would hand a request to, for one connection."""
    peer = Peer(1, "bench")

    async def notify(method: str, params: object) -> None:
        del method, params

    async def handle(method: str, params: dict[str, object]) -> object:
        return await service.server._handler(
            Call(method, msgspec.Raw(msgspec.json.encode(params)), peer, notify)
        )

    return handle


def _params(note: Note) -> dict[str, object]:
    return {
        "content": note.content,
        "project": note.project,
        "event_type": note.event_type,
        "session_id": note.session_id,
    }


async def _queries(handle: Handle, asked: list[Note], timers: dict[str, Timer]) -> None:
    for mode in ("hybrid", "semantic", "keyword"):
        for note in asked:
            with timers.setdefault(f"memory.query, {mode}", Timer()).lap():
                answer = await handle("memory.query", {"text": note.question, "mode": mode})
            assert isinstance(answer, Answer)
            assert answer.results
            assert answer.degraded is None
    for note in asked:
        with timers.setdefault("memory.query, one project", Timer()).lap():
            await handle("memory.query", {"text": note.question, "project": note.project})


async def _stores(handle: Handle, notes: list[Note], timers: dict[str, Timer]) -> None:
    for note in notes:
        with timers.setdefault("memory.store", Timer()).lap():
            answer = await handle("memory.store", _params(note))
        assert isinstance(answer, Stored)
        assert (answer.outcome, answer.degraded) == ("stored", None)


async def _both(handle: Handle, notes: list[Note], asked: list[Note], timers: dict[str, Timer]) -> None:
    for note, question in zip(notes, asked, strict=False):
        await handle("memory.store", _params(note))
        with timers.setdefault("memory.query, right after a store", Timer()).lap():
            await handle("memory.query", {"text": question.question})


async def _floors(service: Daemon, model: InstantModel, asked: list[Note], timers: dict[str, Timer]) -> None:
    """Ask both indexes alone, and commit to a file beside the log, on a thread of their own."""

    def work() -> None:
        with closing(open_reader(service.services.views.file)) as connection:
            for note in asked:
                with timers.setdefault(KNN, Timer()).lap():
                    connection.execute(KNN_SQL, (model.embed(note.question), CANDIDATES)).fetchall()
                with timers.setdefault(WORDS, Timer()).lap():
                    connection.execute(WORDS_SQL, (terms.any_term(note.question), CANDIDATES)).fetchall()
        with closing(appends.bare(service.services.views.file.with_name("bare.db"))) as connection:
            appends.commits(connection, len(asked), 1, STORE_BYTES, timers.setdefault(COMMIT, Timer()))

    await anyio.to_thread.run_sync(work)


def _report(count: int, timers: dict[str, Timer], report: Report) -> None:
    floors = {name: of_calls("", timers.pop(name).ms).median for name in (KNN, WORDS, COMMIT)}
    for name, timer in timers.items():
        beside = {floor: floors[floor] for floor in BESIDE.get(name, (KNN, WORDS))}
        report(
            of_calls(
                f"{name}, {count:,} memories",
                timer.ms,
                goal=STORE_GOAL if name == "memory.store" else QUERY_GOALS[count],
                floors=beside,
            )
        )
