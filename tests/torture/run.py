"""Kills a daemon at random moments of mixed work, and proves what is left."""

import asyncio
import itertools
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from omegad.runtime.errors import NoDaemon
from tests.acceptance.conftest import PATIENCE_S, Home, until
from tests.acceptance.failing import Fault, How
from tests.acceptance.faults import FaultyHome
from tests.forking import Forked
from tests.torture.book import ERASE, Book, lost_or_doubled
from tests.torture.work import Work

ACKNOWLEDGED_BEFORE_KILL = (1, 200)
STEPS_BEFORE_KILL = (1, 3_000)
KILLS_OF_A_HOME = 100
"""After so many a home is proved, and the next one begun: one that grows on takes longer for every kill,
and shows nothing that it did not.
"""
SEARCHED_EVERY = 10  # kills
VERBS = ("backup", "export")


class Limits(NamedTuple):
    """How long it goes on: until both are reached."""

    kills: int
    acknowledged: int


class Torture:
    """One home after another through all of it, and what was found wrong."""

    def __init__(self, folder: Path, seed: str, tell: Callable[[str], None]) -> None:
        self.folder, self.tell = folder, tell
        self.chance = random.Random(seed)  # noqa: S311  any moment will do, and the seed names it again
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        """What was acknowledged in the homes that are done with, by method."""
        self.clock, self.full_disk = folder / "clock", folder / "full"
        self._numbers, self._copies = itertools.count(1), itertools.count(1)
        self._move()

    def _move(self) -> None:
        """Begin with a home that nothing was done in."""
        self.home = FaultyHome(self.folder / f"home-{next(self._numbers)}")
        self.clock.write_text("0", encoding="ascii")
        self.book = Book()
        self.work = Work(
            self.home.path,
            self.home.socket,
            self.book,
            self.chance,
            clock=self.clock,
            full_disk=self.full_disk,
        )
        self.work.refused = self.refused

    @property
    def acknowledged(self) -> int:
        """How many requests were, in all homes; erasures are not among them."""
        return self.asked.total() - self.asked[ERASE] + len(self.book.acknowledged)

    def run(self, limits: Limits) -> list[str]:
        """Kill until the limits are reached; return a sentence for everything that is wrong."""
        began = time.monotonic()
        while True:
            wrong = self._live(limits)
            self._told(began)
            if wrong or self._is_enough(limits):
                return wrong
            self.asked += self.book.counts
            shutil.rmtree(self.home.path)
            self._move()

    def _is_enough(self, limits: Limits) -> bool:
        return self.counts["kills"] >= limits.kills and self.acknowledged >= limits.acknowledged

    def _live(self, limits: Limits) -> list[str]:
        """Kill in one home, and prove what is left; return a sentence for everything that is wrong."""
        wrong: list[str] = []
        try:
            for number in range(1, KILLS_OF_A_HOME + 1):
                self._round(limits)
                if number % SEARCHED_EVERY == 0:
                    wrong += self._remains()
                if wrong or "Traceback" in self.home.printed() or self._is_enough(limits):
                    break
            self._start()
            self._settle()
            wrong += self._remains()
            until(self.home.caught_up)
            wrong += asyncio.run(self.work.answered_otherwise())
            wrong += lost_or_doubled(self.book, self.home.events())
            self._checked()
        finally:
            self.home.kill()
        if "Traceback" in (printed := self.home.printed()):
            wrong.append(f"the daemon printed a traceback: {printed[printed.index('Traceback') :][:3_000]}")
        return wrong

    def _fault(self, **fields: object) -> Fault:
        return Fault(within=f"{self.home.path}/", trace=os.devnull, clock=str(self.clock), **fields)  # type: ignore[arg-type]

    def _start(self, fault: Fault | None = None) -> bool:
        """Start the daemon; where its fault ends the start, start it without; say whether it has its fault
        still.
        """
        self.full_disk.unlink(missing_ok=True)
        self.home.fault = fault or self._fault()
        if self.home.serves():
            return True
        assert fault, f"a start without a fault ended: {self.home.printed()[-3_000:]}"
        self.counts["kills at start"] += 1
        self.home.fault = self._fault()
        self.home.start()
        return False

    def _round(self, limits: Limits) -> None:
        kind = self.chance.choices(("moment", "step", "disk"), (5, 4, 1))[0]
        how: How = self.chance.choice(("kill", "torn", "power"))
        fault = {
            "step": lambda: self._fault(how=how, at=self.chance.randint(*STEPS_BEFORE_KILL)),
            "disk": lambda: self._fault(how="enospc", switch=str(self.full_disk), only="write"),
        }.get(kind, self._fault)()
        self._start(fault)
        self._settle()
        beside = self._beside() if self.chance.random() < 0.2 else None
        a_kill = max(
            1, (limits.acknowledged - self.acknowledged) // max(1, limits.kills - self.counts["kills"])
        )
        enough = len(self.book.acknowledged) + self.chance.randint(1, 2 * a_kill)
        asyncio.run(
            self._work_until_killed(enough, beside[-1] if beside else None, with_full_disk=kind == "disk")
        )
        self.counts["kills"] += 1
        self.counts[f"kills: {kind}"] += 1
        if beside:
            self._end_beside(*beside)

    def _settle(self) -> None:
        """Have all that was not answered answered; a fault may end the daemon meanwhile."""
        while True:
            try:
                return asyncio.run(self.work.send_again())
            except NoDaemon:
                until(lambda: self.home.process.poll() is not None)
                self.counts["kills while asked again"] += 1
                self._start()

    async def _work_until_killed(self, enough: int, beside: Forked | None, *, with_full_disk: bool) -> None:
        """Let the work go on until the daemon ends on its fault, or enough is acknowledged, and then kill
        it; half of what runs beside, too.
        """
        if beside and self.chance.random() < 0.5:
            asyncio.get_running_loop().call_later(
                self.chance.uniform(0, 0.3), beside.send_signal, signal.SIGKILL
            )
        with_rebuilds = self.chance.random() < 0.3
        working = asyncio.create_task(
            self.work.go_on(with_rebuilds=with_rebuilds, with_full_disk=with_full_disk)
        )
        deadline = time.monotonic() + PATIENCE_S
        while len(self.book.acknowledged) < enough and not working.done():
            assert time.monotonic() < deadline, (
                f"nothing is acknowledged: {self.work.refused} {self.home.printed()[-2_000:]}"
            )
            await asyncio.sleep(self.chance.uniform(0, 0.01))
        self.full_disk.unlink(missing_ok=True)
        self.home.process.send_signal(signal.SIGKILL)
        until(lambda: self.home.process.poll() is not None)
        await working

    def _beside(self) -> tuple[str, Path, Forked]:
        """Begin to copy the log while it is in use."""
        verb = self.chance.choice(VERBS)
        copy = self.folder / f"{verb}-{next(self._copies)}"
        return verb, copy, self._forked([verb, str(copy)], self.home)

    def _end_beside(self, verb: str, copy: Path, process: Forked) -> None:
        """See that a copy that was made is whole, and makes a home whose log verifies, whenever that is
        killed.
        """
        status = process.wait()
        self.counts[f"{verb} {'whole' if status == 0 else 'killed'}"] += 1
        assert status in {0, -signal.SIGKILL}, (verb, status)
        if copy.exists():
            assert status == 0 or copy.stat().st_size
            if status == 0:
                self._taken_in(verb, copy)
        for path in (*self.folder.glob(f"{copy.name}*"), *self.folder.glob(f".{copy.name}.*")):
            path.unlink()

    def _taken_in(self, verb: str, copy: Path) -> None:
        """Make a home of a copy, killed meanwhile, and again."""
        home = FaultyHome(self.folder / f"of-{copy.name}")
        arguments = ["restore", str(copy), "--replace"] if verb == "backup" else ["import", str(copy)]
        for patience_s in (self.chance.uniform(0.01, 0.3), PATIENCE_S):
            process = self._forked(arguments, home)
            deadline = time.monotonic() + patience_s
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            self.counts[f"{arguments[0]} {'whole' if process.wait() == 0 else 'killed'}"] += 1
            if process.returncode == 0:
                break
        was_done = (
            "has events already" in home.printed()
        )  # by the one that was killed when nothing but its end was left to do
        assert process.returncode == 0 or (verb == "export" and was_done), home.printed()
        try:
            home.start()
            verified = home.call("log.verify")
            assert verified["ok"], verified
            head, here = home.call("system.status")["log"]["head"], home.events()
            # Its daemon goes on meanwhile: what expires with a clock that was set ahead is an event more.
            found = [event["position"] for event in here]
            assert len(found) >= head, (head, found[-1:])
            assert found == list(range(1, len(found) + 1)), (head, found)
        finally:
            home.kill()
            shutil.rmtree(home.path)

    def _forked(self, arguments: list[str], home: Home) -> Forked:
        return Forked(arguments, home.environ, home.output, None)

    def _remains(self) -> Iterator[str]:
        """Yield the files of the home that hold what was erased."""
        marks = [mark.encode() for mark in self.book.gone]
        for path in self.home.path.rglob("*"):
            try:
                data = path.read_bytes() if path.is_file() else b""
            except FileNotFoundError:  # the daemon removes files meanwhile
                continue
            yield from (
                f"{path.name} holds {mark.decode()}, which was erased" for mark in marks if mark in data
            )

    def _checked(self) -> None:
        """Have log and views proved."""
        self.home.check()
        self.counts["proofs"] += 1

    def _told(self, began: float) -> None:
        asked = dict(self.asked + self.book.counts)
        counts = ", ".join(f"{name} {number}" for name, number in sorted(self.counts.items()))
        self.tell(f"{time.monotonic() - began:6.0f} s  {self.acknowledged} acknowledged {asked}; {counts}")


def refusals(torture: Torture) -> str:
    """Say what the daemon refused meanwhile, and how often."""
    return "\n".join(
        f"{number:6} times {told}"
        for told, number in sorted(torture.refused.items(), key=lambda item: -item[1])
    )
