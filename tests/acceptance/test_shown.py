"""What README.md, the quickstart and the page about HTTP show is run as it stands there, on a real daemon."""

import json
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import PATIENCE_S, Home, until
from tests.edge.web.conftest import listens
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


@pytest.mark.skipif(not shutil.which("curl"), reason="curl, which the page shows, is not installed")
def test_what_the_page_about_http_shows_is_answered(daemon: Home, tmp_path: Path) -> None:
    """Its commands run as they stand there, but for the port, with its own configuration."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = shown("docs/http.md", "toml").replace("8378", str(port))
    daemon.paths.config.write_text(settings, encoding="utf-8")
    (script,) = [block.body for block in blocks(page("docs/http.md")) if block.marker == "command: ask"]
    command = f'omegad() {{ {shlex.quote(sys.executable)} -m omegad "$@"; }}\n'
    with subprocess.Popen([sys.executable, "-m", "omegad", "web"], cwd=ROOT, env=daemon.environ) as web:
        try:
            until(lambda: listens(port))
            ran = subprocess.run(
                ["bash", "-eu", "-c", command + script.replace("8378", str(port))],
                cwd=tmp_path,
                env={**daemon.environ, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_S,
            )
        finally:
            web.terminate()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    decoder, at, answers = json.JSONDecoder(), 0, []
    while at < len(ran.stdout.rstrip()):
        answer, at = decoder.raw_decode(ran.stdout, at)
        answers.append(answer)
    stored, found, listed, put, status, document = answers
    assert stored["outcome"] == put["outcome"] == "stored"
    assert [one["memory_id"] for one in found["results"]] == [stored["memory_id"]]
    assert [one["memory_id"] for one in listed["memories"]] == [stored["memory_id"]]
    assert status["log"]["head"] >= put["position"]
    assert "/memory/{memory_id}" in document["paths"]
