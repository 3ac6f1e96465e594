"""Sends frames to a door, and sees that whatever is answered is an answer, and that the door goes on
serving.
"""

import os
import random
import re
import select
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.fuzz.frames import Frames
from tests.fuzz.values import ANSWERED, INTERNAL

PATIENCE_S = 60.0
QUIET_S = 0.1  # without a byte, after which no more is expected of an HTTP connection that is left half said
READ_BYTES = 256 * 1024
RUN_OF = (1, 120)  # frames on one connection
SPLIT_ODDS = 0.2
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
REFUSING = {503}


class Places(NamedTuple):
    """Where the doors are."""

    socket: str
    environ: dict[str, str]
    http_port: int
    token: str


class Sent(NamedTuple):
    """What became of some frames: how many were sent, what was answered how often, and what was wrong."""

    frames: int
    answers: Counter[str]
    wrong: list[str]


class Channel:
    """A way to send bytes and to read answers at the same time, so that neither end waits for the other
    for ever.
    """

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self.rest = bytearray()
        """What came after the last line."""
        for descriptor in {reading, writing}:
            os.set_blocking(descriptor, False)

    def lines(self, data: bytes, patience_s: float, chunks: Callable[[], int]) -> Iterator[bytes]:
        """Send data while yielding the lines that come, until the other end closes or is silent for so
        long, which raises `TimeoutError`.
        """
        left = memoryview(data)
        while True:
            readable, writable, _ = select.select(
                [self._reading], [self._writing] if left else [], [], patience_s
            )
            if not readable and not writable:
                raise TimeoutError
            if writable:
                try:
                    left = left[os.write(self._writing, left[: chunks()]) :]
                except BlockingIOError:
                    pass
                except OSError:
                    left = memoryview(b"")
            if readable:
                try:
                    come = os.read(self._reading, READ_BYTES)
                except OSError:
                    come = b""
                if not come:
                    yield bytes(self.rest)
                    return
                self.rest += come
                *lines, self.rest = self.rest.split(b"\n")
                yield from map(bytes, lines)

    def send(self, data: bytes) -> None:
        """Send what is taken at once, and let go of the rest."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._writing, left[:READ_BYTES]) :]
        except OSError:
            return


class Sender:
    """Sends so many frames to one door."""

    def __init__(self, seed: str, places: Places) -> None:
        self._seed = seed
        self._chance = random.Random(seed)  # noqa: S311  the seed names them again
        self._frames = Frames(self._chance)
        self._places = places
        self._answers: Counter[str] = Counter()
        self._wrong: list[str] = []

    def send(self, door: str, frames: int) -> Sent:
        """Send them, and return what became of them."""
        runs = {"socket": self._socket_run, "mcp": self._mcp_run, "http": self._http_run}
        sent = 0
        while sent < frames and not self._wrong:
            sent += runs[door](min(frames - sent, self._chance.randint(*RUN_OF)))
        return Sent(sent, self._answers, self._wrong)

    def _chunks(self) -> Callable[[], int]:
        """Return what says how many bytes go at once: few here and there."""
        if self._chance.random() > SPLIT_ODDS:
            return lambda: READ_BYTES
        return lambda: self._chance.choice((1, 7, 100, 5_000))

    def _socket_run(self, frames: int) -> int:
        sent = [self._frames.socket() for _ in range(frames)]
        data = b"\n".join(sent)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._places.socket)
            channel = Channel(connection.fileno(), connection.fileno())
            match self._chance.choices(("asked", "closed", "half", "reset", "unread"), (14, 2, 2, 1, 1))[0]:
                case "asked":
                    self._asked(
                        channel, data + b'\n{"jsonrpc":"2.0","id":"the end","method":"system.ping"}\n', sent
                    )
                case "half":
                    channel.send(
                        b"\n".join(frame for frame in sent if b"log.follow" not in frame)
                    )  # which goes on for who only listens
                    connection.shutdown(socket.SHUT_WR)
                    self._read(channel, sent)
                case "reset":
                    channel.send(data)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                case "unread":
                    channel.send(data * 20 if len(data) < READ_BYTES else data)
                    time.sleep(0.02)
                case _:
                    channel.send(data)
        return frames

    def _asked(self, channel: Channel, data: bytes, sent: Sequence[bytes]) -> None:
        """Send all, and read answers until the last request has its own."""
        try:
            for line in channel.lines(data, PATIENCE_S, self._chunks()):
                answer = self._answer(line, sent)
                if isinstance(answer, dict) and answer.get("id") == "the end":
                    return
            self._note("the connection was closed", sent)
        except TimeoutError:
            self._note(f"no answer within {PATIENCE_S:.0f} s", sent)

    def _read(self, channel: Channel, sent: Sequence[bytes]) -> None:
        """Read answers until the other end closes."""
        try:
            for line in channel.lines(b"", PATIENCE_S, self._chunks()):
                self._answer(line, sent)
        except TimeoutError:
            self._note("the connection was not closed", sent)

    def _answer(self, line: bytes, sent: Sequence[bytes]) -> Any:
        if not line:
            return None
        try:
            answer = msgspec.json.decode(line)
        except msgspec.DecodeError:
            self._note(f"an answer is no JSON: {line[:300]!r}", sent)
            return None
        for one in answer if isinstance(answer, list) else [answer]:
            self._judge(one, sent)
        return answer

    def _judge(self, answer: Any, sent: Sequence[bytes]) -> None:
        if not isinstance(answer, dict) or (
            "method" not in answer and ("result" in answer) == ("error" in answer)
        ):
            self._note(f"no answer: {answer!r:.300}", sent)
        elif "error" in answer:
            code = answer["error"]["code"]
            self._answers[str(code)] += 1
            if code == INTERNAL or code not in ANSWERED | {0}:
                self._note(f"{answer!r:.600}", sent)
        else:
            self._answers["told" if "method" in answer else "result"] += 1

    def _note(self, wrong: str, sent: Sequence[bytes]) -> None:
        self._wrong.append(
            f"{wrong}; among {len(sent)} frames of {self._seed}: {[frame[:300] for frame in sent[:20]]}"
        )

    def _mcp_run(self, frames: int) -> int:
        """Speak through a process as a host starts it, for some runs."""
        sent = [self._frames.mcp() for _ in range(frames)]
        command = [sys.executable, "-m", "omegad", "mcp"]
        root = Path(__file__).parents[2]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._places.environ, cwd=root
        ) as bridge:
            assert bridge.stdin
            assert bridge.stdout
            for number in range(8):
                more = sent if not number else [self._frames.mcp() for _ in range(frames)]
                if not self._mcp_session(bridge.stdout.fileno(), bridge.stdin.fileno(), more):
                    break
            self._end(bridge, sent)
        return frames * (number + 1)

    def _mcp_session(self, reading: int, writing: int, sent: Sequence[bytes]) -> bool:
        """Send frames, and say whether the session goes on."""
        channel = Channel(reading, writing)
        data = b"\n".join(sent)
        if self._chance.random() < 0.8:
            self._asked(channel, data + b'\n{"jsonrpc":"2.0","id":"the end","method":"ping"}\n', sent)
            return not self._wrong
        channel.send(data)
        return False

    def _end(self, bridge: subprocess.Popen[bytes], sent: Sequence[bytes]) -> None:
        """Close a bridge's input, or kill it, and see that it ends as it should."""
        if self._chance.random() < 0.9:  # it waits for answers that are owed to nobody, ten seconds at most
            bridge.kill()
            return
        assert bridge.stdin
        assert bridge.stdout
        bridge.stdin.close()
        try:
            for _ in Channel(bridge.stdout.fileno(), bridge.stdout.fileno()).lines(
                b"", PATIENCE_S, self._chunks()
            ):
                pass
        except TimeoutError:
            self._note("the bridge does not end", sent)
            bridge.kill()
        if status := bridge.wait(PATIENCE_S):
            self._note(f"the bridge ended with {status}", sent)

    def _http_run(self, frames: int) -> int:
        frames = min(frames, self._chance.choice((1, 2, 5, 20)))
        host = f"127.0.0.1:{self._places.http_port}".encode()
        sent = [self._frames.http(self._places.token.encode(), host) for _ in range(frames)]
        try:
            with socket.create_connection(("127.0.0.1", self._places.http_port), PATIENCE_S) as connection:
                self._http_said(Channel(connection.fileno(), connection.fileno()), sent)
        except ConnectionError as error:
            self._answers[type(error).__name__] += 1
            time.sleep(QUIET_S)
            self._http_serves(sent)
        return frames

    def _http_said(self, channel: Channel, sent: Sequence[bytes]) -> None:
        if self._chance.random() < 0.1:
            channel.send(b"".join(sent))
            return
        come = bytearray()
        try:
            for line in channel.lines(b"".join(sent), QUIET_S, self._chunks()):
                come += line + b"\n"
        except TimeoutError:
            self._answers["left half said"] += 1
            come += channel.rest
        for status in map(int, STATUS.findall(come)):
            self._answers[str(status)] += 1
            if status >= 500 and status not in REFUSING:
                self._note(f"{status}: {bytes(come[-600:])!r}", sent)
        if b"-32603" in come:
            self._note(f"{bytes(come[-600:])!r}", sent)

    def _http_serves(self, sent: Sequence[bytes]) -> None:
        """See that a connection that was refused was that one alone."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self._places.http_port), PATIENCE_S).close()
            except ConnectionError:
                time.sleep(QUIET_S)
            else:
                return
        self._note("nobody listens any more", sent)


def send(door: str, seed: str, frames: int, places: Places) -> Sent:
    """Send so many frames to a door; the seed names the same ones again."""
    return Sender(f"{seed}/{door}", places).send(door, frames)
