"""Virtual environments: of each peer, and of an omegad of another revision."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.peers.mcp import TAIL_BYTES, PeerFailed

INSTALL_S = 1_200.0
RUN_S = 60.0
LOADS_EXTENSIONS = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)"
VERSION = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
CANDIDATES = (sys.executable, "python3.14", "python3.13", "python3.12", "python3.11", "/usr/bin/python3")


def interpreter() -> str:
    """Return a Python whose sqlite3 loads extensions, without which neither peer searches vectors.

    Raises `PeerFailed` where none of the usual ones does.
    """
    for name in CANDIDATES:
        found = shutil.which(name)
        if found and _run([found, "-c", LOADS_EXTENSIONS], RUN_S).returncode == 0:
            return found
    raise PeerFailed("no Python was found whose sqlite3 loads extensions: name one with --python")


def made(folder: Path, python: str, requirement: str) -> Path:
    """Make a virtual environment of *python* in *folder* with *requirement* in it, unless one was made there
    before, and return its programs' folder. Raises `PeerFailed` with pip's last words.
    """
    programs, complete = folder / "bin", folder / "installed"
    if complete.exists() and complete.read_text(encoding="utf-8") == requirement:
        return programs
    shutil.rmtree(folder, ignore_errors=True)
    _succeed([python, "-m", "venv", "--without-pip", str(folder)], RUN_S)
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "--disable-pip-version-check"]
    _succeed([*pip, "install", "--quiet", "--no-input", requirement], INSTALL_S)
    complete.write_text(requirement, encoding="utf-8")
    return programs


def version(programs: Path, package: str) -> str:
    """Return which version of a package an environment has."""
    return _succeed([str(programs / "python"), "-c", VERSION, package], RUN_S).decode().strip()


def checkout(named: str, folder: Path) -> Path:
    """Return the folder of another omegad: *named* itself where it is a folder, else that revision's files,
    which are written into *folder*. Raises `PeerFailed` where it is neither.
    """
    if Path(named).is_dir():
        return Path(named).resolve()
    commit = _succeed(["git", "rev-parse", "--verify", "--end-of-options", f"{named}^{{commit}}"], RUN_S)
    place = folder / commit.decode().strip()
    if not place.exists():
        packed = _succeed(["git", "archive", commit.decode().strip()], RUN_S)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(place, filter="data")
    return place


def _succeed(command: Sequence[str], patience_s: float) -> bytes:
    done = _run(command, patience_s)
    if done.returncode:
        said = (done.stderr or done.stdout)[-TAIL_BYTES:].decode(errors="replace").strip()
        raise PeerFailed(f"{' '.join(command)} ended with {done.returncode}: {said}")
    return done.stdout


def _run(command: Sequence[str], patience_s: float) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            list(command),
            capture_output=True,
            timeout=patience_s,
            check=False,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONNOUSERSITE": "1"},
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        raise PeerFailed(f"{' '.join(command)}: {error}") from error
