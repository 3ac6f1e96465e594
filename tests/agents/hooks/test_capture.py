"""What is said in sessions and kept unasked: once, on probation, and never because the session was shown
it.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Home, until
from tests.edge.hook.conftest import payload

PREFERENCE = "From now on always use uv instead of pip in this project."
DECISION = "We decided to use Postgres instead of SQLite because several workers write at once."
LESSON = "It turns out that the emulator only works when the region is set to us-east-1."


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / f"project-{tmp_path.name}"
    (folder / ".git").mkdir(parents=True)
    return folder


def tell(home: Home, event: str, session: str, project: Path, **fields: Any) -> str:
    said = payload(event, session, **{"cwd": str(project)} | fields)
    answer: str = home.call("hook.dispatch", event=event, payload=said)["stdout"]
    return answer


def settled(home: Home) -> None:
    """Wait until all that was said is looked at."""

    def is_done() -> bool:
        status = home.call("system.status")["reactions"]["capture"]
        return status["lag"] == 0 and status["trouble"] is None and home.caught_up()

    until(is_done)


def memories(home: Home, project: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = home.call("memory.list", project=project.name)["memories"]
    return found


def test_what_is_said_is_stored_once_on_probation_and_a_second_session_promotes_it(
    home: Home, project: Path
) -> None:
    home.start()
    tell(home, "UserPromptSubmit", "one", project, prompt=f"Please fix the import.\n{PREFERENCE}")
    tell(home, "Stop", "one", project, last_assistant_message=f"Fixed.\n\n**{LESSON}**\n")
    tell(home, "Stop", "one", project, last_assistant_message=f"As I said. {LESSON}")
    settled(home)
    home.kill()
    home.start()
    settled(home)
    found = {one["content"]: one for one in memories(home, project)}
    assert {content: one["event_type"] for content, one in found.items()} == {
        PREFERENCE: "user_preference",
        LESSON: "lesson_learned",
    }
    for content, role in ((PREFERENCE, "user"), (LESSON, "assistant")):
        one = found[content]
        assert (one["status"], one["source"], one["session_id"], one["metadata"]["said_by"]) == (
            "probation",
            "auto_capture",
            "one",
            role,
        )
    tell(home, "UserPromptSubmit", "two", project, prompt=f"Remember what I told you. {PREFERENCE}")
    settled(home)
    assert {one["content"]: one["status"] for one in memories(home, project)} == {
        PREFERENCE: "active",
        LESSON: "probation",
    }
    home.check()


@pytest.mark.parametrize("how", ["briefing", "query"])
def test_what_a_session_was_shown_and_repeats_raises_nothing(served: Home, project: Path, how: str) -> None:
    tell(served, "UserPromptSubmit", f"{how}-first", project, prompt=DECISION)
    settled(served)
    (known,) = memories(served, project)
    echoing = f"{how}-echoing"
    told = tell(served, "SessionStart", echoing, project, source="startup") if how == "briefing" else ""
    if how == "query":
        given = {
            "tool_name": "mcp__omegad__omega_query",
            "tool_input": {"query": "database"},
            "tool_use_id": "q",
        }
        tell(
            served,
            "PostToolUse",
            echoing,
            project,
            tool_response=f"1. {known['memory_id']}: {DECISION}",
            **given,
        )
    settled(served)
    count = len(served.events())
    tell(
        served,
        "Stop",
        echoing,
        project,
        last_assistant_message=f"As you know: {DECISION} I go on.\n\n{DECISION}",
    )
    tell(
        served,
        "UserPromptSubmit",
        echoing,
        project,
        prompt=f"Right. {DECISION.replace('several', 'many')}\n\n{told}",
    )
    settled(served)
    assert (how == "briefing") == (known["memory_id"] in told)
    assert {event["tag"] for event in served.events()[count:]} <= {
        "turn.ended@1",
        "prompt.submitted@1",
        "memory.surfaced@1",
    }
    assert [(one["status"], one["rating"]) for one in memories(served, project)] == [
        ("probation", known["rating"])
    ]


def test_a_message_yields_three_beside_what_is_announced_without_secrets_and_what_is_pasted_none(
    served: Home, project: Path
) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    rules = [
        f"From now on always use {tool} instead of {other} in this project."
        for tool, other in (("uv", "pip"), ("ruff", "flake8"))
    ]
    rules += [
        DECISION,
        *(f"It turns out that the emulator only works when {name} is set." for name in "ABCDE"),
    ]
    rules += [f"From now on never send the token {secret} to any host."]
    tell(served, "UserPromptSubmit", "many", project, prompt="\n".join(rules))
    tell(
        served,
        "UserPromptSubmit",
        "many",
        project,
        prompt=f"From now on always sign commits in this project.\n{'x ' * 5_000}",
    )
    settled(served)
    found = memories(served, project)
    assert len(found) == 4 + 3
    assert not any("sign commits" in one["content"] or secret in one["content"] for one in found)


def test_nothing_said_while_it_is_off_is_ever_kept(home: Home, project: Path) -> None:
    home.start()
    tell(home, "UserPromptSubmit", "one", project, prompt=PREFERENCE)
    settled(home)
    home.kill()
    (home.path / "config.toml").write_text("auto_capture = false\n")
    home.start()
    tell(home, "UserPromptSubmit", "one", project, prompt=DECISION)
    settled(home)
    home.stop()
    (home.path / "config.toml").unlink()
    home.start()
    tell(home, "UserPromptSubmit", "one", project, prompt="go on")
    settled(home)
    assert [one["content"] for one in memories(home, project)] == [PREFERENCE]


ANNOUNCED = (
    "Remember: the staging server is at staging.example.com",
    "Lesson learned: always run migrations before deploying",
    "From now on, name branches after their ticket",
    "I prefer short answers",
    "We decided to use SQLite",
    "Decision: invoices are numbered per year",
    "Note to self: the tunnel drops at noon",
    "Never push to main directly",
    "Rule: no default exports",
    "Important: the signing key rotates every Monday",
    "For the record, the contract with Acme ends in June",
    "Keep in mind that the build machines have no network",
)


def test_whatever_a_person_announces_is_stored_and_a_question_is_not(served: Home, project: Path) -> None:
    asked = "Do you remember that the queue was slow?\nRemember to run the tests."
    prompt = "\n".join((asked, *ANNOUNCED, "```", "Remember: the cache is warm at start", "```"))
    tell(served, "UserPromptSubmit", "one", project, prompt=prompt)
    settled(served)
    assert {one["content"] for one in memories(served, project)} == set(ANNOUNCED)
