"""The verbs about MCP: the pipe that a host starts, and the gateway at its other end."""

import gc
import os
import sys
import threading
from argparse import Namespace
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import anyio

from omegad import config
from omegad.cli import starting
from omegad.cli.place import Place
from omegad.errors import OmegadError, Unavailable
from omegad.rpc import endpoint

BRIDGE = Path(__file__).parents[1] / "mcp_bridge.py"


def bridge(arguments: Namespace, place: Place) -> int:
    """Become the bridge, which is a file that imports nothing of omegad."""
    del arguments
    os.execve(sys.executable, [sys.executable, "-I", "-S", str(BRIDGE)], place.environ)  # noqa: S606  our own file


def gateway(arguments: Namespace, place: Place) -> int:
    """Be the gateway until nobody needs it; sessions may connect while the SDK is being loaded, and the daemon is being started."""
    del arguments
    if find_spec("mcp") is None:
        raise Unavailable("the SDK of MCP is not installed", hint="install the extra: pip install 'omegad[mcp]'")
    settings = config.load(place.paths, place.environ)
    endpoint.private_directory(place.paths.home)
    with endpoint.lock(place.paths.gateway_lock), endpoint.listening(place.paths.gateway) as listener:
        ensure = partial(_ensure, place, threading.Lock())
        threading.Thread(target=_try, args=(ensure,), daemon=True).start()
        gc.disable()  # a tenth of what loading costs
        from omegad.gateway import Gateway  # noqa: PLC0415  the SDK, which no other verb needs

        gc.enable()
        anyio.run(Gateway(place.paths.socket, ensure, settings.gateway_idle_s).serve, listener)
    return 0


def _ensure(place: Place, starts: threading.Lock) -> None:
    """Start the daemon unless it answers; of the sessions that need it at once, one does."""
    with starts:
        if starting.answering(place.paths) is None:
            starting.start(place)


def _try(ensure: "partial[None]") -> None:
    with suppress(OmegadError):  # the first call that needs it says so
        ensure()
