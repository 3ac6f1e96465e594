"""What goes on with the post, in a task of its own: this home's facts are told, those of others received. The
log is the queue; nothing waits for the post, and what it cannot take now goes when it can.
"""

import random
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import NamedTuple

import anyio
import anyio.lowlevel
import structlog
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from omegad.log.decision import Proposal
from omegad.log.event import Position
from omegad.memory.events import MemoryErased
from omegad.requests.method import Services
from omegad.runtime.concurrently import concurrently
from omegad.runtime.errors import NotFound, OmegadError
from omegad.runtime.precedence import BULK, READS
from omegad.sharing import outgoing
from omegad.sharing.events import (
    KnownOrigin,
    ShareJoined,
    ShareLeft,
    ShareRenewed,
)
from omegad.sharing.fact import Fact
from omegad.sharing.incoming import MADE, Heard, ReceiveFacts, heard, receive
from omegad.sharing.outgoing import AGENT
from omegad.sharing.post.post import Head, Origin, Post, Pulled, Waiting
from omegad.sharing.state import Known, Stamped, Team, known, owned
from omegad.sharing.telling import Telling

AT_ONCE = 500  # facts, and events looked at
RECEIVED_AT_ONCE = 250  # in one append, for which others' wait
PAGES_WAITING = 2  # fetched and read, while one is appended
ORIGIN_SHOWN = 64  # characters of a name that no home has
BATCH_BYTES_MAX = 4 << 20
POLL_S = 30.0  # behind what the post says by itself
GATHER_S = 0.25  # what comes within it is told, or received, at once: who stores has the processor meanwhile
RETRY_S, RETRY_MAX_S = 1.0, 300.0

MEMBERSHIP = (ShareJoined, ShareLeft, ShareRenewed)

_log = structlog.get_logger(__name__)


class _Page(NamedTuple):
    """What is appended at once, and the homes that told it."""

    facts: tuple[Heard, ...]
    told_by: tuple[Origin, ...]


Connect = Callable[[Team], AbstractAsyncContextManager[Post]]
Erase = Callable[[str], Awaitable[object]]
"""Erases a memory in this home; raises `NotFound` where there is none."""


class Exchange:
    """Keeps this home in step with its team as long as `run` is running."""

    def __init__(self, services: Services, erase: Erase, connect: Connect) -> None:
        self._services = services
        self._log = services.log
        self._erase = erase
        self._connect = connect
        self.telling = Telling(services)
        self._reported: dict[str, int] | None = None
        self._is_kicked = anyio.Event()
        self.trouble: str | None = None
        """What keeps this home from its team, in words."""
        self.remedy: str | None = None
        """What to do about that."""
        self.in_touch_us: int | None = None
        """When the post was last heard, in microseconds since 1970."""
        self.is_connected = False
        self.homes: list[Origin] = []
        """All homes of the team, as the post knows them."""
        self.erasing: list[Waiting] = []
        """What is erased for all, and not in all homes yet."""
        self.ahead: str | None = None
        """Whose facts a newer version told, which wait until this one is upgraded."""
        self.damaged: str | None = None
        """Whose facts at the post are not what was told, or not what the post was told of them."""

    def kick(self) -> None:
        """Connect anew and try now, whatever was being waited out."""
        self.trouble = None
        self._is_kicked.set()

    async def known(self) -> Known:
        """Return what the log knows of sharing."""
        return await self._log.on_writer(known)

    async def run(self) -> None:
        """Work for ever."""
        wait_s = RETRY_S
        while True:
            seen = self._log.head  # before, so that nothing comes in between
            at = await self.known()
            if at.team is None:
                self.trouble, self.is_connected = None, False
                await self._changed(seen)
                continue
            began = anyio.current_time()
            try:
                await self._in_touch(at.team)
            except Exception as error:  # noqa: BLE001  whatever it is, the service goes on
                self.trouble = str(error) if isinstance(error, OmegadError) else repr(error)
                self.remedy = getattr(error, "hint", None)
                if not isinstance(error, OmegadError):
                    _log.error("sharing.failed", error=repr(error))
                wait_s = RETRY_S if anyio.current_time() - began > wait_s else min(2 * wait_s, RETRY_MAX_S)
                _log.warning("sharing.waits", error=self.trouble, retry_s=round(wait_s, 1))
            finally:
                self.is_connected = False
            with anyio.move_on_after(wait_s * random.uniform(0.5, 1.5)):  # noqa: S311  so that not all come at once
                await self._is_kicked.wait()
            self._is_kicked = anyio.Event()

    async def _changed(self, after: Position) -> None:
        """Return when the home has joined, left, or taken another name after a position."""
        async for recorded in self._log.follow(after):
            if isinstance(recorded.event, MEMBERSHIP):
                return

    async def _in_touch(self, team: Team) -> None:
        """Tell and receive until the home leaves the team. Raises what keeps it from that."""
        async with self._connect(team) as post:
            self._reported = None
            head = await self.telling.enrolled(post, team)
            while True:
                position = self._log.head
                at = await self.known()
                if at.team is None or at.team.origin != team.origin:
                    break
                head = await self._met(post, at, head)
                await self._woken(post, position)
                if self._is_kicked.is_set():
                    return  # to connect anew, perhaps elsewhere

    async def meet(self, post: Post, team: Team) -> None:
        """Tell and receive once all there is. Raises what keeps this home from that."""
        head = await self.telling.enrolled(post, team)
        await self._met(post, await self.known(), head)

    async def _met(self, post: Post, at: Known, head: Head) -> Head:
        assert at.team is not None
        await self._receive(post, at.team)  # before, so that what this home told by another name is known
        head = await self.telling.tell(post, at, head)
        reached = (await self.known()).reached
        if reached != self._reported:
            await post.report(at.team.origin, reached)
            self._reported = reached
        self.erasing = await post.waiting()
        self.trouble, self.is_connected = None, True
        self.in_touch_us = self._services.clock.now_us()
        return head

    async def _woken(self, post: Post, position: Position) -> None:
        """Return when there may be something to tell or receive."""
        with anyio.CancelScope() as waiting:

            async def first(work: Callable[[], Awaitable[object]]) -> None:
                await work()
                waiting.cancel()

            await concurrently(
                partial(first, partial(post.woken, POLL_S)),
                partial(first, partial(self._told_of, position)),
                partial(first, self._is_kicked.wait),
            )
        with anyio.move_on_after(GATHER_S):
            await self._is_kicked.wait()

    async def _told_of(self, position: Position) -> None:
        async for recorded in self._log.follow(position):
            if isinstance(recorded.event, (*outgoing.TOLD, *MEMBERSHIP)) and self.telling.is_own(recorded):
                return

    async def _receive(self, post: Post, team: Team) -> None:
        """Receive all there is of others: the next is fetched and read while the last is appended."""
        self.ahead = self.damaged = None
        give, take = anyio.create_memory_object_stream[_Page](PAGES_WAITING)
        await concurrently(partial(self._fetched, post, team, give), partial(self._appended, team, take))

    async def _fetched(self, post: Post, team: Team, give: ObjectSendStream[_Page]) -> None:
        """Fetch what there is, page by page."""
        reached = (await self.known()).reached
        async with give:
            while True:
                pulled = await post.pull(reached, but=team.origin, limit=AT_ONCE)
                self.homes = pulled.origins
                strange = {one.origin for one in pulled.origins if not MADE.fullmatch(one.origin)}
                self.damaged = ", ".join(_damages(pulled, strange)) or None
                told = [one for one in pulled.facts if one.origin not in strange]
                facts = await self._readable(in_order(told, pulled.more - strange))
                if not facts:
                    break
                reached |= {one.fact.origin: one.fact.seq for one in facts}
                people = {one.origin: one for one in pulled.origins}
                for part in _received_parts(facts):
                    names = dict.fromkeys(one.fact.origin for one in part)
                    await give.send(_Page(part, tuple(people[name] for name in names)))

    async def _appended(self, team: Team, take: ObjectReceiveStream[_Page]) -> None:
        async with take:
            async for page in take:
                if isinstance(page.facts[0].event, MemoryErased):
                    await self._erased(page.facts[0].fact.subject)
                origins = tuple(
                    KnownOrigin(origin=one.origin, person=one.person, machine=one.machine)
                    for one in page.told_by
                )
                facts_in = ReceiveFacts(team=team.team, facts=page.facts, origins=origins)
                await READS.given()
                await self._log.append(Proposal(decide=partial(receive, facts_in), client=AGENT))

    async def _readable(self, facts: Sequence[Fact]) -> list[Heard]:
        """Return facts up to, for each origin, the first that a newer version told. Others have the processor
        in between.
        """
        unread, found = set[str](), list[Heard]()
        for number, fact in enumerate(facts):
            if number % BULK == 0:
                await anyio.lowlevel.checkpoint()
                await READS.given()
            if fact.origin in unread:
                continue
            one = heard(fact, self._log.codec.decode(fact.tag, fact.body))
            if one is None:
                unread.add(fact.origin)
                self.ahead = (
                    f"fact {fact.seq} of {fact.origin}, {fact.tag}, was told by a newer version of omegad"
                )
                continue
            found.append(one)
        return found

    async def _erased(self, memory_id: str) -> None:
        if await self._log.on_writer(partial(owned, memory_ids={memory_id})):
            with suppress(NotFound):
                await self._erase(memory_id)


def _damages(pulled: Pulled, strange: set[str]) -> Iterator[str]:
    for origin, seq in pulled.damaged.items():
        yield f"fact {seq} of {origin} at the server is not what was told"
    for origin in sorted(strange.intersection(one.origin for one in pulled.facts)):
        yield f"what {origin[:ORIGIN_SHOWN]!r} told is not taken: no home is called so"


def in_order(facts: Sequence[Fact], more: Collection[str]) -> list[Fact]:
    """Return facts of several origins in the order in which they can have come about. Of those that there
    are *more* of, the rest may come before what others say later, which is left for the next time.
    """
    latest, timed = dict[str, Stamped](), list[tuple[Stamped, int, Fact]]()
    for fact in facts:
        latest[fact.origin] = max(latest.get(fact.origin, (0, "")), (fact.hlc, fact.event_id))
        timed.append((latest[fact.origin], fact.seq, fact))
    ends = [latest[origin] for origin in more if origin in latest]
    end = min(ends) if ends else None
    timed.sort(key=lambda one: one[:2])
    return [fact for time, _, fact in timed if end is None or time <= end]


def _received_parts(found: Sequence[Heard]) -> Iterator[tuple[Heard, ...]]:
    """Yield what is received in parts of one append each, of which one begins where something is erased."""
    part, size = list[Heard](), 0
    for one in found:
        size += len(one.fact.body or b"")
        is_full = len(part) == RECEIVED_AT_ONCE or size > BATCH_BYTES_MAX
        if part and (is_full or isinstance(one.event, MemoryErased)):
            yield tuple(part)
            part, size = [], len(one.fact.body or b"")
        part.append(one)
    if part:
        yield tuple(part)
