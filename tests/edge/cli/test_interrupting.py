"""Ctrl-C, whenever it comes: the command ends with status 130 and says nothing."""

import subprocess
import sys

import pytest

from tests.edge.cli.conftest import PATIENCE_S, ROOT, Command

BEGIN = """
import atexit, os, signal, sys
wanted, *sys.argv[1:] = sys.argv[1:]
interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            interrupt()
sys.meta_path.insert(0, Finder())
if wanted == "the end":
    atexit.register(interrupt)
class Last:
    def __del__(self, kill=os.kill, pid=os.getpid()):
        kill(pid, 2)
if wanted == "omegad.daemon":
    last = Last()  # which goes when Python listens to no signal any more
from omegad.__main__ import main
sys.exit(main())
"""
"""Interrupts itself as it begins to import a module, or at its end; twice where it is about to be a daemon."""
BRIDGE = """
import os, runpy, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "omegad.edge.mcp.pipe":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""What a host of MCP runs, interrupted as it begins to import what it needs."""


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        ("omegad.edge.cli", 130),
        ("omegad.edge.cli.arguments", 130),
        ("the end", 3),
    ],
)
def test_an_interruption_before_and_after_a_verb_is_quiet(moment: str, status: int, omegad: Command) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BEGIN, moment, "--no-spawn", "verify"],
        env=omegad.environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == status
    assert "Traceback" not in ended.stderr
    assert ended.stderr.count("\n") == (2 if status == 3 else 0), ended.stderr


def test_a_daemon_that_starts_is_ended_by_an_interruption_at_once(omegad: Command) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BEGIN, "omegad.daemon", "serve"],
        env=omegad.environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (130, "")


def test_an_interruption_of_the_pipe_of_mcp_that_starts_is_quiet(omegad: Command) -> None:
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", BRIDGE, str(ROOT / "omegad" / "mcp_bridge.py")],
        env=omegad.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", "")
