"""Each call, query, store and hook is in the log, once: what coordinates in `coord_audit`, reads in
`memory.read`, and hooks that nothing follows from in `hook.noted`.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from omegad.agents.hooks import noting
from omegad.agents.hooks.noting import Noted
from omegad.catalog import auditing
from omegad.edge import cli
from omegad.requests.verb import WATCHING
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import NotFound
from omegad.search.events import MemoryRead
from omegad.session.events import HookNoted
from tests.acceptance.conftest import Home, homes
from tests.builders import FakeClock, Served, everything, served
from tests.edge.hook.conftest import fire
from tests.edge.mcp.conftest import Host

__all__ = ["homes"]

KEYWORDS = Config(model="none")
OF_ONE = ("memory.get", "memory.history", "memory.similar", "memory.traverse")
OF_MANY = ("memory.list", "memory.lessons", "thesis.list", "reminder.list", "memory.timeline")
CALLED = "SELECT tool_name, input_summary FROM coord_audit"


def said(number: int) -> str:
    """Return words of which no other has the number."""
    return f"number-{number:04}."


def over_the_socket(home: Home) -> Counter[tuple[str, str]]:
    """Make a hundred calls, and return what the log is to tell of them."""
    traces = Counter[tuple[str, str]]()
    with home.client("reader") as client:
        for number in range(20):
            stored = client.call("memory.store", content=f"The fact is {said(number)}", project="shop")
            memory_id = stored["memory_id"]
            client.call("memory.query", text=f"what is {said(number)}", project="shop")
            client.call("task.create", title=f"Do {said(number)}", project="shop")
            traces += Counter({("store", said(number)): 1, ("query", said(number)): 1})
            traces["task.create", said(number)] += 1
            method = OF_ONE[number % 4]
            client.call(method, memory_id=memory_id)
            traces["read", f"{method} {memory_id}"] += 1
            method = OF_MANY[number % 5]
            client.call(method, limit=1 + number // 5)
            traces["read", method] += 1
    return traces


def over_mcp(host: Host) -> Counter[tuple[str, str]]:
    """Make fifty calls of tools, and return what the log is to tell of them."""
    calls = [
        *(("omega_query", {"query": said(number)}) for number in range(100, 115)),
        *(("omega_store", {"content": f"A fact is {said(number)}"}) for number in range(115, 125)),
        *(("omega_memory", {"action": "get", "memory_id": said(number)}) for number in range(125, 135)),
        *(
            ("omega_stats", {"action": "sql", "sql": f"SELECT '{said(number)}'"})
            for number in range(135, 140)
        ),
        *(
            ("omega_coord", {"action": "message", "to_session": "s-9", "text": said(number)})
            for number in range(140, 150)
        ),
    ]
    begin = {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "host", "version": "1"},
        },
    }
    asked = [
        {"id": place, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for place, (name, arguments) in enumerate(calls, 2)
    ]
    for start in range(0, len(asked), 10):  # the bridge waits so long for the last answers and no longer
        part = asked[start : start + 10]
        answers = host.say(begin, {"method": "notifications/initialized"}, *part)
        assert len(answers) == len(part) + 1
    return Counter((name, f"number-{place:04}.") for place, (name, _) in enumerate(calls, 100))


def by_hooks(home: Home) -> Counter[tuple[str, str]]:
    """Fire fifty hooks, and return what the log is to tell of them."""
    traces = Counter[tuple[str, str]]()
    for number in range(10):
        call: dict[str, Any] = {"tool_name": "Read", "tool_use_id": f"use-{number}"}
        call["tool_input"] = {"file_path": f"/src/{said(number)}"}
        fire(home, "PreToolUse", "s-9", **call)
        fire(home, "PostToolUse", "s-9", **call, tool_response="as it is")
        fire(home, "Notification", "s-9", message=f"Waits for {said(number)}")
        fire(home, "UserPromptSubmit", "s-9", prompt=f"Please do {said(number)}")
        fire(home, "Stop", "s-9", last_assistant_message=f"Did {said(number)}")
        for kind in ("before", "Read", "notice", "prompt", "turn"):
            traces[kind, f"use-{number}" if kind == "before" else said(number)] += 1
    return traces


def traced(home: Home) -> Counter[tuple[str, str]]:
    """Return what the log and `coord_audit` tell."""
    told = [
        (kind, text if kind in {"read", "before"} else text[text.index("number-") :][: len(said(0))])
        for event in home.events()
        for kind, text in traces_of(event)
    ]
    rows = home.call("audit.sql", sql=CALLED, limit=1_000)["rows"]
    return Counter(
        [*told, *((name, given[given.index("number-") :][: len(said(0))]) for name, given in rows)]
    )


def traces_of(event: dict[str, Any]) -> list[tuple[str, str]]:
    """Return of which call an event tells, and which words of that."""
    data, told = event["data"], list[tuple[str, str]]()
    match event["tag"]:
        case "memory.stored@2" if data["content"].startswith("The fact"):
            told = [("store", data["content"])]
        case "memory.queried@1" if data["text"].startswith("what is"):
            told = [("query", data["text"])]
        case "memory.read@1" if event["client"] == "reader":
            named = [(one["method"], one.get("memory_ids")) for one in data["reads"]]
            told = [("read", f"{method} {ids[0]}" if method in OF_ONE else method) for method, ids in named]
        case "hook.noted@1":
            told = [("notice", data["about"]) if data.get("about") else ("before", data["tool_use_id"])]
        case "prompt.submitted@1":
            told = [("prompt", data["prompt"]["head"])]
        case "turn.ended@1":
            told = [("turn", data["message"]["head"])]
        case _:
            pass
    return told


def test_each_of_two_hundred_calls_is_found_once(homes: Callable[..., Home]) -> None:
    home = homes(OMEGAD_AUDIT="whole").start()
    made = over_the_socket(home) + over_mcp(Host(home)) + by_hooks(home)
    assert made.total() == 200
    home.restart()  # what is told behind answers is told by now
    found = traced(home)
    assert found - made == Counter()
    assert made - found == Counter()
    assert home.call("log.verify")["ok"]


async def reads_of(it: Served) -> list[MemoryRead]:
    await anyio.wait_all_tasks_blocked()  # what is told behind the latest answer waits for its turn
    it.daemon.auditing.end()
    await it.daemon.services.log.settled()
    recorded = await everything(it.daemon.services.log)
    return [one.event for one in recorded if isinstance(one.event, MemoryRead)]


async def test_reads_of_one_second_are_one_event_and_say_who_asked(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS, audits_all=True) as it:
        kept = (await it.caller.call("memory.store", content="alpha"))["memory_id"]
        reader = it.other("reader")
        for _ in range(40):
            await reader.call("memory.get", memory_id=kept)
        with pytest.raises(NotFound):
            await reader.call("memory.get", memory_id="mem-00000000")
        reads = await reads_of(it)
        assert sum(len(event.reads) for event in reads) == 41
        assert all(one.memory_ids == (kept,) for event in reads for one in event.reads if not one.failed)
        assert [one.failed for event in reads for one in event.reads if one.failed] == ["not_found"]
        recorded = await everything(it.daemon.services.log)
        assert {one.client for one in recorded if isinstance(one.event, MemoryRead)} == {"reader"}
        # What the answer of a question about the past tells of, no other event does.
        await reader.call("memory.query", text="alpha", as_of=it.daemon.services.head)
        assert (await reads_of(it))[-1].reads[0].method == "memory.query"


async def test_who_reads_without_a_rest_leaves_few_events(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auditing, "EVERY_S", 1_000.0)
    async with served(paths, clock, KEYWORDS, audits_all=True) as it:
        for _ in range(300):
            await it.caller.call("memory.lessons", limit=1)
        assert [len(event.reads) for event in await reads_of(it)] == [1, 128, 128, 43]


async def test_what_is_watched_is_told_once_a_minute(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS, audits_all=True) as it:
        watching = it.other(WATCHING)
        for _ in range(50):
            await watching.call("task.list")
        clock.us += auditing.LOOK_US
        await watching.call("task.list")
        await it.caught_up()
        asked = "SELECT count(*) FROM coord_audit WHERE tool_name = 'task.list'"
        assert (await it.caller.call("audit.sql", sql=asked))["rows"] == [[2]]


async def test_coordination_that_is_refused_is_in_the_audit_as_well(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS, audits_all=True) as it:
        task = (await it.caller.call("task.create", title="Sow", project="shop"))["task_id"]
        await it.caller.call("task.claim", task_id=task, session_id="s-1")
        with pytest.raises(Exception, match="s-1"):
            await it.caller.call("task.claim", task_id=task, session_id="s-2")
        with pytest.raises(NotFound):
            await it.caller.call("task.get", task_id="task-00000000")
        await it.caught_up()
        asked = "SELECT tool_name, status, session_id FROM coord_audit ORDER BY id"
        assert (await it.caller.call("audit.sql", sql=asked))["rows"] == [
            ["task.create", "ok", None],
            ["task.claim", "ok", "s-1"],
            ["task.claim", "denied", "s-2"],
            ["task.get", "error", None],
        ]


async def test_coordination_that_is_sent_again_is_told_once(
    paths: Paths, clock: FakeClock, tmp_path: Path
) -> None:
    async with served(paths, clock, KEYWORDS, audits_all=True) as it:
        asked = {"session_id": "s-1", "paths": [f"{tmp_path}/a.py"], "request_id": "r-1"}
        first = await it.caller.call("claim.files", **asked)
        head = await it.caught_up()
        assert [await it.caller.call("claim.files", **asked) for _ in range(3)] == [first] * 3
        assert await it.caught_up() == head


async def test_a_hook_that_is_told_twice_is_noted_once(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host may run a hook twice, and one that is answered too late lies in the spool as well."""
    async with served(paths, clock, KEYWORDS, audits_all=True) as it:

        async def fire(event: str, delivery_id: str, **more: object) -> None:
            payload = {"session_id": "s-1", "hook_event_name": event, **more}
            await it.caller.call("hook.dispatch", event=event, payload=payload, delivery_id=delivery_id)

        for delivery_id in ("d-1", "d-1", "d-2"):
            await fire("PreToolUse", delivery_id, tool_name="Edit", tool_use_id="t-1")
        clock.us += 3_000_000
        await fire("PreToolUse", "d-1", tool_name="Edit", tool_use_id="t-1")
        await fire("PreToolUse", "d-3", tool_name="Edit", tool_use_id="t-2")
        await fire("Notification", "d-4", message="waits")
        await fire("PermissionRequest", "d-5", message="waits")
        await it.daemon.services.log.settled()
        noted = [one.event for one in await everything(it.daemon.services.log)]
        assert [(one.fired, one.tool_use_id, one.about) for one in noted if isinstance(one, HookNoted)] == [
            ("PreToolUse", "t-1", None),
            ("PreToolUse", "t-2", None),
            ("Notification", None, "waits"),
            ("PermissionRequest", None, "waits"),
        ]
        monkeypatch.setattr(noting, "KNOWN_MAX", 8)
        for number in range(20):
            await fire("Notification", f"n-{number}", message=f"{number}")
        assert len(it.daemon.services[Noted]._at_us) <= 8


async def test_each_push_and_each_edit_that_is_stopped_is_in_the_audit(
    paths: Paths, clock: FakeClock
) -> None:
    ref = {"ref": "refs/heads/main", "local_sha": "a", "remote_sha": "b", "found": "stale"}
    push = {"remote": "origin", "verdict": "denied", "reason": "it discards 1 commit", "refs": [ref]}
    async with served(paths, clock, KEYWORDS) as it:

        async def stopped(event: str, use_id: str | None, **more: object) -> None:
            payload = {"hook_event_name": event, "cwd": "/", **({"tool_use_id": use_id} if use_id else {})}
            await it.caller.call("hook.dispatch", event=event, payload=payload | more, pushes=[push])

        for _ in range(2):  # at once, and saying the same
            await stopped("pre-push", None)
            await stopped(
                "PreToolUse", None, session_id="s-1", tool_name="Bash", tool_input={"command": "git push"}
            )
        for use_id in ("t-1", "t-2", "t-2"):
            await stopped(
                "PreToolUse", use_id, session_id="s-2", tool_name="Bash", tool_input={"command": "git push"}
            )
        await it.caught_up()
        asked = "SELECT session_id, tool_name, status, tool_use_id, call_index FROM coord_audit ORDER BY id"
        assert (await it.caller.call("audit.sql", sql=asked))["rows"] == [
            [None, "git push", "denied", None, 1],
            ["s-1", "Bash", "denied", None, 1],
            [None, "git push", "denied", None, 2],
            ["s-1", "Bash", "denied", None, 2],
            ["s-2", "Bash", "denied", "t-1", 1],
            ["s-2", "Bash", "denied", "t-2", 2],
        ]


async def test_what_is_erased_is_in_no_event_that_tells_of_reads_or_hooks(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS, audits_all=True) as it:
        kept = (await it.caller.call("memory.store", content="The periwinkle door is never open"))[
            "memory_id"
        ]
        await it.caller.call("memory.get", memory_id=kept)
        about = "Waits: The periwinkle door is never open"
        payload = {"session_id": "s-1", "hook_event_name": "Notification", "message": about}
        await it.caller.call("hook.dispatch", event="Notification", payload=payload)
        await it.caught_up()
        await it.caller.call("memory.erase", memory_id=kept)
        await it.caught_up()
        assert (await it.caller.call("log.verify"))["ok"]
        texts = msgspec.json.encode(await everything(it.daemon.services.log))
        assert b"periwinkle" not in texts


def test_a_paused_home_is_told_of_no_reads_and_no_coordination(homes: Callable[..., Home]) -> None:
    home = homes(OMEGAD_AUDIT="whole").start()
    kept = home.call("memory.store", content="The marigold door is open")["memory_id"]
    assert cli.main(["--home", str(home.path), "pause"]) == 0
    before = home.call("system.status")["log"]["head"]
    home.call("memory.get", memory_id=kept)
    home.call("task.list")
    home.restart()
    told = {event["tag"] for event in home.events() if event["position"] > before}
    assert told & {"memory.read@1", "tool.called@1", "hook.noted@1"} == set()


def test_changes_alone_are_in_the_log_where_the_setting_says_so(homes: Callable[..., Home]) -> None:
    home = homes(OMEGAD_AUDIT="changes").start()
    kept = home.call("memory.store", content="The marigold door is open")["memory_id"]
    home.call("memory.get", memory_id=kept)
    home.call("task.list")
    fire(home, "Notification", "s-1", message="waits")
    home.restart()
    assert {event["tag"] for event in home.events()} & {"memory.read@1", "tool.called@1", "hook.noted@1"} == (
        set()
    )
