"""`sharing`: two homes, each served by a process of its own, and their post in a real PostgreSQL: what a store
takes with and without a team, how soon the other home finds it, and how one catches up while it answers.
"""

import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import anyio

from omegad.client.blocking import Client
from omegad.sharing import credentials
from omegad.sharing.post import administration
from omegad.sharing.post.address import Address
from omegad.sharing.post.post import NO_HEAD
from tests.bench import homes, posts, texts
from tests.bench.figures import Effort, Report, Timer, of_calls, of_rounds
from tests.bench.texts import Note
from tests.sharing.posts import TEAM, Posted
from tests.sharing.server import Server

PROJECT = "shop"
ALONE, SHARED, FROZEN = "no team", "in a team", "in a team whose server is frozen"
ASKED_EVERY_S = 0.02


def run(effort: Effort, report: Report) -> None:
    """Measure them."""
    server = Server({"shared_buffers": "256MB"}, place=tempfile.gettempdir())
    try:
        posted = Posted(server, "postgres")
        administration.install(posted.admin)
        administration.create_team(posted.admin, TEAM)
        with homes.directory() as place:
            _stores(effort, report, server, posted, place)
        with homes.directory() as place:
            _catching_up(effort, report, posted, place)
    finally:
        server.remove()


def _stores(effort: Effort, report: Report, server: Server, posted: Posted, place: Path) -> None:
    calls, rounds = effort.pick(100, 40), effort.pick(5, 2)
    new = iter(texts.notes(calls * (4 * rounds + 2), "shared"))
    timers, found = {name: Timer() for name in (ALONE, SHARED, FROZEN)}, Timer()
    with ExitStack() as stack:
        alone = stack.enter_context(_home(place / "alone"))
        ada = stack.enter_context(_home(place / "ada", posted.member("Ada"), "Ada"))
        with _home(place / "grace", posted.member("Grace"), "Grace") as grace:
            for _ in range(calls):
                with found.lap():
                    _found_elsewhere(ada, grace, next(new))
        # Both hold as much, whichever is timed
        _timed(alone, [next(new) for _ in range(calls)], Timer())
        for _ in range(rounds):
            for client, name in ((alone, ALONE), (ada, SHARED)):
                _timed(client, [next(new) for _ in range(calls)], timers[name])
            _timed(alone, [next(new) for _ in range(calls)], Timer())
            server.signal_all(signal.SIGSTOP)
            try:
                _timed(ada, [next(new) for _ in range(calls)], timers[FROZEN])
            finally:
                server.signal_all(signal.SIGCONT)
    report(of_calls("found on another machine after its store began", found.ms, goal="<= 1,000 ms p95"))
    floor = of_calls("", timers[ALONE].ms).median
    for name in (SHARED, FROZEN):
        report(of_calls(f"memory.store, {name}", timers[name].ms, goal="<= 1.05 x", floors={ALONE: floor}))


def _catching_up(effort: Effort, report: Report, posted: Posted, place: Path) -> None:
    count, asked = effort.pick(100_000, 5_000), Timer()
    afterwards = Timer()
    address = posted.member("Alan")
    anyio.run(partial(_told, posted, address, count), backend="asyncio")
    with _home(place / "away") as client:
        credentials.keep(homes.paths_of(place / "away").share, posted.member("Edsger"))
        started = time.perf_counter()
        _join(client, "Edsger")
        while (received := _received(client)) < count:
            with asked.lap():
                client.call("memory.query", text="which port does the service listen on", project=PROJECT)
            time.sleep(ASKED_EVERY_S)
        took = time.perf_counter() - started
        for _ in range(effort.pick(200, 40)):
            with afterwards.lap():
                client.call("memory.query", text="which port does the service listen on", project=PROJECT)
            time.sleep(ASKED_EVERY_S)
    report(
        of_rounds(
            f"caught up with {received:,} facts",
            "facts/s",
            [received / took],
            goal=">= 3,333",
            note=f"{took:.1f} s",
        )
    )
    note = f"p99 {_p99(asked.ms):.1f} ms, afterwards {_p99(afterwards.ms):.1f} ms"
    floors = {"afterwards": of_calls("", afterwards.ms).median}
    report(of_calls("memory.query meanwhile", asked.ms, goal="< 60 ms p99", floors=floors, note=note))


@contextmanager
def _home(home: Path, address: Address | None = None, person: str = "") -> Iterator[Client]:
    """Serve a home, which shares a project where it is told as whom."""
    with homes.served(home) as running, homes.connected(running) as client:
        if address is not None:
            credentials.keep(running.paths.share, address)
            _join(client, person)
            until_s = time.monotonic() + homes.PATIENCE_S
            while not client.call("share.status")["is_connected"]:
                assert time.monotonic() < until_s
                time.sleep(0.02)
        yield client


def _join(client: Client, person: str) -> None:
    client.call("share.join", team=TEAM, person=person, machine=person.lower())
    client.call("share.choose", project=PROJECT)


def _store(client: Client, note: Note) -> str:
    answer = client.call("memory.store", content=note.content, event_type="decision", project=PROJECT)
    return str(answer["memory_id"])


def _timed(client: Client, notes: list[Note], timer: Timer) -> None:
    for note in notes:
        with timer.lap():
            _store(client, note)
        time.sleep(0.01)  # as an agent would, who does something in between


def _found_elsewhere(one: Client, other: Client, note: Note) -> None:
    memory_id = _store(one, note)
    until_s = time.monotonic() + homes.PATIENCE_S
    while time.monotonic() < until_s:
        found = other.call("memory.query", text=note.content[:200], project=PROJECT, limit=5)
        if any(result["memory_id"] == memory_id for result in found["results"]):
            return
        time.sleep(0.005)
    raise AssertionError(memory_id)


def _received(client: Client) -> int:
    return sum(home["received"] for home in client.call("share.status")["homes"] if home["person"] == "Alan")


async def _told(posted: Posted, address: Address, count: int) -> None:
    async with posted.at(address) as post:
        head = await post.enrol(posts.ORIGIN, "desk")
        assert head == NO_HEAD
        for batch in posts.batches(0, count):
            head = await post.push(posts.ORIGIN, batch, head)


def _p99(ms: list[float]) -> float:
    return sorted(ms)[max(0, round(0.99 * len(ms)) - 1)]
