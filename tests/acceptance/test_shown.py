"""What README.md and the quickstart show is run as it stands there, on a real daemon."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import PATIENCE_S, Home
from tests.test_docs import ROOT, blocks, page


def shown(name: str, language: str, word: str = "") -> str:
    """Return the first block of a page in a language that holds a word."""
    return next(
        block.body
        for block in blocks(page(name))
        if block.language == language and not block.marker and word in block.body
    )


def test_the_five_minutes_of_the_readme_go_as_they_say(daemon: Home, tmp_path: Path) -> None:
    command = tmp_path / "bin" / "omegad"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m omegad "$@"\n', encoding="utf-8")
    command.chmod(0o700)
    lines = shown("README.md", "sh", "omegad timeline").splitlines()
    # `omegad doctor` takes seconds, and has its own tests.
    script = "\n".join(
        line for line in lines if line.startswith("omegad ") and not line.startswith("omegad doctor")
    )
    environ = {**daemon.environ, "PATH": f"{command.parent}:{daemon.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stderr
    outcomes = [line.split()[0] for line in ran.stdout.splitlines() if " mem-" in line][:3]
    assert outcomes == ["stored", "stored", "duplicate"]
    assert "nothing found" not in ran.stdout
    assert "events are as they were written" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("omegad has stopped")


@pytest.mark.model
@pytest.mark.parametrize("name", ["README.md", "docs/quickstart.md"])
def test_the_clients_shown_store_and_find(model_daemon: Home, name: str) -> None:
    code = shown(name, "python")
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=model_daemon.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    (memory,) = model_daemon.call("memory.list")["memories"]
    assert memory["content"] == "Use ruff, not flake8"
    assert len(model_daemon.call("receipts.list", memory_id=memory["memory_id"])["receipts"]) == 1
