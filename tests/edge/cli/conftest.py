"""The command as people run it, on a home of its own; its daemon is a process, and so is each verb that is
more than a question.
"""

import io
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, chdir, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import IO, Any
from unittest import mock

import pytest

from omegad.client import Client
from omegad.edge.cli import main, starting
from omegad.edge.cli.instance import Instance
from omegad.rpc import endpoint
from omegad.runtime import config
from tests.acceptance.conftest import PATIENT
from tests.forking import Forked

ROOT = Path(__file__).parents[3]
PATIENCE_S = 60.0
PROCESSES = {"serve", "hook", "mcp", "web", "page", "replay"}
"""What is in the place of the process that it is run in."""


class Command:
    """Runs `omegad` on one home, without a model unless told otherwise."""

    def __init__(self, home: Path, **environ: str) -> None:
        foreign = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("OMEGAD_") and name != "NO_COLOR"
        }
        self.environ = {**foreign, "OMEGAD_HOME": str(home), "OMEGAD_MODEL": "none", **PATIENT, **environ}
        self.home = home
        self.starts_processes = False
        """Whether its daemon is started as people start it; it is forked otherwise."""
        self.paths = config.find_paths(self.environ)

    def run(self, *arguments: str, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end, whatever its status."""
        run = _in_a_process if PROCESSES & set(arguments) else _here
        with (
            nullcontext()
            if self.starts_processes or self.environ["OMEGAD_MODEL"] != "none"
            else mock.patch.object(starting, "launch", _forked)
        ):
            done = run(arguments, self.environ | environ, stdin)
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def __call__(
        self, *arguments: str, status: int = 0, stdin: bytes = b"", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end and check its status."""
        told = self.run(*arguments, stdin=stdin, **environ)
        assert told.returncode == status, (
            f"{' '.join(arguments)}: {told.returncode}\n{told.stdout}\n{told.stderr}"
        )
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
        return subprocess.Popen(
            command, cwd=ROOT, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def end(self) -> None:
        """Leave no daemon behind, whatever the test has done to it."""
        try:
            starting.stop(self.paths)
        finally:
            if pid := endpoint.holder(self.paths.lock):
                os.kill(pid, signal.SIGKILL)


def _forked(instance: Instance, _output: IO[bytes]) -> Forked:
    """Start a daemon in the place of `starting.launch`."""
    environ = {name: value for name, value in instance.environ.items() if name != "NOTIFY_SOCKET"}
    return Forked(
        ["serve"], environ, instance.paths.daemon_log, folder=str(instance.paths.home), is_leader=True
    )


def _in_a_process(
    arguments: Sequence[str], environ: dict[str, str], stdin: bytes
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "omegad", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environ, input=stdin, capture_output=True, check=False, timeout=PATIENCE_S
    )


def _here(
    arguments: Sequence[str], environ: dict[str, str], stdin: bytes
) -> subprocess.CompletedProcess[bytes]:
    """Run it in this process, which takes a tenth of the time."""
    out, err = io.BytesIO(), io.BytesIO()
    with ExitStack() as stack:
        stack.enter_context(chdir(ROOT))
        stack.callback(os.umask, os.umask(0o022))
        stack.enter_context(mock.patch.dict(os.environ, environ, clear=True))
        stack.enter_context(mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8")))
        stdout = stack.enter_context(redirect_stdout(io.TextIOWrapper(out, "utf-8", write_through=True)))
        stderr = stack.enter_context(redirect_stderr(io.TextIOWrapper(err, "utf-8", write_through=True)))
        with warnings.catch_warnings(
            action="ignore", category=ResourceWarning
        ):  # a daemon that was started outlives the verb
            status = main(arguments)
        stdout.detach()
        stderr.detach()
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


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
