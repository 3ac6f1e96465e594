"""Calls of omegad's own tools are tool calls like others, whatever the host tells of them: each once."""

from typing import Any

import msgspec
import pytest

from omegad.coordination import session_end
from omegad.operations.remaining_files import files_that_hold
from omegad.runtime.config import Config, Paths
from omegad.session.events import ToolCalled
from tests.builders import Caller, FakeClock, Served, served

CALLED = "SELECT session_id, tool_name, status, tool_use_id, input_summary FROM coord_audit ORDER BY id"


async def called(it: Served, *, session_id: str | None, request_id: str | None, query: str) -> Any:
    return await it.caller.call(
        "tools.call",
        name="omega_query",
        arguments={"query": query},
        **{
            name: value
            for name, value in {"session_id": session_id, "request_id": request_id}.items()
            if value
        },
    )


async def hooked(caller: Caller, session_id: str, use_id: str | None, query: str, **more: object) -> Any:
    payload = {
        "session_id": session_id,
        "hook_event_name": "PostToolUse",
        "tool_name": "mcp__omegad__omega_query",
        "tool_input": {"query": query},
        "tool_response": "as it was",
        **({"tool_use_id": use_id} if use_id else {}),
        **more,
    }
    return await caller.call("hook.dispatch", event="PostToolUse", payload=payload)


async def rows(it: Served) -> list[list[object]]:
    await it.caught_up()
    return list((await it.caller.call("audit.sql", sql=CALLED))["rows"])


@pytest.mark.parametrize(
    ("said", "use_id"), [("s-1", "toolu_1"), ("s-1", None), (None, None)], ids=["claude", "codex", "unsaid"]
)
async def test_a_call_counts_once_where_a_hook_tells_of_it_too(
    paths: Paths, clock: FakeClock, said: str | None, use_id: str | None
) -> None:
    async with served(paths, clock, Config(model="none")) as it:
        await called(it, session_id=said, request_id=use_id, query="café ports")
        await hooked(it.caller, "s-1", use_id or "call-9", "café ports")
        (row,) = await rows(it)
        assert row == [said, "omega_query", "ok", use_id, '{"query":"café ports"}']
        # Another of the same words, and one that nobody but the hook tells of.
        await called(it, session_id=said, request_id=use_id and f"{use_id}-2", query="café ports")
        await hooked(it.caller, "s-1", "call-10", "something else")
        assert [row[1] for row in (await rows(it))[1:]] == ["omega_query", "mcp__omegad__omega_query"]


async def test_a_call_without_hooks_says_how_it_went_and_what_it_named(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, Config(model="none")) as it:
        agent = it.other("zed")
        kept = (await agent.call("memory.store", content="ports are " + "counted " * 300))["memory_id"]
        await agent.call("tools.call", name="omega_memory", arguments={"action": "get", "memory_id": kept})
        await agent.call(
            "tools.call", name="omega_memory", arguments={"action": "get", "memory_id": "mem-00000000"}
        )
        await it.caught_up()
        sql = (
            "SELECT session_id, call_index, status, given, returned, length(result_summary),"
            " result_bytes > 2000 FROM coord_audit ORDER BY id"
        )
        found = (await it.caller.call("audit.sql", sql=sql))["rows"]
        assert [row[:3] for row in found] == [["zed", 1, "ok"], ["zed", 2, "error"]]
        assert (found[0][3], found[0][4], found[0][6]) == (f'["{kept}"]', f'["{kept}"]', 1)


async def test_a_host_without_hooks_has_its_feedback_once_its_session_is_idle(
    paths: Paths, clock: FakeClock
) -> None:
    """What a search showed and a later call names was used."""
    async with served(paths, clock, Config(model="none")) as it:
        agent = it.other("zed")
        kept = (await agent.call("memory.store", content="The billing service listens on port 7443"))[
            "memory_id"
        ]
        await agent.call("tools.call", name="omega_query", arguments={"query": "billing service port"})
        await agent.call(
            "tools.call", name="omega_memory", arguments={"action": "history", "memory_id": kept}
        )
        await it.caught_up()
        clock.us += 3 * 3_600_000_000
        await it.expire(session_end)
        await it.caught_up()
        sql = "SELECT memory_id, reason FROM memory_feedback"
        assert (await it.caller.call("audit.sql", sql=sql))["rows"] == [[kept, "retrieval_used"]]


async def test_what_is_private_or_secret_in_a_call_is_in_no_file(paths: Paths, clock: FakeClock) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    async with served(paths, clock, Config(model="none")) as it:
        await called(
            it, session_id="s-1", request_id=None, query=f"token {secret} <private>my own pin</private>"
        )
        assert len(await rows(it)) == 1
    held = files_that_hold(paths.home, [], [secret.encode(), b"my own pin"], [], is_done=True)
    assert held == []


async def test_of_what_a_tool_was_given_and_did_there_is_the_beginning_and_each_memory_that_is_named(
    paths: Paths, clock: FakeClock
) -> None:
    sql = "SELECT status, input_summary, input_bytes, given FROM coord_audit ORDER BY id"
    named = [f"mem-{number:016x}" for number in range(64)]
    content = f"{'counted ' * 22}{' '.join(named)} and {'again ' * 400}"
    async with served(paths, clock, Config(model="none")) as it:
        for event_type in ("decision", "no such type"):
            arguments = {"content": content, "event_type": event_type}
            await it.caller.call("tools.call", name="omega_store", arguments=arguments)
        await it.caught_up()
        stored, refused = (await it.caller.call("audit.sql", sql=sql))["rows"]
        given = msgspec.json.encode({"content": content, "event_type": "decision"}).decode()
        assert [stored[0], stored[2]] == ["ok", len(given)]
        assert given.startswith(stored[1][:150])
        assert msgspec.json.decode(stored[3]) == named
        assert refused[0] == "error"
        heads = [
            recorded.event.tool_input.head
            for recorded in await it.daemon.services.log.read(0, 100)
            if isinstance(recorded.event, ToolCalled) and recorded.event.tool_input
        ]
        assert "again" not in heads[0]
        assert content in heads[1]


async def test_a_call_that_is_sent_again_says_the_same_and_counts_once_also_while_all_is_paused(
    paths: Paths, clock: FakeClock
) -> None:
    asked = {"name": "omega_store", "arguments": {"content": "Ports are counted up from 7443"}}
    async with served(paths, clock, Config(model="none")) as it:
        first = await it.caller.call("tools.call", **asked, request_id="use-1")
        head = await it.caught_up()
        clock.us += 3_600_000_000
        assert await it.caller.call("tools.call", **asked, request_id="use-1") == first
        (paths.home / "paused").touch()
        assert await it.caller.call("tools.call", **asked, request_id="use-1") == first
        refused = await it.caller.call("tools.call", **asked, request_id="use-2")
        assert refused["is_error"]
        (paths.home / "paused").unlink()
        assert await it.caught_up() == head
        assert len(await rows(it)) == 1
        kept = await it.daemon.services.log.on_writer(
            lambda connection: connection.execute("SELECT request_id FROM requests").fetchall()
        )
        assert len(kept) == 1, "the answer is kept once"
