"""`rebuild-live`: the views of a log at work built again by a daemon of its own, while clients go on storing
and asking.

Requests come at a steady rate whether or not earlier ones are answered, each with words of its own; a
request's time counts from the moment that it was due. The same clients before, for as long, are the floor.
"""

import asyncio
import random
import time
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from omegad import daemon
from omegad.client import AsyncClient
from omegad.daemon import composed
from omegad.runtime.clock import Clock
from omegad.runtime.config import Config
from omegad.runtime.errors import OmegadError
from tests.bench import homes, rebuilds, texts
from tests.bench.figures import Effort, Report, of_calls, of_rounds

REQUESTS_PER_S = 20
BEFORE_S = 20.0
READY_S = 600.0


class Load:
    """What a steady load was answered."""

    def __init__(self, path: Path, name: str) -> None:
        self.ms: list[float] = []
        self.failures: list[str] = []
        self._path = path
        self._choose = random.Random(name)  # noqa: S311  nothing is secret
        self._name = name

    async def run(self) -> None:
        """Ask until cancelled; then wait for what was asked."""
        asked: set[asyncio.Task[None]] = set()
        async with AsyncClient(self._path, name=self._name, timeout_s=homes.PATIENCE_S) as client:
            try:
                begun = time.perf_counter()
                for number in range(10**9):
                    due = begun + number / REQUESTS_PER_S
                    await asyncio.sleep(max(0.0, due - time.perf_counter()))
                    asked.add(asyncio.create_task(self._ask(client, number, due)))
            finally:
                with anyio.CancelScope(shield=True):
                    await asyncio.gather(*asked)

    async def _ask(self, client: AsyncClient, number: int, due: float) -> None:
        words = (
            f"{self._choose.getrandbits(40):x} {self._choose.choice(('deploy', 'index', 'cache', 'ledger'))}"
        )
        try:
            if number % 2:
                await client.call(
                    "memory.store",
                    content=f"Run {self._name} {number} keeps {words} in module_{number}.py",
                    project="atlas",
                )
            else:
                await client.call("memory.query", text=f"where is {words} kept?", project="atlas")
        except OmegadError as error:
            self.failures.append(str(error))
        self.ms.append(1e3 * (time.perf_counter() - due))


def run(effort: Effort, report: Report) -> None:
    """Measure one rebuild of everything, as a caller sees it."""
    events = effort.pick(200_000, 20_000)
    with homes.directory() as place:
        (place / "home").mkdir(mode=0o700)
        daemon.run(partial(_make, place / "home", events))
        with homes.served(place / "home") as running, homes.connected(running) as client:
            deadline = time.perf_counter() + READY_S
            while any(view["lag"] for view in client.call("system.status")["views"].values()):
                assert time.perf_counter() < deadline
                time.sleep(0.2)
            before, meanwhile, seconds, found = asyncio.run(_measure(running.paths.socket))
    report(
        of_rounds(
            f"rebuild of {events:,} events under load",
            "events/s",
            [found["position"] / seconds],
            goal=">= 12,000 events/s",
        )
    )
    floors = {"the same requests before": sorted(before.ms)[len(before.ms) // 2]}
    note = (
        f"p99 {_p99(meanwhile.ms):.0f} ms, before {_p99(before.ms):.0f} ms; {len(meanwhile.failures)} failed"
        f" {meanwhile.failures[:1]}"
    )
    report(
        of_calls(
            f"  {REQUESTS_PER_S} requests a second meanwhile",
            meanwhile.ms,
            goal="p99 < 60 ms, none fails",
            floors=floors,
            note=note,
        )
    )


async def _make(home: Path, events: int) -> None:
    async with (
        composed(homes.paths_of(home), Config(model="none"), Clock()) as service,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(service.services.log.run)
        await rebuilds.fill(service, texts.notes(events // 5, "rebuilt"), rebuilds.at_work, events)
        await service.services.log.drain()
        tasks.cancel_scope.cancel()


async def _measure(path: Path) -> tuple[Load, Load, float, dict[str, Any]]:
    before, meanwhile = Load(path, "before"), Load(path, "meanwhile")
    with anyio.move_on_after(BEFORE_S):
        await before.run()
    async with (
        AsyncClient(path, name="rebuilder", timeout_s=READY_S) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(meanwhile.run)
        await asyncio.sleep(1)
        started = time.perf_counter()
        answer = await client.call("views.rebuild")
        seconds = time.perf_counter() - started
        tasks.cancel_scope.cancel()
    return before, meanwhile, seconds, answer["views"]["memories"]


def _p99(values: list[float]) -> float:
    return sorted(values)[max(0, round(0.99 * len(values)) - 1)]
