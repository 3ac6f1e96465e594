"""A home of its own for each test, and the daemon that serves it, as a process of its own."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
import pytest

from omegad.client import Client
from omegad.embedding import catalogue
from omegad.rpc import endpoint
from omegad.runtime import config
from omegad.runtime.errors import NoDaemon, OmegadError
from tests.forking import ROOT, Forked

if TYPE_CHECKING:
    from tests.acceptance.failing import Fault

PATIENCE_S = 60.0  # long enough for a busy machine; nothing waits so long unless the test fails
CALM_MAX = 10_000  # events that `Home.events` reads at once
PATIENT = {
    "OMEGAD_FRESH_WAIT_MS": "50000",
    "OMEGAD_QUERY_TIMEOUT_S": "50",
    "OMEGAD_READ_TIMEOUT_S": "100",
    "OMEGAD_REPORT_TIMEOUT_S": "100",
    "OMEGAD_HOST_TRANSCRIPTS": "false",  # those of whoever runs the tests
    "OMEGAD_AUDIT": "changes",  # reads are told behind their answers, which would move positions
}
"""Settings with which nothing is answered otherwise because the machine is busy; for all tests but those
of such answers.
"""


class Home:
    """A directory that a daemon serves, and that daemon."""

    def __init__(self, path: Path, **environ: str) -> None:
        self.path = path
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        foreign = {name: value for name, value in os.environ.items() if not name.startswith("OMEGAD_")}
        self.environ = {**foreign, "OMEGAD_HOME": str(path), "OMEGAD_MODEL": "none", **PATIENT, **environ}
        self.paths = config.find_paths(self.environ)
        self.output = path.with_name(path.name + ".printed")
        self.limits: dict[int, int] = {}
        """By `resource.RLIMIT_`, how much of it the daemon may have."""
        self.has_own_workers = False
        """Whether the daemon starts real processes where it goes through the log; they are forked
        otherwise.
        """
        self.fault: Fault | None = None
        self._process: Forked | subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        return self.paths.socket

    @property
    def process(self) -> Forked | subprocess.Popen[bytes]:
        assert self._process, "the daemon was not started"
        return self._process

    def launch(self) -> Self:
        """Start the daemon, with the fault if there is one, and do not wait for it."""
        if self.environ["OMEGAD_MODEL"] != "none":  # whose libraries have threads
            command = [sys.executable, "-m", "omegad", "serve"]
            with self.output.open("ab") as output:
                self._process = subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env=self.environ,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            return self
        self._process = Forked(
            ["serve"],
            self.environ,
            self.output,
            self.fault,
            limits=self.limits,
            with_own_workers=self.has_own_workers,
        )
        return self

    def start(self) -> Self:
        """Start the daemon, and return when it answers."""
        self.launch()
        until(self.answers, lambda: f"the daemon does not answer; it printed: {self.printed()}")
        return self

    def answers(self) -> bool:
        """Say whether the daemon answers; fail if it has ended instead."""
        assert self.process.poll() is None, (
            f"the daemon ended with {self.process.returncode}: {self.printed()}"
        )
        try:
            with self.client() as client:
                return bool(client.call("system.ping")["pid"] == self.process.pid)
        except NoDaemon:
            return False

    def is_heard(self) -> bool:
        """Say whether the daemon answers; it may have ended, or end meanwhile."""
        try:
            return self.answers()
        except (AssertionError, OmegadError):
            return False

    def client(self, name: str = "", timeout_s: float = PATIENCE_S) -> Client:
        return Client(self.socket, name=name, timeout_s=timeout_s)

    def raw(self) -> "Raw":
        return Raw(endpoint.connect(self.socket, PATIENCE_S))

    def call(self, method: str, **params: object) -> Any:
        """Ask one thing, on a connection of its own."""
        with self.client() as client:
            return client.call(method, **params)

    def verb(
        self, *words: str, said: str = "", within_s: float = PATIENCE_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a verb in a process of its own, which is told something on standard input."""
        return subprocess.run(
            [sys.executable, "-m", "omegad", *words],
            cwd=ROOT,
            env=self.environ,
            input=said,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=within_s,
        )

    def shown(self, *words: str) -> str:
        """Return what a verb prints of which nothing is to be said beside that."""
        done = self.verb(*words)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def kill(self) -> None:
        """End the daemon as a power cut would, if it runs."""
        if self._process:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(PATIENCE_S)

    def stop(self) -> int:
        """Ask the daemon to end, and return its exit status when it has."""
        self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def restart(self) -> Self:
        assert self.stop() == 0
        return self.start()

    def printed(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace") if self.output.exists() else ""

    def events(self) -> list[dict[str, Any]]:
        """Return the whole log."""
        found: list[dict[str, Any]] = []
        with self.client() as client:
            while page := client.call("log.read", after=len(found), limit=CALM_MAX)["events"]:
                found += page
        return found

    def caught_up(self) -> bool:
        """Say whether every view shows the whole log."""
        status = self.call("system.status")
        return not status["log"]["waiting"] and all(
            view["position"] == status["log"]["head"] for view in status["views"].values()
        )

    def check(self) -> None:
        """Have the daemon prove that the log is whole and that the views equal it."""
        with self.client() as client:
            log = client.call("log.verify")
            assert log["ok"], log
            views = client.call("views.verify")
            assert views["ok"], {
                name: view["problem"] for name, view in views["views"].items() if not view["equal"]
            }
            assert views["views"]
            assert all(view["equal"] for view in views["views"].values()), views


class Raw:
    """A connection that sends bytes, so that it can misbehave."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._lines = connection.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def close(self) -> None:
        self._lines.close()
        self.connection.close()

    def send(self, line: bytes) -> None:
        self.connection.sendall(line + b"\n")

    def receive(self) -> Any:
        """Return the next line, None when there is no more to come."""
        line = self._lines.readline()
        return msgspec.json.decode(line) if line else None

    def say(self, line: bytes) -> Any:
        """Send a line, and return the one that answers it, which must be the only one."""
        self.send(line)
        answer = self.receive()
        self.send(b'{"jsonrpc":"2.0","id":"after","method":"system.ping"}')
        assert self.receive()["id"] == "after", "more than one answer came"
        return answer

    def ask(self, method: str, params: bytes) -> Any:
        """Send a request with *params* as they are, and return its answer."""
        return self.say(
            b'{"jsonrpc":"2.0","id":"asked","method":"%s","params":%s}' % (method.encode(), params)
        )

    def is_answered(self) -> bool:
        """Say whether something has come that was not received yet."""
        return bool(select.select([self.connection], [], [], 0)[0])

    def finish_writing(self) -> None:
        self.connection.shutdown(socket.SHUT_WR)


def until(
    is_so: Callable[[], bool],
    complaint: Callable[[], str] = lambda: "it never came to be",
    within_s: float = PATIENCE_S,
) -> None:
    """Wait for something that nothing tells of."""
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, complaint()
        time.sleep(0.005)


def refusal(call: Callable[[], object]) -> OmegadError:
    """Return the error that *call* is refused with."""
    with pytest.raises(OmegadError) as caught:
        call()
    return caught.value


@contextmanager
def homes_in(folder: Path) -> Iterator[Callable[..., Home]]:
    """Make homes, with environment variables for their daemons; kill these in the end, and read what they
    printed.
    """
    made: list[Home] = []

    def make(path: Path | None = None, **environ: str) -> Home:
        made.append(Home(path or folder / f"home{len(made)}", **environ))
        return made[-1]

    try:
        yield make
    finally:
        for home in made:
            home.kill()
    for home in made:
        assert "Traceback" not in home.printed(), home.printed()


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Callable[..., Home]]:
    """What makes homes, see `homes_in`."""
    with homes_in(tmp_path) as make:
        yield make


@pytest.fixture
def home(homes: Callable[..., Home]) -> Home:
    """A home whose daemon is not started."""
    return homes()


@pytest.fixture
def daemon(home: Home) -> Home:
    """A home whose daemon answers."""
    return home.start()


@pytest.fixture
def model_daemon(homes: Callable[..., Home]) -> Home:
    """A home whose daemon answers and has the embedding model; skips where none is installed."""
    require_model()
    home = homes(OMEGAD_MODEL="auto").start()
    assert home.call("system.status")["embedding"]["model"]
    return home


def require_model() -> None:
    """Skip the test where no model lies in the default place."""
    models = config.find_paths().models
    if catalogue.installed(models, "auto") is None:
        pytest.skip(f"no embedding model is installed in {models}; `omegad model install` fetches one")
