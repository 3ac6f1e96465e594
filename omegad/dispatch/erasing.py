"""A memory is removed for good: what holds it is found, taken out of the log in one append, and then out of every other file of the home.

The append is the act; from then on nothing shows what was erased. A cursor that moves with it says that bytes may be left in some file, until
they are not. A start that finds it so makes everything that is made of the log anew.
"""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from omegad.commands.command import Acknowledged
from omegad.dispatch.finding_copies import Found, find, find_more
from omegad.dispatch.keeping import Keeping
from omegad.dispatch.left_files import left_in
from omegad.dispatch.services import DaemonServices
from omegad.embedding.cache import VectorCache
from omegad.errors import Unavailable
from omegad.events.memory import MemoryErased
from omegad.log import erasure
from omegad.log.decision import Cursor, Decision, Proposal
from omegad.log.erasure import CURSOR, DONE, UNDER_WAY, Erasure
from omegad.log.event import NewEvent, Position
from omegad.queries.erase import COPIES_TOLD, Erased, EraseMemory
from omegad.rpc.peer import Call
from omegad.state import DecisionState
from omegad.storage.wiping import wipe
from omegad.views.erasing import Standstill

PAYLOADS_AT_ONCE = 5_000  # that one event names
RETRY_S = 1.0
TRIES = 30

_log = structlog.get_logger(__name__)


class Erasing:
    """Erases memories, one at a time."""

    def __init__(self, services: DaemonServices, home: Path, cache: VectorCache, keeping: Keeping, standstill: Standstill) -> None:
        """Take everything from outside."""
        self._keeping = keeping
        self._services = services
        self._home = home
        self._cache = cache
        self._standstill = standstill
        self._lock = anyio.Lock()

    async def run(self) -> None:
        """Finish what an earlier run has begun; its views were removed at the start, and the decision state is being made anew."""
        while await self._services.log.is_erasing():
            try:
                async with self._lock:
                    await self._services.log.settled()
                    await self._wipe_log(())
                    await self._keeping.sweep()
                    await self._services.log.advance(Cursor(CURSOR, DONE))
                _log.info("erasing.finished")
            except Unavailable as error:
                _log.warning("erasing.waits", error=str(error), retry_s=RETRY_S)
                await anyio.sleep(RETRY_S)

    async def erase(self, request: EraseMemory, call: Call) -> Erased:
        """Erase a memory, or say what that would erase.

        Raises `NotFound`, `Refused` while views are rebuilt or verified, and `StorageBusy` where another process goes on reading what was there
        before: then it is erased, and the next start removes the bytes that are left.
        """
        began, position, unlike = time.monotonic(), 0, list[str]()
        async with self._lock, self._standstill:
            await self._services.spool.drain()
            found = await find(self._services, request.memory_id)
            if request.dry_run:
                return await self._told(request, found, began)
            with anyio.CancelScope(shield=True):  # what has begun goes on, whoever is cancelled
                found, position = await self._act(request, found, call)
                unlike = await self._cleaned(found)
        with anyio.CancelScope(shield=True):
            await self._standstill.build_again(unlike)
            await self._services.log.advance(Cursor(CURSOR, DONE))
        return await self._told(request, found, began, position, unlike)

    async def _act(self, request: EraseMemory, found: Found, call: Call) -> tuple[Found, Position]:
        """Take what was found out of the log, and what came meanwhile, until there is no more; return all of it, and where the act stands."""
        position = await self._append(request, found, call)
        more = await find_more(self._services, found)
        found = found.with_more(more)
        while more.remnants:
            await self._append(request, more, call)
            more = await find_more(self._services, found)
            found = found.with_more(more)
        return found, position

    async def _append(self, request: EraseMemory, found: Found, call: Call) -> Position:
        """Take what was found out of the log: the act. Return its position."""
        await self._cache.forget(found.text_hashes, is_last=False)  # before, since nobody could tell them after
        proposal = Proposal(decide=partial(_decide, request, found), client=call.peer.name or None, cursor=Cursor(CURSOR, UNDER_WAY))
        position = (await self._services.log.append(proposal)).position
        call.peer.written = max(call.peer.written, position)
        return position

    async def _cleaned(self, found: Found) -> list[str]:
        """Do as `_clean`, again and again while something keeps it from it, such as a backup that reads the log as it was."""
        for _ in range(TRIES - 1):
            try:
                return await self._clean(found)
            except Unavailable as error:
                _log.warning("erasing.waits", error=str(error), retry_s=RETRY_S)
                await anyio.sleep(RETRY_S)
        return await self._clean(found)

    async def _clean(self, found: Found) -> list[str]:
        """Take what was erased out of the views, caches and files that are made of the log; return the views that have to be built again."""
        services, pieces = self._services, found.wordings.pieces()
        checkpoints = services.views.driver.checkpoints
        failed = [name for name, checkpoint in checkpoints.items() if checkpoint.failed_position is not None]
        await services.views.wait_for(found.head, checkpoints.keys() - failed)
        pairs = [(one.before, one.after) for one in found.remnants]
        unlike, *_ = await asyncio.gather(self._standstill.take_out(pairs, pieces), self._wipe_log(pieces), self._cache.forget(found.text_hashes))
        services.near.recent.forget(found.memory_ids)
        services.near.forget_index()
        await services.past.forget()
        await anyio.to_thread.run_sync(services.spool.remove_aside, pieces)
        return [*dict.fromkeys((*unlike, *failed))]

    async def _wipe_log(self, pieces: Sequence[bytes]) -> None:
        log = self._services.log
        await log.settled()
        await log.on_writer(partial(wipe, path=log.path, pieces=pieces))

    async def _told(self, request: EraseMemory, found: Found, began: float, position: Position = 0, rebuilt: Sequence[str] = ()) -> Erased:
        look = partial(left_in, self._home, found.wordings.pieces(), is_done=not request.dry_run)
        left = await anyio.to_thread.run_sync(look)
        return Erased(
            memory_id=request.memory_id,
            dry_run=request.dry_run,
            position=position,
            wordings=list(found.wordings.texts) if request.dry_run else [],
            whole_values_only=found.wordings.short,
            copies=found.copies[:COPIES_TOLD],
            copy_count=len(found.remnants),
            memories=list(found.affected),
            left=left,
            rebuilt=list(rebuilt),
            took_ms=round(1e3 * (time.monotonic() - began), 1),
        )


def _decide(request: EraseMemory, found: Found, state: DecisionState, now_us: int) -> Decision:
    """Decide that what was found is erased."""
    del now_us
    reason = None if request.reason is None else found.wordings.clean(request.reason)
    known = [memory for memory_id in found.memory_ids if (memory := state.memory(memory_id))]
    events = [NewEvent(event=MemoryErased(memory_id=one.memory_id, reason=reason), project=one.project) for one in known]
    events += [NewEvent(event=edit, project=project) for project, edit in found.edits]
    for start in range(0, len(found.remnants), PAYLOADS_AT_ONCE):
        event = erasure.erased_event(found.remnants[start : start + PAYLOADS_AT_ONCE], f"memory {request.memory_id} was erased")
        events.append(NewEvent(event=event))
    return Decision(
        events=tuple(events),
        answer=Acknowledged(),
        erasure=Erasure(remnants=found.remnants, signs=found.wordings.signs, clean=found.wordings.data),
    )
