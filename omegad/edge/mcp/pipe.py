"""The pipe between an agent's host and the MCP gateway: standard input and output on one side, the gateway's socket on the other.

A host starts one for each session with `python -I -S`, so it is made of the standard library alone, as is what it imports, and is small.
It starts the gateway where none answers: of any number that find none, one does, by a lock. It introduces the server and lists the tools itself,
in the gateway's words, since hosts begin without a server that takes more than a second; a gateway is told who the client is when there is
something to ask of it. So it is when one ends under a session, or leaves it to a newer one: what was not answered is asked again, which does
nothing twice, since the gateway names calls by the bridge's own name and their ids.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import struct
import sys
import time

from omegad.edge.mcp.lines import CHUNK, Lines, TooLong, is_id, is_introduction, read_message
from omegad.runtime import derived
from omegad.runtime.json_text import id_in, mended

TYPE_CHECKING = False  # typing would be a tenth of what it occupies
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from typing import Any


LINE_BYTES_MAX = 16 << 20  # of what a host says, as the gateway has it
START_S = 30.0
POLL_S = 0.02
LAST_WORDS_S = 10.0  # for the answers to what was sent before the host closed its end
RESTARTS_MAX = 3  # of gateways that end without an answer
REASON_BYTES = 2048
INTERNAL_ERROR = -32603
INVALID_REQUEST = -32600
TOO_LONG = f"the line is longer than {LINE_BYTES_MAX} bytes; what to do: say less at once"
NO_ID = "the id of a request is neither a text nor an integer; what to do: give it one that is"
LOG = "gateway.log"
NAME = os.urandom(8).hex()
"""Whose calls they are, to any gateway."""


class CannotConnect(Exception):
    """No gateway answers, and none could be started."""


def home_of(environ: Mapping[str, str]) -> str:
    """Return the home, as the configuration finds it."""
    return os.path.abspath(os.path.expanduser(environ.get("OMEGAD_HOME") or "~/.omegad"))


def socket_of(environ: Mapping[str, str]) -> str:
    """Return the socket of the gateway that listened last, whatever the environment that it was started in said of sockets."""
    try:
        return os.readlink(os.path.join(home_of(environ), "gateway.socket"))
    except OSError:
        return ""


def connect(path: str) -> socket.socket | None:
    """Return a connection to the gateway, None where none answers; raise where another user does."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    if _peer_uid(connection) != os.geteuid():
        connection.close()
        raise CannotConnect(f"{path} is served by another user")
    return connection


def _peer_uid(connection: socket.socket) -> int:
    if sys.platform == "darwin":
        return int(struct.unpack_from("=II", connection.getsockopt(0, 1, 76))[1])  # LOCAL_PEERCRED of SOL_LOCAL: a struct xucred
    return int(struct.unpack("=iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1])


def connected(environ: Mapping[str, str], failures: int) -> socket.socket:
    """Return a connection, to a gateway that is started if need be, with the opening sent; *failures* is how many ended without an answer."""
    if failures > RESTARTS_MAX:
        raise CannotConnect("the gateway of omegad ends again and again; gateway.log in its home may say why")
    opening = {
        "bridge": NAME,
        "version": greeting()["initialize"]["serverInfo"]["version"],
        "project": environ.get("CLAUDE_PROJECT_DIR"),
        "session_id": environ.get("CLAUDE_CODE_SESSION_ID"),
        "directory": os.getcwd(),
    }
    line = json.dumps({name: value for name, value in opening.items() if value}).encode() + b"\n"
    process = None
    deadline = time.monotonic() + START_S
    while (connection := introduced(socket_of(environ), line)) is None:
        if process is not None and process.poll() is not None:
            raise CannotConnect(f"the gateway of omegad does not start: {_last_words(environ) or 'it says nothing'}")
        if time.monotonic() > deadline:
            raise CannotConnect(f"the gateway of omegad does not answer within {START_S:.0f} s")
        process = process or started(environ)
        time.sleep(POLL_S)
    return connection


def introduced(path: str, line: bytes) -> socket.socket | None:
    """Return a connection to the gateway, on which *line* was sent; None where none answers, or it ends in this moment."""
    if (connection := connect(path)) is None:
        return None
    try:
        connection.sendall(line)
    except OSError:
        connection.close()
        return None
    return connection


def greeting() -> dict[str, Any]:
    """Return what is answered in the gateway's place, as it is installed at this moment."""
    return json.loads(derived.read(derived.GREETING))  # type: ignore[no-any-return]


def started(environ: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    """Start a gateway and do not wait for it; None where one is there or being started: it has the lock as its input until it listens."""
    home = home_of(environ)
    os.makedirs(home, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(home, "gateway.start"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if answering := connect(socket_of(environ)):
            answering.close()
            return None
        return _launched(home, environ, lock)
    except BlockingIOError:
        return None
    finally:
        os.close(lock)


def _launched(home: str, environ: Mapping[str, str], lock: int) -> subprocess.Popen[bytes]:
    import subprocess  # noqa: PLC0415  costs more than all the rest, and one session of many needs it

    given = {**derived.importing(environ), "OMEGAD_HOME": home}
    command = [sys.executable, "-P", "-m", "omegad", "gateway"]
    path = os.path.join(home, LOG)
    try:  # noqa: SIM105  contextlib takes 5 ms to import
        os.replace(path, path + ".1")  # which a gateway that takes no more sessions may still write to
    except OSError:
        pass  # there is none, or it is appended to
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        return subprocess.Popen(command, env=given, cwd=home, stdin=lock, stdout=log, stderr=log, start_new_session=True)  # noqa: S603  our own module
    finally:
        os.close(log)


def _last_words(environ: Mapping[str, str]) -> str:
    with open(os.path.join(home_of(environ), LOG), "rb") as file:
        return file.read()[-REASON_BYTES:].decode("utf-8", "replace").strip()


class Bridge:
    """A session: what its client has asked and was not answered yet, and how it introduced itself."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._connection: socket.socket | None = None
        self._failures = 0
        self._down = Lines(float("inf"))
        self._outgoing = bytearray()
        self._held: list[bytes] = []
        """Lines for the gateway that is yet to be connected, or to be introduced to."""
        self._pending: dict[str, bytes] = {}
        """The lines of requests by their ids, as JSON."""
        self._introduction: list[bytes] = []
        """The lines of `initialize` and of the notification after it."""
        self._greeting: dict[str, Any] | None = None
        """What is answered in the gateway's place, to a client that has introduced itself."""
        self._unheard: str | None = None
        """The id of an introduction that the gateway is yet to answer, and the client has had its answer to."""

    def run(self) -> None:
        """Carry lines until the host has no more to say, and has its answers."""
        up, deadline = Lines(LINE_BYTES_MAX), 0.0
        while not deadline or (self._pending and time.monotonic() < deadline):
            if self._connection is None and self._held:
                self._reconnect()
            readers: list[socket.socket | int] = [*([self._connection] if self._connection else []), *([] if deadline else [0])]
            writers: list[socket.socket | int] = [self._connection] if self._connection and self._outgoing else []
            readable, writable, _ = select.select(readers, writers, [], 0.1 if deadline else None)
            if self._connection in readable:
                self._receive()
            if self._connection in writable:
                self._send()
            if 0 in readable:
                data = os.read(0, CHUNK)
                for line in up.feed(data):
                    (refuse if isinstance(line, TooLong) else self._take)(line)
                deadline = 0.0 if data else time.monotonic() + LAST_WORDS_S

    def _take(self, line: bytes) -> None:
        """Note what a line of the client asks, and pass it on."""
        line = mended(line)
        message = read_message(line)
        method = message.get("method")
        if is_introduction(message):  # or it is for the gateway to refuse
            self._introduction = [line]
        elif method == "notifications/initialized":
            self._introduction[1:] = [line] if self._introduction else []
        if method and "id" in message and not is_id(message["id"]):
            answer("null", error={"code": INVALID_REQUEST, "message": NO_ID})  # the gateway would take it for a notification
            return
        if self._greets(method, message):
            return
        if method and "id" in message:
            self._pending[json.dumps(message["id"])] = line
        if self._connection is None or self._unheard:
            self._held.append(line)
        else:
            self._outgoing += line + b"\n"

    def _greets(self, method: object, message: dict[str, Any]) -> bool:
        """Answer in the gateway's words, and start one where there is none; say whether that was possible."""
        if method == "initialize":
            if not is_introduction(message):
                return False
            self._greeting = greeting()
            try:  # noqa: SIM105  contextlib takes 5 ms to import
                started(self._environ)
            except (OSError, CannotConnect):
                pass  # as is said when something is asked of it
        if self._greeting is None or method not in ("initialize", "notifications/initialized", "tools/list"):
            return False
        if method == "tools/list" and not is_id(message.get("id")):
            return False
        if method == "initialize":
            asked = message["params"].get("protocolVersion")
            versions = self._greeting["versions"]
            chosen = asked if asked in versions else versions[-1]
            answer(json.dumps(message.get("id")), result={"protocolVersion": chosen, **self._greeting["initialize"]})
        elif method == "tools/list":
            answer(json.dumps(message.get("id")), result=self._greeting["tools/list"])
        return True

    def _send(self) -> None:
        assert self._connection
        try:
            sent = self._connection.send(self._outgoing[:CHUNK], socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            self._lose()
            return
        del self._outgoing[:sent]

    def _receive(self) -> None:
        """Pass on what the gateway says."""
        assert self._connection
        try:
            data = self._connection.recv(CHUNK)
        except OSError:
            data = b""
        if not data:
            self._lose()
        for line in self._down.feed(data):
            message = read_message(line)
            number = json.dumps(message.get("id"))
            if "method" in message or number != self._unheard:
                write(line)
                if "method" not in message:
                    self._pending.pop(number, None)
                    self._failures = 0
                continue
            self._unheard = None
            self._pass_on()

    def _lose(self) -> None:
        """Keep what was asked of a gateway that is gone, to be asked of the next one."""
        assert self._connection
        self._connection.close()
        self._connection, self._unheard = None, None
        self._failures += 1
        self._outgoing.clear()
        self._held = list(self._pending.values())

    def _reconnect(self) -> None:
        """Find or start a gateway, and introduce the client to it where it has been introduced; end where that cannot be."""
        try:
            self._connection = connected(self._environ, self._failures)
        except (OSError, CannotConnect) as error:
            for number in self._pending:
                answer(number, error={"code": INTERNAL_ERROR, "message": str(error)})
            sys.stderr.write(f"omegad mcp: {error}\n")
            sys.exit(1)
        self._down = Lines(float("inf"))
        if self._introduction:
            self._unheard = json.dumps(read_message(self._introduction[0]).get("id"))
            self._outgoing += self._introduction[0] + b"\n"
            self._held[:0] = self._introduction[1:]
        else:
            self._pass_on()

    def _pass_on(self) -> None:
        """Send what was held."""
        self._outgoing += b"".join(line + b"\n" for line in self._held)
        self._held = []


def refuse(line: bytes) -> None:
    """Answer a line that is too long, under its id where that can be told."""
    answer(id_in(line).decode(), error={"code": INVALID_REQUEST, "message": TOO_LONG})


def answer(number: str, **said: object) -> None:
    """Answer the client's request of this id in the gateway's place."""
    write(json.dumps({"jsonrpc": "2.0", "id": json.loads(number), **said}).encode())


def write(line: bytes) -> None:
    """Write a line to the host, all of it."""
    left = memoryview(line + b"\n")
    while left:
        left = left[os.write(1, left) :]


def main() -> None:
    """Be the bridge of one session."""
    try:
        Bridge(os.environ).run()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)  # the host is gone
