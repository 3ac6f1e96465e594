"""The door of what speaks HTTP: who is connected, how long they have, and what is read of them.

Anybody on the machine can connect. Whoever has not shown the token is a stranger, of whom there are few at
once: one more takes the place of the one that has been there longest. What a stranger asks is answered by its
head alone, unless it is for everybody, and nothing is read of it beyond that.
"""

import asyncio
import re
from collections import OrderedDict
from http import HTTPStatus

import h11
import structlog
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from omegad.edge.web.rules import Asked, Refusal, Rules, read_head
from omegad.rpc.accepting import AT_ONCE

STRANGERS_MAX = 256
STRANGERS_MIN = (
    4 * AT_ONCE
)  # so that one whose request has come with its connection is read before so many others come
OWN_MAX = 256
HEAD_S = 10.0
BODY_S = 30.0
KEPT_S = 60  # between two requests
UNREAD_S = 60.0  # in which a client reads nothing of what is answered
LINGERING_S = 1.0  # for a client that is refused to read why
HEAD_BYTES_MAX = 16 * 1024
HEAD_LINES_MAX = 100

HEAD_END = re.compile(rb"\n\r?\n")

NO_HTTP = Refusal(
    HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1.1", "send one, on a connection without TLS"
)
TOO_LONG = Refusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    f"the head of a request may have {HEAD_BYTES_MAX} bytes and {HEAD_LINES_MAX} lines",
    "send fewer or shorter headers; what is long goes into the body",
)
TOO_MANY = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE, "too many connections are open", "close some, or use them again"
)

_log = structlog.get_logger(__name__)


class Door:
    """Who is connected: strangers, the one that goes first when one more comes at the front, and those who
    have shown the token.
    """

    def __init__(self, rules: Rules, strangers_max: int, own_max: int) -> None:
        self.rules = rules
        self._strangers_max = strangers_max
        self._own_max = own_max
        self._strangers: OrderedDict[Connection, None] = OrderedDict()
        self._own: set[Connection] = set()

    def enter(self, connection: "Connection") -> None:
        """Let a stranger in."""
        if len(self._strangers) >= self._strangers_max:
            self._strangers.popitem(last=False)[0].turn_out("another has come")
        self._strangers[connection] = None

    def admit(self, connection: "Connection") -> bool:
        """Take the owner's connection from among the strangers, if there are not too many of his."""
        if connection not in self._own and len(self._own) >= self._own_max:
            return False
        self._strangers.pop(connection, None)
        self._own.add(connection)
        return True

    def refused(self, connection: "Connection") -> None:
        """Note that a stranger was answered, and has no need of a place any more."""
        if connection in self._strangers:
            self._strangers.move_to_end(connection, last=False)

    def leave(self, connection: "Connection") -> None:
        """Forget a connection."""
        self._strangers.pop(connection, None)
        self._own.discard(connection)


class Connection(H11Protocol):
    """A connection that has so long for the head of a request and for the rest, and to go on reading what is
    answered, and whose heads are checked before anything is made of them.
    """

    def __init__(self, door: Door, server: uvicorn.Server) -> None:
        super().__init__(server.config, server.server_state, server.lifespan.state)
        self._door = door
        self._head = bytearray()
        self._is_refused = False
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin as a stranger."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that whatever is not read is told of
        self._door.enter(self)
        self._await("head", HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything."""
        self._await("nothing")
        self._stop_minding_reader()
        self._door.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Gather the head of a request, and pass on the rest as it comes."""
        if self._is_refused:
            return
        if self.conn.their_state is not h11.IDLE:
            self._pass_on(data)
            return
        if not self._head and self.cycle is not None:  # the request before is over
            self._unset_keepalive_if_required()
            self._await("head", HEAD_S)
        searched = max(0, len(self._head) - 2)
        self._head += data
        end = HEAD_END.search(self._head, searched)
        if objection := self._objection(end.end() if end else 0):
            self._refuse(objection)
        elif end:
            gathered = bytes(self._head)
            self._head.clear()
            self._pass_on(gathered)

    def _objection(self, end: int) -> Refusal | None:
        """Return how a head is refused, which has come as far as *end*, or not to its end where that is 0."""
        head = bytes(self._head[: end or HEAD_BYTES_MAX + 1])
        if len(head) > HEAD_BYTES_MAX or head.count(b"\n") > HEAD_LINES_MAX:
            return TOO_LONG
        if not head[:1].isupper():
            return NO_HTTP
        if not end:
            return None
        asked = read_head(head)
        if asked is None:
            return NO_HTTP
        if refusal := self._door.rules.objection(asked):
            return refusal
        return None if self._is_let_in(asked) else TOO_MANY

    def _is_let_in(self, asked: Asked) -> bool:
        return not self._door.rules.shows_token(asked) or self._door.admit(self)

    def _pass_on(self, data: bytes) -> None:
        if self.conn.their_state is h11.IDLE:
            self._await("nothing")
        super().data_received(data)
        self._mind_rest()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in place of whatever would have answered the request that it is a part
        of.
        """
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.turn_out("what came is no HTTP")
        else:
            self._refuse(NO_HTTP._replace(said=msg))

    def on_response_complete(self) -> None:
        """Go on to the next request, which may have come in part."""
        super().on_response_complete()
        self._mind_rest()

    def _mind_rest(self) -> None:
        if self.conn.their_state is not h11.SEND_BODY:
            self._await("nothing")
        elif not self._deadline:
            self._await("rest", BODY_S)

    def _await(self, what: str, within_s: float = 0.0) -> None:
        """Have so long for what comes next, none where nothing has to come."""
        if self._deadline:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(within_s, self._be_late, what, within_s) if within_s else None

    def _be_late(self, what: str, after_s: float) -> None:
        if self.conn.their_state is h11.SEND_BODY and self.cycle.response_started:
            self.turn_out("the rest did not come")
        else:
            said = f"the {what} of the request did not come within {after_s:.0f} s"
            self._refuse(Refusal(HTTPStatus.REQUEST_TIMEOUT, said, "send it at once"))

    def pause_writing(self) -> None:
        """Make no more of the answer while some of it waits to be read, which has to go on."""
        super().pause_writing()
        self._mind_reader()

    def resume_writing(self) -> None:
        """Go on, as all of it is on its way."""
        self._stop_minding_reader()
        super().resume_writing()

    def _mind_reader(self, unread: int | None = None) -> None:
        """Close where as much is unread as before; nothing is written while this goes on."""
        left = self.transport.get_write_buffer_size()
        if left == unread:
            self.turn_out("what was answered is not read")
        else:
            self._unread = self.loop.call_later(UNREAD_S, self._mind_reader, left)

    def _stop_minding_reader(self) -> None:
        if self._unread:
            self._unread.cancel()
            self._unread = None

    def _refuse(self, refusal: Refusal) -> None:
        """Answer, take nothing more, and close as soon as that can have been read."""
        _log.warning("http.refused", status=refusal.status.phrase)
        self._is_refused = True
        self._head.clear()
        self._door.refused(self)
        if self.cycle is not None:  # whoever waits for the rest, or would answer
            self.cycle.disconnected = True
            self.cycle.waiting_for_100_continue = (
                False  # or it would be told to go on, past the end of what is written
            )
            self.cycle.message_event.set()
        self._await("nothing")
        self.transport.write(_answer(refusal))
        try:
            self.transport.write_eof()
        except OSError:  # it has left already
            self.transport.abort()
        else:
            self._deadline = self.loop.call_later(LINGERING_S, self.transport.abort)

    def turn_out(self, why: str) -> None:
        """Close at once."""
        if not self._is_refused:
            _log.warning("http.closed", reason=why)
        self._is_refused = True
        self.transport.abort()


def _answer(refusal: Refusal) -> bytes:
    """Return an answer that is the last on its connection."""
    body = refusal.body
    headers = {**refusal.headers, "Content-Length": str(len(body)), "Connection": "close"}
    lines = [f"HTTP/1.1 {refusal.status.value} {refusal.status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "\r\n"]).encode() + body
