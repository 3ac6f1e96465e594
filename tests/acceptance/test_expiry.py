"""That a daemon sees by itself to what has expired."""

import time

from tests.acceptance.conftest import Home, until


def expiries(home: Home) -> list[str]:
    return [
        event["data"]["memory_id"] for event in home.events() if event["tag"].startswith("memory.expired")
    ]


def test_what_expired_while_nobody_served_is_recorded_once_after_the_start(daemon: Home) -> None:
    stored = daemon.call("memory.store", content="the release train leaves soon", ttl_seconds=1)["memory_id"]
    over = time.time() + 1.0
    assert daemon.stop() == 0
    until(lambda: time.time() > over)
    daemon.start()
    assert daemon.call("memory.query", text="release train")["abstained"]
    until(lambda: expiries(daemon) == [stored])
    daemon.restart()
    until(daemon.caught_up)
    assert expiries(daemon) == [stored]
    daemon.call("memory.restore", memory_id=stored)
    assert [one["memory_id"] for one in daemon.call("memory.query", text="release train")["results"]] == [
        stored
    ]
    daemon.check()
