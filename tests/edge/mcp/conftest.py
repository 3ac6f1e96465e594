"""Sessions of the official MCP client over real processes: the bridge that a host starts, and the daemon."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from omegad.edge.cli.starting import is_alive
from omegad.rpc import endpoint
from tests.acceptance.conftest import PATIENCE_S, Home, homes_in, until

BRIDGE = Path(__file__).parents[3] / "omegad" / "mcp_bridge.py"
PROJECT = "/src/shop"


class Host:
    """What starts sessions: the host of an agent, in a home of its own."""

    def __init__(self, home: Home, bridge: Path = BRIDGE) -> None:
        self.home = home
        self._bridge = bridge
        self.environ = {**home.environ, "CLAUDE_PROJECT_DIR": PROJECT}

    def command(self) -> StdioServerParameters:
        """What the host has been told to start."""
        return StdioServerParameters(
            command=sys.executable, args=["-I", "-S", str(self._bridge)], env=self.environ
        )

    @asynccontextmanager
    async def session(self, **more: Any) -> AsyncIterator[ClientSession]:
        """Start a bridge, and introduce the client to what answers."""
        async with (
            stdio_client(self.command()) as (received, sent),
            ClientSession(received, sent, **more) as session,
        ):
            await session.initialize()
            yield session

    def bridge(self, *messages: dict[str, Any]) -> subprocess.CompletedProcess[bytes]:
        """Run a bridge to its end, on these messages."""
        command = [sys.executable, "-I", "-S", str(self._bridge)]
        return subprocess.run(
            command,
            input=lines(messages),
            env=self.environ,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
        )

    def say(self, *messages: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what a bridge answers to these messages."""
        return [msgspec.json.decode(line) for line in self.bridge(*messages).stdout.splitlines()]

    def say_lines(self, *lines: bytes) -> list[dict[str, Any]]:
        """Return what a bridge answers to these lines, whatever they are; the last one has no end."""
        command = [sys.executable, "-I", "-S", str(self._bridge)]
        done = subprocess.run(
            command,
            input=b"\n".join(lines),
            env=self.environ,
            capture_output=True,
            check=True,
            timeout=PATIENCE_S,
        )
        return [msgspec.json.decode(line) for line in done.stdout.splitlines()]

    @property
    def daemon(self) -> int:
        """The process id of the daemon, 0 where none runs."""
        written = endpoint.holder(self.home.paths.lock) or 0
        return written if written and is_alive(written) else 0

    def kill_daemon(self) -> None:
        if pid := self.daemon:
            os.kill(pid, signal.SIGKILL)
            until(lambda: not is_alive(pid))


def lines(messages: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n" for message in messages)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host whose home has no daemon yet, and whose clients give it time to start before they speak as of
    old.
    """
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", PATIENCE_S)
    with homes_in(tmp_path) as make:
        host = Host(make())
        try:
            yield host
        finally:
            host.kill_daemon()
            for pid in left_by(host.home):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def left_by(home: Home) -> Iterator[int]:
    """Yield the processes of a home, also a daemon that was started for a session that is over, and has
    not said yet that it is there.
    """
    named = f"OMEGAD_HOME={home.path}\0".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ends meanwhile, or is somebody else's
            if int(process.name) != os.getpid() and named in (process / "environ").read_bytes():
                yield int(process.name)
