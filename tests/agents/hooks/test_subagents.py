"""What a subagent learns: what bears on its prompt, and nothing of what its session is told but once."""

from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest

from omegad.agents.hooks import delegated
from omegad.agents.hooks.delegated import Delegated
from omegad.agents.hooks.hosts import Hook, understood
from omegad.runtime.clock import Clock
from tests.acceptance.conftest import PATIENCE_S, Home, until
from tests.agents.hooks.test_dispatch import (
    ASKED,
    LESSON,
    Dispatch,
    dispatch,
    events,
    project,
    session,
    store,
    tags,
)
from tests.edge.hook.conftest import payload

USES = count()
__all__ = ["dispatch", "project", "session"]  # fixtures


def asked(prompt: str, kind: str | None = None) -> dict[str, Any]:
    given = {"description": "look", "prompt": prompt} | ({"subagent_type": kind} if kind else {})
    return {"tool_name": "Agent", "tool_input": given, "tool_use_id": f"agent-{next(USES)}"}


def begun(agent_id: str, kind: str = "general-purpose") -> dict[str, Any]:
    return {"agent_id": agent_id, "agent_type": kind}


def test_an_agent_begins_with_what_bears_on_what_it_is_asked_and_is_told_it_once(
    served: Home, session: str, dispatch: Dispatch, project: Path
) -> None:
    memory_id = store(served, LESSON, project=project.name)
    store(served, "Billing runs on PostgreSQL 16", "decision", project=project.name)
    until(served.caught_up)
    assert dispatch("PreToolUse", **asked(ASKED)) == ""
    told = dispatch("SubagentStart", **begun("a"))
    assert memory_id in told
    assert LESSON in told
    shown = [one["data"] for one in events(served, session) if one["tag"] == "memory.surfaced@1"]
    assert [(one["how"], one["agent_id"]) for one in shown] == [("prompt", "a")]
    until(served.caught_up)
    read = {"tool_name": "Read", "tool_input": {"file_path": f"{project}/exporter.py"}, "tool_response": "ok"}
    assert dispatch("PostToolUse", tool_use_id="r-1", **read, **begun("a")) == ""
    assert memory_id in dispatch("PostToolUse", tool_use_id="r-2", **read)


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ("rename the button on the settings page to Save", "general-purpose"),
        (f"{ASKED} Mind what we know: {LESSON}.", "general-purpose"),
        (f"{ASKED} {'Look at every file of it. ' * 80} Mind what we know: {LESSON}.", "general-purpose"),
        (ASKED, "Explore"),
    ],
)
def test_an_agent_that_needs_nothing_knows_it_or_was_not_asked_begins_in_silence(
    served: Home, dispatch: Dispatch, project: Path, prompt: str, kind: str
) -> None:
    others = "Invoices are numbered by year and never reused, not even those that were cancelled. " * 4
    store(served, f"{others}{LESSON}. {others}", project=project.name)
    until(served.caught_up)
    dispatch("PreToolUse", **asked(prompt))
    assert dispatch("SubagentStart", **begun("a", kind)) == ""
    assert LESSON in dispatch("UserPromptSubmit", prompt=ASKED)


def test_what_an_agent_is_asked_at_a_hook_of_its_own_is_no_prompt_of_a_person(
    served: Home, session: str, dispatch: Dispatch, project: Path
) -> None:
    store(served, LESSON, project=project.name)
    until(served.caught_up)
    asks = f"{ASKED} Remember: from now on always use uv instead of pip in this project."
    assert LESSON in dispatch("UserPromptSubmit", prompt=asks, turn_id="t", **begun("a", "default"))
    assert "prompt.submitted@1" not in tags(served, session)


def test_what_a_session_is_told_once_is_told_its_own_agent(
    served: Home, session: str, dispatch: Dispatch
) -> None:
    dispatch("SessionStart", source="startup")
    served.call("message.send", to_session=session, text="the schema has moved")
    read = {"tool_name": "Read", "tool_input": {"file_path": "/x"}, "tool_response": "ok"}
    assert dispatch("PostToolUse", tool_use_id="r-1", **read, **begun("a")) == ""
    assert "the schema has moved" in dispatch("PostToolUse", tool_use_id="r-2", **read)


def hook(event: str, **fields: Any) -> Hook:
    found = understood(event, payload(event, **fields), "claude-code")
    assert found is not None
    return found


async def test_of_agents_that_begin_at_once_each_begins_with_what_it_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delegated, "TURN_S", PATIENCE_S)
    waiting, clock, order = Delegated(), Clock(), list[str]()

    async def ask(prompt: str) -> None:
        await waiting.heard(hook("PreToolUse", **asked(prompt)), clock)
        order.append(prompt)
        await anyio.lowlevel.checkpoint()
        found = await waiting.heard(hook("SubagentStart", **begun(prompt)), clock)
        assert found.text == prompt

    async with anyio.create_task_group() as group:
        for prompt in ("one", "two", "three"):
            group.start_soon(ask, prompt)
    assert len(order) == 3
    assert (await waiting.heard(hook("SubagentStart", **begun("four")), clock)).text is None


async def test_where_one_does_not_begin_in_time_none_is_told_what_may_be_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delegated, "TURN_S", 0.0)
    waiting, clock = Delegated(), Clock()
    for prompt in ("one", "two"):
        await waiting.heard(hook("PreToolUse", **asked(prompt)), clock)
    for agent_id in ("one", "two"):
        assert (await waiting.heard(hook("SubagentStart", **begun(agent_id)), clock)).text is None


async def test_an_agent_whose_beginning_is_told_twice_takes_nothing_of_the_next() -> None:
    waiting, clock = Delegated(), Clock()
    for prompt in ("one", "two"):
        await waiting.heard(hook("PreToolUse", **asked(prompt)), clock)
        for text in (prompt, None):
            assert (await waiting.heard(hook("SubagentStart", **begun(prompt)), clock)).text == text
        await waiting.heard(hook("PreToolUse", **asked("three")), clock)
        assert (await waiting.heard(hook("SubagentStart", **begun(prompt)), clock)).text is None
        assert (await waiting.heard(hook("SubagentStart", **begun(f"{prompt} more")), clock)).text == "three"
