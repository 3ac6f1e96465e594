"""The service files are ones that systemd and launchd take, and start a command that there is."""

import configparser
import os
import plistlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SERVICE = ROOT / "systemd" / "omegad.service"
AGENT = ROOT / "launchd" / "io.github.omegad.plist"
ENTRY_POINT = "import sys; from omegad.cli import main; sys.exit(main())"  # what the installed command runs
WRONG_USAGE = 2
READY_WITHIN_S = 30
MAY_STOP_S = 5  # how long a stopping daemon gives running requests (Config.shutdown_s)


@pytest.fixture
def service() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys are told apart by case
    parser.read_string(SERVICE.read_text(encoding="utf-8"))
    return parser


@pytest.fixture
def agent() -> dict[str, Any]:
    return dict(plistlib.loads(AGENT.read_bytes()))


def explained(verb: str) -> subprocess.CompletedProcess[str]:
    """Ask the command what *verb* does, which it can say only of its own."""
    return subprocess.run([sys.executable, "-c", ENTRY_POINT, verb, "--help"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


def test_the_command_explains_its_own_verbs_alone() -> None:
    assert explained("no-such-verb").returncode == WRONG_USAGE


def test_the_service_starts_a_verb_that_exists(service: configparser.ConfigParser) -> None:
    command, *arguments = shlex.split(service["Service"]["ExecStart"])
    assert (command, arguments) == ("@OMEGAD@", ["serve"])
    verb = explained(arguments[0])
    assert (verb.returncode, verb.stderr) == (0, "")


def test_the_service_says_itself_when_it_is_ready(service: configparser.ConfigParser) -> None:
    assert service["Service"]["Type"] == "notify"
    assert service["Service"]["NotifyAccess"] == "main"
    assert service["Install"]["WantedBy"] == "default.target"


def test_the_service_is_watched(service: configparser.ConfigParser) -> None:
    assert int(service["Service"]["WatchdogSec"]) > MAY_STOP_S


def test_the_service_keeps_its_files_private_and_off_the_network(service: configparser.ConfigParser) -> None:
    assert service["Service"]["UMask"] == "0077"
    assert service["Service"]["NoNewPrivileges"] == "yes"
    assert service["Service"]["RestrictAddressFamilies"] == "AF_UNIX"


def test_wrong_usage_is_not_tried_again(service: configparser.ConfigParser) -> None:
    assert int(service["Service"]["RestartPreventExitStatus"]) == WRONG_USAGE


def test_neither_manager_kills_a_daemon_that_is_still_answering(service: configparser.ConfigParser, agent: dict[str, Any]) -> None:
    assert int(service["Service"]["TimeoutStopSec"]) > MAY_STOP_S
    assert agent["ExitTimeOut"] > MAY_STOP_S


def test_the_agent_starts_a_verb_that_exists(agent: dict[str, Any]) -> None:
    assert agent["ProgramArguments"] == ["@OMEGAD@", "serve"]
    verb = explained(agent["ProgramArguments"][1])
    assert (verb.returncode, verb.stderr) == (0, "")


def test_the_agent_is_named_like_its_file_and_restarts_only_after_a_failure(agent: dict[str, Any]) -> None:
    assert agent["Label"] == AGENT.stem
    assert agent["RunAtLoad"] is True
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["ProcessType"] == "Interactive"


def test_the_agent_keeps_its_files_private(agent: dict[str, Any]) -> None:
    assert agent["Umask"] == 0o077


@pytest.mark.parametrize(("file", "known"), [(SERVICE, {"@OMEGAD@"}), (AGENT, {"@OMEGAD@", "@LOG@"})], ids=["systemd", "launchd"])
def test_an_installer_has_nothing_else_to_fill_in(file: Path, known: set[str]) -> None:
    assert set(re.findall(r"@[A-Z_]+@", file.read_text(encoding="utf-8"))) == known


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_nothing_wrong_with_the_service(tmp_path: Path) -> None:
    command = tmp_path / "a place" / "omegad"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    unit = tmp_path / SERVICE.name
    unit.write_text(SERVICE.read_text(encoding="utf-8").replace("@OMEGAD@", str(command)))
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    verified = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(unit)], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    if "Failed to initialize manager" in verified.stderr:
        pytest.skip(f"systemd-analyze cannot work here: {verified.stderr.strip()}")
    complaints = [line for line in verified.stderr.splitlines() if str(unit) in line or SERVICE.name in line]
    assert (verified.returncode, complaints) == (0, [])


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")
def test_a_daemon_that_systemd_starts_says_when_it_is_ready_and_that_it_runs_and_ends_successfully(tmp_path: Path) -> None:
    environment = {**os.environ, "OMEGAD_HOME": str(tmp_path / "home"), "OMEGAD_MODEL": "none", "NOTIFY_SOCKET": str(tmp_path / "n")}
    environment |= {"WATCHDOG_USEC": "200000"}
    for name in ("OMEGAD_SOCKET", "WATCHDOG_PID"):
        environment.pop(name, None)
    printed = tmp_path / "printed"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, printed.open("wb") as output:
        manager.bind(environment["NOTIFY_SOCKET"])
        with subprocess.Popen([sys.executable, "-c", ENTRY_POINT, "serve"], cwd=ROOT, env=environment, stdout=output, stderr=output) as daemon:
            try:
                is_ready = _says("READY=1", manager, daemon)
                is_alive = [_says("WATCHDOG=1", manager, daemon) for _ in range(3)]
            finally:
                daemon.terminate()
            assert (is_ready, all(is_alive), daemon.wait(4 * MAY_STOP_S)) == (True, True, 0), printed.read_text(encoding="utf-8")


def _says(state: str, manager: socket.socket, daemon: subprocess.Popen[bytes]) -> bool:
    manager.settimeout(0.2)
    until = time.monotonic() + READY_WITHIN_S
    while daemon.poll() is None and time.monotonic() < until:
        try:
            if state in manager.recv(4096).decode().splitlines():
                return True
        except TimeoutError:
            continue
    return False
