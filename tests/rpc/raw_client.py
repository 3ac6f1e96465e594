"""A server on a real socket, and a client that speaks bytes, so that it can misbehave."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec

from omegad.rpc import endpoint
from omegad.rpc.server import Handler, Limits, Server
from tests.builders import PATIENCE_S


class Line:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, message: object) -> None:
        """Send bytes as they are, anything else as JSON, and a newline."""
        data = message if isinstance(message, bytes) else msgspec.json.encode(message)
        self.writer.write(data + b"\n")

    def ask(self, request_id: object, method: str, params: object = None) -> None:
        """Send a request."""
        self.send(
            {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {} if params is None else params}
        )

    async def receive(self) -> Any:
        """Return the next line as JSON, or None when the connection was closed."""
        with anyio.fail_after(PATIENCE_S):
            line = await self.reader.readline()
        return msgspec.json.decode(line) if line else None

    async def call(self, method: str, params: object = None) -> Any:
        """Ask, and return the next line."""
        self.ask("call", method, params)
        return await self.receive()

    async def close(self) -> None:
        """Close both directions."""
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


class House(NamedTuple):
    """A running server and where it is."""

    server: Server
    path: Path

    @asynccontextmanager
    async def dial(self) -> AsyncIterator[Line]:
        """Connect to it."""
        line = Line(*await asyncio.open_unix_connection(self.path, limit=64 * 1024 * 1024))
        try:
            yield line
        finally:
            await line.close()


@contextmanager
def socket_path() -> Iterator[Path]:
    """Name a socket in a directory of its own, briefly: its name has about a hundred bytes, wherever
    temporary files are.
    """
    with tempfile.TemporaryDirectory(prefix="o") as directory:
        yield Path(directory) / "run" / "o.sock"


@asynccontextmanager
async def serving(handler: Handler, limits: Limits | None = None, **options: Any) -> AsyncIterator[House]:
    """Serve *handler* for the length of the block."""
    server = Server(handler, limits or Limits(), **options)
    with socket_path() as path, endpoint.listening(path) as sock:
        async with anyio.create_task_group() as tasks:
            await tasks.start(server.serve, sock)
            yield House(server, path)
            tasks.cancel_scope.cancel()
