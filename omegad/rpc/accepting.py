"""Takes connections as they come, a few a turn of the event loop, so that however many come the others are
served meanwhile.

The event loop's own servers do otherwise where descriptors run out: asyncio's tries as often as connections
may wait, and prints each time.
"""

import asyncio
import errno
import socket
from collections.abc import Callable

import anyio
import structlog

AT_ONCE = 4
SCARCE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
RETRY_S = 0.1

_log = structlog.get_logger(__name__)


async def accept(listener: socket.socket, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
    """Give each connection to *listener* a *protocol*, until cancelled; where there are no descriptors for
    one, try again soon.
    """
    loop = asyncio.get_running_loop()
    listener.setblocking(False)  # noqa: FBT003  the system call's signature
    while True:
        accepted: list[socket.socket] = []
        try:
            accepted.append((await loop.sock_accept(listener))[0])
            while len(accepted) < AT_ONCE:
                accepted.append(listener.accept()[0])
        except OSError as error:  # there are no more, or one has left already
            scarcity = error if error.errno in SCARCE else None
        else:
            scarcity = None
        await asyncio.gather(*(_take(connection, protocol) for connection in accepted))
        if scarcity:
            _log.warning("accepting.waits", error=str(scarcity))
            await anyio.sleep(RETRY_S)


async def _take(connection: socket.socket, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
    is_taken = False
    try:
        connection.setblocking(False)  # noqa: FBT003
        await asyncio.get_running_loop().connect_accepted_socket(protocol, connection)
        is_taken = True
    except OSError:  # who was to be served has left already
        pass
    finally:
        if not is_taken:
            connection.close()
