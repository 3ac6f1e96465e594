"""Commands: what deciding needs is prepared, the decision is made in the transaction of its append, the answer waits for the disk."""

from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import Protocol

import anyio
import msgspec

from omegad.commands import Command, memory, tool
from omegad.commands.memory import DeleteMemory, Neighbour, Outdated, PreparedStore, StoreMemory
from omegad.commands.tool import RecordToolCall
from omegad.dispatch.neighbourhood import Embedded
from omegad.dispatch.parts import Parts
from omegad.errors import Unavailable
from omegad.log.decision import Decision, Outcome, Proposal, RequestKey
from omegad.log.guards import Guards
from omegad.queries import search
from omegad.queries.neighbours import Near, neighbours
from omegad.storage.driver import Connection

TRIES = 3
VIEWS_WAIT_S = 5.0  # for the views to show what is near, before deciding without

Decide = Callable[[Guards, int], Decision]


class Attempt(Protocol):
    """Prepares a decision and proposes it to the log."""

    async def __call__(self, *, is_last: bool) -> Outcome:
        """Raise `Outdated` where what was prepared has changed meanwhile, unless it is the last attempt."""
        ...


class Origin(msgspec.Struct, frozen=True):
    """Who asks: the client's name, the digest of what it asked, and the position of its latest write."""

    client: str
    digest: bytes
    written: int


class CommandDispatch:
    """Takes commands from their parameters to their acknowledged answers."""

    def __init__(self, parts: Parts) -> None:
        """Take everything from outside."""
        self._log = parts.log
        self._views = parts.views
        self._near = parts.near
        self._types = parts.types
        self._clock = parts.clock
        self.acknowledged = parts.log.head
        """The highest position that any client's command was acknowledged at."""
        self.on_pending: Callable[[], None] = lambda: None
        """Called when a memory was stored whose vectors and relations are to follow."""

    async def execute(self, command: Command, origin: Origin) -> Outcome:
        """Carry out a command; raises what its decision raises."""
        match command:
            case StoreMemory():
                outcome = await self._store(command, origin)
            case DeleteMemory():
                outcome = await self._append(command, origin, partial(memory.delete, command))
            case RecordToolCall():
                outcome = await self._append(command, origin, partial(tool.record, command, tool.cut(command)))
        self.acknowledged = max(self.acknowledged, outcome.position)
        return outcome

    async def embed_stored(self, memory_id: str, command: StoreMemory) -> bool:
        """Embed a memory that was stored without, and append what follows; say whether the model could."""
        jaccard_min = self._types.jaccard(command.event_type)
        embedded = await self._near.embed(command.content, is_backlog=True)
        if embedded is None:
            return False
        base = PreparedStore(memory_id=memory_id, content=command.content, redacted=(), read_position=0)

        async def attempt(*, is_last: bool) -> Outcome:
            prepared = await self._prepared(command, base, embedded, is_last_try=is_last)
            decide = self._noting(partial(memory.embed, command, prepared, jaccard_min), command, prepared, embedded)
            return await self._log.append(Proposal(decide=decide))

        await self._views_at_head()
        await self._until_current(attempt)
        return True

    async def _store(self, command: StoreMemory, origin: Origin) -> Outcome:
        content, redacted = memory.clean(command, self._types)
        jaccard_min = self._types.jaccard(command.event_type)
        embedded = None if command.ack == "durable" else await self._near.embed(content)
        base = PreparedStore(memory_id=self._memory_id(), content=content, redacted=redacted, read_position=0)

        async def attempt(*, is_last: bool) -> Outcome:
            prepared = await self._prepared(command, base, embedded, is_last_try=is_last)
            decide = self._noting(partial(memory.store, command, prepared, jaccard_min), command, prepared, embedded)
            return await self._append(command, origin, decide)

        await self._views_reach(origin.written)
        outcome = await self._until_current(attempt)
        if embedded is None:
            self.on_pending()
        return outcome

    async def _until_current(self, attempt: Attempt) -> Outcome:
        """Prepare and decide again while the neighbours keep changing; the last attempt is decided on what it has."""
        for _ in range(TRIES - 1):
            try:
                return await attempt(is_last=False)
            except Outdated:
                await self._views_at_head()
        return await attempt(is_last=True)

    def _noting(self, decide: Decide, command: StoreMemory, prepared: PreparedStore, embedded: Embedded | None) -> Decide:
        """Return *decide*, which then also notes the memory among the late ones, for those that are being decided meanwhile."""

        def noting(guards: Guards, now_us: int) -> Decision:
            decision = decide(guards, now_us)
            if embedded is not None:
                self._near.late.add(prepared.memory_id, command.project, embedded.vector)
            return decision

        return noting

    async def _prepared(self, command: StoreMemory, base: PreparedStore, embedded: Embedded | None, *, is_last_try: bool) -> PreparedStore:
        if embedded is None and command.ack == "durable":
            return msgspec.structs.replace(base, pending=True)
        found, position = await self._look_around(command, base, embedded)
        base = msgspec.structs.replace(base, read_position=position, is_last_try=is_last_try)
        if embedded is None:
            return msgspec.structs.replace(base, neighbours=_known(found), pending=True, degraded="embedding")
        return msgspec.structs.replace(
            base,
            neighbours=_known(found, is_comparable=embedded.is_whole),
            embedder_id=embedded.embedder_id,
            text_hashes=embedded.text_hashes,
            arrived=partial(self._near.late.near, command.project, embedded.vector),
        )

    async def _look_around(self, command: StoreMemory, base: PreparedStore, embedded: Embedded | None) -> tuple[list[Near], int]:
        mirror = self._near.mirror(self._views.file)
        now_us = self._clock.now_us()
        searched = None if mirror is None or embedded is None else (mirror, embedded.vector)

        def read(connection: Connection) -> tuple[list[Near], int]:
            found = neighbours(connection, base.content, command.project, searched, now_us=now_us, leave_out=base.memory_id)
            return found, search.position(connection, search.VIEWS)

        return await self._views.read(read)

    async def _append(self, command: Command, origin: Origin, decide: Decide) -> Outcome:
        request = None
        if command.request_id is not None:
            request = RequestKey(client=origin.client, request_id=command.request_id, params_digest=origin.digest)
        return await self._log.append(Proposal(decide=decide, client=origin.client or None, request=request))

    async def _views_reach(self, position: int) -> None:
        """Wait for the views, but not for ever: what they do not show in time is decided without."""
        if self._views.driver.trouble:
            return
        with anyio.move_on_after(VIEWS_WAIT_S):
            try:
                await self._views.wait_for(position, search.VIEWS)
            except Unavailable:
                return

    async def _views_at_head(self) -> None:
        await self._views_reach(self._log.head)

    def _memory_id(self) -> str:
        return f"mem-{self._clock.random_bits(64):016x}"


def digest_of(method: str, params: bytes) -> bytes:
    """Identify what a request asks for: its method and its parameters, whatever their order and spacing."""
    ordered = msgspec.json.encode(msgspec.json.decode(params or b"{}"), order="deterministic")
    return blake2b(method.encode() + b"\0" + ordered, digest_size=16).digest()


def _known(found: list[Near], *, is_comparable: bool = True) -> tuple[Neighbour, ...]:
    return tuple(
        Neighbour(
            memory_id=near.memory_id,
            content=near.content,
            event_type=near.event_type,
            entity_id=near.entity_id,
            similarity=near.cosine,
            is_comparable=is_comparable,
        )
        for near in found
    )
