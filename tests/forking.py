"""Processes that are forked from one that has imported all of omegad, so that a daemon serves at once:
`Forked`.
"""

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from tests.acceptance.failing import Fault

ROOT = Path(__file__).parents[1]
ENDS_S = 60.0
POLL_S = 0.005


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A process that is wanted: `omegad` with *arguments*, whose output goes to a file. With limits or a
    fault it has workers of its own.
    """

    arguments: tuple[str, ...]
    environ: dict[str, str]
    output: str
    folder: str = str(ROOT)
    umask: int = 0o022
    limits: dict[int, int] = {}
    """By `resource.RLIMIT_`, how much of it the process may have."""
    is_leader: bool = False
    """Whether it has a session of its own."""
    with_own_workers: bool = False
    """Whether it starts real processes where it goes through the log."""
    fault: Fault | None = None


class Forked:
    """Such a process, as `subprocess.Popen` would tell of it. The one that it is forked from is started by
    the first, and ends with this one.
    """

    _forker: subprocess.Popen[bytes] | None = None
    _lock = threading.Lock()

    def __init__(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        output: Path,
        fault: Fault | None = None,
        **more: Any,
    ) -> None:
        """Start it; *more* are fields of `Wanted`."""
        self.returncode: int | None = None
        os.umask(umask := os.umask(0o077))
        wanted = Wanted(
            arguments=tuple(arguments),
            environ=dict(environ),
            output=str(output),
            fault=fault,
            umask=umask,
            **more,
        )
        self.pid = int(self._ask(wanted))

    @classmethod
    def _ask(cls, asked: Wanted | int) -> Any:
        with cls._lock:
            if cls._forker is None:
                command = [sys.executable, "-m", "tests.forker"]
                environ = {
                    **os.environ,
                    "OPENBLAS_NUM_THREADS": "1",
                }  # numpy would start threads, which no fork has
                cls._forker = subprocess.Popen(
                    command, cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
                atexit.register(cls._forker.communicate)
            assert cls._forker.stdin
            assert cls._forker.stdout
            cls._forker.stdin.write(msgspec.json.encode(asked) + b"\n")
            cls._forker.stdin.flush()
            return msgspec.json.decode(cls._forker.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.wait()

    def poll(self) -> int | None:
        """Return the exit status, None while it runs."""
        if self.returncode is None:
            self.returncode = self._ask(self.pid)
        return self.returncode

    def wait(self, timeout: float = ENDS_S) -> int:
        """Return the exit status when it has ended. Raises `subprocess.TimeoutExpired`."""
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(POLL_S)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
