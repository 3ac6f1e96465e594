"""All systems told the same notes and asked the same questions in turns, beside the bare embedding of both."""

import random
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from omegad.embedding.catalogue import MINILM, installed
from omegad.embedding.session import Session
from tests.bench import texts
from tests.bench.figures import Timer
from tests.bench.peers.mcp import PeerFailed
from tests.bench.peers.processes import cpu_ms, files_mb, resident_mb
from tests.bench.peers.systems import HYBRID, MODES, TOLD_APART, Asked, System
from tests.bench.texts import Note

STORE, FLOOR = "store", "embedding alone"
ROUNDS, CALLS, STARTS = 5, 20, 3
AMONG_FIRST = 5
REFUSED_MAX = 0.05
"""Of the notes: who takes fewer has not come to the size that is measured."""
SETTLE_S = 0.4  # after a block of calls: what a system does after its answers is part of their price


class Cost(msgspec.Struct, frozen=True):
    """Milliseconds of a call: the median that its caller waited, and the processor time for one of them."""

    wall_ms: float
    cpu_ms: float


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one system takes at a size: calls by `store` or mode; of the questions of each mode the share whose
    note was among the first five results; and how many notes it did not take.
    """

    memories: int
    system: str
    costs: dict[str, Cost]
    found: dict[str, float] = {}
    refused: int = 0
    resident_mb: float | None = None
    disk_mb: float | None = None
    start_s: float | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much is measured, and for how many seconds a system may be filled, or measured, at each size."""

    sizes: Sequence[int]
    limit_s: float
    rounds: int = ROUNDS
    calls: int = CALLS


class Outcome(msgspec.Struct, kw_only=True):
    """All rows, and why there are no more of some systems."""

    rows: list[Row] = []
    failures: dict[str, str] = {}


class Floor:
    """The model alone, in this process, as omegad runs it."""

    def __init__(self, models: Path) -> None:
        """Load it; raises FileNotFoundError where it is not installed."""
        manifest = installed(models, MINILM.name)
        if manifest is None:
            raise FileNotFoundError(f"{MINILM.name} is not installed: `omegad model install` installs it")
        self._session = Session(models / MINILM.name, manifest)

    def store(self, note: Note) -> str:
        self._session.embed(note.content)
        return ""

    def ask(self, _mode: str, note: Note) -> list[str]:
        self._session.embed(note.question)
        return []


class _Calls:
    """What the calls of one system took, and how many were true: that a note was refused, or found."""

    def __init__(self) -> None:
        self.timers: dict[str, Timer] = {}
        self.cpu_ms: dict[str, float] = {}
        self.true: dict[str, int] = {}

    def turn(
        self,
        system: Asked,
        new: Sequence[Note],
        questions: dict[str, list[Note]],
        cpu: Callable[[], float],
    ) -> None:
        """Store new notes and ask questions, one after another."""
        self._block(STORE, new, system.store, cpu)
        for mode, notes in questions.items():
            self._block(mode, notes, partial(_is_found, system, mode), cpu)

    def _block(
        self, kind: str, notes: Sequence[Note], call: Callable[[Note], object], cpu: Callable[[], float]
    ) -> None:
        timer, before = self.timers.setdefault(kind, Timer()), cpu()
        for note in notes:
            with timer.lap():
                is_true = bool(call(note))
            self.true[kind] = self.true.get(kind, 0) + is_true
        time.sleep(SETTLE_S)
        self.cpu_ms[kind] = self.cpu_ms.get(kind, 0.0) + cpu() - before

    def costs(self) -> dict[str, Cost]:
        return {
            kind: Cost(statistics.median(timer.ms), self.cpu_ms[kind] / len(timer.ms))
            for kind, timer in self.timers.items()
        }

    def shares(self) -> dict[str, float]:
        return {kind: self.true[kind] / len(timer.ms) for kind, timer in self.timers.items() if kind != STORE}


def _is_found(system: Asked, mode: str, note: Note) -> bool:
    return note.content[:TOLD_APART] in system.ask(mode, note)[:AMONG_FIRST]


def run(systems: Sequence[System], floor: Asked, plan: Plan, tell: Callable[[str], None]) -> Outcome:
    """Start the systems, measure them at each size, and stop them. What fails is told and left out from
    there on.
    """
    return _Run(systems, floor, plan, tell).whole()


class _Run:
    def __init__(
        self, systems: Sequence[System], floor: Asked, plan: Plan, tell: Callable[[str], None]
    ) -> None:
        self._there, self._floor, self._plan, self._tell = list(systems), floor, plan, tell
        self._notes = texts.notes(max(plan.sizes), "peers")
        self._refused = dict.fromkeys((one.name for one in systems), 0)
        self._outcome = Outcome()

    def whole(self) -> Outcome:
        stored, measured, started = 0, self._plan.rounds * self._plan.calls, list(self._there)
        try:
            for system in started:
                self._attempt(system, system.start)
            for size in sorted(self._plan.sizes):
                self._fill(stored, size - measured)
                self._tell(f"{size:,} memories: filled")
                self._measure(size)
                stored = size
        finally:
            for system in started:
                system.stop()
        return self._outcome

    def _attempt(self, system: System, work: Callable[[], None]) -> None:
        try:
            work()
        except PeerFailed as error:
            self._outcome.failures[system.name] = str(error)
            self._tell(f"{system.name}: {error}")
            self._there.remove(system)

    def _fill(self, first: int, end: int) -> None:
        """Fill all at once up to note *end*: nothing is measured meanwhile."""
        until, is_broken_off = time.perf_counter() + self._plan.limit_s, threading.Event()

        def fill(system: System) -> None:
            for number in range(first, end):
                if time.perf_counter() > until or is_broken_off.is_set():
                    raise PeerFailed(f"the time was over when it had {number:,} memories")
                if refusal := system.store(self._notes[number]):
                    self._refused[system.name] += 1
                    if self._refused[system.name] > REFUSED_MAX * end:
                        refused = f"{self._refused[system.name]:,} of {number + 1:,} notes"
                        raise PeerFailed(f"it did not take {refused}, this one since {refusal}")

        with ThreadPoolExecutor(max(1, len(self._there))) as threads:
            works = [threads.submit(self._attempt, one, partial(fill, one)) for one in list(self._there)]
            try:
                for work in works:
                    work.result()
            finally:
                is_broken_off.set()

    def _measure(self, size: int) -> None:
        """Measure at one size: rounds, in each of which every system has its turn, and starts in the end."""
        plan, known = self._plan, self._notes[: size - self._plan.rounds * self._plan.calls]
        choose = random.Random(f"asked {size}")  # noqa: S311  nothing is secret
        # No question is asked twice: systems remember the vectors of texts.
        asked = iter(choose.sample(known, plan.rounds * plan.calls * len(MODES)))
        calls = {name: _Calls() for name in (FLOOR, *(one.name for one in self._there))}
        for number in range(plan.rounds):
            start = len(known) + number * plan.calls
            new = self._notes[start : start + plan.calls]
            questions = {mode: list(islice(asked, plan.calls)) for mode in MODES}
            calls[FLOOR].turn(self._floor, new, {HYBRID: questions[HYBRID]}, _own_cpu_ms)
            first = number % max(1, len(self._there))
            for one in [*self._there[first:], *self._there[:first]]:
                of_it = {mode: questions[mode] for mode in one.modes}
                cpu = partial(_cpu_ms, one)
                self._attempt(one, partial(calls[one.name].turn, one, new, of_it, cpu))
        self._outcome.rows.append(Row(memories=size, system=FLOOR, costs=calls[FLOOR].costs()))
        for one in list(self._there):
            self._attempt(one, partial(self._finish, one, size, calls[one.name], known))

    def _finish(self, system: System, size: int, calls: _Calls, known: Sequence[Note]) -> None:
        """Add the row of a system, which is started some more times for it."""
        self._refused[system.name] += calls.true[STORE]
        resident, starts = resident_mb(system.processes()), list[float]()
        for number in range(STARTS):
            system.stop()
            started = time.perf_counter()
            system.start()
            system.ask(HYBRID, known[number])
            starts.append(time.perf_counter() - started)
        self._outcome.rows.append(
            Row(
                memories=size,
                system=system.name,
                costs=calls.costs(),
                found=calls.shares(),
                refused=self._refused[system.name],
                resident_mb=resident,
                disk_mb=files_mb(system.folder, but=system.models()),
                start_s=statistics.median(starts),
            )
        )


def _cpu_ms(system: System) -> float:
    return cpu_ms(system.processes())


def _own_cpu_ms() -> float:
    return time.process_time() * 1e3
