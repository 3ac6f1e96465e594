"""What is derived from the code: made when it is missing, made again when its sources change, and put into
a wheel.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from omegad import __version__
from omegad.catalog import describing

ROOT = Path(__file__).parents[2]
SOURCE = Path("omegad/operations/status.py")


def loaded(path: Path) -> ModuleType:
    """Return the module in a file, apart from the one that is imported."""
    spec = importlib.util.spec_from_file_location(f"copied_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree in which nothing was derived yet."""
    for name in ("omegad", "projections"):
        left_out = shutil.ignore_patterns("__pycache__", "methods.json", "greeting.json", "schemas.json")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.fixture
def derived(tree: Path) -> ModuleType:
    return loaded(tree / "omegad" / "runtime" / "derived.py")


@pytest.fixture
def derivations(derived: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was derived in another process."""
    made: list[str] = []
    derive = derived.derive

    def counted(path: str) -> bytes:
        made.append(Path(path).name)
        return bytes(derive(path))

    monkeypatch.setattr(derived, "derive", counted)
    return made


def summary(derived: ModuleType) -> str:
    return next(
        str(one["about"]) for one in json.loads(derived.read(derived.METHODS)) if one["name"] == "system.ping"
    )


def test_what_is_missing_is_made_once_and_is_what_the_code_says(
    derived: ModuleType, derivations: list[str]
) -> None:
    assert derived.read(derived.METHODS).decode() == describing.command_line(describing.every())
    assert derived.read(derived.GREETING).decode() == describing.mcp_greeting()
    assert derived.read(derived.SCHEMAS).decode() == describing.schemas()
    assert derived.read(derived.METHODS).decode() == describing.command_line(describing.every())
    assert derivations == ["methods.json"]
    assert sorted(path.name for path in Path(derived.METHODS).parent.glob("*.json*")) == ["methods.json"]


def test_a_change_of_the_sources_shows_and_one_that_does_not_run_changes_nothing(
    tree: Path, derived: ModuleType, derivations: list[str]
) -> None:
    said, source = summary(derived), tree / SOURCE
    text = source.read_text(encoding="utf-8")
    assert said in text
    source.write_text(text.replace(said, "Ask a heron"), encoding="utf-8")
    assert summary(derived) == "Ask a heron"
    source.write_text("import", encoding="utf-8")
    assert summary(derived) == "Ask a heron"
    Path(derived.METHODS).unlink()
    with pytest.raises(OSError, match=r"methods\.json cannot be derived of the code: SyntaxError"):
        derived.read(derived.METHODS)
    assert len(derivations) == 4


def test_what_is_installed_is_read_as_it_is(tree: Path, derived: ModuleType, derivations: list[str]) -> None:
    (tree / "pyproject.toml").unlink()
    Path(derived.METHODS).write_bytes(b"[]")
    os.utime(derived.METHODS, (0, 0))
    assert derived.read(derived.METHODS) == b"[]"
    assert derivations == []


def test_the_command_line_and_the_pipe_begin_without_what_is_derived(tree: Path) -> None:
    asked = [sys.executable, "-m", "omegad", "system", "ping", "--help"]
    helped = subprocess.run(asked, cwd=tree, capture_output=True, text=True, check=True, timeout=60)
    assert helped.stdout.startswith("usage: omegad system ping")
    (tree / "omegad" / "edge" / "mcp" / "greeting.json").unlink()
    shutil.rmtree(tree / "omegad" / "edge" / "cli")  # so that nothing of it starts
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "a test", "version": "1"},
    }
    said = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}) + "\n"
    pipe = [sys.executable, "-I", "-S", str(tree / "omegad" / "mcp_bridge.py")]
    environ = {**os.environ, "OMEGAD_HOME": str(tree / "home")}
    answered = subprocess.run(
        pipe, input=said, env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert json.loads(answered.stdout.splitlines()[0])["result"]["serverInfo"]["version"] == __version__


def test_a_wheel_is_given_what_is_derived(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hook:
        root = str(ROOT)

    interface = SimpleNamespace(BuildHookInterface=Hook)
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", interface)
    monkeypatch.setattr(sys, "path", list(sys.path))
    hook = loaded(tree / "omegad" / "catalog" / "building.py").DerivedFiles()
    given: dict[str, Any] = {"force_include": {}}
    hook.initialize("standard", given)
    files = {inside: Path(made) for made, inside in given["force_include"].items()}
    assert files["omegad/edge/cli/methods.json"].read_text(encoding="utf-8") == describing.command_line(
        describing.every()
    )
    assert files["omegad/edge/mcp/greeting.json"].read_text(encoding="utf-8") == describing.mcp_greeting()
    assert files["omegad/edge/web/schemas.json"].read_text(encoding="utf-8") == describing.schemas()
    hook.finalize("standard", given, "")
    assert not any(made.exists() for made in files.values())


def test_a_wheel_is_built_where_only_msgspec_is(tmp_path: Path) -> None:
    declaring = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = {re.split(r"[^\w-]", one, maxsplit=1)[0].lower() for one in declaring["project"]["dependencies"]}
    there = {re.split(r"[^\w-]", one, maxsplit=1)[0].lower() for one in declaring["build-system"]["requires"]}
    missing = wanted - there
    modules = [name for name, of in packages_distributions().items() if missing & {one.lower() for one in of}]
    assert {"anyio", "numpy", "onnxruntime", "structlog"} <= set(modules)
    # As where they are not installed, so that something stands in for them
    code = (
        "import runpy, sys\n"
        "from importlib.machinery import PathFinder\n"
        "class Bare(PathFinder):\n"
        "    def find_spec(name, path=None, target=None):\n"
        f"        missing = name.partition('.')[0] in {modules}\n"
        "        return None if missing else PathFinder.find_spec(name, path, target)\n"
        "sys.meta_path[sys.meta_path.index(PathFinder)] = Bare\n"
        f"sys.argv[1:] = [{str(tmp_path)!r}]\n"
        "runpy.run_path('omegad/catalog/bare.py', run_name='__main__')\n"
        f"print([name for name in {modules} if getattr(sys.modules.get(name), '__file__', None)])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
    for path, text in describing.files().items():
        assert (tmp_path / Path(path).relative_to(ROOT)).read_text(encoding="utf-8") == text
