"""The verbs about agents that work beside each other, as people type them."""

import json
import signal

from omegad.client import Client
from tests.edge.cli.conftest import PATIENCE_S, Command
from tests.edge.hook.conftest import payload


def begin(served: Command, session_id: str, prompt: str) -> None:
    with Client(served.paths.socket, timeout_s=PATIENCE_S) as client:
        client.call(
            "hook.dispatch",
            event="UserPromptSubmit",
            payload=payload("UserPromptSubmit", session_id, prompt=prompt),
        )


def test_tasks_are_put_down_taken_and_settled(served: Command) -> None:
    first = served.json("task", "create", "dump it", "--project", "shop", "--priority", "5")["task_id"]
    told = served("task", "create", "restore it", "--project", "shop", "--depends-on", first).stdout
    second = told.split()[-1]
    assert told == f"created {second}\n"
    assert served("task", "next", "s-1", "--project", "shop").stdout == f"{first} is claimed by s-1\n"
    assert served("task", "next", "s-1", "--project", "shop").stdout == "no task is ready\n"
    assert served("task", "claim", first, "s-1").stdout == f"{first} is claimed by s-1\n"
    refused = served("task", "claim", first, "s-2", status=1)
    assert f"task {first} is claimed by session s-1" in refused.stderr
    header, one, two = served("tasks", "--project", "shop").stdout.splitlines()
    assert header.split()[:3] == ["TASK", "STATUS", "PRIORITY"]
    assert one.split()[:5] == [first, "claimed", "5", "shop", "s-1"]
    assert two.split()[:6] == [second, "open", "3", "shop", "-", first]
    assert served("task", "complete", first, "--result", "4 GiB").stdout == f"{first} is completed\n"
    assert served.json("task", "get", first)["outcome"] == "4 GiB"
    assert "for each other" in served("task", "depend", first, second, status=1).stderr
    assert served("task", "cancel", second, "not needed").stdout == f"{second} is cancelled\n"
    assert served("tasks", "--project", "shop").stdout == "none\n"
    assert (
        len(
            served.json("tasks", "--project", "shop", "--status", "completed", "--status", "cancelled")[
                "tasks"
            ]
        )
        == 2
    )


def test_who_is_there_is_shown_once_and_on(served: Command) -> None:
    begin(served, "session-of-who", "make it\nfaster")
    (line,) = [
        line for line in served("who", "--project", "shop").stdout.splitlines() if "session-of-who" in line
    ]
    assert line.split()[:3] == ["session-of-who", "claude-code", "shop"]
    assert line.endswith("make it faster")
    with served.begin("who", "--watch", "--json") as process:
        assert process.stdout
        assert "session-of-who" in {
            one["session_id"] for one in json.loads(process.stdout.readline())["sessions"]
        }
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130


def test_a_message_is_left_and_seen_to_be_read(served: Command) -> None:
    begin(served, "session-of-messages", "go on")
    assert served("message", "send", "stop there", "--to-session", "session-of-mess").stdout.startswith(
        "sent msg-"
    )
    assert served("message", "list", "--session-id", "session-of-messages").stdout.splitlines()[1].split()[
        2:
    ] == [*("a", "person", "session-of-messages", "-", "stop", "there")]
    begin(served, "session-of-messages", "and on")
    assert served.json("message", "list")["messages"][0]["delivered_to"] == ["session-of-messages"]
    assert "nobody" in served("message", "send", "x", "--to-session", "nobody", status=1).stderr
