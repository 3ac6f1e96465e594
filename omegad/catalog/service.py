"""A call of the socket: read by the table of methods, run, answered."""

import asyncio
import os
import time
import unicodedata
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import msgspec

from omegad import __version__
from omegad.agents.tools import calling
from omegad.agents.tools.calling import CallTool, ListTools, ToolAnswer
from omegad.catalog.auditing import COORDINATING, Auditing
from omegad.catalog.methods import SERVED
from omegad.catalog.tools import TOOLS
from omegad.log.decision import RequestKey
from omegad.log.sanitise import without_credentials
from omegad.operations.status import PROTOCOL, Greeting, Handler, Hello, Ping, Pong, Shutdown, Stopping
from omegad.requests.method import CommandMethod, Method, QueryMethod, RequestContext
from omegad.requests.running import RequestRunner
from omegad.rpc.peer import Call
from omegad.rpc.protocol import MethodNotFound
from omegad.runtime import pausing, unfit
from omegad.runtime.errors import Invalid, OmegadError
from omegad.runtime.json_types import changed
from omegad.runtime.precedence import HOOKS
from omegad.runtime.private import without_private
from omegad.session.liveness import Liveness
from omegad.session.tool_calls import RecordToolCall
from omegad.text.redaction import redact_name

HOOK = "hook.dispatch"
"""For its answer an agent waits, so that others give way."""

ERASING = "memory.erase"
"""May name what was private and was kept all the same."""

RESERVED = "reaction:"
"""What the names of reactions begin with, whose request ids nobody else may use."""

VERBATIM = frozenset({"content", "tool_input", "result", "payload"})
"""Parameters that are cleaned elsewhere, or kept as they came."""

_DECODERS = {name: msgspec.json.Decoder(method.params) for name, method in SERVED.items()}
_TOOLS_LISTED = msgspec.Raw(msgspec.json.encode(calling.listed(TOOLS)))
_nfc = partial(unicodedata.normalize, "NFC")


class _Steps:
    """What the call of a tool asks for, in its order. What that is may depend on what the tool has read, so
    the same call has the same commands by their places in it.
    """

    def __init__(self, key: RequestKey | None) -> None:
        """Take what makes the call the same, None where nobody named it."""
        self._key = key
        self._asked = self._commands = self._answered = self._again = 0

    @property
    def suffice(self) -> bool:
        """Whether the answer follows from those to commands: nothing else was asked, and none was refused."""
        return self._key is not None and 0 < self._asked == self._answered

    @property
    def are_again(self) -> bool:
        """Whether all that was asked for was done before."""
        return self.suffice and self._again == self._asked

    def next_key(self) -> RequestKey | None:
        """Return what makes the next command the same."""
        if self._key is None:
            return None
        return msgspec.structs.replace(self._key, request_id=f"{self._key.request_id}/{self._commands}")

    def begin(self, method: Method) -> RequestKey | None:
        """Note that a method is asked, and return what makes it the same where it is a command."""
        self._asked += 1
        if not isinstance(method, CommandMethod):
            return None
        key = self.next_key()
        self._commands += 1
        return key

    def end(self, method: Method, *, is_again: bool) -> None:
        """Note that it was answered, as it was before where it *is_again*."""
        self._answered += isinstance(method, CommandMethod)
        self._again += is_again


class Service:
    """Answers calls; `handle` is what the server is given."""

    def __init__(
        self,
        runner: RequestRunner,
        handlers: dict[type[msgspec.Struct], Handler],
        stop: Callable[[], None],
        auditing: Auditing,
    ) -> None:
        """*handlers* answer for the running service; *stop* begins the daemon's end and returns at once;
        *auditing* tells the log of requests.
        """
        self._runner = runner
        self._stop = stop
        self._handlers = handlers
        self._auditing = auditing

    async def handle(self, call: Call) -> object:
        """Answer a call, or raise an error of the catalogue."""
        try:
            with HOOKS.held() if call.method == HOOK else nullcontext():
                params = bytes(call.params)
                if call.method != ERASING:
                    params = without_private(params)
                method, request = parse(call.method, params)
                request = without_credentials(request)
                try:
                    answer = await self._answer(method, request, call, params)
                except OmegadError as error:
                    self._auditing.answered(method, request, call.peer.name, None, error)
                    raise
                self._auditing.answered(method, request, call.peer.name, answer, None)
                return answer
        except RecursionError as error:
            raise Invalid("the parameters are nested too deeply") from error

    async def _answer(
        self,
        method: Method,
        request: msgspec.Struct,
        call: Call,
        params: bytes,
        delivery: RequestKey | None = None,
    ) -> object:
        delivery = delivery or _key_of(request, call, params, self._runner.services.digests.of)
        match method:
            case CommandMethod():
                is_coordinating = method.name.partition(".")[0] in COORDINATING
                if is_coordinating and (session_id := getattr(request, "session_id", None)):
                    self._runner.services[Liveness].hear(session_id)
                context = RequestContext(
                    client=call.peer.name or None, written=call.peer.written, delivery=delivery
                )
                outcome = await self._runner.command(method, request, context)
                call.peer.written = max(call.peer.written, outcome.position)
                return outcome.answer
            case QueryMethod():
                context = RequestContext(client=call.peer.name or None, written=call.peer.written)
                return await self._runner.query(method, request, context)
            case _ if delivery:
                return await self._once(request, call, delivery)
            case _:
                return await self._served(request, call, _Steps(None))

    async def _once(self, request: msgspec.Struct, call: Call, key: RequestKey) -> object:
        """Answer a method of the service as it was answered before; remember the answer where something
        was changed, unless it follows from the answers to commands, which are remembered.
        """
        async with self._runner.first_time(key) as answered:
            if answered is not None:
                call.peer.written = max(call.peer.written, answered.position)
                return answered.answer
            before, steps = call.peer.written, _Steps(key)
            answer = await self._served(request, call, steps)
            if (
                isinstance(answer, msgspec.Struct)
                and call.peer.written > before
                and not getattr(answer, "is_error", False)
                and not steps.suffice
            ):
                await self._runner.remember(key, answer, call.peer.written)
            return answer

    async def _served(self, request: msgspec.Struct, call: Call, steps: _Steps) -> object:
        match request:
            case CallTool():
                return await self._tool(request, call, steps)
            case ListTools():
                return _TOOLS_LISTED
            case Hello():
                return _greet(request, call)
            case Ping():
                return Pong(ok=True, version=__version__, pid=os.getpid())
            case Shutdown():
                self._stop()
                return Stopping(ok=True)
            case _:
                return await self._handlers[type(request)](request, call)

    async def _tool(self, request: CallTool, call: Call, steps: _Steps) -> ToolAnswer:
        services = self._runner.services
        why = await services.paused(pausing.named(msgspec.to_builtins(request)))
        # What was done before it was paused is done, and said again.
        if why and ((first := steps.next_key()) is None or await services.log.answered(first) is None):
            return calling.refused(f"omegad keeps off: {why}. Nothing was stored or looked up")
        began = time.perf_counter()
        whose = request.session_id or call.peer.name
        if whose:
            services[Liveness].hear(whose)

        async def ask(method: str, /, **params: object) -> object:
            given = {name: value for name, value in params.items() if value is not None}
            asked_call = Call(method, call.params, call.peer, call.notify)
            given_json = msgspec.json.encode(given)
            row, read = parse(method, given_json)
            key = steps.begin(row)
            answer = await self._answer(row, without_credentials(read), asked_call, given_json, key)
            steps.end(row, is_again=isinstance(answer, msgspec.Raw))
            return msgspec.json.decode(answer, type=row.answer) if isinstance(answer, msgspec.Raw) else answer

        answer: ToolAnswer | None = None
        try:
            answer = await calling.call(TOOLS, request, ask, client=call.peer.name)
            return answer
        finally:
            told = RecordToolCall(
                session_id=whose,
                tool_name=redact_name(request.name),
                status="error" if answer is None or answer.is_error else "ok",
                tool_input=request.arguments,
                result="" if answer is None else answer.content[0].text,
                tool_use_id=request.request_id,
                duration_ms=round((time.perf_counter() - began) * 1e3, 3),
                project=request.project,
            )
            if not why:
                called = partial(self._auditing.called, told, call.peer.name, is_again=steps.are_again)
                asyncio.get_running_loop().call_soon(called)


def parse(name: str, params: bytes) -> tuple[Method, msgspec.Struct]:
    """Read a call's parameters; raises `MethodNotFound`, or `Invalid` saying which parameter is wrong and
    why.
    """
    decoder = _DECODERS.get(name)
    if decoder is None:
        raise MethodNotFound(f"there is no method {name[:60]!r}", hint=f"the methods are {', '.join(SERVED)}")
    try:
        request = decoder.decode(params or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = unfit.in_words(error, "params", SERVED[name].params)
        raise Invalid(f"{name}: {said}") from error
    return SERVED[name], _composed(request)


def asked_for(method: str, params: bytes) -> bytes:
    """Return what a request asks for: its method and its parameters, whatever their order and spacing."""
    return (
        method.encode()
        + b"\0"
        + msgspec.json.encode(msgspec.json.decode(params or b"{}"), order="deterministic")
    )


def _key_of(
    request: msgspec.Struct, call: Call, params: bytes, digest_of: Callable[[bytes], bytes]
) -> RequestKey | None:
    """Return what makes a request the same, None where its sender has not named it. Of a tool's call it is
    the arguments as well.
    """
    request_id = getattr(request, "request_id", None)
    if request_id is None:
        return None
    digest = digest_of(asked_for(call.method, params))
    name = f"{request_id}/{digest.hex()}" if isinstance(request, CallTool) else request_id
    return RequestKey(client=call.peer.name, request_id=name, params_digest=digest)


def _composed(request: msgspec.Struct) -> msgspec.Struct:
    """Return a request whose names are in NFC, so that what looks the same is the same; what tools took
    and gave stays as it is.
    """
    changes: dict[str, object] = {}
    for name in request.__struct_fields__:
        value = getattr(request, name)
        # A tuple of types, and first what is nearly always the case: every request goes through here.
        if not value or name in VERBATIM or not isinstance(value, (str, tuple, dict)):
            continue
        if not (isinstance(value, str) and value.isascii()) and (composed := changed(value, _nfc)) != value:
            changes[name] = composed
    return msgspec.structs.replace(request, **changes) if changes else request


def _greet(hello: Hello, call: Call) -> Greeting:
    if hello.protocol != PROTOCOL:
        raise Invalid(f"protocol {hello.protocol} is not spoken here", hint=f"the protocol is {PROTOCOL}")
    if hello.client.startswith(RESERVED):
        raise Invalid(
            f"a client cannot be called {hello.client[:40]!r}",
            hint=f"names that begin with {RESERVED!r} are the service's own",
        )
    call.peer.name = redact_name(hello.client)
    return Greeting(protocol=PROTOCOL, version=__version__, build=__version__)
