"""Stands for a process that goes through the log: `python -I -S relay.py SOCKET EMBEDDINGS WORK`, forked for
it by who listens at the socket.

It passes on its standard streams, and ends as that process does; whoever kills it ends that process, too.
"""

import json
import os
import socket
import sys


def main(listening: str, *arguments: str) -> int:
    """Have it run; return its exit status."""
    umask = os.umask(0o077)
    wanted = {
        "arguments": arguments,
        "environ": dict(os.environ),
        "folder": os.getcwd(),  # noqa: PTH109
        "umask": umask,
    }
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(listening)
        socket.send_fds(connection, [b"\n"], [0, 1, 2])
        connection.sendall(json.dumps(wanted).encode() + b"\n")
        status = connection.recv(1)
    return status[0] if status else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
