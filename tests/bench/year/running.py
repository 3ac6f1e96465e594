"""Makes the log of a year by the daemon's own parts, and measures what goes through it."""

import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import msgspec
import numpy as np

from omegad.client.blocking import Client
from omegad.daemon import Daemon, composed
from omegad.log.codec import tag_of
from omegad.log.decision import Proposal
from omegad.log.event import NewEvent
from omegad.runtime.clock import Clock
from omegad.runtime.config import Config
from omegad.session.deliveries import DeliveriesLetGo, ExpireDeliveries, expire
from tests.bench import homes
from tests.bench.peers.processes import children, cpu_ms, resident_mb
from tests.bench.texts import DIMENSIONS
from tests.bench.year.events import Year, hashes
from tests.embedding.fakes import put_many

YEAR_US = 365 * 86_400_000_000
AT_ONCE = 500
LOOK_S = 0.2
TOLD_EVERY_S = 20.0
ANSWER_S = 6 * 3_600.0

Tell = Callable[[str], None]


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """The log up to some mark: how many events, in how many seconds, with how many of processor time, and how
    large it is.
    """

    events: int
    seconds: float
    cpu_s: float
    log_mb: float


class Rebuilt(msgspec.Struct, frozen=True, kw_only=True):
    """A rebuild of all views: of how many events, how many seconds until all were shown, and until all was
    done, the processor time of it, the most memory that its process had, and how large the views are.
    """

    events: int
    shown_s: float
    seconds: float
    cpu_s: float
    resident_mb: float
    views_mb: float


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What a daemon of the home took: seconds from its start until it answered a question, its memory then,
    the seconds in which it verified the log, and retention: the seconds that saying took and that letting go
    took, how many events, the bytes of their payloads, and how large the log was before and after; `cpu_s` is
    the processor time of each.
    """

    start_s: float
    resident_mb: float
    verified_s: float
    is_verified: bool
    due_s: float
    aged_s: float
    aged: dict[str, int]
    freed_mb: float
    log_mb: tuple[float, float]
    verified_after_s: float
    is_verified_after: bool
    cpu_s: dict[str, float]


class MovedClock(Clock):
    """A clock that stands still until it is moved."""

    def __init__(self, us: int) -> None:
        self.us = us

    def now_us(self) -> int:
        return self.us


class Making:
    """A home whose log grows to what a year comes to."""

    def __init__(self, home: Path, year: Year, events: int, tell: Tell) -> None:
        """Take how many events the year that ends now has."""
        self.kinds, self.made, self.rebuilt = Counter[str](), list[Made](), list[Rebuilt]()
        self._home, self._year, self._events, self._tell = home, year, events, tell

    async def run(self, marks: Sequence[int]) -> None:
        """Append the events; at each of *marks*, build the views. The time for that is not counted."""
        now_us = Clock().now_us()
        clock, waiting, times = MovedClock(now_us - YEAR_US), sorted(marks), count()
        async with (
            composed(homes.paths_of(self._home), Config(model="none"), clock) as service,
            anyio.create_task_group() as tasks,
        ):
            log, seconds, cpu_s, told = service.services.log, 0.0, 0.0, 0.0
            tasks.start_soon(log.run)
            while log.head < self._events:
                began, cpu_began = time.perf_counter(), time.process_time()
                events = list(self._year.again(next(times), log.head + 1, clock.us))
                await _put_vectors(service, events)
                for start in range(0, len(events), AT_ONCE):
                    part = events[start : start + AT_ONCE]
                    clock.us = min(now_us, now_us - YEAR_US + YEAR_US * log.head // self._events)
                    await homes.append(log, part)
                await _expire(service)
                self.kinds.update(tag_of(type(new.event)) for new in events)
                seconds += time.perf_counter() - began
                cpu_s += time.process_time() - cpu_began
                if seconds > told + TOLD_EVERY_S:
                    told = seconds
                    self._tell(f"{log.head:,} events, {log.head / seconds:,.0f} a second")
                is_marked = bool(waiting) and log.head >= waiting[0]
                if is_marked or log.head >= self._events:
                    size = log.bytes_on_disk() / 1e6
                    made = Made(events=log.head, seconds=seconds, cpu_s=cpu_s, log_mb=size)
                    self.made.append(made)
                if is_marked:
                    waiting.pop(0)
                    self.rebuilt.append(await self._rebuild(service))
            await log.drain()
            tasks.cancel_scope.cancel()

    async def _rebuild(self, service: Daemon) -> Rebuilt:
        events, shown_s = service.services.log.head, list[float]()
        began, cpu_began = time.perf_counter(), _cpu_of_ended_s()

        def progress(done: int, total: int) -> None:
            if done == total and not shown_s:
                shown_s.append(time.perf_counter() - began)

        with _most_memory() as most:
            await service.services.views.rebuild((), progress)
        found = Rebuilt(
            events=events,
            shown_s=shown_s[0],
            seconds=time.perf_counter() - began,
            cpu_s=_cpu_of_ended_s() - cpu_began,
            resident_mb=most[0],
            views_mb=service.services.views.file.stat().st_size / 1e6,
        )
        self._tell(f"views of {events:,} events built in {found.seconds:.0f} s, {found.cpu_s:.0f} of CPU")
        return found


def served(home: Path, tell: Tell) -> Served:
    """Start a daemon of the home, without a model, and have it verify the log, and let go of what is over."""
    log = homes.paths_of(home).log
    with homes.served(home) as running, homes.connected(running, ANSWER_S) as client:
        client.call("memory.query", text="why does the export hang?", mode="keyword")
        start_s, resident = time.perf_counter() - running.started_s, resident_mb([running.process.pid])
        tell(f"started in {start_s:.1f} s")
        pid, cpu_s = running.process.pid, {"start": cpu_ms([running.process.pid]) / 1e3}
        verified_s, verified = _timed(client, pid, cpu_s, "verified", "log.verify")
        tell(f"verified in {verified_s:.0f} s")
        due_s, due = _timed(client, pid, cpu_s, "said", "retention.apply", dry_run=True)
        before = log.stat().st_size / 1e6
        aged_s, aged = _timed(client, pid, cpu_s, "gone", "retention.apply")
        tell(f"{sum(sum(one['counts'].values()) for one in aged['aged']):,} events aged in {aged_s:.0f} s")
        again_s, again = _timed(client, pid, cpu_s, "verified again", "log.verify")
    assert [one["counts"] for one in due["aged"]] == [one["counts"] for one in aged["aged"]]
    return Served(
        start_s=start_s,
        resident_mb=resident,
        verified_s=verified_s,
        is_verified=verified["ok"],
        due_s=due_s,
        aged_s=aged_s,
        aged={tag: many for one in aged["aged"] for tag, many in one["counts"].items()},
        freed_mb=aged["freed_bytes"] / 1e6,
        log_mb=(before, log.stat().st_size / 1e6),
        verified_after_s=again_s,
        is_verified_after=again["ok"],
        cpu_s=cpu_s,
    )


def _timed(
    client: Client, pid: int, cpu_s: dict[str, float], name: str, method: str, **params: object
) -> tuple[float, Any]:
    """Ask, and return how many seconds that took, and the answer; add the processor time to *cpu_s*,
    by *name*.
    """
    began, cpu_began = time.perf_counter(), cpu_ms([pid])
    answer = client.call(method, **params)
    cpu_s[name] = (cpu_ms([pid]) - cpu_began) / 1e3
    return time.perf_counter() - began, answer


def _cpu_of_ended_s() -> float:
    """Return the processor time of processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _put_vectors(service: Daemon, events: Sequence[NewEvent]) -> None:
    """Have vectors, which follow from nothing, in the cache before the events that name their texts."""
    choose = np.random.default_rng(len(events))
    for embedder_id, digests in hashes(events).items():
        raw = choose.normal(size=(len(digests), DIMENSIONS))
        vectors = (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype("<f4")
        given = {digest: row.tobytes() for digest, row in zip(digests, vectors, strict=True)}
        await put_many(service.services.near.embedder._cache, embedder_id, given)


async def _expire(service: Daemon) -> None:
    """Let go of what came in too long ago to come again, as the daemon does between its events."""
    log, is_done = service.services.log, False
    while not is_done:
        command = ExpireDeliveries(before=await log.kept_from())
        answer = (await log.append(Proposal(decide=partial(expire, command)))).answer
        assert isinstance(answer, DeliveriesLetGo)
        is_done = answer.is_done


@contextmanager
def _most_memory() -> Iterator[list[float]]:
    """Look, now and again, how much memory the processes that this one started have; give the most of it."""
    most, is_over = [0.0], threading.Event()

    def look() -> None:
        while not is_over.wait(LOOK_S):
            most[0] = max(most[0], resident_mb(children(os.getpid())))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield most
    finally:
        is_over.set()
        looking.join()
