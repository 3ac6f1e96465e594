"""Checks of `omegad doctor` that need no daemon: Python, SQLite, configuration, home, disk, socket, model
files.
"""

import os
import platform
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from omegad.edge.cli.findings import Finding
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import size
from omegad.embedding import catalogue
from omegad.runtime import config

DISK_NEEDED_BYTES = 100 * 1024 * 1024
DISK_WISHED_BYTES = 1024 * 1024 * 1024
PROBE_S = 30.0
OLDEST_PYTHON = (3, 11)

# In a process of its own: an extension that does not fit ends the process that loads it.
SQLITE_PROBE = """
from omegad.storage.database import open_reader
from omegad.storage.driver import sqlite
connection = open_reader(":memory:")
vector, = connection.execute("SELECT vec_version()").fetchone()
found, = connection.execute("SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'").fetchone()
found == 1 or exit("there is no FTS5")
print(f"{sqlite.__name__} {sqlite.sqlite_version}, sqlite-vec {vector}, FTS5")
"""


def python() -> Iterator[Finding]:
    """Check the interpreter."""
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        yield Finding("python", "FAIL", version, "use Python 3.11 or newer")
    else:
        yield Finding("python", "ok", f"{version}, {sys.executable}")


def sqlite() -> Iterator[Finding]:
    """Load the SQLite driver with its extensions, as the daemon does."""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-P", "-c", f"import sys; sys.path.append({str(root)!r})\n{SQLITE_PROBE}"]
    try:
        # Our own text
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        yield Finding(
            "sqlite",
            "FAIL",
            f"the driver did not load within {PROBE_S:.0f} s",
            "install omegad anew in a fresh environment",
        )
        return
    if done.returncode == 0:
        yield Finding("sqlite", "ok", done.stdout.strip())
    else:
        said = done.stderr.strip().splitlines()
        seen = said[-1] if said else f"the driver ended its process with status {done.returncode}"
        yield Finding(
            "sqlite",
            "FAIL",
            seen,
            "pip install pysqlite3, or use a Python whose sqlite3 loads extensions and is 3.51.3 or newer",
        )


def settings(instance: Instance) -> Iterator[Finding]:
    """Read the configuration as the daemon does."""
    read = config.load(instance.paths, instance.environ)
    source = instance.paths.config if instance.paths.config.exists() else "no config.toml, all is as it comes"
    yield Finding("config", "ok", f"valid: {source}; model {read.model}")
    for warning in config.unknown_variables(instance.environ):
        yield Finding("config", "warn", warning, "unset it, or correct its name")


def home(instance: Instance) -> Iterator[Finding]:
    """Check that the home is this user's alone, and that there is room in it."""
    path = instance.paths.home
    if not path.exists():
        yield Finding("home", "ok", f"{path} will be made when the daemon starts")
    else:
        yield from _private("home", path)
        yield from _files(instance)
    yield _room(path)


def _files(instance: Instance) -> Iterator[Finding]:
    """Check that nobody else can read what is remembered, and what hooks have left."""
    paths = instance.paths
    inside = (
        paths.log,
        paths.embeddings,
        paths.daemon_log,
        paths.gateway_token,
        paths.digest_key,
        *paths.home.glob("views-*.db*"),
        *paths.home.glob("log.db-*"),
    )
    for file in inside:
        if file.exists() and file.stat().st_mode & 0o077:
            yield Finding(
                "home",
                "warn",
                f"{file} has mode {stat.S_IMODE(file.stat().st_mode):04o}: others could read it",
                f"chmod 600 {file}",
            )
    waiting = len(list(paths.spool.glob("*.json"))) if paths.spool.exists() else 0
    if waiting:
        yield Finding(
            "spool",
            "warn",
            f"{waiting} hooks wait to be taken in",
            "start the daemon; if they stay, `omegad status` says why",
        )
    lost = paths.spool / "lost"
    if lost.exists() and lost.stat().st_size:
        yield Finding(
            "spool",
            "warn",
            f"{lost.stat().st_size} hooks were let go, too large, too many, or not to be written or read",
            f"remove {lost} when you have seen it",
        )


def _private(part: str, path: Path) -> Iterator[Finding]:
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        yield Finding(
            part, "FAIL", f"{path} is not a directory of its own", "move it away, or name another place"
        )
    elif found.st_uid != os.geteuid():
        yield Finding(
            part,
            "FAIL",
            f"{path} belongs to another user",
            "name a place of your own with OMEGAD_HOME, or OMEGAD_SOCKET",
        )
    elif found.st_mode & 0o077:
        yield Finding(
            part,
            "FAIL",
            f"{path} has mode {stat.S_IMODE(found.st_mode):04o}: others can get into it",
            f"chmod 700 {path}",
        )
    elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(part, "FAIL", f"{path} cannot be written", f"chmod 700 {path}")
    else:
        yield Finding(part, "ok", f"{path} is yours alone")


def _room(path: Path) -> Finding:
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    if free < DISK_NEEDED_BYTES:
        return Finding(
            "disk", "FAIL", f"{size(free)} are free", "free some space; nothing can be stored on a full disk"
        )
    if free < DISK_WISHED_BYTES:
        return Finding("disk", "warn", f"{size(free)} are free", "free some space before it runs out")
    return Finding("disk", "ok", f"{size(free)} are free")


def socket(instance: Instance) -> Iterator[Finding]:
    """Check that nobody else can reach the socket."""
    path = instance.paths.socket
    if path.parent.exists():
        private = list(_private("socket", path.parent))
        if private[0].state != "ok":
            yield from private
            return
    if not path.exists():
        yield Finding("socket", "ok", f"{path} will be made when the daemon starts")
    elif not stat.S_ISSOCK(path.lstat().st_mode):
        yield Finding(
            "socket",
            "FAIL",
            f"{path} is there and is not a socket",
            "move it away, or set OMEGAD_SOCKET to another place",
        )
    elif path.lstat().st_mode & 0o077:
        yield Finding("socket", "FAIL", f"{path} is open to other users", f"chmod 600 {path}")
    else:
        yield Finding("socket", "ok", f"{path} is yours alone")


def model(instance: Instance) -> Iterator[Finding]:
    """Check that a model is installed, if one is wanted."""
    choice = config.load(instance.paths, instance.environ).model
    manifest = catalogue.installed(instance.paths.models, choice)
    if manifest:
        yield Finding(
            "model",
            "ok",
            f"{manifest.name} is installed in {catalogue.folder_of(instance.paths.models, manifest.name)}",
        )
    elif choice == "none":
        yield Finding(
            "model",
            "warn",
            "the setting `model` is none: search works on words alone",
            "set it to auto to search by meaning too",
        )
    elif choice == "auto":
        yield Finding(
            "model", "warn", "none is installed: search works on words alone", "run `omegad model install`"
        )
    else:
        yield Finding(
            "model",
            "FAIL",
            f"{choice} is configured and not installed",
            f"run `omegad model install {choice}`",
        )
