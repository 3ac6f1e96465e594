"""Sessions over the bridge, as a host has them."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from mcp import Client, ClientSession
from mcp.client.stdio import stdio_client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import (
    CallToolResult,
    ListRootsResult,
    ListToolsResult,
    Root,
    TextContent,
    jsonrpc_message_adapter,
)
from pydantic import FileUrl

from omegad import __version__
from omegad.catalog.tools import TOOLS
from omegad.edge.mcp import messages as mcp_messages
from omegad.edge.mcp import pipe as mcp_bridge
from tests.acceptance.conftest import until
from tests.edge.mcp.conftest import PROJECT, Host, left_by, lines

ANSWER_CHARACTERS = 1_000
ROOT = Path(__file__).parents[3]
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "omega_store",
        {
            "content": "Deploys are blue-green, because rollbacks must take seconds",
            "event_type": "decision",
            "tags": ["deploy"],
        },
    ),
    ("omega_query", {"query": "how do we deploy?"}),
    ("omega_welcome", {}),
    ("omega_protocol", {"section": "memory"}),
    ("omega_lessons", {"topic": "deploys"}),
    (
        "omega_checkpoint",
        {
            "task": "move billing",
            "progress": "schema done",
            "next_steps": ["backfill"],
            "files_touched": ["billing.py"],
        },
    ),
    ("omega_resume_task", {}),
    ("omega_profile", {"action": "update", "update": {"editor": "vim"}}),
    ("omega_remind", {"action": "add", "content": "rotate the keys", "due": "2030-01-31"}),
    ("omega_maintain", {"action": "consolidate"}),
    ("omega_stats", {}),
    ("omega_reflect", {"action": "evolution", "topic": "deploys"}),
    (
        "omega_thesis",
        {
            "action": "state",
            "statement": "blue-green deploys stay cheap enough",
            "domain": "operations",
            "probability": 0.8,
        },
    ),
    ("omega_coord", {"action": "task_create", "text": "move billing"}),
)


SOON = """
import sys
sys.path.append(sys.argv[1])
from omegad.edge.mcp import pipe
pipe.CALL_S = 2.0
pipe.main()
"""
"""A bridge that waits for a call no longer than that."""
ABOUT = b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}'
NOTED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
CODEX: Any = {"sessionId": "s-2", "threadId": "t-1"}


async def call(session: ClientSession, name: str, **arguments: Any) -> Any:
    """Call a tool that does what it is asked, and return its fields, or its text where that is all; both
    are short.
    """
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
        assert (await call(session, "omega_memory", action="get", memory_id=stored))["content"] == CALLS[0][
            1
        ]["content"]
        assert {name for name, _ in CALLS} | {"omega_memory"} == set(TOOLS)
        assert answers["omega_query"]["results"][0]["id"] == stored
        assert stored in answers["omega_welcome"]
        assert "backfill" in answers["omega_resume_task"]["content"]
        await call(session, "omega_coord", action="claim", paths=["src/a.py"])
        assert (
            f"{PROJECT}/src/a.py"
            in (await call(session, "omega_coord", action="claims"))["claims"][0]["name"]
        )
    assert host.home.call("memory.get", memory_id=stored)["project"] == PROJECT.rpartition("/")[2]
    assert {event["client"] for event in host.home.events() if event["tag"] == "memory.stored@2"} == {"mcp"}


def said(number: object, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def begun(version: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    return said(1, "initialize", protocolVersion=version, capabilities=capabilities, clientInfo=client)


def enveloped(number: object, method: str, *, without: str = "", **params: Any) -> dict[str, Any]:
    envelope = {"protocolVersion": "2026-07-28", "clientInfo": {"name": "x", "version": "1"}}
    envelope["clientCapabilities"] = {}
    meta = {f"io.modelcontextprotocol/{name}": one for name, one in envelope.items() if name != without}
    return said(number, method, **{"_meta": meta, **params})


REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ping", {}),
    ("ping", {"_meta": 5}),
    ("tools/list", {}),
    ("tools/list", {"cursor": "x"}),
    ("tools/list", {"cursor": 5}),
    ("resources/list", {}),
    ("prompts/list", {}),
    ("logging/setLevel", {"level": "info"}),
    ("server/discover", {}),
    ("subscriptions/listen", {"notifications": {}}),
    ("notifications/initialized", {}),
    ("fly", {}),
    ("tools/call", {}),
    ("tools/call", {"name": 5}),
    ("tools/call", {"name": "omega_remind", "arguments": []}),
    ("tools/call", {"name": "omega_remind", "arguments": None}),
    ("tools/call", {"name": "omega_remind", "_meta": {"progressToken": []}}),
)
"""Each is asked in every revision, before and after a handshake."""


async def by_the_sdk(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the official SDK answers, with the tools that the bridge has, none of which does
    anything.
    """
    told = mcp_messages.greeting()

    async def list_tools(*_unused: Any) -> ListToolsResult:
        return ListToolsResult.model_validate(told["tools/list"])

    async def call_tool(*_unused: Any) -> CallToolResult:
        return CallToolResult(content=[])

    introduced = told["initialize"]
    server = Server(
        "omegad",
        version=introduced["serverInfo"]["version"],
        instructions=introduced["instructions"],
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    send, received = anyio.create_memory_object_stream[SessionMessage | Exception](100)
    sent, answers = anyio.create_memory_object_stream[SessionMessage](100)
    for message in messages:
        send.send_nowait(SessionMessage(jsonrpc_message_adapter.validate_python(message, by_name=False)))
    got = list[Any]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, received, sent, server.create_initialization_options())
        got += [(await answers.receive()).message for _ in messages]
        send.close()
    for stream in (received, sent, answers):
        stream.close()
    return [one.model_dump(by_alias=True, mode="json", exclude_none=True) for one in got]


def by_the_bridge(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a session answers without a daemon, calls as if they had done nothing."""
    session, answers = mcp_messages.Session(), list[dict[str, Any]]()
    for message in messages:
        read = mcp_messages.read(msgspec.json.encode(message))
        assert read
        try:
            result = session.result_of(read)
        except mcp_messages.Refusal as refusal:
            answers.append({"jsonrpc": "2.0", **refusal.answer})
        else:
            done = session.finished({"content": [], "isError": False})
            answers.append(
                {"jsonrpc": "2.0", "id": message["id"], "result": done if result is None else result}
            )
    return answers


async def test_the_bridge_answers_as_the_sdk_does() -> None:
    each = [said(number, method, **params) for number, (method, params) in enumerate(REQUESTS, 10)]
    anew = [enveloped(number, method, **params) for number, (method, params) in enumerate(REQUESTS, 10)]
    for session in (
        *([begun(version), *each, anew[2]] for version in ("2025-11-25", "2025-03-26", "2024-11-05", "1999")),
        each,
        [each[0], begun(), *each],
        [said(1, "initialize"), said(2, "initialize", protocolVersion=5), each[0], each[2]],
        anew,
        [anew[2], begun(), said(2, "initialize"), each[0], *(enveloped(one, "fly") for one in (3, "4"))],
        [anew[2], *(enveloped(3, "tools/list", without=one) for one in ("clientInfo", "clientCapabilities"))],
        [anew[2], enveloped(3, "tools/list", without="protocolVersion")],
    ):
        answers = sorted(by_the_bridge(session), key=repr)
        assert answers == sorted(await by_the_sdk(session), key=repr)


async def test_the_revision_without_a_handshake_is_spoken_too(host: Host) -> None:
    async with Client(stdio_client(host.command())) as client:
        assert client.protocol_version == "2026-07-28"
        assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS)
        answer = await client.call_tool("omega_store", {"content": "alpha"})
        assert (
            host.home.call("memory.get", memory_id=answer.structured_content["memory_id"])["project"]
            == PROJECT.rpartition("/")[2]
        )


async def test_the_project_is_the_first_root_where_the_host_names_none(host: Host) -> None:
    async def roots(_: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl("file:///src/my%20shop"))])

    del host.environ["CLAUDE_PROJECT_DIR"]
    async with host.session(list_roots_callback=roots) as session:
        stored = await call(session, "omega_store", content="alpha")
    assert host.home.call("memory.get", memory_id=stored["memory_id"])["project"] == "my shop"


async def test_a_memory_is_of_the_session_that_the_host_names_in_its_environment_or_with_the_call(
    host: Host,
) -> None:
    host.environ["CLAUDE_CODE_SESSION_ID"] = "s-1"
    async with host.session() as session:
        named = [
            await session.call_tool("omega_store", {"content": f"{word} is first"}, meta=meta)
            for word, meta in (("alpha", None), ("beta", CODEX))
        ]
    ids = [answer.structured_content["memory_id"] for answer in named]
    assert [host.home.call("memory.get", memory_id=one)["session_id"] for one in ids] == ["s-1", "s-2"]


async def test_ten_sessions_at_once_start_one_daemon_and_nothing_else(host: Host) -> None:
    async def one(number: int) -> str:
        async with host.session() as session:
            stored = await call(
                session, "omega_store", content=f"fact {number} is about {'abcdefghij'[number]}{number}"
            )
            return str(stored["memory_id"])

    assert len(set(await asyncio.gather(*map(one, range(10))))) == 10
    until(lambda: list(left_by(host.home)) == [host.daemon])
    assert len([event for event in host.home.events() if event["tag"] == "memory.stored@2"]) == 10


async def test_after_an_upgrade_the_next_session_has_a_new_daemon_and_those_before_go_on(
    host: Host, tmp_path: Path
) -> None:
    newer = tmp_path / "newer"
    for name in ("omegad", "projections", "systemd", "launchd"):
        shutil.copytree(
            ROOT / name, newer / name, ignore=shutil.ignore_patterns("greeting.json")
        )  # it says the older version
    init = newer / "omegad" / "__init__.py"
    init.write_text(init.read_text(encoding="utf-8").replace(__version__, "99.0.0"), encoding="utf-8")
    async with host.session() as before:
        await call(before, "omega_stats")
        first = host.daemon
        async with Host(host.home, newer / "omegad" / "mcp_bridge.py").session() as after:
            assert (await call(after, "omega_stats"))["version"] == "99.0.0"
            assert host.daemon not in {0, first}
            assert (await call(before, "omega_stats"))["version"] == "99.0.0"
    async with host.session() as late:  # of the older one, which the newer one serves
        assert (await call(late, "omega_stats"))["version"] == "99.0.0"


async def test_a_session_outlives_its_daemon(host: Host) -> None:
    async with host.session() as session:
        first = (await call(session, "omega_store", content="alpha is the first"))["memory_id"]
        for end in (host.kill_daemon, partial(host.home.call, "system.shutdown")):
            await asyncio.to_thread(end)
            assert (await call(session, "omega_memory", action="get", memory_id=first))[
                "content"
            ] == "alpha is the first"


async def test_a_call_that_a_daemon_dies_of_is_made_again_and_stores_once(host: Host) -> None:
    async with host.session() as session:
        await call(session, "omega_stats")
        first = host.daemon
        os.kill(first, signal.SIGSTOP)  # so that the call stays unanswered
        asked = asyncio.create_task(call(session, "omega_store", content="alpha is the first"))
        await asyncio.sleep(0.3)  # so that the daemon has got it
        host.kill_daemon()
        assert (await asked)["outcome"] == "stored"
        assert host.daemon not in {0, first}
    assert [event["tag"] for event in host.home.events()].count("memory.stored@2") == 1


def test_a_call_that_was_done_and_is_made_again_answers_as_it_did_then(host: Host) -> None:
    told = [
        host.say(begun(), said("a", "tools/call", **CALL, _meta={"claudecode/toolUseId": "use-1"}))[-1][
            "result"
        ]
        for CALL in [{"name": "omega_store", "arguments": {"content": "alpha is the first"}}] * 2
    ]
    assert told[0] == told[1]
    assert told[0]["structuredContent"]["outcome"] == "stored"


def test_a_call_that_is_cancelled_is_not_answered_and_one_that_takes_too_long_is_told_so(host: Host) -> None:
    host.say(begun(), said(2, "tools/call", name="omega_stats"))
    daemon = host.daemon
    os.kill(daemon, signal.SIGSTOP)
    try:
        command = [sys.executable, "-I", "-S", "-c", SOON, str(ROOT)]
        bridge = subprocess.Popen(command, stdin=-1, stdout=-1, env=host.environ)
        assert bridge.stdin
        assert bridge.stdout
        store = {"name": "omega_store", "arguments": {"content": "alpha is the first"}}
        bridge.stdin.write(
            lines(
                [
                    begun(),
                    said(2, "tools/call", **store),
                    said(3, "tools/call", **store),
                    {"method": "notifications/cancelled", "params": {"requestId": 2}},
                    said(4, "ping"),
                ]
            )
        )
        bridge.stdin.flush()
        told = [msgspec.json.decode(bridge.stdout.readline()) for _ in range(3)]
    finally:
        os.kill(daemon, signal.SIGCONT)
    assert [one["id"] for one in told] == [1, 4, 3]
    assert told[-1]["result"]["isError"]
    assert "did not answer within" in told[-1]["result"]["content"][0]["text"]
    bridge.stdin.close()
    assert bridge.stdout.read() == b""
    assert bridge.wait() == 0
    bridge.stdout.close()


async def test_what_goes_wrong_in_a_tool_is_an_answer_and_a_tool_that_there_is_not_an_error(
    host: Host,
) -> None:
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
    about = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    introduced = (
        msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}),
        NOTED,
    )
    answers = host.say_lines(*introduced, *lines)
    errors = sorted((str(answer["id"]), answer["error"]["code"]) for answer in answers if "error" in answer)
    assert errors == [
        ("5", -32600),
        ("6", -32600),
        ("7", -32600),
        ("None", -32700),
        *[("None", -32600)] * 3,
        ("deep", -32700),
        ("long", -32600),
    ]
    stored = [
        answer["result"]["structuredContent"]["memory_id"]
        for answer in answers
        if answer["id"] in {"cut", "bytes"}
    ]
    contents = {host.home.call("memory.get", memory_id=one)["content"] for one in stored}
    assert contents == {
        "cut in an emoji \N{REPLACEMENT CHARACTER}",
        "cut in its bytes \N{REPLACEMENT CHARACTER}",
    }


def test_requests_whose_ids_cannot_be_ids_are_answered_and_nothing_waits_for_them(host: Host) -> None:
    about = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    introduced = (
        msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}),
        NOTED,
    )
    began = time.monotonic()
    answers = host.say_lines(
        *introduced,
        *(
            b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % number
            for number in (b"1.5", b"null", b"true", b"{}")
        ),
    )
    assert [(one["id"], one.get("error", {}).get("code")) for one in answers] == [
        (1, None),
        *[(None, -32600)] * 4,
    ]
    assert time.monotonic() - began < mcp_bridge.LAST_WORDS_S


def test_a_line_whose_id_is_no_json_either_is_answered_under_none(host: Host) -> None:
    ids = [b'"\xc3("', b'"\xff"', b'"a\x01b"', b"007", b"-", b'"cut \xed\xa0\xbd"']
    broken = [b'{"jsonrpc":"2.0","id":%s,"method":"ping",}' % number for number in ids]
    long = [b'{"jsonrpc":"2.0","id":%s,"method":"%s"}' % (number, b"x" * (17 << 20)) for number in ids[:4]]
    said = host.say_lines(*broken, *long, b'{"jsonrpc":"2.0","id":"after","method":"ping"}')
    refused = [answer["id"] for answer in said if "error" in answer]
    assert refused == [*[None] * (len(broken) - 1), "cut \N{REPLACEMENT CHARACTER}", *[None] * len(long)]
    assert [answer["id"] for answer in said if "result" in answer] == ["after"]


def test_whoever_introduces_itself_wrongly_is_answered_and_the_session_goes_on(host: Host) -> None:
    cases: list[tuple[bytes, dict[object, str]]] = [
        (b'"id":{},"params":' + ABOUT, {}),
        (b'"params":' + ABOUT, {}),
        (b'"id":1.5,"params":' + ABOUT, {}),
        (
            b'"id":7,"params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":"x"}',
            {7: "error"},
        ),
        (b'"id":7,"params":{"protocolVersion":5,"capabilities":null}', {7: "error"}),
        (b'"id":"\\ud800","params":' + ABOUT, {"\N{REPLACEMENT CHARACTER}": "result"}),
    ]
    for introduction, answered in cases:
        lists = (
            b'{"jsonrpc":"2.0","id":%s,"method":"tools/list"}' % number
            for number in (b"NaN", b"1e400", b"[]")
        )
        introduced = b'{"jsonrpc":"2.0","method":"initialize",' + introduction + b"}"
        said = host.say_lines(introduced, *lists, b'{"jsonrpc":"2.0","id":"after","method":"ping"}')
        told = {answer["id"]: "result" if "result" in answer else "error" for answer in said}
        assert told == {None: "error", **answered, "after": "result"}, introduction


def test_a_host_is_told_why_no_daemon_answers_and_the_session_goes_on(host: Host) -> None:
    host.home.path.chmod(0o755)
    told = host.say(begun(), said(2, "tools/call", name="omega_stats"))
    host.home.path.chmod(0o700)
    assert told[1]["result"]["isError"]
    assert "open to other users" in told[1]["result"]["content"][0]["text"]


async def test_a_daemon_that_could_not_be_started_is_tried_again_with_the_next_call(host: Host) -> None:
    host.home.path.chmod(0o755)
    async with host.session() as session:
        assert (await session.call_tool("omega_stats", {})).is_error
        host.home.path.chmod(0o700)
        await call(session, "omega_stats")
