"""The MCP server that a host starts for a session: its requests on standard input, the daemon at its socket.

A host starts it with `python -I -S`, so it is made of the standard library alone, as is what it imports, and
is small. It introduces the server and lists the tools by itself, since hosts begin without a server that
takes more than a second; calls of tools go to the daemon, which is started where none answers: of any number
of sessions that find none, one does, by a lock. Where the daemon ends under a call the next one is asked,
which does nothing twice, since calls are named by this process's own name and the ids that the host gave.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time

from omegad.edge.hook.delivery import find_home, peer_uid, sockets
from omegad.edge.hook.launching import started
from omegad.edge.mcp.messages import (
    CHUNK,
    INVALID_PARAMS,
    LINE_BYTES_MAX,
    Lines,
    Refusal,
    Session,
    consulting,
    encoded,
    greeting,
    read,
)
from omegad.runtime.pausing import VARIABLE
from omegad.runtime.repository import project_of
from omegad.runtime.versions import is_older

TYPE_CHECKING = False  # typing would be a tenth of what it occupies
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

    from omegad.edge.consult.offering import Consultations
    from omegad.runtime.json_types import Fields

POLL_S = 0.02
CONNECT_S = 1.0
CALL_S = 30.0  # hosts give up after a minute, and say less
ROOTS_S = 2.0
LAST_WORDS_S = 10.0  # for the answers to what was sent before the host closed its end
RETRIES_MAX = 3  # of a call whose daemon ended before it was answered
ID_CHARACTERS = 256
TOOL_USE = "claudecode/toolUseId"  # of Claude Code, with each call
NOT_FOUND, SHUTTING_DOWN = -32000, -32006
HELLO = 0
"""The number of the request that says who asks; those of calls follow."""
ROOTS = 1
"""The id of the only request that a client gets."""
CONSULTED = ("omega_consult", "omega_route")
"""What the names of tools begin with that are no daemon's."""
NAME = os.urandom(8).hex()
"""Whose calls they are, to any daemon."""
LATE = (
    f"omegad did not answer within {CALL_S:.0f} s; it may still be done. What to do: ask omega_query for it,"
    " or call again"
)


class CannotStart(Exception):
    """No daemon can be used; what to do about it is its hint."""

    def __init__(self, message: str, hint: str = "run `omegad doctor`") -> None:
        super().__init__(message)
        self.hint = hint


class Call:
    """A call of a tool that is not answered yet."""

    __slots__ = ("deadline", "id", "params", "tries")

    def __init__(self, number: object, params: Fields) -> None:
        self.id = number
        self.params = params
        self.deadline = time.monotonic() + CALL_S
        self.tries = 0


def advice(message: str, hint: str) -> str:
    """Return what went wrong, as agents are told."""
    return f"{message.removesuffix('.')}. What to do: {hint}"


def unreachable(message: object, hint: str) -> str:
    """Return that no daemon answered, as agents are told."""
    return (
        f"omegad cannot be reached ({message}); whether the call was done is not known."
        f" What to do: call again, or {hint}"
    )


def connect() -> socket.socket | None:
    """Return a connection to the daemon, None where none answers. Raises `CannotStart` where another user
    does.
    """
    for path in sockets(find_home()):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(CONNECT_S)
        try:
            connection.connect(path)
            owner = peer_uid(connection)
        except OSError:
            connection.close()
            continue
        if owner == os.geteuid():
            return connection
        connection.close()
        hint = "set OMEGAD_SOCKET to a socket of your own"
        raise CannotStart(f"{os.fsdecode(path)} is served by another user", hint)
    return None


class Bridge:
    """A session: what its client has asked and was not answered yet, and where it works."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._session = Session()
        self._daemon: socket.socket | None = None
        self._is_known = False
        """Whether the daemon has answered who asks."""
        self._down = Lines(float("inf"))
        self._outgoing = bytearray()
        self._starter: subprocess.Popen[bytes] | None = None
        self._is_renewed = False
        """Whether an older daemon was to be replaced; it is tried once."""
        self._refusal: Fields | None = None
        """Why the daemon is about to close the connection."""
        self._asked: dict[int, Call] = {}
        """What the daemon has been asked, by the numbers of the calls, the first one first."""
        self._waiting: dict[int, Call] = {}
        """The calls after those."""
        self._consulting: dict[int, Call] = {}
        """Those that other models are asked for."""
        self._consultations: Consultations | None = None
        self._last = HELLO
        self._place: dict[str, str | None] | None = None
        """Project and folder, once they are known."""
        self._roots_until = 0.0
        self._ends = 0.0
        """Until when answers are waited for, once the host has no more to say."""

    def run(self) -> None:
        """Serve until the host has no more to say, and has its answers."""
        up = Lines(LINE_BYTES_MAX)
        while not self._ends or (
            (self._asked or self._waiting or self._consulting) and time.monotonic() < self._ends
        ):
            self._proceed()
            daemon: list[socket.socket | int] = [self._daemon] if self._daemon else []
            consulted = self._consultations.outputs() if self._consultations else []
            readers = [*daemon, *consulted] if self._ends else [*daemon, *consulted, 0]
            readable, writable, _ = select.select(
                readers, daemon if self._outgoing else [], [], self._wait_s()
            )
            if self._daemon in writable:
                self._send()
            if self._daemon in readable:
                self._receive()
            if 0 in readable:
                data = os.read(0, CHUNK)
                for line in up.feed(data or b"\n"):  # the last line may lack its end
                    self._take(line)
                self._ends = 0.0 if data else time.monotonic() + LAST_WORDS_S
            if self._consultations:
                for own, answer in self._consultations.answers(readable):
                    self._answer(self._consulting.pop(own), {"result": answer})
        for own in list(self._consulting):
            self._give_up(own)

    def _wait_s(self) -> float | None:
        if self._waiting:
            return POLL_S
        late = self._consultations.late if self._consultations else float("inf")
        if self._asked:
            late = min(late, next(iter(self._asked.values())).deadline)
        late = min(late, self._ends or float("inf"))
        return None if late == float("inf") else max(0.0, late - time.monotonic())

    def _take(self, line: bytes) -> None:
        """Answer a line of the host, or note what it asks of the daemon."""
        try:
            message = read(line)
            if message is None:
                return
            method, params = message.get("method"), message.get("params") or {}
            if method is None:
                self._hear_roots(message)
            elif "id" not in message:
                if method == "notifications/cancelled":
                    self._cancel(params.get("requestId"))
            elif (result := self._session.result_of(message)) is not None:
                if method in ("initialize", "server/discover"):
                    self._prepare()
                write({"id": message["id"], "result": result})
            else:
                if self._starter and not self._waiting and self._starter.poll() is not None:
                    self._starter = None  # whatever it came to then
                self._last += 1
                self._waiting[self._last] = Call(message["id"], params)
        except Refusal as refusal:
            write(refusal.answer)

    def _prepare(self) -> None:
        """Start a daemon where there is none, before it is needed."""
        try:
            if daemon := connect():
                daemon.close()
            elif self._starter is None:
                self._starter = started(find_home(), self._environ, is_heard=True)
        except (OSError, CannotStart):
            pass  # as is said when something is asked of it

    def _cancel(self, number: object) -> None:
        """Give up a call that the client wants no answer to any more."""
        for calls in (self._waiting, self._asked, self._consulting):
            for own, call in reversed(calls.items()):
                if str(call.id) == str(number):
                    self._give_up(own)
                    return

    def _give_up(self, own: int) -> Call:
        if call := self._waiting.pop(own, None):
            return call
        if self._consultations and (call := self._consulting.pop(own, None)):
            self._consultations.end(own)
            return call
        self._outgoing += encoded({"jsonrpc": "2.0", "method": "rpc.cancel", "params": {"id": own}})
        return self._asked.pop(own)

    def _proceed(self) -> None:
        """Do what is next for the calls: tell those that took too long, and send those that were not sent."""
        while calls := self._asked or self._waiting:
            own, call = next(iter(calls.items()))
            if call.deadline > time.monotonic():
                break
            self._finish(self._give_up(own), LATE)
        if not self._waiting or not self._is_placed():
            return
        if self._environ.get(VARIABLE):
            self._fail(advice(f"omegad keeps off: {VARIABLE} is set", "go on without it"))
            return
        self._consult()
        if self._waiting and self._daemon is None:
            try:
                self._connect(next(iter(self._waiting.values())))
            except (OSError, CannotStart) as error:
                self._fail(unreachable(error, getattr(error, "hint", "run `omegad doctor`")))
        elif self._is_known:
            for own, call in self._waiting.items():
                self._ask(own, "tools.call", self._params_of(call))
            self._asked |= self._waiting
            self._waiting.clear()

    def _consult(self) -> None:
        """Begin those of the calls that other models are asked for, as it is configured now."""
        for own, call in list(self._waiting.items()):
            if not call.params["name"].startswith(CONSULTED) or not (configured := consulting(find_home())):
                continue
            from omegad.edge.consult import offering  # noqa: PLC0415  few have models to consult

            if call.params["name"] in offering.tools(configured):
                self._consultations = self._consultations or offering.Consultations()
                asked = {**self._params_of(call), "client": self._session.client_of(call.params)}
                self._consulting[own] = self._waiting.pop(own)
                if refusal := self._consultations.begin(own, asked, configured, self._environ):
                    self._answer(self._consulting.pop(own), {"result": refusal})

    def _ask(self, own: int, method: str, params: Fields) -> None:
        self._outgoing += encoded({"jsonrpc": "2.0", "id": own, "method": method, "params": params})

    def _params_of(self, call: Call) -> Fields:
        """Return what the daemon is asked; the same for a call that is made again."""
        meta = call.params.get("_meta") or {}
        session_id, use = meta.get("sessionId"), meta.get(TOOL_USE)
        if not isinstance(session_id, str):
            session_id = self._environ.get("CLAUDE_CODE_SESSION_ID") or None
        request_id = use if isinstance(use, str) else f"{NAME}/{call.id}"
        return {
            "name": call.params["name"],
            "arguments": call.params.get("arguments") or {},
            "session_id": session_id and session_id[:ID_CHARACTERS],
            **(self._place or {}),
            "request_id": request_id[:ID_CHARACTERS],
        }

    def _is_placed(self) -> bool:
        """Find the project and its folder: the one that the host names, else its first root, else where it
        was started; say whether they are known.
        """
        if self._place is None:
            if named := self._environ.get("CLAUDE_PROJECT_DIR"):
                self._be_in(named)
            elif not self._session.has_roots or self._ends:
                self._be_in(None)
            elif not self._roots_until:
                self._roots_until = time.monotonic() + ROOTS_S
                write({"id": ROOTS, "method": "roots/list"})
            elif time.monotonic() > self._roots_until:
                self._be_in(None)
        return self._place is not None

    def _be_in(self, folder: str | None) -> None:
        if folder is None:
            try:
                folder = os.getcwd()
            except OSError:
                folder = None  # it is gone
            if folder in ("/", os.path.expanduser("~")):
                folder = None  # which is nobody's project
        is_path = folder is not None and folder.startswith("/")  # or it is a name
        self._place = {"project": project_of(folder), "folder": folder if is_path else None}

    def _hear_roots(self, message: Fields) -> None:
        """Take a client's answer to which folders it works in."""
        if message.get("id") != ROOTS or self._place is not None or not self._roots_until:
            return
        from urllib.parse import unquote, urlsplit  # noqa: PLC0415  few clients say it so

        result = message.get("result")
        roots = result.get("roots") if isinstance(result, dict) else None
        for root in roots if isinstance(roots, list) else []:
            uri = root.get("uri") if isinstance(root, dict) else None
            if isinstance(uri, str) and uri.startswith("file:"):
                self._be_in(unquote(urlsplit(uri).path))
                return
        self._be_in(None)

    def _connect(self, call: Call) -> None:
        """Find a daemon, or see that one is started. Raises `OSError` and `CannotStart`."""
        status = self._starter.poll() if self._starter else 0
        if self._is_renewed and status is None:
            return  # what answers is the older one
        self._daemon = connect()
        if self._daemon:
            self._ask(HELLO, "system.hello", {"protocol": 1, "client": self._session.client_of(call.params)})
        elif self._starter is None:
            self._starter = started(find_home(), self._environ, is_heard=True)
        elif status is not None:
            assert self._starter.stderr
            said = self._starter.stderr.read().decode("utf-8", "replace").strip()
            self._starter = None
            if status:
                reason, _, hint = said.removeprefix("omegad: ").partition("\n  hint: ")
                raise CannotStart(reason, hint or "run `omegad doctor`")

    def _send(self) -> None:
        assert self._daemon
        try:
            sent = self._daemon.send(self._outgoing[:CHUNK], socket.MSG_DONTWAIT)
        except OSError:
            return  # it takes no more now, or may have said why, which is read first
        del self._outgoing[:sent]

    def _receive(self) -> None:
        """Pass on what the daemon answers."""
        daemon = self._daemon
        assert daemon
        try:
            data = daemon.recv(CHUNK)
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        for line in self._down.feed(data):
            message = json.loads(line)
            number, error = message.get("id"), message.get("error")
            if error and error["code"] == SHUTTING_DOWN:
                self._lose()
                return
            if number is None:
                self._refusal = error or self._refusal
            elif number == HELLO:
                self._meet(message)
            elif call := self._asked.pop(number, None):
                self._answer(call, message)
            if self._daemon is not daemon:
                return

    def _meet(self, message: Fields) -> None:
        """Take the daemon's answer to who asks; have it replaced where it is older."""
        if "error" in message:
            self._fail(advice(message["error"]["message"], message["error"]["data"]["hint"]))
            self._lose()
            return
        own = greeting()["initialize"]["serverInfo"]["version"]
        self._is_known = self._is_renewed or not is_older(message["result"]["version"], own)
        if self._is_known:
            self._starter = None  # whatever it comes to, there is a daemon
        else:
            self._lose()
            try:
                starter = started(find_home(), self._environ, is_heard=True)
            except OSError:
                self._is_renewed = True  # as far as that can be
            else:
                self._starter, self._is_renewed = starter or self._starter, starter is not None

    def _answer(self, call: Call, message: Fields) -> None:
        if error := message.get("error"):
            text = advice(error["message"], error["data"]["hint"])
            if error["code"] == NOT_FOUND:
                write({"id": call.id, "error": {"code": INVALID_PARAMS, "message": text}})
            else:
                self._finish(call, text)
            return
        said = message["result"]
        structured = {} if said["structured"] is None else {"structuredContent": said["structured"]}
        result = {"content": said["content"], **structured, "isError": said["is_error"]}
        write({"id": call.id, "result": self._session.finished(result)})

    def _finish(self, call: Call, text: str) -> None:
        """Answer a call that came to nothing."""
        result = {"content": [{"type": "text", "text": text}], "isError": True}
        write({"id": call.id, "result": self._session.finished(result)})

    def _fail(self, text: str) -> None:
        """Answer every call that waits for a daemon that cannot be used."""
        calls = (*self._asked.values(), *self._waiting.values())
        self._asked.clear()
        self._waiting.clear()
        for call in calls:
            self._finish(call, text)

    def _lose(self) -> None:
        """Let go of a daemon that is gone, or going; what it was asked is asked of the next one."""
        assert self._daemon
        self._daemon.close()
        self._daemon, self._is_known, self._down = None, False, Lines(float("inf"))
        self._outgoing.clear()
        if self._refusal:
            self._fail(advice(self._refusal["message"], self._refusal["data"]["hint"]))
            self._refusal = None
        asked, self._asked = self._asked, {}
        for call in asked.values():
            call.tries += 1
            if call.tries > RETRIES_MAX:
                self._finish(call, unreachable("it ends again and again", "run `omegad doctor`"))
        again = {own: call for own, call in asked.items() if call.tries <= RETRIES_MAX}
        self._waiting = again | self._waiting


def write(message: Fields) -> None:
    """Tell the host, all of it."""
    left = memoryview(encoded({"jsonrpc": "2.0", **message}))
    while left:
        left = left[os.write(1, left) :]


def main() -> None:
    """Be the bridge of one session."""
    try:
        Bridge(os.environ).run()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)  # the host is gone
