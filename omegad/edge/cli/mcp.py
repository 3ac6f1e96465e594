"""The verbs about MCP: the pipe that a host starts, and the gateway at its other end."""

import gc
import os
import secrets
import signal
import socket
import sys
import threading
import time
from argparse import Namespace
from contextlib import ExitStack, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import anyio

from omegad.edge.cli import printing, starting
from omegad.edge.cli.place import Place
from omegad.rpc import endpoint
from omegad.runtime import allocator, config, descriptors
from omegad.runtime.errors import OmegadError, Unavailable

BRIDGE = Path(__file__).parents[2] / "mcp_bridge.py"
LEAVING_S = 5.0
TOKEN_BYTES = 32
HTTP_DESCRIPTORS = 512  # of connections over HTTP, whoever has them
RESERVED_DESCRIPTORS = 96  # of the process itself, and for what HTTP asks of the daemon


def bridge(arguments: Namespace, place: Place) -> int:
    """Become the bridge, which is a file that imports nothing of omegad."""
    del arguments
    os.execve(sys.executable, [sys.executable, "-I", "-S", str(BRIDGE)], place.environ)  # noqa: S606  our own file


def gateway(arguments: Namespace, place: Place) -> int:
    """Be the gateway until nobody needs it; sessions may connect while the SDK is being loaded, and the daemon is being started."""
    if find_spec("mcp") is None:
        raise Unavailable("the SDK of MCP is not installed", hint="install the extra: pip install 'omegad[mcp]'")
    allocator.keep_small()
    settings = config.load(place.paths, place.environ)
    endpoint.private_directory(place.paths.home)
    if arguments.token:
        print(token_of(place.paths))
        return 0
    with ExitStack() as held:
        _relieve(place.paths)
        held.enter_context(endpoint.lock(place.paths.gateway_lock))
        listener = held.enter_context(endpoint.listening(place.paths.gateway))
        _lead_to(place.paths)
        os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)  # which is the lock of starting, where a bridge does
        web = _loopback(arguments.http, settings.gateway_port)
        ensure = partial(_ensure, place, threading.Lock())
        threading.Thread(target=_try, args=(ensure,), daemon=True).start()
        gc.disable()  # a tenth of what loading costs
        from omegad.edge.mcp.gateway import SESSION_DESCRIPTORS, SESSIONS_MAX, Gateway  # noqa: PLC0415
        from omegad.runtime import telemetry  # noqa: PLC0415  which no verb but this and `serve` needs, nor the SDK

        telemetry.configure(settings.log_level, place.paths.gateway_log)

        wanted = SESSIONS_MAX * SESSION_DESCRIPTORS + HTTP_DESCRIPTORS
        share = descriptors.room(wanted, RESERVED_DESCRIPTORS) / wanted
        served = Gateway(place.paths.socket, ensure, settings.gateway_idle_s, max(1, int(SESSIONS_MAX * share)))
        http = None
        if web is not None:
            from omegad.edge.mcp.http import Http  # noqa: PLC0415  a web server, which few need

            http = Http(web, token_of(place.paths), served.link, share).serve
        gc.enable()
        anyio.run(served.serve, listener, held.close, http)
    return 0


def token_of(paths: config.Paths) -> str:
    """Return what programs show that ask over HTTP, made where there is none. Raises `Unavailable` for a file that others may read."""
    with suppress(FileExistsError):
        descriptor = os.open(paths.gateway_token, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:  # noqa: PTH123  a descriptor
            file.write(secrets.token_urlsafe(TOKEN_BYTES))
    token = paths.gateway_token.read_text(encoding="utf-8").strip()
    if len(token) < TOKEN_BYTES or paths.gateway_token.stat().st_mode & 0o077:
        raise Unavailable(f"{paths.gateway_token} is no secret", hint="remove it: another one is made")
    return token


def _relieve(paths: config.Paths) -> None:
    """Have the gateway that runs, if one does, take no more sessions and end with the last of those it has."""
    deadline = time.monotonic() + LEAVING_S
    if pid := endpoint.holder(paths.gateway_lock):
        os.kill(pid, signal.SIGTERM)
    while endpoint.holder(paths.gateway_lock) is not None and time.monotonic() < deadline:
        time.sleep(starting.POLL_S)


def _lead_to(paths: config.Paths) -> None:
    temporary = paths.gateway_link.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(paths.gateway)
    temporary.replace(paths.gateway_link)


def _loopback(asked: int | None, configured: int) -> socket.socket | None:
    """Listen for HTTP; a port that was only configured and is taken is warned of, since sessions do without it."""
    port = configured if asked is None else asked
    if not port:
        return None
    try:
        listener = socket.create_server(("127.0.0.1", port), backlog=endpoint.BACKLOG)
    except (OSError, OverflowError) as error:
        told = f"port {port} of 127.0.0.1 cannot be served: {error}"
        if asked is not None:
            raise Unavailable(told, hint="choose another: --http PORT") from error
        printing.warn(told)
        return None
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as its connections have it then: an answer is sent in two parts
    return listener


def _ensure(place: Place, starts: threading.Lock) -> None:
    """Start the daemon unless it answers, and in the place of an older one; of the sessions that need it at once, one does."""
    with starts:
        if starting.is_outdated(place.paths):
            starting.stop(place.paths)
        if starting.answering(place.paths) is None:
            starting.start(place)


def _try(ensure: "partial[None]") -> None:
    with suppress(OmegadError):  # the first call that needs it says so
        ensure()
