"""What a session has in its context is not told it again, in whatever way it came there; what it lost is."""

from itertools import count
from pathlib import Path
from time import time_ns
from typing import Any

import pytest

from omegad.runtime.config import Paths
from omegad.runtime.times import rfc3339
from tests import builders
from tests.acceptance.conftest import Home, until
from tests.agents.hooks.test_dispatch import LATER, Dispatch, dispatch, project, session, store
from tests.builders import FakeClock
from tests.edge.hook.conftest import payload

CALLS = count()
__all__ = ["dispatch", "project", "session"]  # fixtures


def used(
    dispatch: Dispatch, project: Path, event: str = "PostToolUse", *, agent_id: str | None = None
) -> str:
    """Read, or before it changes edit, exporter.py, each time by another call, as the session's own agent or
    one that works for it.
    """
    given = {"file_path": f"{project}/src/exporter.py"}
    called: dict[str, Any] = {"tool_name": "Read", "tool_input": given, "tool_response": "ok"}
    if event == "PreToolUse":
        called = {"tool_name": "Edit", "tool_input": given | {"old_string": "a", "new_string": "b"}}
    if agent_id is not None:
        called |= {"agent_id": agent_id, "agent_type": "general-purpose"}
    return dispatch(event, tool_use_id=f"use-{next(CALLS)}", **called)


def test_what_the_briefing_told_neither_a_read_nor_an_edit_tells_again(
    served: Home, dispatch: Dispatch, project: Path
) -> None:
    lesson = store(served, "exporter.py must keep fetch_size at 500", project=project.name)
    noted = store(
        served, "exporter.py runs at night, after the ledger is closed", "memory", project=project.name
    )
    until(served.caught_up)
    assert lesson in dispatch("SessionStart", source="startup")
    until(served.caught_up)
    told = used(dispatch, project, "PreToolUse")
    assert (lesson in told, noted in told) == (False, True)
    until(served.caught_up)
    assert used(dispatch, project) == ""


def test_what_was_told_of_a_file_is_told_again_once_the_context_is_gone(
    served: Home, dispatch: Dispatch, project: Path
) -> None:
    noted = store(
        served, "exporter.py runs at night, after the ledger is closed", "memory", project=project.name
    )
    until(served.caught_up)
    assert noted in used(dispatch, project)
    until(served.caught_up)
    for event, fields, is_gone in (
        ("SessionStart", {"source": "resume"}, False),
        ("SessionStart", {"source": "clear"}, True),
        ("PreCompact", {"trigger": "auto"}, True),
        ("SessionStart", {"source": "compact"}, True),
    ):
        dispatch(event, **fields)
        until(served.caught_up)
        assert (noted in used(dispatch, project)) == is_gone, fields
        until(served.caught_up)


@pytest.mark.parametrize("first", [None, "a"])
def test_each_agent_of_a_session_is_told_for_itself_and_once(
    served: Home, dispatch: Dispatch, project: Path, first: str | None
) -> None:
    noted = store(
        served, "exporter.py runs at night, after the ledger is closed", "memory", project=project.name
    )
    until(served.caught_up)
    for agent_id in (first, "b", None if first else "a"):
        for event, is_told in (("PostToolUse", True), ("PreToolUse", False)):
            assert (noted in used(dispatch, project, event, agent_id=agent_id)) == is_told, (agent_id, event)
            until(served.caught_up)


def test_what_its_session_was_briefed_of_or_stored_is_news_to_an_agent_that_works_for_it(
    served: Home, dispatch: Dispatch, project: Path, session: str
) -> None:
    here = {"project": project.name}
    lesson = store(served, "exporter.py must keep fetch_size at 500", **here)
    until(served.caught_up)
    assert lesson in dispatch("SessionStart", source="startup")
    served.call(
        "memory.store", content="exporter.py runs at night", event_type="decision", session_id=session, **here
    )
    until(served.caught_up)
    told = used(dispatch, project, agent_id="a")
    assert (lesson in told, "at night" in told) == (True, True)
    until(served.caught_up)
    assert used(dispatch, project) == ""


def test_whose_context_was_compacted_is_told_again_and_no_other_agent_of_the_session(
    served: Home, dispatch: Dispatch, project: Path
) -> None:
    noted = store(
        served, "exporter.py runs at night, after the ledger is closed", "memory", project=project.name
    )
    until(served.caught_up)
    for agent_id in (None, "a"):
        assert noted in used(dispatch, project, agent_id=agent_id)
    dispatch("PreCompact", trigger="auto", agent_id="a")
    until(served.caught_up)
    assert used(dispatch, project) == ""
    dispatch("PreCompact", trigger="auto")
    until(served.caught_up)
    assert used(dispatch, project, agent_id="a") == ""
    assert noted in used(dispatch, project)


def test_a_session_that_is_resumed_is_told_only_what_is_new(
    served: Home, dispatch: Dispatch, project: Path
) -> None:
    old = store(served, "PostgreSQL holds the ledger", "decision", project=project.name)
    store(served, "no network in tests", "constraint", project=project.name)
    until(served.caught_up)
    assert old in dispatch("SessionStart", source="startup")
    until(served.caught_up)
    assert dispatch("SessionStart", source="resume") == ""
    new = store(served, "Kafka carries the orders", "decision", project=project.name)
    until(served.caught_up)
    told = dispatch("SessionStart", source="resume", occurred_at=LATER)
    assert (new in told, old in told) == (True, False)
    until(served.caught_up)
    whole = dispatch("SessionStart", source="clear")
    assert (new in whole, old in whole) == (True, True)


async def test_what_a_clock_ahead_stamped_is_gone_with_the_context_once_the_clock_is_mended(
    paths: Paths, clock: FakeClock
) -> None:
    edit = {"file_path": "/src/shop/exporter.py", "old_string": "a", "new_string": "b"}
    async with builders.served(paths, clock) as it:

        async def told(event: str, **fields: Any) -> str:
            said = payload(event, tool_use_id=f"use-{next(CALLS)}", **fields)
            answer = await it.caller.call("hook.dispatch", event=event, payload=said)
            await it.caught_up()
            return str(answer["stdout"])

        await it.caller.call("memory.store", content="exporter.py runs at night", project="shop")
        await it.caught_up()
        real, clock.us = clock.us, clock.us + 365 * 86_400_000_000
        assert "at night" in await told("PreToolUse", tool_name="Edit", tool_input=edit)
        clock.us = real + 60_000_000
        assert (await it.caller.call("clock.mend"))["events"]
        assert await told("PreToolUse", tool_name="Edit", tool_input=edit) == ""
        await told("PreCompact", trigger="auto")
        assert "at night" in await told("PreToolUse", tool_name="Edit", tool_input=edit)
        assert (await it.caller.call("log.verify"))["ok"]


@pytest.mark.parametrize("left", [("SessionStart",), ("PreCompact", "SessionStart")])
def test_what_a_start_was_told_that_lay_in_the_spool_is_not_told_again_once_it_is_taken_in(
    served: Home, dispatch: Dispatch, project: Path, session: str, left: tuple[str, ...]
) -> None:
    lesson = store(served, "exporter.py must keep fetch_size at 500", project=project.name)
    until(served.caught_up)
    said = {
        event: {
            "event": event,
            "payload": payload(
                event, session, cwd=str(project), source="compact", trigger="auto", prompt="go on, please"
            ),
            "delivery_id": f"{session}-{event}",
            "occurred_at": rfc3339(time_ns() // 1_000),
        }
        for event in (*left, "UserPromptSubmit")
    }
    assert lesson in served.call("hook.dispatch", **said["SessionStart"], is_kept=True)["stdout"]
    until(served.caught_up)
    assert served.call("hook.dispatch", **said["UserPromptSubmit"], is_kept=True)["stdout"] == ""
    for one in said.values():
        served.call("hook.dispatch", **one, is_spooled=True)
    until(served.caught_up)
    assert dispatch("UserPromptSubmit", prompt="what does the exporter need?") == ""
    assert used(dispatch, project) == ""


def test_a_report_tells_of_prompts_that_were_shown_nothing(
    served: Home, dispatch: Dispatch, project: Path
) -> None:
    dispatch("UserPromptSubmit", prompt="please sort the imports of this file")
    until(served.caught_up)
    (silent,) = served.call("session.report", project=project.name)["shown"]
    assert (silent["how"], silent["times"], silent["prompts"], silent["tokens"]) == ("prompt", 0, 1, 0)
