"""Sessions over the bridge and the gateway, as a host has them."""

import asyncio
import os
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from mcp import Client, ClientSession
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp.types import ListRootsResult, Root, TextContent
from pydantic import FileUrl

from omegad import __version__
from omegad.agents.tools.calling import TOOLS
from omegad.edge.cli.starting import is_alive
from omegad.edge.mcp import pipe as mcp_bridge
from tests.acceptance.conftest import until
from tests.mcp.conftest import PROJECT, Host

ANSWER_CHARACTERS = 1_000
ROOT = Path(__file__).parents[2]
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("omega_store", {"content": "Deploys are blue-green, because rollbacks must take seconds", "event_type": "decision", "tags": ["deploy"]}),
    ("omega_query", {"query": "how do we deploy?"}),
    ("omega_welcome", {}),
    ("omega_protocol", {"section": "memory"}),
    ("omega_lessons", {"topic": "deploys"}),
    ("omega_checkpoint", {"task": "move billing", "progress": "schema done", "next_steps": ["backfill"], "files_touched": ["billing.py"]}),
    ("omega_resume_task", {}),
    ("omega_profile", {"action": "update", "update": {"editor": "vim"}}),
    ("omega_remind", {"action": "add", "content": "rotate the keys", "due": "2030-01-31"}),
    ("omega_maintain", {"action": "consolidate"}),
    ("omega_stats", {}),
    ("omega_reflect", {"action": "evolution", "topic": "deploys"}),
    ("omega_thesis", {"action": "state", "statement": "blue-green deploys stay cheap enough", "domain": "operations", "probability": 0.8}),
    ("omega_coord", {"action": "task_create", "text": "move billing"}),
)


ABOUT = b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}'
NOTED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
CODEX: Any = {"sessionId": "s-2", "threadId": "t-1"}


async def call(session: ClientSession, name: str, **arguments: Any) -> Any:
    """Call a tool that does what it is asked, and return its fields, or its text where that is all; both are short."""
    answer = await session.call_tool(name, arguments)
    assert not answer.is_error, answer.content
    (part,) = answer.content
    assert isinstance(part, TextContent)
    assert 0 < len(part.text) <= ANSWER_CHARACTERS
    assert len(str(answer.structured_content)) <= ANSWER_CHARACTERS
    return answer.structured_content or part.text


async def test_the_official_client_lists_and_calls_every_tool(host: Host) -> None:
    async with host.session() as session:
        listed = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(listed) == set(TOOLS)
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in listed.values())
        answers = {name: await call(session, name, **arguments) for name, arguments in CALLS}
        stored = answers["omega_store"]["memory_id"]
        assert (await call(session, "omega_memory", action="get", memory_id=stored))["content"] == CALLS[0][1]["content"]
        assert {name for name, _ in CALLS} | {"omega_memory"} == set(TOOLS)
        assert answers["omega_query"]["results"][0]["id"] == stored
        assert stored in answers["omega_welcome"]
        assert "backfill" in answers["omega_resume_task"]["content"]
        await call(session, "omega_coord", action="claim", paths=["src/a.py"])
        assert f"{PROJECT}/src/a.py" in (await call(session, "omega_coord", action="claims"))["claims"][0]["name"]
    assert host.home.call("memory.get", memory_id=stored)["project"] == PROJECT.rpartition("/")[2]
    assert {event["client"] for event in host.home.events() if event["tag"] == "memory.stored@2"} == {"mcp"}


def test_the_bridge_greets_as_the_gateway_does(host: Host) -> None:
    for version in ("2025-11-25", "2024-11-05", "1999-01-01"):
        about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        said: list[dict[str, Any]] = [
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": "b", "method": "tools/list"},
        ]
        greeted = host.say(*said)
        until(lambda: bool(host.gateway) and host.home.paths.gateway.exists())
        assert greeted == host.ask_gateway(*said)
        assert [message["id"] for message in greeted] == [1, "b"]
        assert len(greeted[1]["result"]["tools"]) == len(TOOLS)


async def test_the_revision_without_a_handshake_is_spoken_too(host: Host) -> None:
    async with Client(stdio_client(host.command())) as client:
        assert client.protocol_version == "2026-07-28"
        assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS)
        answer = await client.call_tool("omega_store", {"content": "alpha"})
        assert host.home.call("memory.get", memory_id=answer.structured_content["memory_id"])["project"] == PROJECT.rpartition("/")[2]


async def test_the_project_is_the_first_root_where_the_host_names_none(host: Host) -> None:
    async def roots(_: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl("file:///src/my%20shop"))])

    del host.environ["CLAUDE_PROJECT_DIR"]
    async with host.session(list_roots_callback=roots) as session:
        stored = await call(session, "omega_store", content="alpha")
    assert host.home.call("memory.get", memory_id=stored["memory_id"])["project"] == "my shop"


async def test_a_memory_is_of_the_session_that_the_host_names_in_its_environment_or_with_the_call(host: Host) -> None:
    host.environ["CLAUDE_CODE_SESSION_ID"] = "s-1"
    async with host.session() as session:
        named = [
            await session.call_tool("omega_store", {"content": f"{word} is first"}, meta=meta) for word, meta in (("alpha", None), ("beta", CODEX))
        ]
    ids = [answer.structured_content["memory_id"] for answer in named]
    assert [host.home.call("memory.get", memory_id=one)["session_id"] for one in ids] == ["s-1", "s-2"]


async def test_ten_sessions_at_once_share_one_gateway_that_ends_when_nobody_needs_it(host: Host) -> None:
    host.environ["OMEGAD_GATEWAY_IDLE_S"] = "0.5"

    async def one(number: int) -> str:
        async with host.session() as session:
            stored = await call(session, "omega_store", content=f"fact {number} is about {'abcdefghij'[number]}{number}")
            assert host.gateway
            return str(stored["memory_id"])

    assert len(set(await asyncio.gather(*map(one, range(10))))) == 10
    until(lambda: not host.gateway)
    assert len([event for event in host.home.events() if event["tag"] == "memory.stored@2"]) == 10


async def test_after_an_upgrade_the_next_session_has_a_new_gateway_and_daemon_and_those_before_go_on(host: Host, tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    for name in ("omegad", "projections"):
        shutil.copytree(ROOT / name, newer / name, ignore=shutil.ignore_patterns("greeting.json"))  # it says the older version
    init = newer / "omegad" / "__init__.py"
    init.write_text(init.read_text(encoding="utf-8").replace(__version__, "99.0.0"), encoding="utf-8")
    async with host.session() as before:
        await call(before, "omega_stats")
        first = host.gateway
        async with Host(host.home, newer / "omegad" / "mcp_bridge.py").session() as after:
            assert (await call(after, "omega_stats"))["version"] == "99.0.0"
            assert host.gateway not in {0, first}
            assert (await call(before, "omega_stats"))["version"] == "99.0.0"
            assert is_alive(first)
    until(lambda: not is_alive(first))
    async with host.session() as late:  # of the older one, which the newer one serves
        assert (await call(late, "omega_stats"))["version"] == "99.0.0"


async def test_a_session_outlives_its_gateway_and_its_daemon(host: Host) -> None:
    async with host.session() as session:
        first = (await call(session, "omega_store", content="alpha is the first"))["memory_id"]
        host.kill_gateway()
        log = host.home.paths.gateway_log
        log.write_text("its last words\n")
        answer = await session.call_tool("omega_memory", {"action": "get", "memory_id": first})
        assert not answer.is_error or "call again" in str(answer.content)  # it came before the end was noticed
        assert (await call(session, "omega_memory", action="get", memory_id=first))["content"] == "alpha is the first"
        assert log.with_name("gateway.log.1").read_text() == "its last words\n"
        assert log.stat().st_mode & 0o777 == 0o600
        await anyio.run_process([sys.executable, "-m", "omegad", "stop"], env=host.environ)
        assert (await call(session, "omega_memory", action="get", memory_id=first))["content"] == "alpha is the first"


async def test_a_call_that_a_gateway_dies_of_is_made_again_and_stores_once(host: Host) -> None:
    async with host.session() as session:
        await call(session, "omega_stats")
        first = host.gateway
        daemon = int(host.home.paths.lock.read_text())
        os.kill(daemon, signal.SIGSTOP)  # so that the call stays unanswered
        try:
            asked = asyncio.create_task(call(session, "omega_store", content="alpha is the first"))
            await asyncio.sleep(0.3)  # so that the daemon will find it
            host.kill_gateway()
            await asyncio.to_thread(until, lambda: host.gateway not in {0, first})
        finally:
            os.kill(daemon, signal.SIGCONT)
        assert (await asked)["outcome"] == "stored"
    assert [event["tag"] for event in host.home.events()].count("memory.stored@2") == 1


async def test_what_goes_wrong_in_a_tool_is_an_answer_and_a_tool_that_there_is_not_an_error(host: Host) -> None:
    async with host.session() as session:
        answer = await session.call_tool("omega_store", {"content": "x", "colour": "red"})
        assert answer.is_error
        assert "colour" in answer.content[0].text  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="the tools are omega_"):
            await session.call_tool("omega_fly", {})


def test_lines_that_cannot_be_read_are_answered_and_the_session_goes_on(host: Host) -> None:
    deep = b"[" * 5_000 + b"]" * 5_000
    call = b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"omega_store","arguments":{"content":"%s"}}}'
    lines = [
        call % (b"long", b"x" * (17 << 20)),
        b"x" * (17 << 20),
        b"nonsense",
        b'{"jsonrpc":"2.0","id":"deep","method":"a","params":{"x":%s}}' % deep,
        b'{"jsonrpc":"2.0","id":5,"method":7}',
        b'{"jsonrpc":"2.0","id":6,"method":[]}',
        b'{"id":7,"method":"initialize","params":[]}',
        b"[]",
        b"7",
        call % (b"cut", b"cut in an emoji \\ud83d"),
        call % (b"bytes", b"cut in its bytes \xed\xa0\xbd"),
    ]
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    introduced = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}), NOTED
    answers = host.say_lines(*introduced, *lines)
    errors = sorted((str(answer["id"]), answer["error"]["code"]) for answer in answers if "error" in answer)
    assert errors == [("5", -32600), ("6", -32600), ("7", -32600), ("None", -32700), *[("None", -32600)] * 3, ("deep", -32700), ("long", -32600)]
    stored = [answer["result"]["structuredContent"]["memory_id"] for answer in answers if answer["id"] in {"cut", "bytes"}]
    contents = {host.home.call("memory.get", memory_id=one)["content"] for one in stored}
    assert contents == {"cut in an emoji \N{REPLACEMENT CHARACTER}", "cut in its bytes \N{REPLACEMENT CHARACTER}"}


def test_requests_whose_ids_cannot_be_ids_are_answered_and_nothing_waits_for_them(host: Host) -> None:
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    introduced = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}), NOTED
    began = time.monotonic()
    answers = host.say_lines(*introduced, *(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % number for number in (b"1.5", b"null", b"true", b"{}")))
    assert [(one["id"], one.get("error", {}).get("code")) for one in answers] == [(1, None), *[(None, -32600)] * 4]
    assert time.monotonic() - began < mcp_bridge.LAST_WORDS_S


def test_a_line_whose_id_is_no_json_either_is_answered_under_none(host: Host) -> None:
    ids = [b'"\xc3("', b'"\xff"', b'"a\x01b"', b"007", b"-", b'"cut \xed\xa0\xbd"']
    broken = [b'{"jsonrpc":"2.0","id":%s,"method":"ping",}' % number for number in ids]
    long = [b'{"jsonrpc":"2.0","id":%s,"method":"%s"}' % (number, b"x" * (17 << 20)) for number in ids[:4]]
    said = host.say_lines(*broken, *long, b'{"jsonrpc":"2.0","id":"after","method":"ping"}')
    assert [answer["id"] for answer in said if "error" in answer] == [None] * (len(broken) + len(long) - 1) + ["cut \N{REPLACEMENT CHARACTER}"]
    assert [answer["id"] for answer in said if "result" in answer] == ["after"]


def test_whoever_introduces_itself_wrongly_is_answered_and_the_session_goes_on(host: Host) -> None:
    cases: list[tuple[bytes, dict[object, str]]] = [
        (b'"id":{},"params":' + ABOUT, {}),
        (b'"params":' + ABOUT, {}),
        (b'"id":1.5,"params":' + ABOUT, {}),
        (b'"id":7,"params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":"x"}', {7: "error"}),
        (b'"id":7,"params":{"protocolVersion":5,"capabilities":null}', {7: "error"}),
        (b'"id":"\\ud800","params":' + ABOUT, {"\N{REPLACEMENT CHARACTER}": "result"}),
    ]
    for introduction, answered in cases:
        lists = (b'{"jsonrpc":"2.0","id":%s,"method":"tools/list"}' % number for number in (b"NaN", b"1e400", b"[]"))
        introduced = b'{"jsonrpc":"2.0","method":"initialize",' + introduction + b"}"
        said = host.say_lines(introduced, *lists, b'{"jsonrpc":"2.0","id":"after","method":"ping"}')
        told = {answer["id"]: "result" if "result" in answer else "error" for answer in said}
        assert told == {None: "error", **answered, "after": "result"}, introduction


def test_a_host_that_repeats_itself_leaves_nothing_with_the_bridge() -> None:
    bridge = mcp_bridge.Bridge({})
    bridge._greeting = mcp_bridge.greeting()  # as to who has introduced itself
    for _ in range(50):
        bridge._take(NOTED)
    assert len(bridge._introduction) <= 2


def test_a_host_is_told_why_no_gateway_answers(host: Host) -> None:
    host.home.path.chmod(0o755)
    bridge = host.bridge({"id": 1, "method": "tools/call", "params": {"name": "omega_stats"}})
    assert bridge.returncode == 1
    assert b"open to other users" in bridge.stdout
    assert b"open to other users" in bridge.stderr


def test_a_gateway_that_ends_as_it_is_connected_to_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    monkeypatch.setattr(mcp_bridge, "connect", lambda _path: ours)
    assert mcp_bridge.introduced("gateway.socket", b"{}\n") is None
    assert ours.fileno() == -1
