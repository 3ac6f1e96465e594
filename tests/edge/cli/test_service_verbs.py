"""That installing shows, writes and starts, once, and that uninstalling leaves nothing: with a program in
systemctl's place.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edge.cli.conftest import Command

SYSTEMCTL = """#!/bin/sh
echo "$@" >>"$CALLS"
case "$*" in
*is-active*) test -e "$CALLS.active" ;;
*disable*) rm -f "$CALLS.active"; "$PYTHON" -m omegad stop ;;
*enable*) touch "$CALLS.active"; cd /; PYTHONPATH="$ROOT" "$PYTHON" -m omegad start ;;
*) test ! -e "$CALLS.away" ;;
esac >/dev/null
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the manager is systemd")


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "systemctl").write_text(SYSTEMCTL)
    (tmp_path / "bin" / "systemctl").chmod(0o755)
    (tmp_path / "person").mkdir()
    root = Path(__file__).parents[3]
    environ = {
        "HOME": str(tmp_path / "person"),
        "CALLS": str(tmp_path / "calls"),
        "PYTHON": sys.executable,
        "ROOT": str(root),
    }
    made = Command(
        tmp_path / "person" / ".omegad",
        PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin",
        XDG_CONFIG_HOME="",
        **environ,
    )
    yield made
    made.end()


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []


def test_a_service_is_shown_installed_once_and_taken_away_without_a_trace(
    command: Command, tmp_path: Path
) -> None:
    shown = command("service", "install", "--dry-run").stdout
    assert "+Type=notify" in shown
    assert (calls(tmp_path), list((tmp_path / "person").iterdir())) == ([], [])
    command("start")
    first = command.json("status")["pid"]
    assert command.json("service", "install")["written"]
    assert command.json("status")["pid"] != first, "the daemon that ran before has made way for the service"
    assert command.json("service", "status")["ok"]
    before = len(calls(tmp_path))
    assert not command.json("service", "install")["written"]
    assert not [call for call in calls(tmp_path)[before:] if "enable" in call]
    unit = tmp_path / "person" / ".config" / "systemd" / "user" / "omegad.service"
    unit.write_text(unit.read_text().replace("UMask=0077", "UMask=0000"))
    assert not command.json("service", "status", status=1)["ok"]
    assert command.json("service", "install")["written"]
    command("service", "uninstall")
    assert {path.name for path in (tmp_path / "person").iterdir()} == {".omegad"}
    assert not (command.home / "setup").exists()
    assert not command.json("service", "uninstall")["written"]


def test_a_unit_of_somebody_elses_is_left_alone(command: Command, tmp_path: Path) -> None:
    unit = tmp_path / "person" / ".config" / "systemd" / "user" / "omegad.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    assert "omegad did not write it" in command("service", "install", status=1).stderr
    assert unit.read_text() == "[Service]\nExecStart=/bin/true\n"
    assert not unit.with_suffix(".socket").exists()


def test_without_a_manager_nothing_is_written_and_what_to_do_is_said(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "calls.away").touch()
    assert "omegad start" in command("service", "install", status=1).stderr
    assert list((tmp_path / "person").iterdir()) == []
