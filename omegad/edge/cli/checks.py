"""The checks of `omegad doctor` but for its round trip. What asks the home's own daemon leaves no memory
behind in it.
"""

import os
import platform
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from omegad import __version__
from omegad.client.blocking import Client
from omegad.edge.cli import starting
from omegad.edge.cli.connection import ANSWER_S, Answer, ask_long, ensure
from omegad.edge.cli.findings import Finding
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.log import log_problems, vectors_waiting
from omegad.edge.cli.printing import size
from omegad.embedding import catalogue
from omegad.operations import seal
from omegad.runtime import config

DISK_NEEDED_BYTES = 100 * 1024 * 1024
DISK_WISHED_BYTES = 1024 * 1024 * 1024
PROBE_S = 30.0
EVENTS_VERIFIED = 20_000  # a log up to this long is verified whole without being asked to
WARM_UP_S = 60.0
NOWHERE = "omegad doctor: no project"  # a project without memories, so that no memory counts as retrieved

# In a process of its own: an extension that does not fit ends the process that loads it.
SQLITE_PROBE = """
from omegad.storage import sealing
from omegad.storage.database import open_reader
from omegad.storage.driver import sqlite
if {is_sealed}:
    sealing.hold(sealing.new_key())
connection = open_reader(":memory:")
vector, = connection.execute("SELECT vec_version()").fetchone()
found, = connection.execute("SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'").fetchone()
found == 1 or exit("there is no FTS5")
print(f"{{sqlite.__name__}} {{sqlite.sqlite_version}}, sqlite-vec {{vector}}, FTS5")
"""


def python() -> Iterator[Finding]:
    """Name the interpreter, which loads nothing of this where it is too old."""
    yield Finding("python", "ok", f"{platform.python_version()}, {sys.executable}")


def sqlite(instance: Instance) -> Iterator[Finding]:
    """Load the SQLite driver with its extensions, as the daemon does: in a sealed home the one that seals."""
    root, is_sealed = Path(__file__).parents[3], seal.is_said(instance.paths)
    probe = SQLITE_PROBE.format(is_sealed=is_sealed)
    command = [sys.executable, "-P", "-c", f"import sys; sys.path.append({str(root)!r})\n{probe}"]
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
    else:
        said = done.stderr.strip() or f"the driver ended its process with status {done.returncode}"
        yield (
            Finding("sqlite", "ok", done.stdout.strip())
            if done.returncode == 0
            else Finding(
                "sqlite",
                "FAIL",
                said.splitlines()[-1],
                "pip install 'omegad[sealed]'"
                if is_sealed
                else "pip install pysqlite3, or use a Python whose sqlite3 loads extensions and is 3.51.3 or"
                " newer",
            )
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
    if path.exists():
        yield _private("home", path)
        yield from _files(instance)
    else:
        yield Finding("home", "ok", f"{path} is not there yet, and is made by what follows")
    free = shutil.disk_usage(next(parent for parent in (path, *path.parents) if parent.exists())).free
    seen = f"{size(free)} are free"
    if free < DISK_NEEDED_BYTES:
        yield Finding("disk", "FAIL", seen, "free some space; nothing can be stored on a full disk")
    elif free < DISK_WISHED_BYTES:
        yield Finding("disk", "warn", seen, "free some space before it runs out")
    else:
        yield Finding("disk", "ok", seen)


def _files(instance: Instance) -> Iterator[Finding]:
    """Check that nobody else can read what is remembered, and what hooks have left."""
    paths = instance.paths
    inside = (
        paths.log,
        paths.embeddings,
        paths.daemon_log,
        paths.web_token,
        paths.digest_key,
        paths.share,
        paths.seal,
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


def sealed(instance: Instance) -> Iterator[Finding]:
    """Check that the key of a sealed home is there, with what reads sealed files."""
    told = seal.check(instance.paths)
    seen = f"sealed by the key in {told.place}" if told else "plain; `omegad seal` encrypts the home"
    yield Finding("seal", "ok", seen)


def _private(part: str, path: Path) -> Finding:
    """Say whether a folder is this user's alone, or what is wrong with it first."""
    found = path.lstat()
    mode = stat.S_IMODE(found.st_mode)
    problems = (
        (
            not stat.S_ISDIR(found.st_mode),
            "is not a directory of its own",
            "move it away, or name another place",
        ),
        (
            found.st_uid != os.geteuid(),
            "belongs to another user",
            "name a place of your own with OMEGAD_HOME, or OMEGAD_SOCKET",
        ),
        (mode & 0o077, f"has mode {mode:04o}: others can get into it", f"chmod 700 {path}"),
        (not os.access(path, os.R_OK | os.W_OK | os.X_OK), "cannot be written", f"chmod 700 {path}"),
    )
    for is_so, seen, remedy in problems:
        if is_so:
            return Finding(part, "FAIL", f"{path} {seen}", remedy)
    return Finding(part, "ok", f"{path} is yours alone")


def socket(instance: Instance) -> Iterator[Finding]:
    """Check that nobody else can reach the socket."""
    path = instance.paths.socket
    folder = _private("socket", path.parent) if path.parent.exists() else None
    if folder and folder.state != "ok":
        yield folder
    elif not path.exists():
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
    usual = [model.name for model in catalogue.USUAL] if choice == "auto" else []
    manifest = catalogue.installed(instance.paths.models, choice)
    if manifest:
        there = [name for name in usual if catalogue.installed(instance.paths.models, name)]
        names = list(dict.fromkeys([manifest.name, *there]))
        are = "is" if len(names) == 1 else "are"
        yield Finding("model", "ok", f"{' and '.join(names)} {are} installed in {instance.paths.models}")
        if catalogue.E5_SMALL.name in {*usual} - {*there}:
            yield Finding(
                "model",
                "warn",
                f"{catalogue.E5_SMALL.name} is not installed: in other languages than English little is found"
                " by meaning",
                "run `omegad model install`",
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


def asked(instance: Instance, method: str, **params: object) -> Answer:
    """Ask the daemon that runs, never starting one."""
    with (
        starting.told_of_silence(instance.paths),
        Client(instance.paths.socket, timeout_s=ANSWER_S) as client,
    ):
        return client.call(method, **params)


def daemon(instance: Instance) -> Iterator[Finding]:
    """Reach the daemon, starting it where that is allowed."""
    was_running = starting.answering(instance.paths) is not None
    ensure(instance, makes_home=True)
    status = asked(instance, "system.status")
    seen = f"process {status['pid']} answers, version {status['version']}, {size(status['rss_bytes'])}"
    if status["home"] != str(instance.paths.home):
        yield Finding(
            "daemon",
            "FAIL",
            f"{instance.paths.socket} is served for another home, {status['home']}",
            "set OMEGAD_SOCKET to a socket of this home's own",
        )
    elif status["version"] != __version__:
        yield Finding(
            "daemon",
            "warn",
            f"{seen}; this command is {__version__}",
            "restart it: `omegad stop`, then `omegad start`",
        )
    else:
        yield Finding("daemon", "ok", seen if was_running else f"{seen}; started for this check")


def log(instance: Instance, *, is_full: bool) -> Iterator[Finding]:
    """Verify the log's chain: the whole of it where that is quick or asked for."""
    status = asked(instance, "system.status")["log"]
    seen = f"{status['head']:,} events, {size(status['bytes'])}"
    if status["head"] > EVENTS_VERIFIED and not is_full:
        assert asked(instance, "log.read", after=status["head"] - 1, limit=1)["events"], "the log ends there"
        how = "the daemon verified the end of the chain when it started (--full verifies all)"
        yield Finding("log", "ok", f"{seen}; {how}")
        return
    report = ask_long(instance, "log.verify", "verifying the log")
    if report["ok"]:
        how = "the chain holds, the file is sound, the decision state equals a replay"
        yield Finding("log", "ok", f"{report['events']:,} events, {size(status['bytes'])}; {how}")
    for problem, remedy in log_problems(report):
        yield Finding("log", "FAIL", problem, remedy)


def views(instance: Instance, *, is_full: bool) -> Iterator[Finding]:
    """Look at each view's state, and compare it with a replay where that is quick or asked for."""
    status = asked(instance, "system.status")
    broken = {
        name: f"failed {view['error']}" for name, view in status["views"].items() if view["state"] == "failed"
    }
    is_compared, waiting = is_full or status["log"]["head"] <= EVENTS_VERIFIED, ""
    if is_compared:
        report = ask_long(instance, "views.verify", "verifying the views")
        unequal = {
            name: view["problem"] or "does not equal the log"
            for name, view in report["views"].items()
            if not view["equal"]
        }
        broken, waiting = unequal | broken, vectors_waiting(report)
    for name, problem in broken.items():
        yield Finding("views", "FAIL", f"{name}: {problem}", f"run `omegad rebuild {name}`")
    if not broken:
        lag = max((view["lag"] for view in status["views"].values()), default=0)
        how = (
            "equal to a replay of the log"
            if is_compared
            else f"at most {lag:,} events behind (--full compares them with the log)"
        )
        yield Finding("views", "ok", f"{len(status['views'])} views, {how}{waiting and f'; {waiting}'}")


def embedding(instance: Instance) -> Iterator[Finding]:
    """Have the daemon embed a question; the first one may find the model still loading."""
    if asked(instance, "system.status")["embedding"]["state"] == "absent":
        yield Finding(
            "embedding",
            "warn",
            "the daemon has no model: it searches by words alone",
            "see the line about the model",
        )
        return
    question = {"text": "omegad doctor", "mode": "semantic", "limit": 1, "project": NOWHERE}
    started = time.monotonic()
    while degraded := asked(instance, "memory.query", **question)["degraded"]:
        state = asked(instance, "system.status")["embedding"]["state"]
        if state == "failed" or time.monotonic() > started + WARM_UP_S:
            yield Finding(
                "embedding",
                "FAIL",
                f"a query by meaning fell back to {degraded}; the model is {state}",
                "run `omegad model install --force`",
            )
            return
    model = asked(instance, "system.status")["embedding"]["model"]
    took_ms = (time.monotonic() - started) * 1e3
    yield Finding("embedding", "ok", f"{model} embedded a question in {took_ms:.0f} ms")


def troubles(instance: Instance) -> Iterator[Finding]:
    """Pass on what the daemon itself complains about, but for what other checks look at."""
    status = asked(instance, "system.status")
    known = ["embedding model", "the view ", "hooks were let go", "shared: "]
    if status["embedding"]["state"] == "absent":
        known.append("wait for their vectors")  # which follows from having no model
    for trouble in status["degraded"]:
        if not any(part in trouble for part in known):
            yield Finding("daemon", "warn", trouble, "see `omegad status`")
