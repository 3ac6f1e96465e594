"""Two homes that share, whose daemons, and whose server, are killed at any moment while both are told things."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from omegad.client import Client
from omegad.rpc import endpoint
from omegad.runtime.errors import OmegadError
from omegad.sharing import credentials
from tests.edge.cli.conftest import PATIENCE_S, Command
from tests.sharing.posts import TEAM, Posted
from tests.sharing.server import Server

SECONDS = float(os.environ.get("SHARED_KILLS_S", "20"))
PROJECT = "shop"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server({})
    yield made
    made.remove()


class Teller(threading.Thread):
    """Tells a home things until it is to stop, and knows what was acknowledged of them."""

    def __init__(self, home: Command, name: str) -> None:
        super().__init__(daemon=True)
        self._home, self._called = home, name
        self._stopping = threading.Event()
        self.said: dict[str, str] = {}
        self.unheard: dict[str, str] = {}
        """What edits said that nothing was heard of since, which may have come to pass."""

    def run(self) -> None:
        choose = random.Random(self._called)  # noqa: S311  nothing is secret
        number = 0
        while not self._stopping.is_set():
            try:
                with Client(self._home.paths.socket, timeout_s=5.0) as client:
                    while not self._stopping.is_set():
                        number += 1
                        self._say(client, number, choose)
                        time.sleep(choose.random() * 0.02)
            except (OmegadError, OSError):  # it was killed
                time.sleep(0.05)

    def _say(self, client: Client, number: int, choose: random.Random) -> None:
        content = f"{self._called} says number {number}, which comes to {number * 7919}"
        if self.said and number % 4 == 0:
            memory_id = choose.choice([*self.said])
            self.unheard[memory_id] = content
            client.call("memory.edit", memory_id=memory_id, content=content)
            del self.unheard[memory_id]
        else:
            memory_id = client.call("memory.store", content=content, event_type="decision", project=PROJECT)[
                "memory_id"
            ]
        self.said[memory_id] = content

    def stop(self) -> None:
        self._stopping.set()
        self.join(PATIENCE_S)
        assert not self.is_alive()


def held(home: Command) -> dict[str, str]:
    """Return what a home holds of the project."""
    with Client(home.paths.socket, timeout_s=PATIENCE_S) as client:
        found, cursor = dict[str, str](), None
        while True:
            page = client.call(
                "memory.list", project=PROJECT, limit=500, **({"cursor": cursor} if cursor else {})
            )
            found |= {one["memory_id"]: one["content"] for one in page["memories"]}
            cursor = page.get("next_cursor")
            if not cursor:
                return found


def in_time(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 2 * PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.2)


@pytest.mark.long
def test_whatever_is_killed_both_hold_in_the_end_what_either_was_told(server: Server, tmp_path: Path) -> None:
    posted = Posted.made(server, Posted.make_template(server))
    homes = {name: Command(tmp_path / name) for name in ("Ada", "Grace")}
    choose, tellers = random.Random(7), list[Teller]()  # noqa: S311  nothing is secret
    try:
        for name, home in homes.items():
            home("start")
            credentials.keep(home.paths.share, posted.member(name))
            with Client(home.paths.socket, timeout_s=PATIENCE_S) as client:
                client.call("share.join", team=TEAM, person=name)
                client.call("share.choose", project=PROJECT)
            tellers.append(Teller(home, name))
        for teller in tellers:
            teller.start()
        kills, ends = 0, time.monotonic() + SECONDS
        while time.monotonic() < ends:
            time.sleep(choose.random() * 2)
            victims: list[Command | Server] = [*homes.values(), *homes.values(), server]
            killed(choose.choice(victims))
            kills += 1
        for teller in tellers:
            teller.stop()
        assert kills > 3
        for home in homes.values():
            home("share", "now")
        in_time(lambda: held(homes["Ada"]) == held(homes["Grace"]) and not any(map(waits, homes.values())))
        both = held(homes["Ada"])
        for teller in tellers:
            assert teller.said.keys() <= both.keys()
            assert len(teller.said) > 20
            may = {one: {said, teller.unheard.get(one, said)} for one, said in teller.said.items()}
            assert [one for one, texts in may.items() if both[one] not in texts] == []
        for home in homes.values():
            home("share", "verify")
            assert home.json("verify")["ok"]
    finally:
        for home in homes.values():
            home.end()


def killed(one: Command | Server) -> None:
    """Kill a home's daemon, or the server, and start it again."""
    if isinstance(one, Server):
        one.kill()
        time.sleep(0.5)
        one.start()
        return
    if pid := endpoint.holder(one.paths.lock):
        os.kill(pid, signal.SIGKILL)
    one("start")


def waits(home: Command) -> Any:
    with Client(home.paths.socket, timeout_s=PATIENCE_S) as client:
        status = client.call("share.status")
    return status["waiting"] or status["trouble"]
