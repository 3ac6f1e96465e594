"""MCP over HTTP: who is served, and that what is served is what the bridge has."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from omegad.catalog.tools import TOOLS
from tests.acceptance.conftest import PATIENCE_S, until
from tests.edge.mcp.conftest import Host
from tests.edge.mcp.test_sessions import CALLS

ABOUT: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": ABOUT}


class Web:
    """MCP served over HTTP, in a home of its own."""

    def __init__(self, host: Host, port: int) -> None:
        self.host = host
        self.at = f"127.0.0.1:{port}"
        self.url = f"http://{self.at}/mcp"
        token = subprocess.run(
            [sys.executable, "-m", "omegad", "web", "--token"],
            env=host.environ,
            capture_output=True,
            check=True,
        )
        self.headers = {"Authorization": f"Bearer {token.stdout.decode().strip()}"}

    def status(self, **headers: str | None) -> int:
        """Ask to be introduced, with other headers than usual, and return the status of the answer."""
        usual = {"accept": "application/json, text/event-stream", **self.headers}
        sent = {name: value for name, value in (usual | headers).items() if value is not None}
        return httpx2.post(self.url, json=INITIALIZE, headers=sent, timeout=PATIENCE_S).status_code


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def web(host: Host) -> Iterator[Web]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    web = Web(host, port)
    host.home.paths.config.write_text('web = ["mcp"]\n', encoding="utf-8")
    command = [sys.executable, "-m", "omegad", "web", "--port", str(port)]
    with subprocess.Popen(command, env=host.environ) as process:
        until(lambda: listens(port))
        yield web
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
        until(host.home.paths.lock.exists)
    host.kill_daemon()


@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
async def test_the_official_client_lists_and_calls_every_tool_in_both_eras(
    web: Web, mode: Any, version: str
) -> None:
    headers = {**web.headers, "Omegad-Project": "/src/shop", "Omegad-Session": "s-1"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as asking,
        Client(streamable_http_client(web.url, http_client=asking), mode=mode) as client,
    ):
        assert client.protocol_version == version
        assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS)
        answers = {name: await client.call_tool(name, arguments) for name, arguments in CALLS}
        stored = (answers["omega_store"].structured_content or {})["memory_id"]
        answers["omega_memory"] = await client.call_tool(
            "omega_memory", {"action": "get", "memory_id": stored}
        )
    assert [name for name, answer in answers.items() if answer.is_error] == []
    assert set(answers) == set(TOOLS)
    memory = web.host.home.call("memory.get", memory_id=stored)
    assert (memory["project"], memory["session_id"]) == ("shop", "s-1")


def test_only_who_knows_the_token_is_served_and_no_page_of_elsewhere(web: Web) -> None:
    assert web.status() == 200
    for headers, status in (
        ({"Authorization": None}, 401),
        ({"Authorization": "Basic eDp5"}, 401),
        ({"Authorization": web.headers["Authorization"][:-1]}, 401),
        ({"Origin": f"http://{web.at}"}, 200),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "https://example.com"}, 403),
        ({"Host": "example.com"}, 421),
        ({"Host": web.at.replace("127.0.0.1", "localhost")}, 200),
    ):
        assert web.status(**headers) == status, headers
    token = web.host.home.paths.web_token
    assert token.stat().st_mode & 0o777 == 0o600
    token.chmod(0o644)
    refused = subprocess.run(
        [sys.executable, "-m", "omegad", "web", "--token"],
        env=web.host.environ,
        capture_output=True,
        check=False,
    )
    assert refused.returncode
    assert b"is no secret" in refused.stderr
