import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from omegad.edge.cli import instance, starting
from omegad.rpc import endpoint
from omegad.runtime import telemetry
from omegad.runtime.errors import Unavailable
from tests.acceptance.conftest import until
from tests.edge.cli.conftest import PATIENCE_S, ROOT, Command

NEXT_HOLDER = """
import fcntl, os, sys, time
with open(sys.argv[1], "r+") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.pwrite(lock.fileno(), f"{os.getpid()}\\n".encode().ljust(32), 0)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _as_people_start_it(omegad: Command) -> None:
    omegad.starts_processes = True


def test_a_daemon_is_started_shown_and_stopped(omegad: Command) -> None:
    started = omegad.json("start")
    assert started["started"]
    status = omegad.json("status")
    assert (status["pid"], status["home"]) == (started["pid"], str(omegad.home))
    shown = omegad("status").stdout
    assert f"process {started['pid']}" in shown
    assert "all views are in step with the log" in shown
    assert "LAG" not in shown
    assert omegad.json("start") == {
        "pid": started["pid"],
        "started": False,
        "home": str(omegad.home),
        "socket": str(omegad.paths.socket),
    }
    assert omegad.json("stop") == {"pid": started["pid"], "stopped": True}
    assert not starting.is_alive(started["pid"])
    assert "no omegad was running" in omegad("stop").stdout
    assert omegad("status", "--no-spawn", status=3).stdout == ""


def test_a_verb_starts_the_daemon_that_it_needs(omegad: Command) -> None:
    assert omegad("store", "nobody was there to remember this").stdout.startswith("stored mem-")
    assert omegad.json("status", "--no-spawn")["log"]["head"] > 0


def test_without_a_daemon_a_verb_may_be_told_to_start_none(omegad: Command) -> None:
    refused = omegad("query", "anything", "--no-spawn", status=3)
    assert "no omegad answers" in refused.stderr
    assert "hint: run `omegad start`" in refused.stderr
    assert not omegad.home.exists()


def test_a_home_that_is_named_is_made_by_who_writes_alone(omegad: Command, tmp_path: Path) -> None:
    for verb in ("query x", "status", "log", "verify", "pack", "unseal", "retention --dry-run"):
        named = omegad(*verb.split(), "--home", str(omegad.home), status=3)
        assert "there is no home at" in named.stderr
    assert not omegad.home.exists()
    assert f"made a new home: {omegad.home}\n" in omegad("store", "the first of all").stderr
    assert omegad("store", "the second").stderr.count("home") == 0
    mistyped = omegad("list", "--home", str(tmp_path / "hoem"), status=3).stderr
    assert f"did you mean {omegad.home}?" in mistyped


def test_a_folder_of_other_things_is_not_taken_for_a_home(omegad: Command) -> None:
    omegad.home.mkdir(mode=0o755)
    (omegad.home / "passwd").touch()
    refused = omegad("start", status=3).stderr
    assert "it holds other things" in refused
    assert "chmod" not in refused


def test_a_daemon_that_is_killed_is_started_anew_by_the_next_verb(omegad: Command) -> None:
    pid = omegad.json("start")["pid"]
    os.kill(pid, 9)
    assert omegad.json("status")["pid"] != pid


def test_starts_at_the_same_moment_yield_one_daemon(omegad: Command) -> None:
    racers = [omegad.begin("start", "--json") for _ in range(4)] + [omegad.begin("status", "--json")]
    answers = [racer.communicate(timeout=PATIENCE_S) for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * len(racers), answers
    pids = {line.split('"pid":')[1].split(",")[0] for line, _ in answers}
    assert pids == {str(omegad.json("status")["pid"])}


def test_a_start_that_another_has_won_leaves_no_process_that_could_become_a_daemon_later(
    served: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = served.json("start")["pid"]
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as slow:
        monkeypatch.setattr(starting, "launch", lambda *_: slow)
        assert starting.start(instance.at(served.environ, may_spawn=True)) == pid
        assert slow.poll() is not None


def test_a_stop_ends_when_another_daemon_has_taken_the_home(omegad: Command) -> None:
    pid = omegad.json("start")["pid"]
    with subprocess.Popen([sys.executable, "-c", NEXT_HOLDER, str(omegad.paths.lock)], cwd=ROOT) as successor:
        try:
            assert starting.stop(omegad.paths) == pid
            until(
                lambda: endpoint.holder(omegad.paths.lock) == successor.pid,
                lambda: "the successor does not hold the home",
            )
        finally:
            successor.kill()


def test_a_verb_that_meets_a_stopping_daemon_gets_the_next_one(omegad: Command) -> None:
    pid = omegad.json("start")["pid"]
    stopping = omegad.begin("stop")
    status = omegad.json("status")
    stopping.communicate(timeout=PATIENCE_S)
    assert stopping.returncode == 0
    assert status["pid"] == pid or starting.answering(omegad.paths) == status["pid"]


def test_a_daemon_that_cannot_start_says_why(omegad: Command) -> None:
    failed = omegad("start", status=3, OMEGAD_MODEL="no-such-model")
    assert "could not be started: model cannot be 'no-such-model': it is one of" in failed.stderr
    assert str(omegad.paths.daemon_log) in failed.stderr


def test_a_home_that_is_open_to_others_is_refused_with_what_to_do(omegad: Command) -> None:
    omegad.home.mkdir()
    omegad.home.chmod(0o755)
    assert f"chmod 700 {omegad.home}" in omegad("start", status=3).stderr


def test_settings_that_are_wrong_are_wrong_usage(omegad: Command) -> None:
    assert "readers" in omegad("serve", status=2, OMEGAD_READERS="many").stderr


def test_a_line_has_a_bound_that_a_machine_can_hold(omegad: Command) -> None:
    omegad.home.mkdir(mode=0o700)
    (omegad.home / "config.toml").write_text("line_bytes_max = 99999999999999999999\n")
    assert "line_bytes_max" in omegad("serve", status=2).stderr


def test_a_variable_that_names_no_setting_is_warned_of(served: Command) -> None:
    assert "did you mean OMEGAD_MODEL?" in served("start", OMEGAD_MODLE="none").stderr


def test_a_process_that_got_the_number_of_a_daemon_is_left_alone(omegad: Command) -> None:
    omegad.home.mkdir(mode=0o700)
    omegad.paths.lock.write_text(f"{os.getpid()}\n")
    assert "no omegad was running" in omegad("stop").stdout
    omegad("start")


def test_a_stop_of_a_home_that_is_not_there_says_so(omegad: Command) -> None:
    assert "there is no home at" in omegad("stop", "--home", str(omegad.home), status=3).stderr
    assert not omegad.home.exists()


def test_a_daemon_that_hangs_is_named_with_what_ends_it(
    omegad: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = omegad.json("start")["pid"]
    monkeypatch.setattr(starting, "PING_S", 0.5)
    monkeypatch.setattr(starting, "SILENCE_S", 0.0)
    monkeypatch.setattr(starting, "is_terminal", lambda _: True)
    os.kill(pid, signal.SIGSTOP)
    try:
        for verb in ("start", "stop"):
            told = omegad(verb, status=3).stderr
            assert f"(process {pid}) has not answered yet" in told
            assert f"`kill {pid}` ends it" in told
            assert ("`omegad stop`" in told) == (verb == "start")
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_home_that_hangs_is_told_with_who_holds_it(
    omegad: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "STOP_S", 0.2)
    omegad.home.mkdir(mode=0o700)
    with (
        endpoint.lock(omegad.paths.lock),
        pytest.raises(Unavailable, match=f"process {os.getpid()} holds") as refused,
    ):
        starting.stop(omegad.paths)
    assert f"kill {os.getpid()}" in refused.value.hint


def test_a_daemon_that_answers_on_another_socket_is_named_with_it_and_stays(
    omegad: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "START_S", 5.0)
    monkeypatch.setattr(starting, "STOP_S", 5.0)
    pid = omegad.json("start")["pid"]
    for verb in ("start", "store x", "stop", "status --no-spawn"):
        told = omegad("--socket", str(tmp_path / "other.sock"), *verb.split(), status=3).stderr
        assert f"process {pid} serves {omegad.home}, and answers on {omegad.paths.socket}" in told
        assert "kill" not in told
    assert omegad.json("status", "--no-spawn")["pid"] == pid


@pytest.mark.parametrize("verb", ["start", "status"])
def test_a_home_that_cannot_be_written_is_told_and_no_daemon_runs(omegad: Command, verb: str) -> None:
    omegad.home.mkdir(mode=0o700)
    omegad.paths.daemon_log.mkdir()  # whatever the file system says, root may write elsewhere
    refused = omegad(verb, status=3)
    assert f"{omegad.paths.daemon_log} cannot be written" in refused.stderr
    assert "OMEGAD_HOME" in refused.stderr


def test_options_name_the_home_and_the_socket_of_the_daemon_that_is_started(
    omegad: Command, tmp_path: Path
) -> None:
    other = Command(tmp_path / "other", OMEGAD_SOCKET=str(tmp_path / "run" / "s"))
    try:
        omegad("--home", str(other.home), "start", "--socket", str(other.paths.socket))
        assert other.json("status", "--no-spawn")["home"] == str(other.home)
        assert (
            omegad(
                "status",
                "--home",
                str(other.home),
                "--no-spawn",
                status=3,
                OMEGAD_SOCKET=str(other.paths.socket),
            ).stdout
            == ""
        )
    finally:
        other.end()
    assert not omegad.home.exists()


def test_the_daemon_imports_nothing_of_the_directory_that_it_is_started_in(
    omegad: Command, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "structlog.py").write_text("raise SystemExit('the wrong one')")
    command = [sys.executable, "-P", "-m", "omegad", "start"]
    subprocess.run(
        command,
        cwd=tmp_path / "here",
        env=omegad.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )


def test_a_long_log_of_the_daemon_is_put_aside_at_the_start(omegad: Command) -> None:
    omegad.home.mkdir(mode=0o700)
    omegad.paths.daemon_log.write_bytes(b"x" * (telemetry.FILE_BYTES_MAX + 1))
    omegad("start")
    assert omegad.paths.daemon_log.stat().st_size < telemetry.FILE_BYTES_MAX
    assert omegad.paths.daemon_log.with_name("omegad.log.1").stat().st_size > telemetry.FILE_BYTES_MAX
    assert omegad.paths.daemon_log.stat().st_mode & 0o777 == 0o600
