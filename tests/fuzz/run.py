"""Lets operations and frames loose on a daemon, with what speaks HTTP for it, and sees that every promise holds
meanwhile and after.
"""

import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from omegad.runtime.json_text import mended
from tests.acceptance.conftest import PATIENCE_S, PATIENT, Home, until
from tests.forking import ROOT
from tests.fuzz.beside import Pinger, Size, Took, settled_size_of
from tests.fuzz.doors import Places, Sent, send
from tests.fuzz.operations import Asked, Operations
from tests.fuzz.values import ANSWERED

SHARES = {"socket": 0.7, "mcp": 0.2, "http": 0.1}
"""Of the frames, by door."""
SENDERS = 2
PART = 2_000  # frames that a sender sends at once
WARM_UP = 0.05  # of the frames, before processes are measured
CLIENTS, AT_ONCE = 4, 8
LINE_BYTES = 64 * 1024 * 1024
ERASING_S = 600.0  # they go one after the other, and each may have to build views again
LINE_BYTES_MAX = 16 * 1024 * 1024  # of a request
UNSOUND = (
    "Traceback",
    "handler_failed",
    "cancelled_itself",
    '"level": "error"',
    '"level": "critical"',
    "-32603",
)


class Limits(NamedTuple):
    """How much is sent, and what must hold meanwhile."""

    operations: int
    frames: int
    ping_p99_ms: float = 50.0
    rss_growth_mb: float = 20.0
    settling_s: float = 20.0


class Figures(NamedTuple):
    """What a phase came to."""

    name: str
    sent: int
    seconds: float
    answers: Counter[str]
    pings: dict[str, Took]
    sizes: dict[str, tuple[Size, Size]]

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.sent} in {self.seconds:.0f} s ({self.sent / max(self.seconds, 0.001):.0f}/s)"
        ]
        lines += [
            f"  answers: {', '.join(f'{name} {number}' for name, number in sorted(self.answers.items()))}"
        ]
        lines += [f"  {name} pinged: {took}" for name, took in self.pings.items()]
        return "\n".join(
            lines + [f"  {name}: {before}; then {after}" for name, (before, after) in self.sizes.items()]
        )


class Fuzz:
    """One home, its daemon and what speaks HTTP through all of it, and what was found wrong."""

    def __init__(self, folder: Path, seed: str, tell: Callable[[str], None], model: str = "none") -> None:
        self._folder, self._seed, self._tell = folder, seed, tell
        usual = {"OMEGAD_MODEL": model, "XDG_RUNTIME_DIR": str(folder)}
        self.home = Home(folder / "home", **usual)
        for name in PATIENT:
            del self.home.environ[name]
        self.wrong: list[str] = []
        self._measured: list[str] = []
        """What is wrong by its measure, which keeps nothing from going on."""
        self.figures: list[Figures] = []
        self._repository = _made_repository(folder / "work")
        (self.home.path / "skills" / "fuzzing").mkdir(parents=True)
        (self.home.path / "skills" / "fuzzing" / "SKILL.md").write_text(
            "---\nname: fuzzing\ndescription: d\n---\n# Fuzzing\n"
        )

    def run(self, limits: Limits) -> list[str]:
        """Send it all; return a sentence for everything that is wrong."""
        with self._served() as places, ExitStack() as ended:
            pingers = {"daemon": Pinger(self.home.socket)}
            for pinger in pingers.values():
                ended.callback(pinger.stop)
            pids = {"daemon": self.home.process.pid, "web": self._web.pid}
            if limits.operations:
                self._phase(
                    "operations",
                    limits,
                    pingers,
                    pids,
                    lambda number: asyncio.run(self._operate(number)),
                    limits.operations,
                )
            pool = ended.enter_context(ProcessPoolExecutor(SENDERS, mp_context=get_context("spawn")))
            for door, share in SHARES.items():
                if (frames := int(share * limits.frames)) and not self.wrong:
                    self._phase(
                        door, limits, pingers, pids, partial(self._bombard, pool, places, door), frames
                    )
            self._is_sound()
        self._printed()
        return self.wrong + self._measured

    def _phase(
        self,
        name: str,
        limits: Limits,
        pingers: dict[str, Pinger],
        pids: dict[str, int],
        work: Callable[[int], tuple[int, Counter[str]]],
        number: int,
    ) -> None:
        """Do some of the work, measure, do the rest, and measure again."""
        warm_up = max(1, int(number * WARM_UP))
        work(warm_up)
        before = {one: settled_size_of(pid, limits.settling_s / 4) for one, pid in pids.items()}
        for pinger in pingers.values():
            pinger.took()
        began = time.monotonic()
        sent, answers = work(number - warm_up)
        seconds = time.monotonic() - began
        pings = {one: pinger.took() for one, pinger in pingers.items()}
        sizes = {one: (before[one], settled_size_of(pid, limits.settling_s)) for one, pid in pids.items()}
        figures = Figures(name, sent, seconds, answers, pings, sizes)
        self.figures.append(figures)
        self._tell(str(figures))
        for one, took in pings.items():
            if took.p99 > limits.ping_p99_ms or took.failures:
                self._measured.append(f"{name}: others' pings of the {one}: {took}")
        for one, (first, last) in sizes.items():
            if last.rss_mb > first.rss_mb + limits.rss_growth_mb or last.files > first.files + 10:
                self._measured.append(f"{name}: the {one} grew from {first} to {last}")

    @contextmanager
    def _served(self) -> Iterator[Places]:
        """Start daemon and what speaks HTTP, and end them."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.home.start()
        self.home.paths.config.write_text('web = ["page", "api", "mcp"]\n', encoding="utf-8")
        command = [sys.executable, "-m", "omegad", "web"]
        told = subprocess.run(
            [*command, "--token"], env=self.home.environ, cwd=ROOT, capture_output=True, check=True, text=True
        ).stdout.strip()
        with self.home.output.open("ab") as output:
            self._web = subprocess.Popen(
                [*command, "--port", str(port)], env=self.home.environ, cwd=ROOT, stdout=output, stderr=output
            )
        try:
            until(lambda: _listens(port), lambda: f"what speaks HTTP does not listen: {self.home.printed()}")
            yield Places(str(self.home.socket), self.home.environ, port, told)
        finally:
            self._web.terminate()
            self._web.wait(PATIENCE_S)
            self.home.kill()

    async def _operate(self, number: int) -> tuple[int, Counter[str]]:
        """Send so many requests, from some clients at once."""
        seed = f"{self._seed}/{len(self.figures)}/{number}"
        # The seed names them again
        operations = Operations(random.Random(seed), self._repository)  # noqa: S311
        answers: Counter[str] = Counter()
        left = iter(range(number))
        told = [time.monotonic()]

        async def speak(client: "Line") -> None:
            for done in left:
                asked = operations.next()
                answer = await client.ask(asked)
                self._judge(asked, answer, answers)
                if "result" in answer:
                    operations.learn(asked, answer["result"])
                if time.monotonic() > told[0] + 10:
                    told[0] = time.monotonic()
                    self._tell(f"  operations: {done} of {number}")
                if self.wrong:
                    return

        async with asyncio.TaskGroup() as tasks:
            clients = [await Line.to(self.home.socket) for _ in range(CLIENTS)]
            reading = [asyncio.create_task(client.read()) for client in clients]
            speaking = [tasks.create_task(speak(client)) for client in clients for _ in range(AT_ONCE)]
            spoken = asyncio.ensure_future(asyncio.wait(speaking))
            await asyncio.wait([spoken, *reading], return_when=asyncio.FIRST_COMPLETED)
            for task in reading:
                if task.done():
                    task.result()
                task.cancel()
        for client in clients:
            client.close()
        return number, answers

    def _judge(self, asked: Asked, answer: dict[str, Any], answers: Counter[str]) -> None:
        if ("result" in answer) == ("error" in answer):
            self.wrong.append(f"no answer to {asked!r:.1000}: {answer!r:.500}")
        elif "result" in answer:
            answers["result"] += 1
            answers[f"done {asked.method.partition('.')[0]}"] += 1
        else:
            error = answer["error"]
            answers[str(error["code"])] += 1
            if error["code"] not in ANSWERED or not error["message"] or not error["data"]["hint"]:
                self.wrong.append(f"{asked!r:.2000} was answered {error}")

    def _bombard(
        self, pool: ProcessPoolExecutor, places: Places, door: str, frames: int
    ) -> tuple[int, Counter[str]]:
        """Have frames sent, in parts whose seeds tell them apart."""
        sizes = [min(PART, frames - start) for start in range(0, frames, PART)]
        parts = [
            pool.submit(send, door, f"{self._seed}/{frames}/{number}", size, places)
            for number, size in enumerate(sizes)
        ]
        return self._collect(door, parts)

    def _collect(self, door: str, parts: list[Future[Sent]]) -> tuple[int, Counter[str]]:
        frames, answers, told = 0, Counter[str](), time.monotonic()
        for part in as_completed(parts):
            if part.cancelled():
                continue
            sent = part.result()
            frames += sent.frames
            answers += sent.answers
            self.wrong += sent.wrong[:3]
            if self.wrong:
                for other in parts:
                    other.cancel()
            if time.monotonic() > told + 10:
                told = time.monotonic()
                self._tell(f"  {door}: {frames} frames")
        return frames, answers

    def _is_sound(self) -> None:
        """See that the daemon is well, and prove its log and views."""
        status = self.home.verb("status", "--json")
        if status.returncode:
            self.wrong.append(f"omegad status ended with {status.returncode}: {status.stderr[-2_000:]}")
            return
        told = json.loads(status.stdout)
        if told["pid"] != self.home.process.pid or any(
            view["state"] != "live" for view in told["views"].values()
        ):
            self.wrong.append(f"omegad status: {told}")
        if aside := {
            name: one["trouble"]
            for name, one in told["reactions"].items()
            if one["trouble"] or one["set_aside"]
        }:
            self.wrong.append(f"reactions are in trouble: {aside}")
        self._tell(
            f"degraded: {told['degraded']}; the log has {told['log']['head']} events, {told['log']['bytes']}"
            " bytes"
        )
        until(self.home.caught_up)
        try:
            self.home.check()
        except AssertionError as error:
            self.wrong.append(f"log and views do not verify: {error}")
        if self._web.poll() is not None:
            self.wrong.append(f"what speaks HTTP ended with {self._web.returncode}")

    def _printed(self) -> None:
        """See that nothing was logged that is unsound."""
        logs = [self.home.output, *self.home.path.glob("*.log")]
        for path in (path for path in logs if path.exists()):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            unsound = [number for number, line in enumerate(lines) if any(word in line for word in UNSOUND)]
            if unsound:
                first = "\n".join(lines[max(0, unsound[0] - 2) : unsound[0] + 40])
                self.wrong.append(f"{path.name}: {len(unsound)} lines are unsound, first: {first[:6_000]}")


class Line:
    """A connection on which many things are asked before the first is answered."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._last: asyncio.Future[dict[str, Any]] | None = None
        self._malformed: list[int] = []
        """Those that wait whose answers may lack their ids."""
        self._number = 0

    @classmethod
    async def to(cls, path: Path) -> "Line":
        """Connect."""
        return cls(*await asyncio.open_unix_connection(path, limit=LINE_BYTES))

    async def ask(self, asked: Asked) -> dict[str, Any]:
        """Send a request, and return its answer, which may have lost its id where the request had no JSON."""
        self._number += 1
        number = self._number
        answered = self._asked[number] = asyncio.get_running_loop().create_future()
        line = b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}' % (
            number,
            asked.method.encode(),
            asked.params.replace(b"\n", b" "),
        )
        if not _is_json(line):
            self._malformed.append(number)
        self._writer.write(line + b"\n")
        if asked.method == "log.follow":
            self._writer.write(
                b'{"jsonrpc":"2.0","id":"cancel","method":"rpc.cancel","params":{"id":%d}}\n' % number
            )
        try:
            patience_s = ERASING_S if asked.method == "memory.erase" else PATIENCE_S
            return await asyncio.wait_for(answered, patience_s)
        except TimeoutError:
            return {"no answer": f"within {patience_s:.0f} s"}

    async def read(self) -> None:
        """Take answers, until the connection closes."""
        while line := await self._reader.readline():
            message = json.loads(line)
            if "method" in message or message["id"] == "cancel":
                continue
            number = message["id"]
            if number is None:  # of a line that is no JSON, which one does not matter
                if not self._malformed:
                    raise AssertionError(f"{message} answers nothing, among {self._asked.keys()}")
                number = self._malformed[0]
            if number in self._malformed:
                self._malformed.remove(number)
            if (answered := self._asked.pop(number, None)) and not answered.done():
                answered.set_result(message)
        for answered in self._asked.values():
            answered.set_result({"no answer": "the connection was closed"})

    def close(self) -> None:
        """Close it."""
        self._writer.close()


def _is_json(text: bytes) -> bool:
    """Say whether a daemon can tell whose request it is, which it does of text cut inside a character and
    of what is nested too deeply as well.
    """
    if len(text) > LINE_BYTES_MAX:
        return False
    try:
        msgspec.json.decode(mended(text).decode(), type=msgspec.Raw)
    except ValueError:
        return False
    except RecursionError:
        pass
    return True


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _made_repository(folder: Path) -> Path:
    """Make a repository with files that are none."""
    (folder / "deep").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    for name in ("a.py", "b.py", "deep/c.py"):
        (folder / name).write_text("a = 1\n")
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    (folder / "zero").symlink_to("/dev/zero")
    return folder
