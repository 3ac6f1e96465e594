"""Commands: what deciding needs is prepared, the decision is made in the transaction of its append, the answer waits for the disk."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Protocol

import msgspec

from omegad.commands import Command, graph, lifecycle, tool
from omegad.commands.compaction import CompactMemories
from omegad.commands.consolidation import ConsolidateMemories
from omegad.commands.graph import LinkMemories, UnlinkMemories
from omegad.commands.lifecycle import DeleteMemory, EditMemory, PromoteMemory, RateMemory, RestoreMemory, SupersedeMemory
from omegad.commands.store import Outdated, PreparedStore, StoreMemory
from omegad.commands.tool import RecordToolCall
from omegad.commands.upsert import UpsertMemory
from omegad.dispatch.maintenance import Maintenance
from omegad.dispatch.parts import Parts
from omegad.dispatch.storing import Storing
from omegad.errors import OmegadError
from omegad.log.decision import Decide, Outcome, Proposal, RequestKey
from omegad.queries.graph import edge_types_between, superseded_by
from omegad.views.barrier import Barrier

TRIES = 3
EDGES = Barrier(names=("edges",), wait_s=0.0, makes_do=True)  # waited for before, for as long as a command waits

OnPending = Callable[[], None]


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
        self._storing = Storing(parts)
        self._maintenance = Maintenance(parts)
        self.acknowledged = parts.log.head
        """The highest position that any client's command was acknowledged at."""
        self.on_pending: OnPending = lambda: None
        """Called when a memory was stored or changed whose vectors and relations are to follow."""

    async def execute(self, command: Command, origin: Origin) -> Outcome:
        """Carry out a command; raises what its decision raises."""
        match command:
            case UpsertMemory(memory_id=str() as memory_id):
                outcome = await self._append(command, origin, await self._storing.decide_replacement(command, memory_id))
                self.on_pending()
            case StoreMemory():
                outcome = await self._store(command, origin)
            case EditMemory():
                outcome = await self._append(command, origin, await self._storing.decide_edit(command))
                self.on_pending()
            case DeleteMemory():
                outcome = await self._delete(command, origin)
            case UnlinkMemories():
                outcome = await self._unlink(command, origin)
            case CompactMemories():
                outcome = await self._append(command, origin, await self._maintenance.decide_compaction(command))
                self.on_pending()
            case ConsolidateMemories():
                outcome = await self._append(command, origin, await self._maintenance.decide_consolidation(command))
                self.on_pending()
            case _:
                outcome = await self._append(command, origin, _decision(command))
        self.acknowledged = max(self.acknowledged, outcome.position)
        return outcome

    async def embed_stored(self, memory_id: str, content_key: str, command: StoreMemory) -> bool:
        """Embed a memory that was stored without, and append what follows; say whether the model could."""
        embedded = await self._storing.embed(command.content, is_backlog=True)
        if embedded is None:
            return False
        base = PreparedStore(memory_id=memory_id, content=command.content, read_position=0)

        async def attempt(*, is_last: bool) -> Outcome:
            prepared = await self._storing.prepare(command, base, embedded, is_last=is_last)
            return await self._log.append(Proposal(decide=self._storing.decide_embed(command, prepared, content_key, embedded)))

        await self._storing.views_at_head()
        await self._until_current(attempt)
        return True

    async def expire(self, memory_ids: tuple[str, ...]) -> None:
        """Record of memories that their time is over."""
        await self._log.append(Proposal(decide=partial(lifecycle.expire, memory_ids)))

    async def _store(self, command: StoreMemory, origin: Origin) -> Outcome:
        base = self._storing.begin(command, origin.client or None)
        embedded = None if command.ack == "durable" else await self._storing.embed(base.content)

        async def attempt(*, is_last: bool) -> Outcome:
            prepared = await self._storing.prepare(command, base, embedded, is_last=is_last)
            return await self._append(command, origin, self._storing.decide_store(command, prepared, embedded))

        await self._storing.views_reach(origin.written)
        outcome = await self._until_current(attempt)
        if embedded is None:
            self.on_pending()
        return outcome

    async def _delete(self, command: DeleteMemory, origin: Origin) -> Outcome:
        await self._storing.views_reach(max(origin.written, self.acknowledged))
        replaced: tuple[str, ...] = ()
        with suppress(OmegadError):  # views that cannot be read keep nobody from deleting
            replaced = await self._views.at(EDGES, lambda connection, _: superseded_by(connection, memory_id=command.memory_id))
        return await self._append(command, origin, partial(lifecycle.delete, command, replaced))

    async def _unlink(self, command: UnlinkMemories, origin: Origin) -> Outcome:
        await self._storing.views_reach(max(origin.written, self.acknowledged))
        ends = (command.memory_id, command.target_id)
        found = await self._views.at(EDGES, lambda connection, _: edge_types_between(connection, ends=ends, edge_type=command.edge_type))
        return await self._append(command, origin, partial(graph.unlink, command, found))

    async def _until_current(self, attempt: Attempt) -> Outcome:
        """Prepare and decide again while the neighbours keep changing; the last attempt is decided on what it has."""
        for _ in range(TRIES - 1):
            try:
                return await attempt(is_last=False)
            except Outdated:
                await self._storing.views_at_head()
        return await attempt(is_last=True)

    async def _append(self, command: Command, origin: Origin, decide: Decide) -> Outcome:
        request = None
        if command.request_id is not None:
            request = RequestKey(client=origin.client, request_id=command.request_id, params_digest=origin.digest)
        return await self._log.append(Proposal(decide=decide, client=origin.client or None, request=request))


def digest_of(method: str, params: bytes) -> bytes:
    """Identify what a request asks for: its method and its parameters, whatever their order and spacing."""
    ordered = msgspec.json.encode(msgspec.json.decode(params or b"{}"), order="deterministic")
    return blake2b(method.encode() + b"\0" + ordered, digest_size=16).digest()


def _decision(command: Command) -> Decide:
    """Return the decision of a command that needs nothing from the world."""
    match command:
        case LinkMemories():
            return partial(graph.link, command)
        case RecordToolCall():
            return partial(tool.record, command, tool.cut(command))
        case _:
            return _lifecycle_decision(command)


def _lifecycle_decision(command: Command) -> Decide:
    match command:
        case SupersedeMemory():
            return partial(lifecycle.supersede, command)
        case RestoreMemory():
            return partial(lifecycle.restore, command)
        case RateMemory():
            return partial(lifecycle.rate, command)
        case PromoteMemory():
            return partial(lifecycle.promote, command)
        case _:
            raise AssertionError(command)
