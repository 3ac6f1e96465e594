"""A process beside this one, started by a thread.

The event loop's own way to start one copies this process and holds the loop until the copy has become the
other, which took 100 ms and more on a busy machine.
"""

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import anyio
from anyio import to_thread


class Child(NamedTuple):
    """A process, and what it says on its standard output."""

    process: subprocess.Popen[bytes]
    output: asyncio.StreamReader

    async def wait(self) -> int:
        """Return its status when it has ended."""
        return await to_thread.run_sync(self.process.wait, abandon_on_cancel=True)


@asynccontextmanager
async def started(command: Sequence[str], line_bytes_max: int, asked: bytes = b"") -> AsyncIterator[Child]:
    """Start a process in a session of its own, and give it what is *asked*; its standard input stays open
    for as long as the block takes, at whose end it is killed where it has not ended. Raises `OSError`.
    """
    # Which waits for its thread, whoever is cancelled
    process, said = await to_thread.run_sync(_start, command)
    try:
        output, unused = await asyncio.open_unix_connection(sock=said, limit=line_bytes_max)
        try:
            with suppress(BrokenPipeError):  # its end is heard on its output
                await to_thread.run_sync(_give, process, asked)
            yield Child(process, output)
        finally:
            unused.transport.abort()
    finally:
        said.close()
        with anyio.CancelScope(shield=True):
            if process.poll() is None:
                process.kill()
            await to_thread.run_sync(_end, process)


def _start(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start it; return it with a socket for its output, which an event loop takes over.

    Not a pipe: of a file's descriptor uvloop closes the number twice, and another thread may have opened
    something under it meanwhile.
    """
    ours, its = socket.socketpair()
    with its:
        try:
            process = subprocess.Popen(  # noqa: S603
                command, stdin=subprocess.PIPE, stdout=its.fileno(), start_new_session=True
            )
        except BaseException:
            ours.close()
            raise
    return process, ours


def _give(process: subprocess.Popen[bytes], asked: bytes) -> None:
    assert process.stdin
    process.stdin.write(asked)
    process.stdin.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    process.wait()
    with suppress(BrokenPipeError):
        process.stdin.close()
