"""A memory, or a phrase, is removed for good: what holds it is found, taken out of the log in one append, and
then out of every other file.

The append is the act; from then on nothing shows what was erased. A cursor that moves with it says that bytes
may be left in some file, until they are not. What follows the act has its time, and goes on in the background
after that; a start that finds it so makes everything that is made of the log anew.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import anyio
import anyio.to_thread
import msgspec
import structlog
from msgspec import Meta

from omegad.embedding.cache import VectorCache
from omegad.index.served import RecentVectors
from omegad.log.decision import Cursor, Decision, DecisionState, Proposal
from omegad.log.erasure import CURSOR, DONE, UNDER_WAY, CameSince, Erasure, PayloadErased
from omegad.log.event import NewEvent, Position
from omegad.memory.events import MemoryErased
from omegad.memory.state import Memories
from omegad.operations.copies import ErasurePlan, find, find_more, find_phrase
from omegad.operations.remaining_files import Left, files_that_hold
from omegad.operations.scrubbing import Affected, Copy
from omegad.operations.services import DaemonServices
from omegad.operations.vector_sweep import VectorSweep
from omegad.requests.command import Acknowledged
from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request, RequestId
from omegad.requests.verb import Option, Verb
from omegad.rpc.peer import Call
from omegad.runtime.errors import Invalid, OmegadError, Refused, Unavailable
from omegad.sharing.state import owned
from omegad.storage.wiping import wipe
from omegad.views.erasing import PausedViews

PAYLOADS_AT_ONCE = 5_000  # that one event names
TRIES = 5
RETRY_S = 1.0
TRY_S = 5.0  # for an act with which nothing comes: where many write, something always does
TURN_S = 25.0  # to wait for erasures before it, each of which may take its time
FINISH_S = 20.0  # for the turn and all that follows the act, before the answer says that it is not done
FINISH_LEAST = 0.25  # of that time, however long the turn was in coming
REBUILD_S = 600.0  # for views that have to be built again, when nobody waits for it

_log = structlog.get_logger(__name__)


COPIES_TOLD = 1_000


class EraseMemory(Request, frozen=True, kw_only=True, tag="memory.erase"):
    """Remove a memory for good: every wording it ever had, and copies of them in other events, from every
    file of the home.

    Or, with `text` instead of `memory_id`, a phrase wherever it stands, such as a password: in prompts, tool
    calls, queries, memories, messages, tasks. What omegad itself cut from what is erased, or put together of
    it, goes as well, or is made again.
    """

    memory_id: Annotated[str, Meta(min_length=1, max_length=256, description="the memory's id")] | None = None
    text: (
        Annotated[
            str, Meta(min_length=1, max_length=65_536, description="a phrase to erase wherever it stands")
        ]
        | None
    ) = None
    reason: Annotated[str, Meta(max_length=4_096, description="why; it stays in the log")] | None = None
    dry_run: Annotated[bool, Meta(description="say what would be erased, and erase nothing")] = False
    request_id: RequestId | None = None


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """What was erased, or would be (`dry_run`), and where it stands still.

    `wordings` are told only before: all that the memory ever said; a phrase is not. `copies` are the events
    that hold them, its own among them, the first 1,000 of `copy_count`. `whole_values_only` are those
    wordings too short, or too common, to be looked for within other texts. `rebuilt` are views that had to be
    built again. `unfinished` is what keeps its bytes from going out of some file, where something does: it is
    erased all the same, and nothing shows it; the bytes go when they can, at the latest at the next start.
    `names` are those in which a phrase stands as well, such as a session's or a project's, beside events:
    they are not erased.

    In a team, `for_team` are the memories that are erased for everybody in it, and `here_alone` those that
    another person stored, which only who administers the team erases for everybody. `still_told` are those
    that stay here, with what is erased taken out, and of which the team was told: its copies of what they
    said before stay, and go with the whole memory alone.
    """

    memory_id: str | None
    dry_run: bool
    position: Position
    wordings: list[str]
    whole_values_only: int
    copies: list[Copy]
    copy_count: int
    memories: list[Affected]
    left: list[Left]
    rebuilt: list[str] = []
    unfinished: str | None = None
    names: list[str] = []
    for_team: list[str] = []
    here_alone: list[str] = []
    still_told: list[str] = []
    took_ms: float = 0.0


class Erasing:
    """Erases memories, one at a time."""

    def __init__(
        self,
        services: DaemonServices,
        home: Path,
        cache: VectorCache,
        vector_sweep: VectorSweep,
        paused_views: PausedViews,
    ) -> None:
        self._vector_sweep = vector_sweep
        self._services = services
        self._home = home
        self._cache = cache
        self._paused_views = paused_views
        self._lock = anyio.Lock()
        self._unfinished: list[ErasurePlan] = []
        self._unlike: dict[str, None] = {}
        """Views that have to be built again."""
        self._has_unfinished = anyio.Event()
        self._going_on: set[anyio.CancelScope] = set()
        self._is_ending = False

    async def run(self) -> None:
        """Finish what an earlier run has begun, whose views were removed at the start and whose decision
        state is being made anew.

        Then finish, for ever, what an erasure could not in its time.
        """
        while await self._services.log.is_erasing():
            try:
                async with self._lock:
                    await self._services.log.settled()
                    await self._wipe_log(())
                    await self._vector_sweep.sweep()
                    await self._done()
                _log.info("erasing.finished")
                break  # what is left since is of erasures of this run
            except Unavailable as error:
                _log.warning("erasing.waits", error=str(error), retry_s=RETRY_S)
                await anyio.sleep(RETRY_S)
        while True:
            await self._has_unfinished.wait()
            await anyio.sleep(RETRY_S)
            await self._try_again()

    def end(self) -> None:
        """Let what goes on be cut short, since the daemon ends: the next start finishes it."""
        self._is_ending = True
        for scope in self._going_on:
            scope.cancel()

    async def erase(self, request: EraseMemory, call: Call) -> Erased:
        """Erase a memory, or say what that would erase.

        Raises `NotFound`, and `Refused` while views are rebuilt or verified, or others are erased that came
        before. Where something keeps the bytes from going out of some file, such as a full disk, or another
        process that goes on reading what was there before, the answer says so.
        """
        began, position, ends, unlike, unfinished = time.monotonic(), 0, 0.0, list[str](), ""
        async with self._turn():
            left_s = FINISH_S - min(time.monotonic() - began, (1 - FINISH_LEAST) * FINISH_S)
            await self._services.spool.drain()
            found = await self._found(request)
            if request.dry_run:
                return await self._answer(request, found, began)
            with anyio.CancelScope(shield=True):  # what has begun goes on, whoever is cancelled
                found, position = await self._act(request, found, call)
                self._unfinished.append(found)
                ends = anyio.current_time() + left_s
                found, unlike, unfinished = await self._followed(request, found, call, ends)
        if not unfinished and (unfinished := await self._built(ends)):
            self._has_unfinished.set()
        return msgspec.structs.replace(
            await self._answer(request, found, began, position, unlike), unfinished=unfinished or None
        )

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Be the one that erases, in views that stand still. Raises `Refused` where that takes too long."""
        async with AsyncExitStack() as held:
            with anyio.move_on_after(TURN_S) as patience:
                await held.enter_async_context(self._lock)
                await held.enter_async_context(self._paused_views)
            if patience.cancelled_caught:
                raise Refused(
                    "others are being erased, which came before; nothing was erased of this",
                    hint="ask again in a moment",
                )
            yield

    async def _followed(
        self, request: EraseMemory, found: ErasurePlan, call: Call, ends: float
    ) -> tuple[ErasurePlan, list[str], str]:
        """Do what follows the act, until it *ends* at the latest: take out what came meanwhile, too, and all
        of it out of every file.

        Return all that was found, the views that have to be built again, and why it is not done, "" where it
        is.
        """
        trouble, unlike = "", list[str]()
        with self._until(ends) as scope:
            while True:
                try:
                    while (more := await find_more(self._services, found)).remnants:
                        await self._append(request, more, call)
                        self._unfinished.remove(found)
                        found = found.with_more(more)
                        self._unfinished.append(found)
                    unlike = await self._clean(found)
                    self._unlike |= dict.fromkeys(unlike)
                    break
                except Unavailable as error:
                    trouble = str(error)
                    _log.warning("erasing.waits", error=trouble, retry_s=RETRY_S)
                    await anyio.sleep(RETRY_S)
        if not scope.cancelled_caught:
            self._unfinished.remove(found)
            return found, unlike, ""
        self._has_unfinished.set()
        return (
            found,
            unlike,
            trouble
            or self._services.views.driver.trouble
            or "the service was told to end, or the views are behind",
        )

    async def _built(self, ends: float) -> str:
        """Build views again that could not be brought to what the log says; return why that is not done,
        "" where it is.
        """
        names = ", ".join(self._unlike)
        try:
            with self._until(ends) as scope:
                for name in tuple(self._unlike):
                    await self._paused_views.build_again(name)
                    self._unlike.pop(name, None)
                await self._done()
        except OmegadError as error:
            return f"{names} could not be built again yet: {error}"
        return f"{names} could not be built again in time" if scope.cancelled_caught else ""

    async def _try_again(self) -> None:
        """Finish what an erasure could not, if that can be done by now."""
        try:
            if self._unfinished:
                with self._until(anyio.current_time() + FINISH_S) as scope:
                    async with self._lock, self._paused_views:
                        for found in self._unfinished[:1]:  # without the lock it may be one that is under way
                            self._unlike |= dict.fromkeys(await self._clean(found))
                            self._unfinished.remove(found)
                if scope.cancelled_caught:
                    return
            if why := await self._built(anyio.current_time() + REBUILD_S):
                _log.warning("erasing.waits", error=why, retry_s=RETRY_S)
                return
        except OmegadError as error:
            _log.warning("erasing.waits", error=str(error), retry_s=RETRY_S)
            return
        if not self._unfinished and not self._unlike:
            self._has_unfinished = anyio.Event()
            _log.info("erasing.finished")

    async def _done(self) -> None:
        """Note that no file holds what was erased, unless one still does."""
        if not self._unfinished and not self._unlike:
            await self._services.log.advance(Cursor(CURSOR, DONE))

    @contextmanager
    def _until(self, ends: float) -> Iterator[anyio.CancelScope]:
        """Go on in the block, whoever is cancelled, but until then at the latest, nor when the daemon
        ends.
        """
        with anyio.CancelScope(shield=True, deadline=ends) as scope:
            self._going_on.add(scope)
            if self._is_ending:
                scope.cancel()
            try:
                yield scope
            finally:
                self._going_on.discard(scope)

    async def _found(self, request: EraseMemory) -> ErasurePlan:
        """Find what is to be erased. Raises `Invalid`, `NotFound`."""
        match request:
            case EraseMemory(memory_id=str(memory_id), text=None):
                return await find(self._services, memory_id)
            case EraseMemory(memory_id=None, text=str(text)):
                return await find_phrase(self._services, text)
            case _:
                raise Invalid("name a memory by its id, or give a text: one of the two")

    async def _act(
        self, request: EraseMemory, found: ErasurePlan, call: Call
    ) -> tuple[ErasurePlan, Position]:
        """Take what was found out of the log in one append, in which there is nothing that came since;
        return what that was, and its position.
        """
        began = anyio.current_time()
        for _ in range(TRIES):
            try:
                return found, await self._append(request, found, call, seen=found.head)
            except CameSince:
                if anyio.current_time() - began > TRY_S:
                    break
                found = await self._found(request)
        return found, await self._append(request, found, call)  # what came since is taken out after

    async def _append(
        self, request: EraseMemory, found: ErasurePlan, call: Call, seen: Position | None = None
    ) -> Position:
        """Take what was found out of the log: the act. Return its position. Raises `CameSince` where
        something came since *seen*.
        """
        await self._cache.forget(
            found.text_hashes, is_last=False
        )  # before, since nobody could tell them after
        proposal = Proposal(
            decide=partial(_decide, request, found, seen),
            client=call.peer.name or None,
            cursor=Cursor(CURSOR, UNDER_WAY),
        )
        position = (await self._services.log.append(proposal)).position
        call.peer.written = max(call.peer.written, position)
        return position

    async def _clean(self, found: ErasurePlan) -> list[str]:
        """Take what was erased out of the views, caches and files that are made of the log; return the
        views that have to be built again.
        """
        services, pieces = self._services, found.sought.wordings.pieces(has_runs=True)
        checkpoints = services.views.driver.checkpoints
        failed = [name for name, checkpoint in checkpoints.items() if checkpoint.failed_position is not None]
        unlike, failures = list[str](), list[OmegadError]()

        async def to_its_end(
            work: Awaitable[list[str] | None],
        ) -> None:  # or one that fails would leave the others behind that still write
            try:
                unlike.extend(await work or ())
            except OmegadError as error:
                failures.append(error)

        try:
            await services.views.wait_for(found.head, checkpoints.keys() - failed)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    to_its_end,
                    self._paused_views.take_out(found.remnants, pieces, has_names=found.has_names),
                )
                tasks.start_soon(to_its_end, self._wipe_log(pieces))
                tasks.start_soon(to_its_end, self._cache.forget(found.text_hashes))
        finally:  # what is in memory waits for no file
            services[RecentVectors].forget(found.memory_ids)
            services.near.forget()
        if failures:
            raise failures[0]
        await services.past.forget()
        await anyio.to_thread.run_sync(services.spool.remove_aside, pieces)
        return [*dict.fromkeys((*unlike, *failed))]

    async def _wipe_log(self, pieces: Sequence[bytes]) -> None:
        log = self._services.log
        await log.settled()
        await log.on_writer(partial(wipe, path=log.path, pieces=pieces))

    async def _answer(
        self,
        request: EraseMemory,
        found: ErasurePlan,
        began: float,
        position: Position = 0,
        rebuilt: Sequence[str] = (),
    ) -> Erased:
        wordings = found.sought.wordings
        gone = {*found.memory_ids}
        stays = [one.memory_id for one in found.affected if one.memory_id not in gone]
        shared = await self._services.log.on_writer(partial(owned, memory_ids=[*found.memory_ids, *stays]))
        look = partial(
            files_that_hold,
            self._home,
            self._services.skills.folders,
            wordings.pieces(),
            wordings.pieces(has_runs=True),
            is_done=not request.dry_run,
        )
        return Erased(
            memory_id=request.memory_id,
            dry_run=request.dry_run,
            position=position,
            wordings=list(wordings.texts) if request.dry_run and request.text is None else [],
            whole_values_only=wordings.short,
            copies=[*islice(found.copies, COPIES_TOLD)],
            copy_count=len(found.remnants),
            memories=list(found.affected),
            left=await anyio.to_thread.run_sync(look),
            rebuilt=list(rebuilt),
            for_team=[one for one in found.memory_ids if shared.get(one) is True],
            here_alone=[one for one in found.memory_ids if shared.get(one) is False],
            still_told=[one for one in stays if one in shared],
            names=[] if request.text is None else await self._services.log.names_with(request.text.strip()),
            took_ms=round(1e3 * (time.monotonic() - began), 1),
        )


def _decide(
    request: EraseMemory, found: ErasurePlan, seen: Position | None, state: DecisionState, _now_us: int
) -> Decision:
    """Decide that what was found is erased."""
    sought = found.sought
    reason = None if request.reason is None else sought.wordings.clean(request.reason)
    known = [memory for memory_id in found.memory_ids if (memory := state[Memories].get(memory_id))]
    events = [
        NewEvent(event=MemoryErased(memory_id=one.memory_id, reason=reason), project=one.project)
        for one in known
    ]
    events += [NewEvent(event=edit, project=project) for project, edit in found.edits]
    why = f"memory {request.memory_id} was erased" if request.text is None else "a text was erased"
    why = why if reason is None or known else f"{why}: {reason}"
    for start in range(0, len(found.remnants), PAYLOADS_AT_ONCE):
        named = found.remnants[start : start + PAYLOADS_AT_ONCE]
        positions, remains = tuple(one.position for one in named), tuple(one.hash for one in named)
        events.append(NewEvent(event=PayloadErased(positions=positions, reason=why, remains=remains)))
    return Decision(
        events=tuple(events),
        answer=Acknowledged(),
        erasure=Erasure(
            remnants=found.remnants,
            terms=sought.terms,
            clean=sought.clean,
            answer_terms=found.answer_terms,
            clean_answer=found.clean_answer,
            seen=seen,
            has_names=found.has_names,
        ),
    )


METHODS = (
    ServiceMethod(
        params=EraseMemory,
        answer=Erased,
        writes=True,
        verb=Verb(
            by="asking_first.erase",
            options=(
                Option("memory_id", "the memory's id", is_given=True),
                Option(
                    "text",
                    "instead of a memory, erase a phrase wherever it stands: it is asked for and not shown,"
                    " or read from standard input, so that no shell remembers it; in an agent's own shell the"
                    " hooks would hear of it",
                    "flag",
                ),
                Option("yes", "erase without asking", "flag"),
            ),
            examples=(
                "omegad memory erase mem-0123456789abcdef --dry-run",
                "omegad memory erase --text",
                "omegad memory erase --text --yes < phrase.txt",
            ),
        ),
    ),
)
