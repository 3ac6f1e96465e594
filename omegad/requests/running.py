"""How a request is run: a command is prepared, decided and appended, a query prepared and read; whatever
its method is.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import msgspec

from omegad.log.decision import Cursor, Decision, Outcome, Proposal, RequestKey
from omegad.requests.method import (
    CommandMethod,
    Method,
    Outdated,
    QueryMethod,
    RequestContext,
    Services,
)
from omegad.runtime.errors import OmegadError, Overloaded, ShuttingDown, Unavailable
from omegad.storage.driver import Connection
from omegad.views.barrier import Barrier, Snapshot

TRIES = 3

AsOf = Callable[[QueryMethod, msgspec.Struct, RequestContext, str], Awaitable[object]]
"""Answers a query as of an earlier moment."""


class RequestRunner:
    """Takes requests to their answers by the table of methods. A query waits *fresh_wait_s* for what other
    clients wrote; *check* raises `Invalid` for parameters that name what there is not.
    """

    def __init__(
        self,
        services: Services,
        methods: Mapping[str, Method],
        back: AsOf,
        check: Callable[[msgspec.Struct], None],
        *,
        fresh_wait_s: float,
    ) -> None:
        self.services = services
        self._methods = methods
        self._fresh_wait_s = fresh_wait_s
        self._back = back
        self._check = check
        self.acknowledged = services.log.head
        """The highest position that any client's command was acknowledged at."""
        self._under_way: dict[tuple[str, str], anyio.Event] = {}

    @asynccontextmanager
    async def first_time(self, request: RequestKey) -> AsyncIterator[Outcome | None]:
        """Yield the answer that a request was given before; None where it has none, and may be worked on
        until the end of the block.

        The same request waits meanwhile. So what was answered is neither prepared nor checked again, whatever
        has changed since, and nothing is prepared twice at once. Raises `Conflict` where it had other
        parameters.
        """
        name = (request.client, request.request_id)
        while other := self._under_way.get(name):
            await other.wait()
        done = self._under_way[name] = anyio.Event()
        try:
            yield await self.services.log.answered(request)
        finally:
            del self._under_way[name]
            done.set()

    async def remember(self, request: RequestKey, answer: msgspec.Struct, position: int) -> None:
        """Return when an answer is on the disk that the same request is to be given; what it tells of
        stands at *position*.
        """
        decision = Decision(answer=answer, position=position)
        await self.services.log.append(Proposal(decide=lambda _state, _now_us: decision, request=request))

    async def command(
        self,
        method: CommandMethod,
        params: msgspec.Struct,
        context: RequestContext,
        cursor: Cursor | None = None,
    ) -> Outcome:
        """Carry out a command, once for each `context.delivery`; raises what its decision raises."""
        if context.delivery is None:
            return await self._carry_out(method, params, context, cursor)
        async with self.first_time(context.delivery) as answered:
            if answered is None:
                return await self._carry_out(method, params, context, cursor)
            if cursor:
                await self.services.log.advance(cursor)
            return answered

    async def _carry_out(
        self, method: CommandMethod, params: msgspec.Struct, context: RequestContext, cursor: Cursor | None
    ) -> Outcome:
        """Prepare, decide and append. What changes while it is prepared is prepared again, three times at
        most.
        """
        context = msgspec.structs.replace(context, acknowledged=max(context.acknowledged, self.acknowledged))
        if not method.is_internal:  # what is stored already has whatever type it has
            self._check(params)
        for tries_left in reversed(range(TRIES)):
            attempt = context if tries_left else msgspec.structs.replace(context, is_last_try=True)
            try:
                outcome = await self.services.log.append(
                    await self._proposed(method, params, attempt, cursor)
                )
            except Outdated:
                if not tries_left:
                    raise
                context = msgspec.structs.replace(context, written=self.services.head, is_again=True)
                continue
            self.acknowledged = max(self.acknowledged, outcome.position)
            return outcome
        raise AssertionError(method)

    async def _proposed(
        self,
        method: CommandMethod,
        params: msgspec.Struct,
        context: RequestContext,
        cursor: Cursor | None = None,
    ) -> Proposal:
        """Prepare a command, and return what is to be decided."""
        prepared = await method.prepared(self.services, params, context)
        return Proposal(
            decide=partial(method.decide, params, *prepared),
            client=context.client,
            trace=context.trace,
            request=context.delivery,
            cause=context.cause,
            cursor=cursor,
        )

    async def execute(
        self, command: msgspec.Struct, context: RequestContext, cursor: Cursor | None = None
    ) -> Outcome:
        """Carry out a command by its Struct, as reactions do."""
        return await self.command(self._method_of(command), command, context, cursor)

    def _method_of(self, command: msgspec.Struct) -> CommandMethod:
        method = self._methods[str(command.__struct_config__.tag)]
        assert isinstance(method, CommandMethod)
        return method

    async def execute_all(
        self, commands: Sequence[msgspec.Struct], context: RequestContext
    ) -> list[Outcome | Exception]:
        """Carry out commands in their order, with one wait for the disk; return what each came to, or what it
        raised.

        Where one cannot be carried out now, neither are those after it.
        """
        prepared = list[Proposal | Exception]()
        for command in commands:
            if prepared and isinstance(prepared[-1], (OSError, Overloaded, ShuttingDown, Unavailable)):
                prepared.append(prepared[-1])
                continue
            try:
                prepared.append(await self._proposed(self._method_of(command), command, context))
            except Exception as error:  # noqa: BLE001  whoever asked is told, and those after it go on
                prepared.append(error)
        appended = iter(
            await self.services.log.append_all([one for one in prepared if isinstance(one, Proposal)])
        )
        came_to = [next(appended) if isinstance(one, Proposal) else one for one in prepared]
        self.acknowledged = max(
            [self.acknowledged, *(one.position for one in came_to if isinstance(one, Outcome))]
        )
        return came_to

    async def query(self, method: QueryMethod, params: msgspec.Struct, context: RequestContext) -> object:
        """Answer a query from one moment of the views. Raises what reading raises, and `Stale` where they
        lag behind what is asked for.
        """
        self._check(params)
        if (as_of := getattr(params, "as_of", None)) is not None:
            return await self._back(method, params, context, as_of)
        acknowledged = max(context.acknowledged, self.acknowledged)
        prepared = await method.prepared(self.services, params, context)
        if method.shows_queries:
            with (
                anyio.move_on_after(self._fresh_wait_s),
                suppress(OmegadError),
            ):  # a log that cannot be written is read all the same
                await self.services.log.settled()
            acknowledged = max(acknowledged, self.services.head)
        barrier = Barrier(
            names=method.views or self.services.views.names,
            own=context.written,
            min_position=getattr(params, "min_position", None),
            acknowledged=acknowledged,
            wait_s=self._fresh_wait_s,
        )

        def read(connection: Connection, snapshot: Snapshot) -> object:
            return method.read(connection, params, *prepared, self.services.moment(snapshot))

        found = await self.services.views.at(barrier, read, method.turn)
        return await method.finish(self.services, params, found, context) if method.finish else found
