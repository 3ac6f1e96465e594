"""What is built of the tree installs in an empty folder, as pipx and uv do, and does the main job there."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from omegad.embedding.catalogue import MINILM, folder_of, installed
from omegad.runtime.config import find_paths

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
TREE = ("omegad", "projections", "systemd", "launchd", "pyproject.toml", "README.md", "LICENSE")
INSTALL_S = 900
NOT_THERE = {"onnx", "tokenizers", "huggingface_hub", "hatchling"}


def run(*command: str | Path, cwd: Path, environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=INSTALL_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(params=["wheel", "sdist"])
def package(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What hatchling makes of the tree, without what a checkout has derived."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in TREE:
        if (ROOT / name).is_dir():
            derived = shutil.ignore_patterns("__pycache__", "methods.json", "greeting.json", "schemas.json")
            shutil.copytree(ROOT / name, tree / name, ignore=derived)
        else:
            shutil.copyfile(ROOT / name, tree / name)
    run(sys.executable, "-m", "hatchling", "build", "-t", request.param, "-d", tmp_path / "built", cwd=tree)
    (built,) = (tmp_path / "built").iterdir()
    shutil.rmtree(tree)
    return built


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A user of this machine with nothing of the tests' but how pip reaches an index."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMEGAD_", "PYTHON"))}
    home = tmp_path / "user"
    (home / ".claude").mkdir(parents=True)
    given = {**kept, "HOME": str(home), "OMEGAD_HOME": str(home / "omegad")}
    given["XDG_CACHE_HOME"] = given["XDG_CONFIG_HOME"] = str(home / "cache")
    given["XDG_RUNTIME_DIR"] = str(home)
    yield given
    command = tmp_path / "venv" / "bin" / "omegad"
    if command.exists():
        subprocess.run([command, "stop"], env=given, capture_output=True, check=False, timeout=60)


def test_a_package_installs_in_an_empty_folder_and_does_the_main_job(
    package: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", venv, cwd=tmp_path)
    run(venv / "bin" / "python", "-m", "pip", "install", "--quiet", package, cwd=tmp_path, environ=environ)
    package.unlink()

    def omegad(*arguments: str) -> str:
        return run(venv / "bin" / "omegad", *arguments, cwd=tmp_path, environ=environ)

    there = {found.name for found in venv.glob("lib/python3*/site-packages/*")}
    assert not there & NOT_THERE
    assert {"omegad", "projections", "numpy", "onnxruntime"} <= there
    models = Path(os.environ.get("OMEGAD_TEST_MODELS") or find_paths().models)
    source = ["--from", str(folder_of(models, MINILM.name))] if installed(models, MINILM.name) else []
    omegad("model", "install", MINILM.name, *source)
    omegad("store", "--event-type", "decision", "Billing runs on PostgreSQL 16, for its row-level security")
    found = omegad("query", "which database did we choose, and why?")
    assert "PostgreSQL 16" in found
    assert "ready" in omegad("status", "--json")
    assert "usage: omegad memory lessons" in omegad("memory", "lessons", "--help")
    if sys.platform == "linux":
        assert str(venv / "bin") in omegad("service", "install", "--dry-run")
    omegad("setup", "claude-code", "--yes")
    written = "".join(
        file.read_text(encoding="utf-8") for file in (Path(environ["HOME"]) / ".claude").rglob("*.*")
    )
    assert str(venv) in written
    assert "omegad" in written
