"""Takes connections as they come, one a turn of the event loop, so that however many come the others are served meanwhile.

The event loop's own servers do otherwise where descriptors run out: asyncio's tries as often as connections may wait, and prints each time.
"""

import asyncio
import errno
import socket
from collections.abc import Callable

import anyio
import structlog

SCARCE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
RETRY_S = 0.1

_log = structlog.get_logger(__name__)


async def accept(listener: socket.socket, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
    """Give each connection to *listener* a *protocol*, until cancelled; where there are no descriptors for one, try again soon."""
    loop = asyncio.get_running_loop()
    listener.setblocking(False)  # noqa: FBT003  the system call's signature
    while True:
        try:
            connection, _ = await loop.sock_accept(listener)
        except OSError as error:
            if error.errno in SCARCE:
                _log.warning("accepting.waits", error=str(error))
                await anyio.sleep(RETRY_S)
            continue
        is_taken = False
        try:
            await loop.connect_accepted_socket(protocol, connection)
            is_taken = True
        except OSError:  # who was to be served has left already
            pass
        finally:
            if not is_taken:
                connection.close()
