"""The command as people run it: a process of its own, on a home of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omegad import config
from omegad.cli import starting
from omegad.client import Client
from tests.acceptance.conftest import PATIENT

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0


class Command:
    """Runs `omegad` on one home, without a model unless told otherwise."""

    def __init__(self, home: Path, **environ: str) -> None:
        foreign = {name: value for name, value in os.environ.items() if not name.startswith("OMEGAD_") and name != "NO_COLOR"}
        self.environ = {**foreign, "OMEGAD_HOME": str(home), "OMEGAD_MODEL": "none", **PATIENT, **environ}
        self.home = home
        self.paths = config.find_paths(self.environ)

    def __call__(self, *arguments: str, status: int = 0, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end and check its status."""
        done = subprocess.run(
            [sys.executable, "-m", "omegad", *arguments],
            cwd=ROOT,
            env=self.environ | environ,
            input=stdin,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
        )
        told = subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
        assert told.returncode == status, f"{' '.join(arguments)}: {told.returncode}\n{told.stdout}\n{told.stderr}"
        return told

    def json(self, *arguments: str, status: int = 0, **environ: str) -> Any:
        """Run it with --json and return what it printed."""
        return json.loads(self(*arguments, "--json", status=status, stdin=b"", **environ).stdout)

    def store(self, content: str, **params: object) -> str:
        """Store a memory without a process of its own, for a test of something else; return its id."""
        with Client(self.paths.socket, timeout_s=PATIENCE_S) as client:
            return str(client.call("memory.store", content=content, **params)["memory_id"])

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Run it and do not wait."""
        command = [sys.executable, "-m", "omegad", *arguments]
        return subprocess.Popen(command, cwd=ROOT, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self) -> None:
        """Leave no daemon behind, whatever the test has done to it."""
        try:
            starting.stop(self.paths)
        finally:
            if pid := starting.holder(self.paths):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def omegad(tmp_path: Path) -> Iterator[Command]:
    """A home that does not exist yet."""
    command = Command(tmp_path / "home")
    yield command
    command.end()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """A home whose daemon runs for all tests of the module."""
    command = Command(tmp_path_factory.mktemp("served") / "home")
    command("start")
    yield command
    command.end()
