"""A client that asks all it can: `python -m tests.bench.greed SOCKET KIND`, until its input ends; prints how
often it was answered.

It has 64 connections, with eight requests under way on each, and as soon as one is answered it asks again.
Slow ones ask for long answers and read a byte a second of them; half ones send long lines and never end them.
"""

import random
import selectors
import socket
import sys
from contextlib import suppress
from itertools import count
from typing import Final

import msgspec

from tests.bench import texts

CONNECTIONS: Final = 64
UNDER_WAY: Final = 8
QUESTION_CHARACTERS: Final = 6_600
STORE_BYTES: Final = 60_000
HALF_BYTES: Final = 2 * 1024 * 1024
READ_BYTES: Final = 64 * 1024
NOTES: Final = 500
BYTE_EVERY_S: Final = 1.0
KINDS: Final = ("tools.list", "system.status", "questions", "stores", "slow readers", "half lines")


class Mouth:
    """What it says: requests of a kind, no two of which have the same text."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._numbers = count(1)
        self._choose = random.Random(kind)  # noqa: S311  nothing is secret
        self._notes = texts.notes(NOTES, kind)

    def next(self) -> bytes:
        """Return the next request; of half lines one that has no end."""
        number, params = next(self._numbers), dict[str, object]()
        match self._kind:
            case "questions":
                method, params = "memory.query", {"text": self._words(" ", "question", QUESTION_CHARACTERS)}
            case "stores":
                method, params = "memory.store", {"content": self._words("\n\n", "content", STORE_BYTES)}
            case "slow readers":
                method, params = "log.read", {"limit": 1000}
            case "half lines":
                return (
                    b'{"jsonrpc":"2.0","id":1,"method":"memory.store","params":{"content":"'
                    + b"x" * HALF_BYTES
                )
            case _:
                method = self._kind
        return (
            msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + b"\n"
        )

    def _words(self, between: str, what: str, characters: int) -> str:
        said, length = list[str](), 0
        while length < characters:
            said.append(getattr(self._choose.choice(self._notes), what))
            length += len(said[-1]) + len(between)
        return between.join(said)[:characters]


class Connection:
    """One of its connections, which is made again where the daemon has had enough of it."""

    def __init__(self, path: str, mouth: Mouth, requests: int) -> None:
        self._path, self._mouth, self._requests = path, mouth, requests
        self.answered = self.lost = 0
        self.connect()

    def connect(self) -> None:
        """Connect, and ask."""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(self._path)
        self.socket.setblocking(False)  # noqa: FBT003  the library's signature
        self._unsent = bytearray().join(self._mouth.next() for _ in range(self._requests))

    @property
    def wants(self) -> int:
        """What it waits for."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)

    def go_on(self, read_bytes: int) -> None:
        """Read so many bytes at most, ask again for each answer, and send what can be sent. Raises
        `OSError` where the connection has ended.
        """
        with suppress(BlockingIOError):
            data = self.socket.recv(read_bytes)
            if not data:
                raise ConnectionError
            for _ in range(data.count(b"\n")):
                self.answered += 1
                self._unsent += self._mouth.next()
        with suppress(BlockingIOError):
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent[:READ_BYTES])]


def drive(path: str, kind: str) -> tuple[int, int]:
    """Ask until the input ends; return how many answers there were, and how many connections the daemon
    ended.
    """
    mouth, selector = Mouth(kind), selectors.DefaultSelector()
    is_slow, requests = kind == "slow readers", 1 if kind == "half lines" else UNDER_WAY
    connections = [Connection(path, mouth, requests) for _ in range(CONNECTIONS)]
    selector.register(sys.stdin, selectors.EVENT_READ)
    for one in () if is_slow else connections:
        selector.register(one.socket, one.wants, one)
    print("asking", flush=True)
    while True:
        ready = [key.data for key, _ in selector.select(BYTE_EVERY_S if is_slow else None)]
        if None in ready:
            return sum(one.answered for one in connections), sum(one.lost for one in connections)
        for one in connections if is_slow else ready:
            _go_on(one, selector, 1 if is_slow else READ_BYTES)


def _go_on(one: Connection, selector: selectors.BaseSelector, read_bytes: int) -> None:
    before = one.socket
    try:
        one.go_on(read_bytes)
    except OSError:
        one.lost += 1
        one.connect()
    if before in selector.get_map() and one.socket is before:
        selector.modify(before, one.wants, one)
    elif read_bytes > 1:
        selector.unregister(before)
        selector.register(one.socket, one.wants, one)
    if one.socket is not before:
        before.close()


if __name__ == "__main__":
    print(msgspec.json.encode(drive(*sys.argv[1:])).decode())
