"""What is watched beside the fuzzing: others' pings, and what processes occupy."""

import json
import multiprocessing
import os
import socket
import subprocess
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

PING_EVERY_S = 0.02
PING_PATIENCE_S = 60.0
PING = b'{"jsonrpc":"2.0","id":%d,"method":"system.ping"}\n'


class Took(NamedTuple):
    """How long pings took, and by how much the machine alone was late to wake the one who sent them, in
    ms.
    """

    pings: int
    p50: float
    p99: float
    most: float
    waking_p99: float
    failures: tuple[str, ...] = ()

    def __str__(self) -> str:
        figures = (
            f"{self.pings} pings: p50 {self.p50:.1f} ms, p99 {self.p99:.1f} ms, longest {self.most:.0f} ms;"
            f" waking alone p99 {self.waking_p99:.1f} ms"
        )
        return figures + (f"; {len(self.failures)} failed: {self.failures[:3]}" if self.failures else "")


class Pinger:
    """A client in a process of its own, that pings fifty times a second."""

    def __init__(self, path: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_ping, args=(str(path), other), daemon=True)
        self._process.start()

    def took(self) -> Took:
        """Return what the pings since the last time took."""
        self._pipe.send(None)
        return Took(*self._pipe.recv())

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.join()


def _ping(path: str, pipe: Connection) -> None:
    took: list[float] = []
    waking: list[float] = []
    failures: list[str] = []
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PING_PATIENCE_S)
                connection.connect(path)
                lines = connection.makefile("rb")
                _ping_on(connection, lines, (took, waking, failures, pipe))
        except (OSError, ValueError) as error:
            failures.append(repr(error))
            time.sleep(PING_EVERY_S)
            _tell(took, waking, failures, pipe)


def _ping_on(
    connection: socket.socket,
    lines: Iterable[bytes],
    told: tuple[list[float], list[float], list[str], Connection],
) -> None:
    answers = iter(lines)
    for number in range(1 << 60):
        before = time.perf_counter()
        time.sleep(PING_EVERY_S)
        began = time.perf_counter()
        connection.sendall(PING % number)
        answer = json.loads(next(answers, b"null"))
        told[0].append(time.perf_counter() - began)
        told[1].append(began - before - PING_EVERY_S)
        if not answer or "result" not in answer:
            raise ValueError(answer)
        _tell(*told)


def _tell(took: list[float], waking: list[float], failures: list[str], pipe: Connection) -> None:
    if pipe.poll():
        pipe.recv()
        pipe.send(
            (len(took), _at(took, 0.5), _at(took, 0.99), _at(took, 1), _at(waking, 0.99), tuple(failures))
        )
        for figures in (took, waking, failures):
            figures.clear()


def _at(figures: list[float], share: float) -> float:
    return 1_000 * sorted(figures)[min(len(figures) - 1, int(share * len(figures)))] if figures else 0.0


class Size(NamedTuple):
    """What a process occupies: memory, and open files where the system says."""

    rss_mb: float
    files: int

    def __str__(self) -> str:
        return f"{self.rss_mb:.1f} MB, {self.files} files"


def size_of(pid: int) -> Size:
    """Return what a process occupies now."""
    kilobytes = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=False).stdout
    files = Path(f"/proc/{pid}/fd")
    # Only how many
    return Size(int(kilobytes or 0) / 1_024, len(os.listdir(files)) if files.exists() else 0)  # noqa: PTH208


def settled_size_of(pid: int, within_s: float) -> Size:
    """Return the least that a process occupies in a while: it gives back what it can when it has nothing
    to do.
    """
    deadline = time.monotonic() + within_s
    least = size_of(pid)
    while time.monotonic() < deadline:
        time.sleep(min(0.25, within_s))
        now = size_of(pid)
        least = Size(min(now.rss_mb, least.rss_mb), min(now.files, least.files))
    return least
