"""The sockets that a service manager listens on for this process: systemd hands them over by number, launchd
by name.

See sd_listen_fds(3), and launch_activate_socket(3) of macOS.
"""

import ctypes
import os
import sys
from collections.abc import MutableMapping
from typing import Protocol, cast

FIRST_DESCRIPTOR = 3  # SD_LISTEN_FDS_START
DESCRIPTORS_MAX = 32
LAUNCHD_NAME = "Listener"
"""The key of the socket in the agent's `Sockets`."""


def passed(environ: MutableMapping[str, str] = os.environ) -> list[int]:
    """Return the descriptors that are for this process, none where nobody listens for it; ask once.

    The variables that tell of them are taken away, and the descriptors are closed in children. Raises
    `OSError` where one is not open.
    """
    process, count, _ = (environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"))
    found = []
    if process == str(os.getpid()) and count in map(str, range(1, DESCRIPTORS_MAX + 1)):
        found = list(range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + int(count)))
    elif sys.platform == "darwin":
        found = of_launchd(cast("Launchd", ctypes.CDLL(None)))
    for descriptor in found:
        os.set_inheritable(descriptor, False)  # noqa: FBT003  the system call's signature
    return found


class Launchd(Protocol):
    """What is called of launch.h, and what frees what it made."""

    def launch_activate_socket(self, name: bytes, descriptors: object, count: object) -> int:
        """Make an array of the descriptors for a name; 0, or what went wrong."""
        ...

    def free(self, array: ctypes.c_void_p) -> None:
        """Let go of it."""


def of_launchd(library: Launchd) -> list[int]:
    """Return the descriptors that launchd has for this process: none where it did not start it, or its
    agent names no socket.
    """
    descriptors, count = ctypes.POINTER(ctypes.c_int)(), ctypes.c_size_t()
    if (
        library.launch_activate_socket(LAUNCHD_NAME.encode(), ctypes.byref(descriptors), ctypes.byref(count))
        != 0
    ):
        return []
    found = descriptors[: count.value]
    library.free(ctypes.cast(descriptors, ctypes.c_void_p))
    return found
