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
from omegad.__main__ import main
sys.exit(main())
"""
"""Interrupts itself as it begins to import a module, or at its end."""


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
