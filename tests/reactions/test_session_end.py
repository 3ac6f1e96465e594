"""What failing teaches: read off a session's calls alone."""

import pytest

from omegad.queries.session import Call
from omegad.reactions.session_end import learnings

Made = tuple[str, str, str]


def made(*calls: Made) -> list[Call]:
    return [Call(place, place, tool, status, text, None, (), ()) for place, (tool, status, text) in enumerate(calls, 1)]


def failing(count: int, tool: str = "Bash") -> list[Made]:
    return [(tool, "error", f"E{number}") for number in range(1, count + 1)]


OK = ("Bash", "ok", "fine")
READ = ("Read", "ok", "text")
RECOVERED = "Approach that worked: Bash error resolved after {} attempts. Error context: {}. Success context: fine"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([OK, READ], []),
        ([*failing(1), OK], [RECOVERED.format(1, "E1")]),
        ([*failing(2), READ, OK, OK], [RECOVERED.format(2, "E1")]),
        ([*failing(1), *[READ] * 9, OK], [RECOVERED.format(1, "E1")]),
        ([*failing(1), *[READ] * 10, OK], []),
        ([*failing(1), *[READ] * 8, ("Bash", "error", "late"), OK], [RECOVERED.format(2, "E1")]),
        ([*failing(1), ("Edit", "ok", "edited")], []),
        ([("Bash", "denied", "no"), OK], []),
        ([*failing(4), READ, *failing(4)], []),
        (failing(5), ["Anti-pattern: Bash failed 5 consecutive times. Error: E5"]),
        (
            [*failing(6), *failing(5, "Edit")],
            ["Anti-pattern: Bash failed 6 consecutive times. Error: E6", "Anti-pattern: Edit failed 5 consecutive times. Error: E5"],
        ),
        ([*failing(5), OK], ["Anti-pattern: Bash failed 5 consecutive times. Error: E5", RECOVERED.format(5, "E1")]),
        ([("Bash", "error", "x" * 300), OK], [RECOVERED.format(1, "x" * 100)]),
    ],
)
def test_what_worked_after_errors_and_what_never_did_is_learned(calls: list[Made], expected: list[str]) -> None:
    assert [learning.content for learning in learnings(made(*calls))] == expected
