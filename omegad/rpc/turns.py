"""Who is served next, where more is asked than can be done at once: clients in turns, and in its turn each
connection of a client.

A client is a process, however many connections it has. One that was served in the last turn goes behind those
that were not: whoever asks one thing, as a hook does, need not wait for whoever asks without end. While there
is time for everybody nobody waits, and nothing is kept of it.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Mapping
from typing import Protocol

import msgspec

from omegad.runtime.precedence import HOOKS

TURN_MESSAGES = 64
AT_ONCE_MESSAGES = 8  # of one client, before the next one's
TURN_S = 0.002
LONG_S, SHORT_S = 0.004, 0.001  # what a turn's requests took; the next turn is smaller, or larger


class Lane(msgspec.Struct, frozen=True):
    """What methods share: how many requests of one connection, and of one client, are served at once. The
    rest wait.
    """

    name: str
    of_connection: int
    of_client: int


class Asking(Protocol):
    """A connection, as far as turns go."""

    client: "Client"
    is_queued: bool

    def go_on(self, messages: int) -> int:
        """Take so many messages at most, and return how many there were."""
        ...

    def wake(self) -> None:
        """Start what waits for a place, if there is one, and take more."""


class Client:
    """A process, with what it has asked of each lane."""

    def __init__(self) -> None:
        self.connections = 0
        self.running: Counter[str] = Counter()
        self.ready: deque[Asking] = deque()
        """Connections with messages to be taken."""
        self.waiting: dict[Asking, None] = {}
        """Connections with requests that wait for a place of the client."""
        self.is_queued = False
        self.last_turn = -2

    def leave(self, lane: Lane) -> None:
        """Give back a place, to whichever connection has waited longest for one."""
        self.running[lane.name] -= 1
        for asking in [*self.waiting]:
            if self.running[lane.name] >= lane.of_client:
                return
            del self.waiting[asking]
            asking.wake()


class Turns:
    """Hands out turns; those who get none are called when it is theirs. *lanes* are those of methods."""

    def __init__(self, lanes: Mapping[str, Lane]) -> None:
        self.lanes = lanes
        self._clients: dict[object, Client] = {}
        self._fresh: deque[Client] = deque()
        self._busy: deque[Client] = deque()
        self._number = 0
        self._size = self._left = TURN_MESSAGES
        self._ended_s = 0.0
        self._is_due = False
        self._is_in_a_row = False

    def join(self, key: object) -> Client:
        """Return the client that *key* names, with one more connection."""
        client = self._clients.setdefault(key, Client())
        client.connections += 1
        return client

    def part(self, key: object) -> None:
        """Note that a client has one connection less."""
        self._clients[key].connections -= 1
        if not self._clients[key].connections:
            del self._clients[key]

    def has_turn(self, asking: Asking) -> bool:
        """Say whether a message may be taken at once; the connection is called later where not."""
        if self._left and not self._fresh and not self._busy:
            self._left -= 1
            if self._left * 2 <= self._size:
                self._schedule()
            return True
        client = asking.client
        if not asking.is_queued:
            asking.is_queued = True
            client.ready.append(asking)
            if not client.is_queued:
                client.is_queued = True
                (self._busy if client.last_turn >= self._number - 1 else self._fresh).append(client)
            self._schedule()
        return False

    def _schedule(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Let those who wait take messages, a fresh client and a busy one by turns; busy ones give way to
        a hook.
        """
        self._is_due = False
        if HOOKS.is_held and not self._fresh:
            self._is_in_a_row = False
            HOOKS.afterwards(self._schedule)
            return
        began = time.monotonic()
        if self._is_in_a_row:
            took = began - self._ended_s
            self._size = (
                max(1, self._size // 2)
                if took > LONG_S
                else min(TURN_MESSAGES, self._size * 2)
                if took < SHORT_S
                else self._size
            )
        self._number += 1
        self._left = self._size
        is_for_fresh = True
        while self._left > 0 and (self._fresh or self._busy):
            queue = self._fresh if (is_for_fresh and self._fresh) or not self._busy else self._busy
            is_for_fresh = not is_for_fresh
            self._serve(queue.popleft())
            if time.monotonic() - began > TURN_S:
                self._left = 0
        self._is_in_a_row = bool(self._fresh or self._busy)
        self._ended_s = time.monotonic()
        if self._is_in_a_row:
            self._schedule()

    def _serve(self, client: Client) -> None:
        client.is_queued = False
        client.last_turn = self._number
        asking = client.ready.popleft()
        asking.is_queued = False
        if client.ready:
            client.is_queued = True
            self._busy.append(client)
        self._left -= max(1, asking.go_on(min(AT_ONCE_MESSAGES, self._left)))
