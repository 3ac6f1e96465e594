"""What is derived from the code, and read where importing the code would be too dear. It is not kept in git.

A wheel has it; a source tree makes it, in another process, when it is missing or not of the sources as they
are. Of the standard library alone, and little of that: the command line and the pipe of MCP pay for it at
every start.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing would be a tenth of what the pipe occupies
if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(PACKAGE)
METHODS = os.path.join(PACKAGE, "edge", "cli", "methods.json")
"""What there is to say of every method, for the command line."""
GREETING = os.path.join(PACKAGE, "edge", "mcp", "greeting.json")
"""What the pipe of MCP answers to `initialize` and `tools/list`."""
SCHEMAS = os.path.join(PACKAGE, "edge", "web", "schemas.json")
"""What every method takes and answers, as JSON Schema, for the routes of HTTP."""
SAME_NS = (
    1_000_000  # two times of files closer than this are the same: not every file system keeps them exactly
)


def read(path: str) -> bytes:
    """Return what a derived file says, as of the sources. Raises `OSError` where it is missing and cannot
    be derived.
    """
    try:
        with open(path, "rb") as file:
            kept = file.read()
            made = os.fstat(file.fileno()).st_mtime_ns
    except FileNotFoundError:
        return derive(path)
    if (
        not os.path.exists(os.path.join(ROOT, "pyproject.toml"))  # which is of sources, that may change
        or abs(newest() - made) < SAME_NS
        or not os.access(os.path.dirname(path), os.W_OK)
    ):
        return kept
    try:
        return derive(path)
    except OSError:
        return kept  # of the last sources that could be imported


def newest() -> int:
    """Return when the last of the sources was changed, in nanoseconds."""
    latest, folders = 0, [PACKAGE]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    latest = max(latest, entry.stat().st_mtime_ns)
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return latest


def derive(path: str) -> bytes:
    """Have every derived file written, where that is allowed, and return what this one says. Raises
    `OSError` where the code does not run.
    """
    import subprocess  # noqa: PLC0415  seldom needed, and dear

    command = [sys.executable, "-P", "-m", "omegad.catalog.describing", path, str(newest())]
    done = subprocess.run(  # noqa: S603
        command, env=importing(os.environ), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise OSError(f"{os.path.basename(path)} cannot be derived of the code: {said}")
    return done.stdout


def importing(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which another Python imports this omegad."""
    given = dict(environ)
    if os.path.basename(ROOT) not in {"site-packages", "dist-packages"}:
        given["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, environ.get("PYTHONPATH")]))
    return given
