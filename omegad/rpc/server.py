"""Answers the calls of many clients: one session per connection, one task per request.

Invariant: what goes wrong in a request is answered to its caller and goes no further.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import count
from types import MappingProxyType

import anyio
import structlog
from anyio.abc import TaskStatus

from omegad.rpc import endpoint
from omegad.rpc.peer import Call, Handler, Peer
from omegad.rpc.protocol import InternalError, encode_error, encode_result
from omegad.rpc.session import Job, Session
from omegad.rpc.turns import Lane, Turns
from omegad.rpc.wire import Intake, Limits
from omegad.runtime.errors import OmegadError, Overloaded, Refused, ShuttingDown, forget_frames

__all__ = ["Call", "Handler", "Lane", "Limits", "Peer", "Server"]

LAST_WORDS_S = 1.0  # for cancelled requests to end, and again for clients to read their last answers
LINGERING_MAX = 32  # refused connections that are given time to read why; they cost file descriptors too
LOGGED_METHOD_LENGTH = 64

log = structlog.get_logger()


class Server:
    """Serves one listening socket, and answers calls with *handler*: `serve` runs until `stop` is done, or it
    is cancelled.

    *long_answers* says of methods how many bytes their answers may take; of others each connection learns
    that from what they answer. *lanes* bound how many requests to some methods one client has served at once;
    *brief* methods take no long parameters. *uid_of* tells the user at the other end of a connection; only
    our own is served.
    """

    def __init__(
        self,
        handler: Handler,
        limits: Limits,
        *,
        long_answers: Mapping[str, int] = MappingProxyType({}),
        lanes: Mapping[str, Lane] = MappingProxyType({}),
        brief: Collection[str] = (),
        uid_of: Callable[[socket.socket], int] = endpoint.peer_uid,
    ) -> None:
        self.limits = limits
        self.requests = 0
        """Requests and notifications so far, those that were refused among them."""
        self.refused = 0
        """Connections and requests turned away so far."""
        self.stopping = anyio.Event()
        """Set when the server begins to stop: what runs until cancelled (following the log) ends then."""
        self._handler = handler
        self._uid_of = uid_of
        self.long_answers = long_answers
        self.brief = brief
        self.turns = Turns(lanes)
        self.intake = Intake(limits.incoming_bytes_in_all_max, limits.line_s)
        self._sessions: set[Session] = set()
        self._turned_away: set[Session] = set()
        self.in_flight = 0
        """Requests and notifications being served."""
        self._something_ended = anyio.Event()
        self._stopped = anyio.Event()
        self._tasks: asyncio.TaskGroup
        self._running_tasks: set[asyncio.Task[None]] = set()
        self._scope_type: type[anyio.CancelScope]
        self._is_ending = False
        self._listener: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """Connections being served."""
        return len(self._sessions)

    async def serve(
        self, sock: socket.socket, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve *sock*, which is bound, and close it in the end."""
        loop = asyncio.get_running_loop()
        sock.settimeout(0)
        # asyncio's own task group, and a scope of the running backend made directly: together a third of a
        # small request's cost less.
        self._scope_type = type(anyio.CancelScope())
        numbers = count(1)
        async with asyncio.TaskGroup() as self._tasks:
            listen = partial(
                loop.create_unix_server,
                lambda: Session(self, Peer(next(numbers))),
                sock=sock,
                backlog=endpoint.BACKLOG,
            )
            if sys.version_info >= (3, 13):
                # The socket's name is for `endpoint` to take away, or for a service manager, which goes on
                # listening there.
                listen = partial(listen, cleanup_socket=False)
            self._listener = await listen()
            try:
                task_status.started()
                await self._stopped.wait()
            finally:
                self._is_ending = True
                self._listener.close()
                for session in (*self._sessions, *self._turned_away):
                    session.abort()
                for task in self._running_tasks:
                    task.cancel()

    async def stop(self, timeout_s: float) -> None:
        """Accept nothing new, let running requests end for *timeout_s*, cancel the rest, send every answer,
        and end `serve`.

        A handler cannot wait for this: it would wait for itself.
        """
        self.stopping.set()
        if self._listener:
            self._listener.close()
        await self._wait_until(lambda: not self.in_flight, timeout_s)
        for session in self._sessions:
            session.cancel_all(ShuttingDown())
        await self._wait_until(lambda: not self.in_flight, LAST_WORDS_S)
        for session in self._sessions:
            session.close()
        await self._wait_until(lambda: not self._sessions, LAST_WORDS_S)
        self._stopped.set()

    async def _wait_until(self, is_done: Callable[[], bool], timeout_s: float) -> None:
        with anyio.move_on_after(timeout_s):
            while not is_done():
                self._something_ended = anyio.Event()
                await self._something_ended.wait()

    def admit(self, session: Session, connection: socket.socket) -> OmegadError | None:
        """Count *session* among those being served, or say why it is not."""
        refusal = self._objection(connection)
        if refusal:
            self.refused += 1
            self._turned_away.add(session)
            log.warning("rpc.connection_refused", reason=str(refusal))
        else:
            self._sessions.add(session)
            session.client_key = endpoint.peer_pid(connection) or f"connection {session.peer.connection}"
            session.client = self.turns.join(session.client_key)
        return refusal

    def _objection(self, connection: socket.socket) -> OmegadError | None:
        try:
            is_ours = self._uid_of(connection) == os.geteuid()
        except OSError:
            is_ours = False
        if not is_ours:
            return Refused(
                "only the user whose home this is may connect",
                hint="run omegad as yourself; OMEGAD_HOME and OMEGAD_SOCKET say where",
            )
        if self.stopping.is_set():
            return ShuttingDown()
        if len(self._sessions) >= self.limits.connections_max:
            return Overloaded(
                f"{self.limits.connections_max} clients are connected already",
                hint="close some; connections_max sets how many may be",
            )
        return None

    @property
    def held_bytes(self) -> int:
        """What the answers of all connections take."""
        return sum(session.held_bytes for session in self._sessions)

    def may_linger(self) -> bool:
        """Say whether one more refused connection may stay for a moment."""
        return len(self._turned_away) <= LINGERING_MAX

    def dismiss(self, session: Session) -> None:
        """Forget *session*."""
        if session in self._sessions:
            self._sessions.discard(session)
            self.turns.part(session.client_key)
            session.client.waiting.pop(session, None)
        self._turned_away.discard(session)
        self._something_ended.set()

    def start(self, job: Job) -> None:
        """Run *job* in a task of its own, and finish it, whatever happens."""
        if self._is_ending:
            return  # its connection is being closed, and a task group that ends takes no more tasks
        self.in_flight += 1
        task = self._tasks.create_task(self._run(job), name="rpc.request")
        self._running_tasks.add(task)
        task.add_done_callback(self._running_tasks.discard)

    async def _run(self, job: Job) -> None:
        answer: bytes | None = None
        try:
            if not job.why_cancelled:
                with self._scope_type() as job.scope:
                    answer = await self._answer(job)
        except asyncio.CancelledError:
            if self._is_ending:
                raise
            log.warning("rpc.handler_cancelled_itself", method=job.request.method[:LOGGED_METHOD_LENGTH])
            answer = encode_error(job.id, InternalError())
        finally:
            self.in_flight -= 1
            job.finish(answer)
            self._something_ended.set()

    async def _answer(self, job: Job) -> bytes:
        request = job.request
        try:
            return encode_result(job.id, await self._handler(job.call()))
        except OmegadError as error:
            forget_frames(error)
            return encode_error(job.id, error)
        except Exception:
            # A mistake in one request must not end the service for everyone.
            log.exception("rpc.handler_failed", method=request.method[:LOGGED_METHOD_LENGTH])
            return encode_error(job.id, InternalError())
