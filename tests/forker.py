"""The process that others are forked from, see `tests.forking`: `python -m tests.forker`. It has
everything imported, no thread and no event loop.
"""

import gc
import os
import resource
import select
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import anyio._backends._asyncio
import msgspec
import uvloop

import omegad.daemon
import omegad.edge.cli.daemon
import omegad.edge.cli.instance
import omegad.edge.cli.transfer
from omegad.catalog import log_worker
from omegad.edge import cli
from omegad.text.ingestion import noise, rule_files, tagging
from tests import relay
from tests.acceptance import failing
from tests.forking import Wanted

IMPORTED = (
    anyio._backends._asyncio,
    uvloop,
    omegad.edge.cli.daemon,
    omegad.edge.cli.instance,
    omegad.edge.cli.transfer,
    omegad.daemon,
)
"""What a daemon and the verbs import where they need it, and a fork has already."""


class Server:
    """What processes are forked from. Standard input has what is wanted, one JSON object a line; a socket,
    relays of `tests.relay`.
    """

    def __init__(self, folder: Path) -> None:
        """Listen in *folder*."""
        self._path = folder / "s"
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self._path))
        self._listening.listen(64)
        self._relayed: set[int] = set()

    def run(self) -> None:
        """Answer a line until standard input ends: the id of a process that was wanted, or the exit status
        of one, null while it runs.
        """
        while True:
            ready, _, _ = select.select([sys.stdin, self._listening], [], [])
            self._relayed = {pid for pid in self._relayed if not os.waitpid(pid, os.WNOHANG)[0]}
            if self._listening in ready:
                self._relay()
            if sys.stdin in ready:
                if not (line := sys.stdin.buffer.readline()):
                    break
                answer = self._answer(msgspec.json.decode(line, type=Wanted | int))
                sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
                sys.stdout.buffer.flush()

    def _answer(self, asked: Wanted | int) -> int | None:
        if isinstance(asked, int):
            pid, status = os.waitpid(asked, os.WNOHANG)
            return os.waitstatus_to_exitcode(status) if pid else None
        if not (pid := os.fork()):
            self._listening.close()
            os._exit(_ended(partial(self._be, asked)))
        return pid

    def _be(self, wanted: Wanted) -> int:
        """Be what is wanted; return the exit status."""
        descriptors = (
            os.open(os.devnull, os.O_RDONLY),
            os.open(wanted.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        )
        _take((*descriptors, descriptors[1]))
        if wanted.is_leader:
            os.setsid()
        _move(wanted.folder, wanted.environ, wanted.umask)
        if wanted.fault:
            failing.let_fail(wanted.fault)
        if not (wanted.fault or wanted.limits or wanted.with_own_workers):
            omegad.daemon.composition.LOG_WORKER = (
                sys.executable,
                "-I",
                "-S",
                relay.__file__,
                str(self._path),
            )  # type: ignore[assignment]
        for what, limit in wanted.limits.items():
            resource.setrlimit(
                what, (limit, resource.RLIM_INFINITY if what == resource.RLIMIT_FSIZE else limit)
            )
        return cli.main(wanted.arguments)

    def _relay(self) -> None:
        connection, _ = self._listening.accept()
        with connection:
            if pid := os.fork():
                self._relayed.add(pid)
                return
            self._listening.close()
            status = _ended(partial(_go_through_the_log, connection))
            with suppress(OSError):  # the relay was killed
                connection.sendall(bytes([status]))
            os._exit(status)


def _go_through_the_log(connection: socket.socket) -> int:
    """Do what a relay wants."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as lines:
        wanted = msgspec.json.decode(lines.readline())
    _take(streams)
    os.setsid()
    _move(wanted["folder"], wanted["environ"], wanted["umask"])
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    log_worker.main(*wanted["arguments"])
    return 0


def _end_with(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.recv(1)  # nothing is ever sent
    os._exit(1)


def _take(descriptors: Sequence[int]) -> None:
    """Have these for the standard streams."""
    for standard, descriptor in enumerate(descriptors):
        os.dup2(descriptor, standard)
    for descriptor in {*descriptors} - {0, 1, 2}:
        os.close(descriptor)


def _move(folder: str, environ: dict[str, str], umask: int) -> None:
    os.chdir(folder)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()


def _ended(work: Callable[[], int]) -> int:
    """Do *work*, and end as the interpreter would; return the exit status."""
    try:
        return work()
    except BaseException:  # noqa: BLE001  as the interpreter would at its end
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def main() -> None:
    """Be the process that others are forked from."""
    rule_files._parsed = cache(rule_files._parsed)
    noise.load()
    tagging.load()
    gc.freeze()  # so that what was imported stays shared
    with tempfile.TemporaryDirectory(prefix="fork-") as folder:
        Server(Path(folder)).run()


if __name__ == "__main__":
    main()
