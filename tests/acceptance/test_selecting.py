"""A SELECT that SQLite cannot be stopped at: it is ended all the same, and never outlives the daemon."""

import subprocess
import threading
from contextlib import suppress

from omegad.runtime.errors import OmegadError
from tests.acceptance.conftest import Home, refusal, until

CHARACTERS = 200_000
TRIMMING = (
    "SELECT length(ltrim(a.content, b.content)) FROM memories AS a, memories AS b WHERE a.event_type ="
    " 'decision' AND b.event_type = 'memory'"
)
"""Of each character of the one it is asked whether it is the last one of the other: minutes, in one step
of SQLite's.
"""


def children(pid: int) -> set[int]:
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    return {int(line.split()[0]) for line in listed.splitlines() if int(line.split()[1]) == pid}


def alive(pids: set[int]) -> set[int]:
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    return {
        int(line.split()[0]) for line in listed.splitlines() if not line.split()[1].startswith("Z")
    } & pids


def test_what_cannot_be_interrupted_is_ended_and_with_the_daemon_at_the_latest(daemon: Home) -> None:
    daemon.call("memory.store", content="y" * CHARACTERS, event_type="decision")
    daemon.call("memory.store", content="x" * CHARACTERS + "y", event_type="memory")
    refused = refusal(lambda: daemon.call("audit.sql", sql=TRIMMING))
    assert "took longer than 1 s" in str(refused)
    assert not children(daemon.process.pid)

    def ask() -> None:
        with suppress(OmegadError):
            daemon.call("audit.sql", sql=TRIMMING)

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: bool(children(daemon.process.pid)))
    left = children(daemon.process.pid)
    daemon.kill()
    until(lambda: not alive(left))
    asking.join()
