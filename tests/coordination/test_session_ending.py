"""What failing teaches, read off a session's calls alone; and which sessions are over without having said
so.
"""

import pytest

from omegad.coordination import session_end
from omegad.coordination.session_end import IDLE_US
from omegad.coordination.session_end_reaction import learnings
from omegad.reactions.contract import Reader
from omegad.session.story import Call
from projections import conversations
from tests.builders import recorded, session_ended, session_started, show, tool_called

Made = tuple[str, str, str]


def made(*calls: Made) -> list[Call]:
    return [Call(place, place, tool, status, text) for place, (tool, status, text) in enumerate(calls, 1)]


def failing(count: int, tool: str = "Bash") -> list[Made]:
    return [(tool, "error", f"E{number}") for number in range(1, count + 1)]


OK = ("Bash", "ok", "fine")
READ = ("Read", "ok", "text")
RECOVERED = "Approach that worked: Bash error resolved after {}. Error context: {}. Success context: fine"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([OK, READ], []),
        ([*failing(1), OK], [RECOVERED.format("1 attempt", "E1")]),
        ([*failing(2), READ, OK, OK], [RECOVERED.format("2 attempts", "E1")]),
        ([*failing(1), *[READ] * 9, OK], [RECOVERED.format("1 attempt", "E1")]),
        ([*failing(1), *[READ] * 10, OK], []),
        ([*failing(1), *[READ] * 8, ("Bash", "error", "late"), OK], [RECOVERED.format("2 attempts", "E1")]),
        ([*failing(1), ("Edit", "ok", "edited")], []),
        ([("Bash", "denied", "no"), OK], []),
        ([*failing(4), READ, *failing(4)], []),
        (failing(5), ["Anti-pattern: Bash failed 5 consecutive times. Error: E5"]),
        (
            [*failing(6), *failing(5, "Edit")],
            [
                "Anti-pattern: Bash failed 6 consecutive times. Error: E6",
                "Anti-pattern: Edit failed 5 consecutive times. Error: E5",
            ],
        ),
        (
            [*failing(5), OK],
            [
                "Anti-pattern: Bash failed 5 consecutive times. Error: E5",
                RECOVERED.format("5 attempts", "E1"),
            ],
        ),
        ([("Bash", "error", "x" * 300), OK], [RECOVERED.format("1 attempt", "x" * 100)]),
    ],
)
def test_what_worked_after_errors_and_what_never_did_is_learned(
    calls: list[Made], expected: list[str]
) -> None:
    assert [learning.content for learning in learnings(made(*calls))] == expected


def test_a_session_is_over_when_nothing_was_heard_of_it_for_hours() -> None:
    told = [
        recorded(session_started(), 1),
        recorded(tool_called(1), 2),
        recorded(session_started(), 3, session_id="other"),
        recorded(session_ended(), 4),
    ]
    for count, named in ((3, ["other", "session-1"]), (4, ["other"])):
        connection = show(conversations, told[:count])
        last_us = told[count - 1].recorded_at
        assert list(session_end.due(0, Reader(connection, last_us))) == []
        found = list(session_end.due(0, Reader(connection, last_us + IDLE_US + 1)))
        assert [(command.session_id, command.reason) for command in found] == [
            (name, "idle") for name in named
        ]
        connection.close()
