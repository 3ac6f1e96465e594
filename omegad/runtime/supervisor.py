"""What a service manager is told: sd_notify's datagrams, where systemd asks for them."""

import os
import socket
from collections.abc import Awaitable, Callable, Mapping

import anyio
import structlog

SEND_S = 1.0  # a manager that does not read must not hold up those that ask for memories

_log = structlog.get_logger(__name__)


def notify(state: str, environ: Mapping[str, str] = os.environ) -> None:
    """Send *state* (`READY=1`, `WATCHDOG=1`, `STOPPING=1`) to the socket in NOTIFY_SOCKET; do nothing where
    there is none.

    Never raises: who does not hear, or is being started anew, must not end what serves. It is logged.
    See sd_notify(3). A leading `@` stands for the abstract namespace's NUL.
    """
    address = environ.get("NOTIFY_SOCKET")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.settimeout(SEND_S)
            sock.connect("\0" + address[1:] if address.startswith("@") else address)
            sock.sendall(state.encode(errors="surrogateescape"))
    except (OSError, ValueError) as error:  # ValueError: an address or a state that cannot be sent at all
        _log.warning("supervisor.not_told", state=state.partition("\n")[0], socket=address, error=str(error))


async def keep_alive(
    answers: Callable[[], Awaitable[object]], environ: Mapping[str, str] = os.environ
) -> None:
    """Say for ever that this process works, twice in each interval of a manager that watches it; return where
    none does.

    It works while its event loop runs and *answers* returns. See sd_watchdog_enabled(3): WATCHDOG_USEC is the
    interval in microseconds, WATCHDOG_PID whom it is for.
    """
    interval_us = environ.get("WATCHDOG_USEC", "")
    if (
        not interval_us.isdecimal()
        or int(interval_us) == 0
        or environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid())
    ):
        return
    while True:
        await answers()
        notify("WATCHDOG=1", environ)
        await anyio.sleep(int(interval_us) / 2e6)
