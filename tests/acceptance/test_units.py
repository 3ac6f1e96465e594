"""The files of the service are ones that systemd and launchd take, and the daemon does what both expect of
it.
"""

import configparser
import os
import plistlib
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from omegad.client import Client
from omegad.edge.setup import units
from omegad.edge.setup.commands import installed
from omegad.edge.setup.files import Originals
from omegad.edge.setup.planning import World
from omegad.runtime.errors import Invalid, OmegadError
from tests.acceptance.conftest import PATIENCE_S

ROOT = Path(__file__).parents[2]
READY_WITHIN_S = PATIENCE_S
MAY_STOP_S = 5  # how long a stopping daemon gives running requests (Config.shutdown_s)
WRONG_USAGE = 2
ODD = 'a %h of "$HOME" \\n'  # a folder's name with all that systemd reads into a word

FORKED = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""
"""What systemd does between its fork and the daemon's program."""

Unit = configparser.ConfigParser


def world(folder: Path, *, is_macos: bool = False) -> World:
    return World({"HOME": str(folder)}, Originals(folder / "setup"), installed(), is_macos=is_macos)


def written(folder: Path, *, is_macos: bool = False, home: Path | None = None) -> dict[str, str]:
    """Return the text of each file of the service of a home, by its name."""
    there, home = world(folder, is_macos=is_macos), home or folder / ".omegad"
    of = units.service(there, home, home / "run" / "omegad.sock", str(ROOT))
    return {change.path.name: change.after or "" for change in units.plan(of, there)}


def parsed(text: str) -> Unit:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys are told apart by case
    parser.read_string(text)
    return parser


def words(text: str) -> list[str]:
    """Read words as systemd does: quoted, with doubled per cent signs, and doubled dollars where a command
    is.
    """
    return [word.replace("%%", "%") for word in shlex.split(text)]


def test_the_units_start_the_daemon_of_this_interpreter_and_home_whatever_they_are_called(
    tmp_path: Path,
) -> None:
    home = tmp_path / ODD
    found = written(tmp_path, home=home)
    name = next(iter(found)).partition(".")[0]
    assert set(found) == {f"{name}.socket", f"{name}.service"}
    service, listening = (
        parsed(found[f"{name}.service"])["Service"],
        parsed(found[f"{name}.socket"])["Socket"],
    )
    assert words(service["ExecStart"]) == [sys.executable, "-P", "-m", "omegad", "serve"]
    assert dict(word.split("=", 1) for word in words(service["Environment"])) == {
        "OMEGAD_HOME": str(home),
        "OMEGAD_SOCKET": str(home / "run" / "omegad.sock"),
        "PYTHONPATH": str(ROOT),
    }
    assert listening["ListenStream"].replace("%%", "%") == str(home / "run" / "omegad.sock")
    assert not any(
        "@" in line
        for text in found.values()
        for line in text.splitlines()
        if "=" in line and "SystemCallFilter" not in line
    )


def test_the_usual_home_has_the_plain_name_and_a_path_that_no_file_can_hold_is_refused(
    tmp_path: Path,
) -> None:
    assert set(written(tmp_path)) == {"omegad.socket", "omegad.service"}
    assert set(written(tmp_path, is_macos=True)) == {"io.github.omegad.plist"}
    with pytest.raises(Invalid):
        written(tmp_path, home=tmp_path / "two\nlines")


def test_the_service_is_ready_when_it_says_so_and_is_watched_private_and_off_the_network(
    tmp_path: Path,
) -> None:
    found = written(tmp_path)
    unit, listening = parsed(found["omegad.service"]), parsed(found["omegad.socket"])
    service = unit["Service"]
    expected = {
        "Type": "notify",
        "NotifyAccess": "main",
        "UMask": "0077",
        "NoNewPrivileges": "yes",
        "RestrictAddressFamilies": "AF_UNIX",
    }
    assert expected.items() <= dict(service).items()
    assert (unit["Install"]["WantedBy"], listening["Install"]["WantedBy"]) == (
        "default.target",
        "sockets.target",
    )
    assert (listening["Socket"]["SocketMode"], listening["Socket"]["DirectoryMode"]) == ("0600", "0700")
    assert int(service["RestartPreventExitStatus"]) == WRONG_USAGE
    assert min(int(service["WatchdogSec"]), int(service["TimeoutStopSec"])) > MAY_STOP_S


def test_the_agent_is_one_that_launchd_takes_with_absolute_paths_alone(tmp_path: Path) -> None:
    agent: dict[str, Any] = plistlib.loads(
        written(tmp_path, is_macos=True)["io.github.omegad.plist"].encode()
    )
    home = tmp_path / ".omegad"
    assert agent["ProgramArguments"] == [sys.executable, "-P", "-m", "omegad", "serve"]
    assert agent["Label"] == "io.github.omegad"
    assert agent["Sockets"] == {
        "Listener": {"SockPathName": str(home / "run" / "omegad.sock"), "SockPathMode": 0o600}
    }
    assert agent["EnvironmentVariables"]["OMEGAD_HOME"] == str(home)
    assert agent["StandardErrorPath"] == str(home / "omegad.log")
    assert (agent["RunAtLoad"], agent["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert (agent["ProcessType"], agent["Umask"]) == ("Interactive", 0o077)
    assert agent["ExitTimeOut"] > MAY_STOP_S


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    found = written(tmp_path, home=tmp_path / ODD)
    for name, text in found.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = ["systemd-analyze", "--user", "verify", *(str(tmp_path / name) for name in found)]
    verified = subprocess.run(
        command,
        env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if "Failed to initialize manager" in verified.stderr:
        pytest.skip(f"systemd-analyze cannot work here: {verified.stderr.strip()}")
    complaints = [line for line in verified.stderr.splitlines() if any(name in line for name in found)]
    assert (verified.returncode, complaints) == (0, [])


class Manager:
    """Does what systemd does with the two units, as far as the daemon can tell."""

    def __init__(self, folder: Path, found: dict[str, str]) -> None:
        self._service, listening = (
            parsed(found["omegad.service"])["Service"],
            parsed(found["omegad.socket"])["Socket"],
        )
        self.path = Path(listening["ListenStream"])
        self.path.parent.mkdir(mode=0o700, parents=True)
        self.path.parent.parent.chmod(0o700)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self.path.chmod(0o600)
        self._listener.listen()
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._told.bind(str(folder / "notify"))
        self.printed = folder / "printed"

    def close(self) -> None:
        self._listener.close()
        self._told.close()

    @contextmanager
    def running(self, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run the service as its unit says, by way of `FORKED`."""
        given = dict(word.split("=", 1) for word in words(self._service["Environment"]))
        given |= {
            "PATH": os.environ["PATH"],
            "NOTIFY_SOCKET": self._told.getsockname(),
            "LISTEN_FDS": "1",
            "OMEGAD_MODEL": "none",
        }
        listener = self._listener.fileno()
        command = [sys.executable, "-c", FORKED, str(listener), *words(self._service["ExecStart"])]
        with self.printed.open("ab") as output:
            process = subprocess.Popen(
                command, env=given | environ, pass_fds=(listener,), cwd="/", stdout=output, stderr=output
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def hears(self, state: str, within_s: float = READY_WITHIN_S) -> bool:
        """Say whether the daemon says *state* within a time."""
        until = time.monotonic() + within_s
        while (left_s := until - time.monotonic()) > 0:
            self._told.settimeout(left_s)
            with suppress(TimeoutError):
                if state in self._told.recv(4096).decode().splitlines():
                    return True
        return False


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with closing(Manager(tmp_path, written(tmp_path))) as made:
        yield made


def test_who_connects_before_the_daemon_runs_is_answered_by_it_and_the_socket_outlives_it(
    manager: Manager,
) -> None:
    answers: list[object] = []

    def ask() -> None:
        with Client(manager.path, timeout_s=READY_WITHIN_S) as client:
            answers.append(client.call("system.ping")["pid"])

    pids = []
    for _ in range(2):
        asking = threading.Thread(target=ask)
        asking.start()
        with manager.running() as daemon:
            asking.join(READY_WITHIN_S)
            assert manager.hears("READY=1"), manager.printed.read_text()
            pids.append(daemon.pid)
            daemon.terminate()
            assert manager.hears("STOPPING=1")
            assert daemon.wait(READY_WITHIN_S) == 0, manager.printed.read_text()
        assert manager.path.is_socket()
    assert answers == pids


def test_a_daemon_whose_socket_is_another_than_the_managers_says_so(manager: Manager, tmp_path: Path) -> None:
    with manager.running(OMEGAD_SOCKET=str(tmp_path / ".omegad" / "run" / "b.sock")) as daemon:
        assert daemon.wait(READY_WITHIN_S) == 1
    assert (
        f"does not listen at {tmp_path}/.omegad/run/b.sock but at {manager.path}"
        in manager.printed.read_text()
    )


def test_the_watchdog_hears_nothing_while_the_log_cannot_be_written_and_goes_on_when_it_can(
    manager: Manager, tmp_path: Path
) -> None:
    def store() -> None:
        with suppress(OmegadError), Client(manager.path, timeout_s=READY_WITHIN_S) as client:
            client.call("memory.store", content="it waits for the disk")

    with manager.running(WATCHDOG_USEC="200000"):
        assert manager.hears("WATCHDOG=1")
        with closing(sqlite3.connect(tmp_path / ".omegad" / "log.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = threading.Thread(target=store)
            waiting.start()
            until = time.monotonic() + READY_WITHIN_S
            while manager.hears("WATCHDOG=1", within_s=1.0):
                assert time.monotonic() < until, "a writer that hangs is not noticed"
            other.execute("ROLLBACK")
        assert manager.hears("WATCHDOG=1")
        waiting.join(READY_WITHIN_S)
