"""What a service manager is told: sd_notify's datagrams, where systemd asks for them."""

import os
import socket
from collections.abc import Mapping


def notify(state: str, environ: Mapping[str, str] = os.environ) -> None:
    """Send *state* (`READY=1`, `STOPPING=1`) to the socket in NOTIFY_SOCKET; do nothing where there is none.

    See sd_notify(3). A leading `@` stands for the abstract namespace's NUL.
    """
    address = environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        sock.connect("\0" + address[1:] if address.startswith("@") else address)
        sock.sendall(state.encode())
