"""Agents' sessions as they are listed and told: what each did, and what it was shown at which price."""

from typing import Any

import pytest

from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import NotFound
from tests.builders import FakeClock, Served, served


async def hook(home: Served, session_id: str, event: str, **payload: object) -> None:
    known = {"session_id": session_id, "cwd": "/src/shop", "hook_event_name": event, **payload}
    await home.caller.call(
        "hook.dispatch", event=event, payload=known, host="codex" if "codex" in session_id else ""
    )


async def a_session(home: Served, session_id: str, prompt: str) -> None:
    await hook(home, session_id, "SessionStart", source="startup", model="opus")
    await hook(home, session_id, "UserPromptSubmit", prompt=prompt)


async def stored(home: Served, content: str, session_id: str | None = None) -> str:
    given: dict[str, Any] = {"content": content, "session_id": session_id, "event_type": "decision"}
    return str((await home.caller.call("memory.store", **given))["memory_id"])


async def test_a_session_is_listed_with_what_it_did_and_what_was_shown_at_which_price(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, Config(model="none")) as home:
        # 30 bytes, and 24 for its id: 14 tokens each of three times, and 37 around what begins the session
        await stored(home, "The importer needs Python 3.12")
        await a_session(home, "s-1", "hi")
        await home.caller.call(
            "tool.record", session_id="s-1", tool_name="Bash", status="error", result="exit 1"
        )
        await stored(home, "make needs GNU make 4", "s-1")
        for _ in range(2):
            await home.caller.call("memory.query", text="importer", asked_in="s-1")
        (found,) = (await home.caller.call("session.list"))["sessions"]
        counts = {
            name: found[name]
            for name in ("prompts", "tool_calls", "failed", "stored", "shown", "shown_tokens")
        }
        assert counts == {
            "prompts": 1, "tool_calls": 1, "failed": 1, "stored": 1, "shown": 3, "shown_tokens": 79,
        }  # fmt: skip
        assert (found["session_id"], found["ended_at"]) == ("s-1", None)


async def test_the_last_session_of_each_host_is_the_one_heard_of_last(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, Config(model="none")) as home:
        for session_id in ("s-1", "codex-1", "s-2", "codex-2"):
            await a_session(home, session_id, "hi")
        await hook(home, "s-1", "Stop", last_assistant_message="done")
        last = (await home.caller.call("session.list", last_of_each=True))["sessions"]
        assert [one["session_id"] for one in last] == ["s-1", "codex-2"]
        page = await home.caller.call("session.list", limit=3)
        assert (len(page["sessions"]), page["truncated"]) == (3, True)
        assert (await home.caller.call("session.list", project="another"))["sessions"] == []


async def test_a_session_is_told_in_the_order_in_which_it_happened(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, Config(model="none")) as home:
        known = await stored(home, "The importer needs Python 3.12")
        await a_session(home, "s-1", "fix the importer of herons")
        await home.caller.call(
            "tool.record", session_id="s-1", tool_name="Bash", status="ok", tool_input={"command": "make"}
        )
        await home.caller.call(
            "tool.record", session_id="s-1", tool_name="Bash", status="error", result="exit 1"
        )
        await home.caller.call("memory.query", text="importer", asked_in="s-1")
        new = await stored(home, "make needs GNU make 4", "s-1")
        await hook(home, "s-1", "Stop", last_assistant_message="it is fixed")
        told = await home.caller.call("session.get", session_id="s-1")
        steps = [
            (one["what"], one["name"]) for one in told["steps"] if one["name"] not in ("briefing", "prompt")
        ]
        assert steps == [
            ("asked", None), ("ran", "Bash"), ("failed", "Bash"), ("shown", "query"), ("stored", new), ("said", None),
        ]  # fmt: skip
        assert [one["position"] for one in told["steps"]] == sorted(one["position"] for one in told["steps"])
        (shown,) = [one for one in told["shown_memories"] if "query" in one["how"]]
        assert (shown["memory_id"], shown["text"]) == (known, "The importer needs Python 3.12")
        first = await home.caller.call("session.get", session_id="s-1", limit=1)
        rest = await home.caller.call("session.get", session_id="s-1", after=first["steps"][-1]["position"])
        assert first["truncated"]
        assert first["steps"] + rest["steps"] == told["steps"]


async def test_a_session_of_which_no_host_has_told_is_known_by_what_it_stored(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, Config(model="none")) as home:
        await stored(home, "Somebody stored this by hand", "by-hand")
        told = await home.caller.call("session.get", session_id="by-hand")
        assert (told["host"], told["stored"], [one["what"] for one in told["steps"]]) == ("", 1, ["stored"])
        with pytest.raises(NotFound, match="no session nobody"):
            await home.caller.call("session.get", session_id="nobody")
