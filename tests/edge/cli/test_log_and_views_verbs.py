import asyncio
import json
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from omegad.edge.cli import checks
from omegad.edge.cli.instance import at
from tests.builders import append, embedded, running_log
from tests.edge.cli.conftest import PATIENCE_S, Command


@pytest.fixture
def follower(served: Command) -> Iterator[subprocess.Popen[str]]:
    served.store("something to begin with")
    with served.begin("log", "--follow", "--limit", "1", "--json") as process:
        watchdog = threading.Timer(PATIENCE_S, process.kill)
        watchdog.start()
        yield process
        watchdog.cancel()
        process.kill()


def next_event(process: subprocess.Popen[str]) -> dict[str, object]:
    assert process.stdout
    return dict(json.loads(process.stdout.readline()))


def test_an_event_is_shown_while_it_is_followed(served: Command, follower: subprocess.Popen[str]) -> None:
    next_event(follower)  # the latest one: it is listening
    position = served.json("store", "the pigeon has landed", "--project", "followed")["position"]
    event = next_event(follower)
    assert (event["position"], event["tag"], event["project"]) == (position, "memory.stored@2", "followed")


def test_following_ends_quietly_when_it_is_interrupted(follower: subprocess.Popen[str]) -> None:
    next_event(follower)
    follower.send_signal(signal.SIGINT)
    _, complaints = follower.communicate(timeout=PATIENCE_S)
    assert (follower.returncode, complaints) == (130, "")


def test_following_ends_when_the_daemon_does(omegad: Command) -> None:
    omegad("store", "something to begin with")
    follower = omegad.begin("log", "--follow")
    assert follower.stdout
    assert "memory.stored@2" in follower.stdout.readline()
    omegad("stop")
    _, complaints = follower.communicate(timeout=PATIENCE_S)
    assert follower.returncode == 3
    assert complaints.startswith("omegad: ")


def test_the_latest_events_are_shown_or_those_after_a_position(served: Command) -> None:
    for number in range(3):
        served.store(f"event number {number}")
    head = served.json("log", "--limit", "1")["head"]
    latest = served.json("log", "--limit", "2")["events"]
    assert [event["position"] for event in latest] == [head - 1, head]
    assert [event["position"] for event in served.json("log", "--after", "0", "--limit", "2")["events"]] == [
        1,
        2,
    ]
    assert served("log", "--limit", "1").stdout.split()[0] == str(head)


def test_a_position_beyond_the_log_is_refused_by_following_too(served: Command) -> None:
    assert "beyond the end of the log" in served("log", "--follow", "--after", "999999", status=2).stderr


def test_the_log_and_the_views_are_verified_and_rebuilt(served: Command) -> None:
    served.store("a row for the views")
    verified = served.json("verify")
    assert verified["ok"]
    assert verified["log"]["events"] == served.json("status")["log"]["head"]
    assert served("verify").stdout.startswith("log: ")
    assert served.json("rebuild")["ok"]
    assert "rebuilt edges" in served("rebuild", "edges").stdout


def test_a_view_that_there_is_not_is_named_with_those_that_there_are(served: Command) -> None:
    assert "the views are memories, edges" in served("rebuild", "nonesuch", status=2).stderr


def change_a_view(home: Path) -> None:
    with sqlite3.connect(home / "views.db", isolation_level=None) as connection:
        assert connection.execute("UPDATE memories SET priority = 1").rowcount == 1
    connection.close()


def test_a_view_that_was_changed_fails_verification_until_it_is_rebuilt(omegad: Command) -> None:
    omegad("store", "what the log says is so")
    omegad("stop")
    change_a_view(omegad.home)
    refused = omegad("verify", status=1)
    assert "`omegad rebuild` builds it again" in refused.stderr
    assert "NO" in refused.stdout
    omegad("rebuild", "memories")
    omegad("verify")


def test_vectors_that_wait_for_the_model_are_no_difference(omegad: Command) -> None:
    """As after a restore, since the cache of vectors is in no backup."""
    omegad("store", "what the log says is so")
    omegad("stop")

    async def embed() -> None:
        async with running_log(omegad.paths.log) as log:
            await append(log, embedded("mem-1", "one", "two"))

    asyncio.run(embed())
    told = omegad("verify").stdout
    assert "2 vectors wait for the model" in told
    assert "NO" not in told
    (found,) = checks.views(at(omegad.environ, may_spawn=False), is_full=True)
    assert (found.state, found.seen.endswith("2 vectors wait for the model")) == ("ok", True)
    omegad("stop")
    with sqlite3.connect(omegad.home / "views.db", isolation_level=None) as connection:
        assert connection.execute("DELETE FROM deferred").rowcount == 1
    connection.close()
    assert "vectors: 2 vectors are missing" in omegad("verify", status=1).stdout
    omegad("rebuild", "vectors")
    omegad("verify")


def test_a_decision_state_that_was_changed_fails_verification_until_it_is_rebuilt(omegad: Command) -> None:
    omegad("store", "what the log says is so")
    omegad("stop")
    with sqlite3.connect(omegad.paths.log, isolation_level=None) as connection:
        assert connection.execute("DELETE FROM state_memories").rowcount == 1
    connection.close()
    report = omegad.json("doctor", "--full", status=1)
    (failed,) = [finding for finding in report["findings"] if finding["state"] == "FAIL"]
    assert (failed["part"], "omegad rebuild" in failed["remedy"]) == ("log", True)
    assert "omegad rebuild" in omegad("verify", status=1).stderr
    omegad("rebuild")
    omegad("verify")
