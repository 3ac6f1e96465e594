"""Runs a daemon: its parts in one task group, until it is told to stop."""

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import structlog

from omegad import __version__
from omegad.agents.spool import LOOK_EVERY_S
from omegad.daemon.composition import Daemon, composed
from omegad.rpc import activation, endpoint
from omegad.runtime import allocator, config, supervisor, telemetry
from omegad.runtime.clock import Clock, SystemClock
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import BadConfiguration

SWITCH_INTERVAL_S = (
    0.001  # so that a thread that computes does not keep the one that answers waiting for Python's usual 5 ms
)

INSTALLED_US = Path(__file__).stat().st_mtime_ns // 1_000

T = TypeVar("T")

_log = structlog.get_logger(__name__)


def serve(paths: Paths, settings: Config) -> None:
    """Serve a home in this process until it is told to stop.

    Raises `AlreadyRunning` where another process serves it, and storage errors where its files cannot be
    used.
    """
    telemetry.configure(settings.log_level, paths.daemon_log)
    for warning in config.unknown_variables():
        _log.warning("config.unknown_variable", warning=warning)
    os.umask(0o077)
    passed = activation.passed()
    endpoint.private_directory(paths.home, "OMEGAD_HOME")
    with endpoint.lock(paths.lock):
        run(partial(_serve, paths, settings, SystemClock(), passed))


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run *main* as a daemon runs: on its event loop, with its bounds on memory and on the wait for the
    interpreter.
    """
    allocator.keep_small()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    return anyio.run(main, backend_options={"use_uvloop": True})


async def _serve(paths: Paths, settings: Config, clock: Clock, passed: Sequence[int]) -> None:
    async with composed(paths, settings, clock, INSTALLED_US) as daemon, anyio.create_task_group() as tasks:
        tasks.start_soon(daemon.services.log.run, name="log")
        tasks.start_soon(daemon.services.views.run, name="views")
        tasks.start_soon(daemon.services.past.run, name="asof")
        tasks.start_soon(daemon.erasing.run, name="erasing")
        tasks.start_soon(daemon.vector_sweep.run, name="vector_sweep")
        tasks.start_soon(daemon.services.near.embedder.run, name="embedder")
        tasks.start_soon(daemon.reactions.run, name="reactions")
        tasks.start_soon(daemon.services.steadiness.run, name="clock")
        tasks.start_soon(_signals, daemon, paths, name="signals")
        tasks.start_soon(supervisor.keep_alive, daemon.services.log.writer_answers, name="watchdog")
        tasks.start_soon(allocator.keep_giving_back, name="memory")
        tasks.start_soon(_leave_with_home, daemon, name="home")
        with endpoint.listening(paths.socket, passed) as sock:
            await tasks.start(daemon.server.serve, sock)
            tasks.start_soon(daemon.services.spool.run, name="spool")
            _log.info(
                "daemon.ready",
                version=__version__,
                home=str(paths.home),
                socket=str(paths.socket),
                head=daemon.services.log.head,
            )
            supervisor.notify(f"READY=1\nSTATUS=Serves {paths.home}, {daemon.services.log.head} events")
            await daemon.run(tasks, settings.shutdown_s)
    _log.info("daemon.stopped")


def _reload(paths: Paths) -> None:
    """Take up what can change while running; a configuration that is not valid changes nothing."""
    try:
        telemetry.configure(config.load(paths).log_level)
    except BadConfiguration as error:
        _log.error("daemon.not_reloaded", error=str(error), hint=error.hint)


async def _leave_with_home(daemon: Daemon) -> None:
    """End where the home was removed, with or without another in its place: what is appended to its log
    would be lost.
    """
    while daemon.services.spool.is_home():  # noqa: ASYNC110  nothing tells of it
        await anyio.sleep(LOOK_EVERY_S)
    _log.error("daemon.home_removed")
    daemon.stopping.set()


async def _signals(daemon: Daemon, paths: Paths) -> None:
    """End on SIGTERM or SIGINT, at once on a second one; read the log level again on SIGHUP."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
        async for number in received:
            if number == signal.SIGHUP:
                _reload(paths)
            elif daemon.stopping.is_set():
                os._exit(128 + number)  # what was acknowledged is on the disk already
            else:
                daemon.stopping.set()
