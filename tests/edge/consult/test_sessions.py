"""Agents that consult other models through the bridge of their session."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from tests.acceptance.conftest import PATIENCE_S, Home, until
from tests.edge.consult.conftest import KEY, Consulting
from tests.edge.consult.provider import hangs, says
from tests.edge.mcp.conftest import BRIDGE, Host, left_by, lines
from tests.edge.web.conftest import listens

INTRODUCED: tuple[dict[str, Any], ...] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
)
LISTED: dict[str, Any] = {"id": 2, "method": "tools/list"}
CONSULTED = {"omega_consult", "omega_route", "omega_consult_gpt", "omega_consult_claude"}


@pytest.fixture
def host(consulting: Consulting) -> Iterator[Host]:
    host = Host(Home(consulting.home))
    try:
        yield host
    finally:
        host.kill_daemon()
        for pid in left_by(host.home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def names(answer: dict[str, Any]) -> set[str]:
    return {tool["name"] for tool in answer["result"]["tools"]}


def test_without_a_model_there_are_no_tools_for_it(host: Host, consulting: Consulting) -> None:
    with_models = names(host.say(*INTRODUCED, LISTED)[1])
    for configured in ("", "[consult]\n", "[consult.models]\n", "consult = 3", "[consult", "model = 'none'"):
        (consulting.home / "config.toml").write_text(configured)
        assert with_models - names(host.say(*INTRODUCED, LISTED)[1]) == CONSULTED, configured
    assert with_models >= CONSULTED


def test_a_tool_that_is_not_offered_is_none(host: Host, consulting: Consulting) -> None:
    (consulting.home / "config.toml").unlink()
    host.home.start()
    assert (
        "no tool" in host.say(*INTRODUCED, call(3, "omega_consult", question="why?"))[1]["error"]["message"]
    )


async def test_an_agent_asks_and_has_the_answer_remembered(host: Host, consulting: Consulting) -> None:
    host.home.start()
    consulting.provider.turns += [says(f"One writer; ordering is free then. {KEY}"), says("Unasked.")]
    command = StdioServerParameters(command=sys.executable, args=["-I", "-S", str(BRIDGE)], env=host.environ)
    async with stdio_client(command) as (received, sent), ClientSession(received, sent) as session:
        await session.initialize()
        listed = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert listed["omega_consult"].input_schema["properties"]["model"]["enum"] == ["gpt", "claude"]
        assert "gpt (debugging Python, SQL)" in str(listed["omega_consult"].description)
        routed = await session.call_tool("omega_route", {"task": "debug this Python traceback"})
        assert "gpt: it is said to be good at debugging Python." in str(routed.content)
        asked = {"question": "One writer, or several?", "model": "claude", "store": True}
        answer = await session.call_tool("omega_consult", asked)
        assert not answer.is_error
        assert "Stored as mem-" in str(answer.content)
        await session.call_tool("omega_consult", asked | {"store": False})
    (stored,) = (event["data"] for event in host.home.events() if event["tag"].startswith("memory.stored"))
    memory = host.home.call("memory.get", memory_id=stored["memory_id"])
    assert (memory["event_type"], memory["source"], memory["project"]) == (
        "decision",
        "cross_model_consult",
        "shop",
    )
    assert memory["metadata"]["source"] == "cross_model_consult"
    assert "One writer; ordering is free then. [REDACTED:key]" in memory["content"]
    assert consulting.files_with("ordering is free then")
    assert consulting.files_with(KEY) == []


def test_what_cannot_be_remembered_is_answered_all_the_same(
    consulting: Consulting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.edge.consult.__main__.STARTING_S", 0.0)
    told = consulting.asks(store=True)
    assert 'Not stored: "no omegad answers on' in told
    assert "It depends." in told


def test_other_calls_are_answered_meanwhile_and_one_that_is_cancelled_ends(
    host: Host, consulting: Consulting
) -> None:
    host.home.start()
    consulting.provider.turns += [hangs]
    bridge = subprocess.Popen(
        [sys.executable, "-I", "-S", str(BRIDGE)],
        env=host.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert bridge.stdin
    assert bridge.stdout
    with bridge:
        bridge.stdin.write(lines([*INTRODUCED, call(3, "omega_consult", question="why?", model="gpt")]))
        bridge.stdin.write(lines([call(4, "omega_stats")]))
        bridge.stdin.flush()
        assert json.loads(bridge.stdout.readline())["id"] == 1
        assert json.loads(bridge.stdout.readline())["id"] == 4
        assert consulting.provider.is_asked.wait(60)
        (asking,) = (pid for pid in left_by(host.home) if "omegad.edge.consult" in command_of(pid))
        bridge.stdin.write(lines([{"method": "notifications/cancelled", "params": {"requestId": 3}}]))
        bridge.stdin.flush()
        until(lambda: not command_of(asking))
        bridge.stdin.close()
        assert bridge.stdout.read() == b""
        assert bridge.wait(60) == 0


def test_a_host_that_ignores_the_ends_of_processes_is_served_as_well(host: Host) -> None:
    host.home.start()
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(BRIDGE)],
        input=lines([*INTRODUCED, call(3, "omega_consult", question="why?", model="gpt")]),
        env=host.environ,
        capture_output=True,
        check=False,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )
    assert done.returncode == 0, done.stderr
    assert "It depends." in json.loads(done.stdout.splitlines()[1])["result"]["content"][0]["text"]


def test_a_session_that_ends_ends_what_it_asked(host: Host, consulting: Consulting) -> None:
    host.home.start()
    consulting.provider.turns += [hangs]
    shortly = "import sys; sys.path.append(sys.argv[1]); from omegad.edge.mcp import pipe; pipe.LAST_WORDS_S = 2.0; pipe.main()"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", shortly, str(BRIDGE.parents[1])],
        input=lines([*INTRODUCED, call(3, "omega_consult", question="why?", model="gpt")]),
        env=host.environ,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
    assert not [pid for pid in left_by(host.home) if "omegad.edge.consult" in command_of(pid)]


def test_a_bridge_without_models_loads_nothing_for_them(host: Host, consulting: Consulting) -> None:
    loaded = "import sys; sys.path.append(sys.argv[1]); from omegad.edge.mcp import pipe; pipe.main(); print(*sys.modules, file=sys.stderr)"

    def modules() -> set[str]:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", loaded, str(BRIDGE.parents[1])],
            input=lines([*INTRODUCED, LISTED]),
            env=host.environ,
            capture_output=True,
            check=True,
            timeout=60,
        )
        return set(done.stderr.decode().split())

    more = {"omegad.edge.consult", "omegad.edge.consult.offering", "tomllib"}
    with_models = modules()
    assert with_models >= more
    assert {name for name in with_models if name.startswith("omegad.edge.consult")} <= more
    (consulting.home / "config.toml").write_text("model = 'none'")
    assert modules() & more == set()


def test_a_daemon_starts_with_models_and_reads_no_key(host: Host, consulting: Consulting) -> None:
    consulting.key_file.unlink()
    host.home.start()
    assert host.home.call("system.status")["embedding"]["state"] == "absent"
    assert "cannot be read: No such file" in consulting.fails()


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:
        return ""


async def test_over_http_the_same_tools_are_listed_and_called(host: Host, consulting: Consulting) -> None:
    with served(host) as (url, headers):
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as asking,
            Client(streamable_http_client(url, http_client=asking)) as client,
        ):
            assert {tool.name for tool in (await client.list_tools()).tools} >= CONSULTED
            question = {"question": "One writer, or several?", "store": True}
            answer = await client.call_tool("omega_consult_gpt", question)
            assert (answer.is_error, len(consulting.provider.heard)) == (False, 1)
            routed = await client.call_tool("omega_route", {"task": "debugging of Python"})
            assert "gpt" in text_of(routed)
            late = await client.call_tool("omega_consult", {"question": "?", "model": "none"})
            assert "What to do: " in text_of(late)
            (host.home.path / "config.toml").write_text("")
            assert not {tool.name for tool in (await client.list_tools()).tools} & CONSULTED
    (kept,) = host.home.call("memory.list", event_types=["decision"])["memories"]
    assert host.home.call("memory.get", memory_id=kept["memory_id"])["source"] == "cross_model_consult"
    assert consulting.files_with(KEY) == []


def text_of(answer: CallToolResult) -> str:
    return "\n".join(part.text for part in answer.content if isinstance(part, TextContent))


@contextmanager
def served(host: Host) -> Iterator[tuple[str, dict[str, str]]]:
    """Serve MCP over HTTP; return where, and the headers that show the token."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "omegad", "web"]
    config = host.home.paths.config
    config.write_text(f'web = ["mcp"]\n{config.read_text(encoding="utf-8")}', encoding="utf-8")
    token = subprocess.run([*command, "--token"], env=host.environ, capture_output=True, check=True).stdout
    with subprocess.Popen([*command, "--port", str(port)], env=host.environ) as process:
        try:
            until(lambda: listens(port))
            yield f"http://127.0.0.1:{port}/mcp", {"Authorization": f"Bearer {token.decode().strip()}"}
        finally:
            process.terminate()
        assert process.wait(PATIENCE_S) == 0
