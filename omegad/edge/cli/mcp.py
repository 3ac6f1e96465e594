"""The verbs about MCP: the pipe that a host starts, and the gateway for those that come over HTTP."""

import gc
import os
import secrets
import signal
import socket
import sys
import threading
import time
from argparse import Namespace
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import anyio

from omegad import __version__
from omegad.edge.cli import starting
from omegad.edge.cli.instance import Instance
from omegad.rpc import endpoint
from omegad.runtime import allocator, config, descriptors
from omegad.runtime.errors import BadConfiguration, OmegadError, Unavailable
from omegad.runtime.versions import is_older

BRIDGE = Path(__file__).parents[2] / "mcp_bridge.py"
LEAVING_S = 5.0
TOKEN_BYTES = 32
HTTP_DESCRIPTORS = 512  # of connections over HTTP, whoever has them
RESERVED_DESCRIPTORS = 96  # of the process itself, and for what HTTP asks of the daemon


def bridge(_arguments: Namespace, instance: Instance) -> NoReturn:
    """Become the bridge, which is a file that imports nothing of omegad."""
    # Our own file
    os.execve(sys.executable, [sys.executable, "-I", "-S", str(BRIDGE)], instance.environ)  # noqa: S606


def gateway(arguments: Namespace, instance: Instance) -> None:
    """Serve MCP over HTTP until told to end; clients may connect while the SDK is being loaded, and the
    daemon is being started.
    """
    if find_spec("mcp") is None:
        raise Unavailable(
            "the SDK of MCP is not installed", hint="install the extra: pip install 'omegad[mcp]'"
        )
    allocator.keep_small()
    paths = instance.paths
    settings = config.load(paths, instance.environ)
    endpoint.private_directory(paths.home)
    if arguments.token:
        print(token_of(paths))
        return
    port = settings.gateway_port if arguments.http is None else arguments.http
    if not port:
        raise BadConfiguration(
            "there is no port to serve HTTP at",
            hint="name one, --http PORT, or set gateway_port in config.toml; `omegad mcp` needs no gateway",
        )
    if pid := endpoint.holder(paths.gateway_lock):  # the one that runs is to end
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + LEAVING_S
    while endpoint.holder(paths.gateway_lock) is not None and time.monotonic() < deadline:
        time.sleep(starting.POLL_S)
    with endpoint.lock(paths.gateway_lock):
        try:
            listener = socket.create_server(("127.0.0.1", port), backlog=endpoint.BACKLOG)
        except (OSError, OverflowError) as error:
            raise Unavailable(
                f"port {port} of 127.0.0.1 cannot be served: {error}", hint="choose another: --http PORT"
            ) from error
        with listener:
            # As its connections have it then: an answer is sent in two parts.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ensure = partial(_ensure, instance, threading.Lock())
            threading.Thread(target=_try, args=(ensure,), daemon=True).start()
            gc.disable()  # a tenth of what loading costs
            from omegad.edge.mcp.gateway import Link  # noqa: PLC0415
            from omegad.edge.mcp.http import Http  # noqa: PLC0415
            from omegad.runtime import telemetry  # noqa: PLC0415

            telemetry.configure(settings.log_level, paths.gateway_log)
            share = descriptors.room(HTTP_DESCRIPTORS, RESERVED_DESCRIPTORS) / HTTP_DESCRIPTORS
            served = Http(listener, token_of(paths), partial(Link, paths.socket, ensure), share)
            gc.enable()
            anyio.run(served.run)


def token_of(paths: config.Paths) -> str:
    """Return what programs show that ask over HTTP, made where there is none. Raises `Unavailable` for a
    file that others may read.
    """
    with suppress(FileExistsError):
        descriptor = os.open(paths.gateway_token, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:  # noqa: PTH123  a descriptor
            file.write(secrets.token_urlsafe(TOKEN_BYTES))
    token = paths.gateway_token.read_text(encoding="utf-8").strip()
    if len(token) < TOKEN_BYTES or paths.gateway_token.stat().st_mode & 0o077:
        raise Unavailable(f"{paths.gateway_token} is no secret", hint="remove it: another one is made")
    return token


def _ensure(instance: Instance, starts: threading.Lock) -> None:
    """Start the daemon unless it answers, and in the place of an older one; of the sessions that need it
    at once, one does.
    """
    with starts:
        answer = starting.ping(instance.paths)
        is_outdated = answer is not None and is_older(answer["version"], __version__)
        if is_outdated:
            starting.stop(instance.paths)
        if answer is None or is_outdated:
            starting.start(instance)


def _try(ensure: "partial[None]") -> None:
    with suppress(OmegadError):  # the first call that needs it says so
        ensure()
