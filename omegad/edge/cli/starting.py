"""Starting a daemon in the background, and waiting for one to come or go.

Invariant: any number of processes may start a home's daemon at once. Each starts one, the home's lock
decides, and all wait for the winner; none leaves behind a process that could still become a daemon.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent
from typing import IO

from omegad.client.blocking import Client
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import is_terminal, safe, warn
from omegad.rpc import endpoint
from omegad.runtime import derived
from omegad.runtime.config import Paths
from omegad.runtime.errors import (
    NoAnswer,
    NoDaemon,
    NoHome,
    OmegadError,
    ShuttingDown,
    StorageFull,
    Unavailable,
)
from omegad.runtime.json_types import Fields
from omegad.text.meant import nearest

START_S = 60.0
STOP_S = 60.0
PING_S = 10.0
POLL_S = 0.02
SILENCE_S = 3.0  # until who looks is told what is waited for
EXIT_S = 5.0  # from letting go of the home to being gone
REASON_BYTES = 4_096
REASON_LINES = 8
QUOTED = "  | "
SAID = re.compile(
    r"^omegad: (?P<message>.+?)(?: \([A-Z_]+\))?\n  hint: (?P<hint>.+)", re.MULTILINE | re.DOTALL
)
"""How a verb, which `serve` is, says why it ended."""


def answering(paths: Paths) -> int | None:
    """Return the process id of the daemon that answers, None where none does."""
    answer = ping(paths)
    return int(answer["pid"]) if answer else None


@contextmanager
def told_of_silence(paths: Paths) -> Iterator[None]:
    """Tell who looks at a terminal which process has not answered, where the block takes some seconds."""

    def tell() -> None:
        holder = endpoint.holder(paths.lock)
        warn(f"omegad{f' (process {holder})' if holder else ''} has not answered yet; it is waited for")

    timer = threading.Timer(SILENCE_S, tell)
    timer.daemon = True
    if is_terminal(sys.stderr):
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def ping(paths: Paths) -> Fields | None:
    """Return what the daemon says that answers, its process id and version; None where none does."""
    try:
        with told_of_silence(paths), Client(paths.socket, timeout_s=PING_S) as client:
            return dict(client.call("system.ping"))
    except (NoDaemon, ShuttingDown):
        return None


def refuse_elsewhere(paths: Paths) -> None:
    """Raise `NoDaemon` where the home's daemon answers on another socket than the one that was named."""
    where = endpoint.served_at(paths.lock)
    if where is None or os.path.realpath(where) == os.path.realpath(paths.socket):
        return
    try:
        with Client(where, timeout_s=PING_S) as client:
            answer = client.call("system.ping")
    except OmegadError:  # it starts, ends or hangs, and who asks waits for it
        return
    raise NoDaemon(
        f"process {answer['pid']} serves {paths.home}, and answers on {where}, not on {paths.socket}",
        hint=f"name that socket, by --socket or OMEGAD_SOCKET; `omegad --socket {where} stop` ends it",
    )


def require_home(paths: Paths) -> None:
    """Raise `NoHome` where there is none, with one beside it that is called almost the same."""
    if paths.home.is_dir():
        return
    meant = nearest(
        paths.home.name, [log.parent.name for log in paths.home.parent.glob(f"*/{paths.log.name}")]
    )
    near = f"; did you mean {paths.home.with_name(meant)}?" if meant else ""
    raise NoHome(f"there is no home at {paths.home}{near}")


def make_home(paths: Paths) -> None:
    """Make the home if need be, and say so, since a name may be mistyped. Raises `Unavailable`."""
    is_new = not paths.home.exists()
    endpoint.private_directory(paths.home, "OMEGAD_HOME")
    if is_new:
        print(safe(f"made a new home: {paths.home}"), file=sys.stderr)


def start(instance: Instance) -> int:
    """Start a daemon and wait until one answers, this or another; return its process id. Raises `NoDaemon`
    with the reason.
    """
    paths = instance.paths
    refuse_elsewhere(paths)
    try:
        make_home(paths)
        process, offset = _launched(instance)
    except OmegadError as error:
        raise NoDaemon(f"omegad cannot be started: {error}", hint=error.hint) from error
    except OSError as error:
        hint = "the home must be writable; OMEGAD_HOME names another"
        raise NoDaemon(
            f"omegad cannot be started: {error.filename} cannot be written: {error.strerror}", hint=hint
        ) from error
    deadline, is_lost = time.monotonic() + START_S, False
    while (pid := answering(paths)) is None:
        if time.monotonic() > deadline:
            raise NoDaemon(
                f"omegad does not answer after {START_S:.0f} s", hint=f"{paths.daemon_log} may say why"
            )
        time.sleep(POLL_S)
        if process.poll() is None:
            continue
        if endpoint.holder(paths.lock) is not None:
            is_lost = True  # whoever holds the lock is waited for, and when they are gone it is tried again
            refuse_elsewhere(paths)
        elif is_lost:
            (process, offset), is_lost = _launched(instance), False
        else:
            raise _failed(paths, last_lines(paths.daemon_log, offset), process.returncode)
    if endpoint.holder(paths.lock) not in {
        process.pid,
        0,
    }:  # lest it become the daemon as soon as that one is stopped
        process.terminate()
        process.wait()
    return pid


def _failed(paths: Paths, said: str, status: int) -> NoDaemon:
    """Return why a daemon ended that said something, or nothing, before."""
    if found := SAID.search(said):
        return NoDaemon(
            f"omegad could not be started: {found['message']}",
            hint=f"{found['hint']}; {paths.daemon_log} has all that it said",
        )
    if not said and not shutil.disk_usage(paths.home).free:
        return NoDaemon("omegad could not be started: the disk of the home is full", hint=StorageFull.hint)
    said = said or f"it ended with status {status} and said nothing"
    return NoDaemon(
        f"omegad could not be started:\n{indent(said, QUOTED)}",
        hint=f"{paths.daemon_log} has all of it; `omegad doctor` may know more",
    )


def _launched(instance: Instance) -> tuple[subprocess.Popen[bytes], int]:
    """Return a daemon that was started and may yet fail, and where in the log what it says begins."""
    descriptor = os.open(
        instance.paths.daemon_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600
    )
    with open(descriptor, "ab") as output:  # noqa: PTH123  a descriptor
        offset = output.tell()
        return launch(instance, output), offset


def launch(instance: Instance, output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Run `omegad serve` for an instance, in a session of its own and away from the working directory, whose
    files it must not import.
    """
    environ = derived.importing(instance.environ)
    environ.pop("NOTIFY_SOCKET", None)  # its service manager waits for somebody else
    command = [sys.executable, "-P", "-m", "omegad", "serve"]
    return subprocess.Popen(  # noqa: S603  our own module
        command,
        env=environ,
        cwd=instance.paths.home,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def last_lines(path: Path, offset: int) -> str:
    """Return the last few lines of a file after *offset*, which is that of another one where the file is
    shorter.
    """
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(offset if offset <= end else 0, end - REASON_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-REASON_LINES:])


def stop(paths: Paths) -> int | None:
    """Stop the daemon and wait until its process is gone; return its id, None where none was running. Another
    one may have started by then.

    Raises `Unavailable` where a process that holds the home does not answer, or does not let go of it, and
    `NoDaemon` where it answers on another socket.
    """
    deadline = time.monotonic() + STOP_S
    while True:
        try:
            with told_of_silence(paths), Client(paths.socket, timeout_s=PING_S) as client:
                pid = int(client.call("system.ping")["pid"])
                client.call("system.shutdown")
            break
        except NoAnswer as error:
            error.hint = _ends(endpoint.holder(paths.lock) or 0)
            raise
        except (NoDaemon, ShuttingDown):
            ending = endpoint.holder(paths.lock)
        if ending is None:
            return None
        refuse_elsewhere(paths)
        if time.monotonic() > deadline:
            raise Unavailable(
                f"process {ending or 'unknown'} holds {paths.home} and does not answer", hint=_ends(ending)
            )
        time.sleep(POLL_S)
    while (ending := endpoint.holder(paths.lock)) in {pid, 0}:
        if time.monotonic() > deadline:
            raise Unavailable(f"process {ending or 'unknown'} does not end", hint=_ends(ending or 0))
        time.sleep(POLL_S)
    gone = time.monotonic() + EXIT_S
    while is_alive(pid) and time.monotonic() < gone:
        time.sleep(POLL_S)
    return pid


def what_ends_it(paths: Paths) -> str:
    """Return what to do about a daemon that does not answer."""
    return (
        "it may still be done: see whether it is before you ask again; `omegad stop` ends a daemon that is"
        f" busy, and where that gets no answer either, {_ends(endpoint.holder(paths.lock) or 0)}"
    )


def _ends(pid: int) -> str:
    return (
        f"`kill {pid}` ends it, or else `kill -9 {pid}`; nothing that was stored is lost"
        if pid
        else "`fuser omegad.lock` in the home names it"
    )


def is_alive(pid: int) -> bool:
    """Say whether a process of this user runs. One that has ended and was not waited for, as in a
    container without an init, does not.
    """
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError, OverflowError):
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True
    return stat.rpartition(b")")[2].split()[:1] != [b"Z"]
