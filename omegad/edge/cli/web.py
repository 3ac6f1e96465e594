"""The verbs that start the process that speaks HTTP: for what is switched on, and for the page alone."""

import gc
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
import webbrowser
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio

from omegad import __version__
from omegad.edge.cli import starting
from omegad.edge.cli.instance import Instance
from omegad.rpc import endpoint
from omegad.runtime import allocator, config, descriptors
from omegad.runtime.errors import BadConfiguration, OmegadError, Unavailable
from omegad.runtime.versions import is_older

if TYPE_CHECKING:
    from omegad.edge.web.asking import Asking
    from omegad.edge.web.serving import Part

LEAVING_S = 5.0
TOKEN_BYTES = 32
HTTP_DESCRIPTORS = 512  # of connections over HTTP, whoever has them
RESERVED_DESCRIPTORS = 96  # of the process itself, and for what HTTP asks of the daemon
PAGE_IDLE_S = 1800.0
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
NEEDED = ("mcp", "starlette", "uvicorn", "jinja2")

Name = Literal["page", "page that may write", "api", "mcp"]


def web(arguments: Namespace, instance: Instance) -> None:
    """Serve what config.toml switches on, until told to end."""
    paths = instance.paths
    settings = config.load(paths, instance.environ)
    if arguments.token:
        _print_token(paths)
        return
    if not settings.web:
        raise BadConfiguration(
            "nothing is switched on that is served over HTTP",
            hint=f'say in {paths.config} what is to be: web = ["page", "api", "mcp"], or some of these',
        )
    _serve_home(instance, settings.web, settings.web_port if arguments.port is None else arguments.port)


def page(arguments: Namespace, instance: Instance) -> None:
    """Serve the page alone, with a token of this run's own, and open it in the browser."""
    _check_installed()
    starting.require_home(instance.paths)
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # so that nothing is left, however early it comes
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with _listening(arguments.port or 0, "--port N") as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/#t={token}"
        print(url, flush=True)
        with _opened(url, instance.paths.home) if not arguments.no_browser else nullcontext():
            names: tuple[Name] = ("page that may write" if arguments.write else "page",)
            _run(instance, listener, names, token, PAGE_IDLE_S)


def _serve_home(instance: Instance, names: Sequence[Name], port: int) -> None:
    """Serve with the home's token, in the place of the process that did. Clients may connect while what
    answers them is being loaded, and the daemon is being started.
    """
    _check_installed()
    paths = instance.paths
    starting.make_home(paths)
    if pid := endpoint.holder(paths.web_lock):  # the one that runs is to end
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + LEAVING_S
    while endpoint.holder(paths.web_lock) is not None and time.monotonic() < deadline:
        time.sleep(starting.POLL_S)
    with endpoint.lock(paths.web_lock), _listening(port, "--port N, or web_port in config.toml") as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]} serves {', '.join(names)}", flush=True)
        if "page" in names:
            print("open it as that address with /#t=TOKEN; `omegad web --token` prints it", flush=True)
        _run(instance, listener, names, token_of(paths))


@contextmanager
def _listening(port: int, where: str) -> Iterator[socket.socket]:
    """Listen at a port of the loopback interface, any where it is 0. Raises `Unavailable`."""
    try:
        listener = socket.create_server(("127.0.0.1", port), backlog=endpoint.BACKLOG)
    except (OSError, OverflowError) as error:
        raise Unavailable(
            f"port {port} of 127.0.0.1 cannot be served: {error}", hint=f"choose another: {where}"
        ) from error
    with listener:
        # As its connections have it then: an answer is sent in two parts.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


def _run(
    instance: Instance,
    listener: socket.socket,
    names: Sequence[Name],
    token: str,
    idle_s: float | None = None,
) -> None:
    settings = config.load(instance.paths, instance.environ)
    ensure = partial(_ensure, instance, threading.Lock())
    threading.Thread(target=_try, args=(ensure,), daemon=True).start()
    allocator.keep_small()
    gc.disable()  # a tenth of what loading costs
    from omegad.edge.web.asking import Asking  # noqa: PLC0415
    from omegad.edge.web.serving import Web  # noqa: PLC0415
    from omegad.runtime import telemetry  # noqa: PLC0415

    telemetry.configure(settings.log_level, instance.paths.web_log)
    share = descriptors.room(HTTP_DESCRIPTORS, RESERVED_DESCRIPTORS) / HTTP_DESCRIPTORS
    asking = Asking(instance.paths.socket, ensure, "omegad-web")
    served = Web(listener, token, asking, [_part(name, asking, instance.environ) for name in names], share)
    gc.enable()
    anyio.run(served.run, idle_s)


def _part(name: Name, asking: "Asking", environ: Mapping[str, str]) -> "Part":
    """Return a part of what is served, of which no more is loaded than that."""
    from omegad.edge.web.serving import Part  # noqa: PLC0415

    match name:
        case "mcp":
            from omegad.edge.web import tools  # noqa: PLC0415

            return tools.part(asking, environ)
        case "api":
            from omegad.edge.web import api  # noqa: PLC0415

            return Part(api.routes())
        case _:
            from omegad.edge.web.page import PUBLIC, routes  # noqa: PLC0415

            return Part(routes(name != "page"), PUBLIC)


def _check_installed() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise Unavailable(
            f"what speaks HTTP is not installed: {', '.join(missing)}",
            hint=f"install the extra: {sys.executable} -m pip install 'omegad[web]'",
        )


@contextmanager
def _opened(url: str, folder: Path) -> Iterator[None]:
    """Open an address in the browser, where there is a screen for one. It is named a file, which nobody else
    can read and which leads there, because the arguments of a process are shown to everybody.
    """
    if sys.platform != "darwin" and not any(os.environ.get(name) for name in SCREENS):
        yield
        return
    with tempfile.NamedTemporaryFile("w", encoding="ascii", dir=folder, suffix=".html") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={url}"><a href="{url}">omegad</a>'
        )
        file.flush()
        threading.Thread(target=_open, args=(Path(file.name).as_uri(),), daemon=True).start()
        yield


def _open(address: str) -> None:
    with suppress(webbrowser.Error, OSError):
        webbrowser.open(address)


def _print_token(paths: config.Paths) -> None:
    starting.make_home(paths)
    print(token_of(paths))


def token_of(paths: config.Paths) -> str:
    """Return what programs show that ask over HTTP, made where there is none. Raises `Unavailable` for a
    file that others may read.
    """
    with suppress(FileExistsError):
        descriptor = os.open(paths.web_token, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:  # noqa: PTH123  a descriptor
            file.write(secrets.token_urlsafe(TOKEN_BYTES))
    token = paths.web_token.read_text(encoding="utf-8").strip()
    if len(token) < TOKEN_BYTES or paths.web_token.stat().st_mode & 0o077:
        raise Unavailable(f"{paths.web_token} is no secret", hint="remove it: another one is made")
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
