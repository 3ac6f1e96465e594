"""A session from its beginning to what it leaves behind, told by hooks that come again and again while the
daemon is killed.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import PATIENCE_S, Home, until
from tests.edge.hook.conftest import begin, payload, spooled

Step = tuple[str, dict[str, Any]]


def shell(number: int, error: str = "") -> Step:
    call = {
        "tool_name": "Bash",
        "tool_input": {"command": f"pytest tests/test_{number}.py"},
        "tool_use_id": f"bash-{number}",
    }
    if error:
        return "PostToolUseFailure", call | {"error": error}
    return "PostToolUse", call | {"tool_response": {"stdout": f"{number} passed", "stderr": ""}}


def edit(number: int) -> Step:
    given = {"file_path": f"/src/shop/mod_{number % 4}.py", "old_string": "a", "new_string": "b"}
    return "PostToolUse", {
        "tool_name": "Edit",
        "tool_input": given,
        "tool_response": {"success": True},
        "tool_use_id": f"edit-{number}",
    }


def tool(name: str, given: dict[str, Any], result: str, use: str) -> Step:
    return "PostToolUse", {
        "tool_name": name,
        "tool_input": given,
        "tool_response": result,
        "tool_use_id": use,
    }


class Told:
    """Tells a daemon of a session, each hook three times, by deliveries that are numbered."""

    def __init__(self, home: Home, session_id: str) -> None:
        self.home, self.session_id, self.count = home, session_id, 0

    def tell(self, steps: list[Step]) -> None:
        for event, fields in steps:
            self.count += 1
            occurred_at = f"2026-03-01T10:{self.count // 60:02}:{self.count % 60:02}Z"
            said = payload(event, self.session_id, **fields)
            for again in range(3):
                delivery_id = f"{self.session_id}-{self.count}" + ("" if again < 2 else "-copy")
                self.home.call(
                    "hook.dispatch",
                    event=event,
                    payload=said,
                    delivery_id=delivery_id,
                    occurred_at=occurred_at,
                )

    def memories(self, event_type: str) -> list[dict[str, Any]]:
        found = self.home.call("memory.list", session_id=self.session_id, event_types=[event_type])[
            "memories"
        ]
        return [memory for memory in found if memory["source"].startswith("auto_")]

    def settled(self) -> None:
        """Wait until what follows from the session's end is done."""

        def is_done() -> bool:
            states = self.home.call("system.status")["reactions"]
            ending = [states["session_end"], states["session_summaries"]]
            is_calm = all(one["lag"] == 0 and one["trouble"] is None for one in ending)
            return is_calm and self.home.caught_up()

        until(is_done)


class Fired(Told):
    """Tells it as hosts do, each hook by three processes at once; under some the daemon is killed, and two
    later it is started.
    """

    killed_under = (13, 36)

    def tell(self, steps: list[Step]) -> None:
        for event, fields in steps:
            self.count += 1
            said = json.dumps(payload(event, self.session_id, **fields)).encode()
            hooks = [begin(self.home, event) for _ in range(3)]
            for hook in hooks:
                assert hook.stdin
                hook.stdin.write(said)
                hook.stdin.close()
                hook.stdin = None
            if self.count in self.killed_under:
                self.home.kill()
            assert [(*hook.communicate(timeout=PATIENCE_S)[1:], hook.returncode) for hook in hooks] == [
                (b"", 0)
            ] * 3
            if self.count - 2 in self.killed_under:
                self.home.start()


def test_a_session_told_three_times_while_the_daemon_is_killed_twice_counts_once(home: Home) -> None:
    home.start()
    useful, unused = (
        home.call("memory.store", content=content, event_type="decision", project="shop")["memory_id"]
        for content in ("the ledger is append-only", "invoices are numbered by year")
    )
    told = Fired(home, "long")
    told.tell(
        [
            ("SessionStart", {"source": "startup"}),
            ("UserPromptSubmit", {"prompt": "make the tests of the ledger pass"}),
        ]
    )
    told.tell(
        [
            tool("mcp__omegad__omega_query", {"query": "ledger"}, f"1. {useful} 2. {unused}", "query-1"),
            *map(edit, range(8)),
        ]
    )
    told.tell(
        [
            shell(1, "ImportError: no ledger"),
            shell(2, "ImportError: still none"),
            shell(3),
            *map(edit, range(8, 24)),
        ]
    )
    told.tell([tool("mcp__omegad__omega_query", {"query": "ledger again"}, f"1. {unused}", "query-2")])
    told.tell(
        [
            tool("Bash", {"command": f"git commit -m 'as {useful} says'"}, "ok", "commit"),
            ("Stop", {"last_assistant_message": "All pass."}),
        ]
    )
    told.tell([*[shell(number, f"flaky {number}") for number in range(10, 15)], *map(edit, range(24, 44))])
    told.tell([("Stop", {"last_assistant_message": "Done."}), ("SessionEnd", {"reason": "other"})])
    assert told.count == 60
    until(lambda: not spooled(home))
    told.settled()

    counted = Counter(event["tag"] for event in home.events() if event["session_id"] == "long")
    assert counted["tool.called@1"] == 55
    assert [
        counted[tag] for tag in ("session.started@1", "prompt.submitted@1", "turn.ended@1", "session.ended@1")
    ] == [1, 1, 2, 1]
    (checkpoint,) = told.memories("checkpoint")
    assert checkpoint["metadata"]["files_touched"] == [f"/src/shop/mod_{number}.py" for number in range(4)]
    assert "make the tests of the ledger pass" in checkpoint["content"]
    assert "Done." in checkpoint["content"]
    assert {
        memory["metadata"]["polarity"]: memory["content"] for memory in told.memories("lesson_learned")
    } == {
        "positive": (
            "Approach that worked: Bash error resolved after 2 attempts. Error context: ImportError: no"
            " ledger. Success context: 3 passed"
        ),
        "negative": "Anti-pattern: Bash failed 5 consecutive times. Error: flaky 14",
    }
    assert all(memory["status"] == "probation" for memory in told.memories("lesson_learned"))
    assert [home.call("memory.get", memory_id=memory_id)["rating"] for memory_id in (useful, unused)] == [
        1,
        0,
    ]
    rated = [event for event in home.events() if event["tag"] == "memory.rated@1"]
    assert [(event["data"]["memory_id"], event["data"]["reason"]) for event in rated] == [
        (useful, "retrieval_used")
    ]

    (summary,) = told.memories("session_summary")
    assert summary["content"].splitlines() == [
        "Session in shop: 55 tool calls, 7 failed.",
        "Asked: make the tests of the ledger pass",
        "Edited: mod_3.py, mod_2.py, mod_1.py, mod_0.py",
        "Failed last: "
        + "; ".join(
            f"`pytest tests/test_{number}.py` ({error})"
            for number, error in (
                *((number, f"flaky {number}") for number in range(14, 9, -1)),
                (2, "ImportError: still none"),
                (1, "ImportError: no ledger"),
            )
        ),
        "Passed last: `pytest tests/test_3.py`",
        "Left at: Done.",
    ]

    told.tell([("UserPromptSubmit", {"prompt": "one more thing"}), ("SessionEnd", {"reason": "clear"})])
    until(lambda: not spooled(home))
    told.settled()
    assert told.memories("session_summary") == [summary]
    assert len(told.memories("checkpoint")) == 1
    assert len([event for event in home.events() if event["tag"] == "memory.rated@1"]) == 1
    answer = home.call(
        "hook.dispatch", event="SessionStart", payload=payload("SessionStart", "next", source="startup")
    )["stdout"]
    assert "Approach that worked: Bash" not in answer, "it has not proved itself"
    assert checkpoint["memory_id"] in answer
    home.check()


@pytest.mark.parametrize(
    ("calls", "stored", "own", "checkpoints"),
    [(30, 0, False, 1), (29, 0, False, 0), (0, 2, False, 1), (0, 1, False, 0), (40, 5, True, 0)],
)
def test_a_session_that_did_much_and_did_not_say_where_it_stood_gets_a_checkpoint(
    served: Home, tmp_path: Path, calls: int, stored: int, *, own: bool, checkpoints: int
) -> None:
    told = Told(served, tmp_path.name)
    told.tell([("UserPromptSubmit", {"prompt": "go on"}), *[shell(number) for number in range(calls)]])
    words = ("alpha beta gamma", "delta epsilon zeta", "eta theta iota", "kappa lambda my", "ny xi omikron")
    for number in range(stored):
        served.call(
            "memory.store",
            content=f"{words[number]} of {told.session_id}",
            session_id=told.session_id,
            project="shop",
        )
    if own:
        served.call(
            "memory.store",
            content="I stand here",
            event_type="checkpoint",
            session_id=told.session_id,
            project="shop",
        )
    served.call(
        "memory.store",
        content="then the importer",
        event_type="handoff",
        session_id=told.session_id,
        project="shop",
    )
    until(served.caught_up)
    told.tell([("SessionEnd", {"reason": "other"})])
    told.settled()
    found = told.memories("checkpoint")
    assert len(found) == checkpoints
    assert all(memory["metadata"]["next_steps"] == "then the importer" for memory in found)


def test_a_session_gets_one_summary_that_is_found_by_what_it_did_and_none_where_it_did_nothing(
    served: Home, tmp_path: Path
) -> None:
    idle = Told(served, f"idle-{tmp_path.name}")
    idle.tell([("SessionStart", {"source": "startup"}), ("UserPromptSubmit", {"prompt": "hello"})])
    idle.tell([("Stop", {"last_assistant_message": "Hello."}), ("SessionEnd", {"reason": "other"})])
    told = Told(served, tmp_path.name)
    secret = "sk-ant-api03-" + "A1b2C3d4" * 10
    told.tell([("UserPromptSubmit", {"prompt": f"rotate the key {secret} of zanzibar"}), edit(1), shell(2)])
    told.tell([("SessionEnd", {"reason": "other"})])
    told.settled()
    assert idle.memories("session_summary") == []
    (first,) = told.memories("session_summary")
    assert secret not in first["content"]
    told.tell([shell(3, "ImportError: no ledger"), ("SessionEnd", {"reason": "clear"})])
    told.settled()
    (second,) = told.memories("session_summary")
    assert "Failed last: `pytest tests/test_3.py` (ImportError: no ledger)" in second["content"]
    assert served.call("memory.get", memory_id=first["memory_id"])["superseded_by"] == second["memory_id"]
    found = served.call("memory.query", text="zanzibar", mode="keyword")["results"]
    assert [one["memory_id"] for one in found] == [second["memory_id"]]


def test_a_checkpoint_says_how_a_handoff_begins_and_not_all_of_it(served: Home, tmp_path: Path) -> None:
    told = Told(served, tmp_path.name)
    handoff = served.call(
        "memory.store",
        content="first the importer. " + "and then much more of it. " * 40,
        event_type="handoff",
        session_id=told.session_id,
        project="shop",
    )["memory_id"]
    told.tell([*[shell(number) for number in range(30)], ("SessionEnd", {"reason": "other"})])
    told.settled()
    (checkpoint,) = told.memories("checkpoint")
    (steps,) = (line for line in checkpoint["content"].splitlines() if line.startswith("Next steps: "))
    assert steps.startswith("Next steps: first the importer.")
    assert steps.endswith(f"… [{handoff}]")
    assert len(steps) < 250


def test_what_a_session_names_without_having_been_shown_it_is_no_use_of_it(served: Home) -> None:
    known = served.call("memory.store", content="the queue is durable", project="shop")["memory_id"]
    told = Told(served, "guessing")
    told.tell(
        [
            tool("Bash", {"command": f"git commit -m 'as {known} says'"}, "ok", "commit"),
            ("Stop", {"last_assistant_message": f"see {known}"}),
        ]
    )
    told.tell([("SessionEnd", {"reason": "other"})])
    told.settled()
    assert served.call("memory.get", memory_id=known)["rating"] == 0


def test_a_short_session_teaches_nothing(served: Home) -> None:
    told = Told(served, "short")
    told.tell(
        [shell(1, "no"), shell(2), *map(edit, range(17)), ("Stop", {}), ("SessionEnd", {"reason": "other"})]
    )
    told.settled()
    assert told.memories("lesson_learned") == []


def test_a_session_teaches_three_things_at_most(served: Home) -> None:
    told = Told(served, "much")
    errors = (
        "TypeError: alpha of beta",
        "OSError: the gamma of delta is full",
        "KeyError: 'epsilon' in zeta",
        "eta could not be reached",
    )
    steps = [
        step
        for number, error in enumerate(errors)
        for step in (shell(2 * number, error), shell(2 * number + 1))
    ]
    told.tell([*steps, *map(edit, range(12)), ("Stop", {}), ("SessionEnd", {"reason": "other"})])
    told.settled()
    assert len(told.memories("lesson_learned")) == 3
