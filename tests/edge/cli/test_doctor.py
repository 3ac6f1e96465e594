import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from omegad.edge.cli import checks, doctor, setup, starting
from omegad.edge.cli.instance import at
from omegad.embedding import catalogue
from omegad.runtime import config
from omegad.runtime.errors import NoDaemon
from tests.edge.cli.conftest import PATIENCE_S, Command
from tests.edge.cli.test_log_and_views_verbs import change_a_view


def states(report: Any) -> dict[str, str]:
    return {finding["part"]: finding["state"] for finding in report["findings"]}


def test_a_healthy_home_passes_and_is_left_as_it_was(omegad: Command, tmp_path: Path) -> None:
    omegad("store", "the only memory here")
    report = omegad.json("doctor", TMPDIR=str(tmp_path), HOME=str(tmp_path))
    assert report["ok"]
    assert {part for part, state in states(report).items() if state == "warn"} == {"model", "embedding"}
    assert set(states(report)) >= {
        "python",
        "sqlite",
        "config",
        "home",
        "disk",
        "socket",
        "agents",
        "service",
        "daemon",
        "log",
        "views",
        "trial",
        "hooks",
        "mcp",
    }
    assert len(omegad.json("list")["memories"]) == 1
    assert list(tmp_path.glob("omegad-doctor-*")) == []


def test_its_trial_ends_with_it(omegad: Command, tmp_path: Path) -> None:
    omegad.environ["TMPDIR"] = str(tmp_path)
    running = omegad.begin("doctor")
    until_s = time.monotonic() + PATIENCE_S
    while not (held := list(tmp_path.glob("omegad-doctor-*/omegad.lock"))) and time.monotonic() < until_s:
        time.sleep(0.01)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=PATIENCE_S)
    assert held, "it was over before its trial began"
    assert running.returncode
    assert list(tmp_path.glob("omegad-doctor-*")) == []


def test_an_agent_that_runs_another_omegad_is_told_of(omegad: Command, tmp_path: Path) -> None:
    omegad("setup", "zed", "--yes", HOME=str(tmp_path), XDG_CONFIG_HOME="")
    settings = tmp_path / ".config" / "zed" / "settings.json"
    settings.write_text(settings.read_text().replace("/omegad/mcp_bridge.py", "/old/omegad/mcp_bridge.py"))
    told = setup.agents(at({**omegad.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": ""}, may_spawn=False))
    assert [finding.remedy for finding in told if finding.state == "warn"] == ["run `omegad setup zed`"]


def test_a_home_that_is_open_to_others_fails_with_what_to_do(omegad: Command) -> None:
    omegad.home.mkdir()
    omegad.home.chmod(0o755)
    failing = {
        finding["part"]: finding
        for finding in omegad.json("doctor", status=1)["findings"]
        if finding["state"] == "FAIL"
    }
    assert set(failing) == {"home", "daemon"}
    assert failing["home"]["remedy"] == f"chmod 700 {omegad.home}"


def test_the_library_that_a_sealed_home_is_served_by_is_the_one_that_is_looked_at(omegad: Command) -> None:
    pytest.importorskip("sqlcipher3", reason="sqlcipher3 seals, and is not installed")
    omegad.home.mkdir(mode=0o700)
    instance = at(omegad.environ, may_spawn=False)
    (found,) = checks.sqlite(instance)
    assert "sqlcipher3" not in found.seen
    omegad.paths.seal.touch()
    (found,) = checks.sqlite(instance)
    assert (found.state, found.seen.split()[0]) == ("ok", "sqlcipher3.dbapi2")


def test_what_others_could_read_and_what_hooks_have_left_is_told_of(omegad: Command) -> None:
    omegad.home.mkdir(mode=0o700)
    omegad.paths.log.touch()
    omegad.paths.log.chmod(0o644)
    omegad.paths.spool.mkdir()
    (omegad.paths.spool / "1.json").touch()
    (omegad.paths.spool / "lost").write_text("..")
    told = list(checks.home(at(omegad.environ, may_spawn=False)))
    assert [finding.part for finding in told if finding.state == "warn"] == ["home", "spool", "spool"]
    assert f"chmod 600 {omegad.paths.log}" in {finding.remedy for finding in told}


def test_a_view_that_does_not_equal_the_log_fails_with_what_to_do(omegad: Command) -> None:
    omegad("store", "what the log says is so")
    omegad("stop")
    change_a_view(omegad.home)
    report = omegad.json("doctor", "--full", status=1)
    assert [finding["remedy"] for finding in report["findings"] if finding["state"] == "FAIL"] == [
        "run `omegad rebuild memories`"
    ]


def test_a_configuration_that_is_not_valid_fails_with_what_is_meant(omegad: Command) -> None:
    omegad.home.mkdir(mode=0o700)
    omegad.paths.config.write_text('modle = "none"\n')
    report = omegad.json("doctor", status=1)
    assert states(report)["config"] == "FAIL"
    assert "did you mean 'model'?" in {finding["remedy"] for finding in report["findings"]}


def test_a_daemon_of_the_trial_that_ends_without_a_word_is_told_with_its_status(
    omegad: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch(*_: object) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])

    monkeypatch.setattr(starting, "launch", launch)
    with pytest.raises(NoDaemon, match="status 7"):
        list(doctor.round_trip(at(omegad.environ, may_spawn=False)))


def test_people_are_told_line_by_line_and_a_daemon_that_may_not_be_started_fails_alone(
    omegad: Command,
) -> None:
    told = omegad("doctor", "--no-spawn", status=1).stdout
    assert told.startswith("ok   python")
    assert "warn model" in told
    assert "→ set it to auto" in told
    assert [line.split()[1] for line in told.splitlines() if line.startswith("FAIL")] == ["daemon"]
    assert not omegad.home.exists()


def test_a_socket_that_serves_another_home_is_found_out(served: Command, tmp_path: Path) -> None:
    instance = at(
        served.environ | {"OMEGAD_HOME": str(tmp_path / "other"), "OMEGAD_SOCKET": str(served.paths.socket)},
        may_spawn=False,
    )
    (found,) = checks.daemon(instance)
    assert found.state == "FAIL"
    assert str(served.home) in found.seen


@pytest.mark.model
def test_the_model_really_embeds(tmp_path: Path) -> None:
    if catalogue.installed(config.find_paths(os.environ).models, "auto") is None:
        pytest.skip("no embedding model is installed: `omegad model install` installs one")
    omegad = Command(tmp_path / "home", OMEGAD_MODEL="auto")
    try:
        report = omegad.json("doctor", TMPDIR=tempfile.gettempdir())
        assert set(states(report).values()) == {"ok"}
        (trial,) = (finding for finding in report["findings"] if finding["part"] == "trial")
        assert "by meaning" in trial["seen"]
        (model,) = (finding for finding in report["findings"] if finding["part"] == "model")
        (shown,) = (one for one in omegad("status").stdout.splitlines() if one.startswith("embedding"))
        there = [one for one in catalogue.ALL if catalogue.installed(omegad.paths.models, one.name)]
        for used in {one.name for one in there} & {one.name for one in catalogue.USUAL}:
            assert used in model["seen"]
            assert used in shown
        omegad.store("Billing runs on PostgreSQL 16, for its row-level security")
        for question in (
            ("query", "who painted the mona lisa"),
            ("query", "who painted the mona lisa", "--all"),
        ):
            asked, said = omegad.json(*question), omegad(*question).stdout
            assert (asked["abstained"], asked["confidence"] > 0) == (True, True)
            assert f"a probability of {asked['confidence']:.2f}" in said
            assert f"begins at {asked['floor']:.2f}" in said
            assert "--mode keyword" in said
    finally:
        omegad.end()
