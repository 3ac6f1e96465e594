"""A client of an MCP server over its standard input and output, as agents' hosts are; each wait has a deadline."""

import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

REVISION = "2025-06-18"
READ_BYTES = 65_536
TAIL_BYTES = 2_000
STOP_S = 10.0


class PeerFailed(Exception):
    """A peer did not install, start or answer, or refused; its message says what it said."""


class ToolRefused(PeerFailed):
    """A tool said that it did not do what was asked, and why."""


class Failure(msgspec.Struct, frozen=True):
    """An error of JSON-RPC."""

    message: str = ""


class Reply(msgspec.Struct, frozen=True):
    """A line of the server: an answer where it has an id, else a notification or a question."""

    id: int | str | None = None
    method: str | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: Failure | None = None


class Text(msgspec.Struct, frozen=True):
    """One part of what a tool said."""

    text: str = ""


class ToolResult(msgspec.Struct, frozen=True):
    """What a tool said."""

    content: list[Text] = []
    isError: bool = False  # noqa: N815  as the protocol spells it


class StdioServer:
    """A server process, and the one client that it has."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path, patience_s: float
    ) -> None:
        """Start it in *folder*, into whose server.err its errors go, and shake hands. Raises `PeerFailed`
        where that takes longer than *patience_s*.
        """
        self.started_s = time.perf_counter()
        self._errors = folder / "server.err"
        with self._errors.open("ab") as errors:
            self.process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=dict(environment),
                cwd=folder,
            )
        assert self.process.stdin
        assert self.process.stdout
        self._to, self._from = self.process.stdin, self.process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._from, selectors.EVENT_READ)
        self._read, self._last = bytearray(), 0
        try:
            about = {
                "protocolVersion": REVISION,
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            }
            self._ask("initialize", about, patience_s)
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        except PeerFailed:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def tool(self, name: str, arguments: Mapping[str, object], patience_s: float) -> str:
        """Call a tool and return what it says. Raises `ToolRefused` where it refuses, if only by a text that
        begins with "Error", and `PeerFailed` where it does not answer in *patience_s*.
        """
        raw = self._ask("tools/call", {"name": name, "arguments": arguments}, patience_s)
        result = msgspec.json.decode(raw, type=ToolResult)
        said = "\n".join(part.text for part in result.content)
        if result.isError or said.startswith("Error"):
            raise ToolRefused(f"{name}: {said[:TAIL_BYTES]}")
        return said

    def stop(self) -> None:
        """End it: its input is closed, as a host does, and it is killed where it goes on."""
        self._to.close()
        for end in (self.process.terminate, self.process.kill):
            try:
                self.process.wait(STOP_S)
                break
            except subprocess.TimeoutExpired:
                end()
        self.process.wait(STOP_S)
        self._selector.close()
        self._from.close()

    def _ask(self, method: str, params: Mapping[str, object], patience_s: float) -> msgspec.Raw:
        self._last += 1
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        until = time.perf_counter() + patience_s
        while True:
            try:
                reply = msgspec.json.decode(self._line(until), type=Reply)
            except msgspec.MsgspecError as error:
                raise PeerFailed(f"{method}: what came is no message: {error}") from error
            if reply.id != self._last or reply.method:
                continue  # a notification, or a question, of which this client promised to answer none
            if reply.error:
                raise PeerFailed(f"{method}: {reply.error.message[:TAIL_BYTES]}")
            if not bytes(reply.result):
                raise PeerFailed(f"{method}: neither a result nor an error came")
            return reply.result

    def _send(self, message: Mapping[str, object]) -> None:
        try:
            self._to.write(msgspec.json.encode(message) + b"\n")
            self._to.flush()
        except OSError as error:
            raise PeerFailed(f"it is gone: {error}; {self._tail()}") from error

    def _line(self, until: float) -> bytes:
        searched = 0
        while (end := self._read.find(b"\n", searched)) < 0:
            searched = len(self._read)
            if not self._selector.select(max(0.0, until - time.perf_counter())):
                raise PeerFailed(f"no answer in time; {self._tail()}")
            more = os.read(self._from.fileno(), READ_BYTES)
            if not more:
                raise PeerFailed(f"it ended; {self._tail()}")
            self._read += more
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return line

    def _tail(self) -> str:
        said = self._errors.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip().splitlines()
        return f"its last words: {said[-1]}" if said else "it said nothing"
