"""Every method of the socket: parse the call, hand it to the part that answers."""

import os
from collections.abc import Callable

import msgspec

from omegad import __version__
from omegad.commands.command import Command
from omegad.dispatch.commands import CommandDispatch, Origin, digest_of
from omegad.dispatch.readings import ReadingDispatch
from omegad.dispatch.searching import QueryDispatch
from omegad.dispatch.system import SystemDispatch
from omegad.errors import Invalid
from omegad.log.decision import Outcome
from omegad.queries import Reading
from omegad.queries.log import FollowLog, ReadLog, VerifyLog
from omegad.queries.search import QueryMemory
from omegad.queries.system import PROTOCOL, Greeting, Hello, Metrics, Ping, Pong, Shutdown, Status, exposition
from omegad.queries.views import RebuildViews, VerifyViews
from omegad.redaction import redact_name
from omegad.redaction.sanitise import without_credentials
from omegad.rpc import methods
from omegad.rpc.peer import Call


class Service:
    """Answers calls; `handle` is what the server is given."""

    def __init__(
        self,
        commands: CommandDispatch,
        queries: QueryDispatch,
        readings: ReadingDispatch,
        system: SystemDispatch,
        stop: Callable[[], None],
    ) -> None:
        """*stop* begins the daemon's end and returns at once."""
        self._commands = commands
        self._queries = queries
        self._readings = readings
        self._system = system
        self._stop = stop

    async def handle(self, call: Call) -> object:
        """Answer a call, or raise an error of the catalogue."""
        try:
            return await self._answer(call, bytes(call.params))
        except RecursionError as error:
            raise Invalid("the parameters are nested too deeply") from error

    async def _answer(self, call: Call, params: bytes) -> object:
        request = without_credentials(methods.parse(call.method, params))
        if isinstance(request, QueryMemory | Reading):
            return await self._ask(request, Origin(call.peer.name, b"", call.peer.written))
        match request:
            case Command():
                digest = digest_of(call.method, params) if request.request_id is not None else b""
                outcome = await self._commands.execute(request, Origin(call.peer.name, digest, call.peer.written))
                return _acknowledged(call, outcome)
            case Hello():
                return _greet(request, call)
            case Ping():
                return Pong(ok=True, version=__version__, pid=os.getpid())
            case Shutdown():
                self._stop()
                return {"ok": True}
            case _:
                return await self._ask_system(request, call)

    async def _ask(self, query: QueryMemory | Reading, origin: Origin) -> msgspec.Struct:
        acknowledged = self._commands.acknowledged
        if isinstance(query, QueryMemory):
            return await self._queries.find(query, origin, acknowledged)
        return await self._readings.answer(query, origin, acknowledged)

    async def _ask_system(self, query: methods.Request, call: Call) -> object:
        match query:
            case Status():
                return self._system.status()
            case Metrics():
                return {"text": exposition(self._system.status())}
            case ReadLog():
                return await self._system.read_log(query)
            case FollowLog():
                await self._system.follow_log(query, call)
                return None
            case _:
                return await self._prove(query, call)

    async def _prove(self, query: methods.Request, call: Call) -> object:
        match query:
            case VerifyLog():
                return await self._system.verify_log(query, call)
            case RebuildViews():
                return await self._system.rebuild_views(query, call)
            case VerifyViews():
                return await self._system.verify_views(query, call)
            case _:
                raise AssertionError(query)


def _acknowledged(call: Call, outcome: Outcome) -> object:
    call.peer.written = max(call.peer.written, outcome.position)
    return outcome.answer


def _greet(hello: Hello, call: Call) -> Greeting:
    if hello.protocol != PROTOCOL:
        raise Invalid(f"protocol {hello.protocol} is not spoken here", hint=f"the protocol is {PROTOCOL}")
    call.peer.name = redact_name(hello.client)
    return Greeting(protocol=PROTOCOL, version=__version__, build=__version__)
