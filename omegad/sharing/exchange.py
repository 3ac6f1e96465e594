"""What goes on with the post, in a task of its own: this home's facts are told, those of others received. The
log is the queue; nothing waits for the post, and what it cannot take now goes when it can.
"""

import random
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import NamedTuple

import anyio
import msgspec
import structlog

from omegad.log import chain
from omegad.log.codec import tag_of
from omegad.log.decision import Decide, Proposal
from omegad.log.event import Event, Position, RecordedEvent
from omegad.memory.events import MemoryErased, MemoryPromoted, MemoryRestored, MemoryStored
from omegad.requests.method import Services
from omegad.runtime.concurrently import concurrently
from omegad.runtime.errors import NotFound, OmegadError, Refused, Unavailable
from omegad.sharing import outgoing
from omegad.sharing.events import (
    KnownOrigin,
    ShareChosen,
    ShareJoined,
    ShareLeft,
    ShareRenewed,
)
from omegad.sharing.fact import Fact
from omegad.sharing.incoming import Heard, ReceiveFacts, heard, receive
from omegad.sharing.outgoing import AGENT, Said, facts_of, held, may_go, says
from omegad.sharing.post.errors import Forked
from omegad.sharing.post.post import Head, Origin, Post, Waiting
from omegad.sharing.state import Choice, Sharing, Stamped, Team, new_origin
from omegad.sharing.telling import NoteTold, RenewOrigin, note_told, renew
from omegad.storage.driver import Connection

AT_ONCE = 500  # facts, and events looked at
RECEIVED_AT_ONCE = 100  # in one append, for which others' wait
BATCH_BYTES_MAX = 4 << 20
POLL_S = 30.0  # behind what the post says by itself
GATHER_S = 0.25  # what comes within it is told, or received, at once: who stores has the processor meanwhile
WAITING_COUNTED = 20_000
RETRY_S, RETRY_MAX_S = 1.0, 300.0
LOOKED_TO_EVERY = 5_000  # positions without anything to tell, after which that is noted

TAGS = tuple(tag_of(kind) for kind in outgoing.TOLD)
MEMBERSHIP = (ShareJoined, ShareLeft, ShareRenewed)
VIEWS = ("memories", "feedback")

_log = structlog.get_logger(__name__)

Connect = Callable[[Team], AbstractAsyncContextManager[Post]]
Erase = Callable[[str], Awaitable[object]]
"""Erases a memory in this home; raises `NotFound` where there is none."""


class Told(NamedTuple):
    """What is told, of which project, by which agent, and when that happened, in microseconds since 1970."""

    event: Event
    project: str | None
    agent: str | None
    occurred_at: int


class Known(NamedTuple):
    """What the log knows of sharing at one moment."""

    team: Team | None
    choices: dict[str, Choice]
    reached: dict[str, int]
    origins: dict[str, tuple[str, str]]
    """The person and the machine of each."""


class Exchange:
    """Keeps this home in step with its team as long as `run` is running."""

    def __init__(self, services: Services, erase: Erase, connect: Connect) -> None:
        self._services = services
        self._log = services.log
        self._erase = erase
        self._connect = connect
        self._looked_to: Position = 0
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

    def kick(self) -> None:
        """Connect anew and try now, whatever was being waited out."""
        self.trouble = None
        self._is_kicked.set()

    async def known(self) -> Known:
        """Return what the log knows of sharing."""
        return await self._log.on_writer(
            lambda connection: Known(
                (sharing := Sharing(connection)).team(),
                sharing.choices(),
                sharing.reached(),
                sharing.origins(),
            )
        )

    async def waiting(self, known: Known) -> tuple[int, int | None]:
        """Return how many events wait to be told of, and when the first was recorded, in microseconds since
        1970; of more than `WAITING_COUNTED` the rest is taken for such.
        """
        if known.team is None:
            return 0, None
        positions = await self._log.tagged(TAGS, max(known.team.told_to, self._looked_to))
        count, since_us, left = 0, None, positions[:WAITING_COUNTED]
        while left:
            events = await self._log.read_at(left[:AT_ONCE])
            left = left[len(events) :]
            own = [one for one in events if self._is_own(one)]
            subjects = {_subject(one.event) for one in own}
            shared = await self._log.on_writer(partial(_shared, subjects=subjects))
            for one in own:
                if _may_be_told(one, known.choices, shared):
                    count += 1
                    since_us = since_us or one.recorded_at
        return count + max(0, len(positions) - WAITING_COUNTED), since_us

    async def run(self) -> None:
        """Work for ever."""
        wait_s = RETRY_S
        while True:
            seen = self._log.head  # before, so that nothing comes in between
            known = await self.known()
            if known.team is None:
                self.trouble, self.is_connected = None, False
                await self._changed(seen)
                continue
            began = anyio.current_time()
            try:
                await self._in_touch(known.team)
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
            head = await self._enrolled(post, team)
            while True:
                position = self._log.head
                known = await self.known()
                if known.team is None or known.team.origin != team.origin:
                    break
                head = await self._met(post, known, head)
                await self._woken(post, position)
                if self._is_kicked.is_set():
                    return  # to connect anew, perhaps elsewhere

    async def meet(self, post: Post, team: Team) -> None:
        """Tell and receive once all there is. Raises what keeps this home from that."""
        head = await self._enrolled(post, team)
        await self._met(post, await self.known(), head)

    async def _met(self, post: Post, known: Known, head: Head) -> Head:
        assert known.team is not None
        head = await self._tell(post, known, head)
        await self._receive(post, known.team)
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
            if isinstance(recorded.event, (*outgoing.TOLD, *MEMBERSHIP)) and self._is_own(recorded):
                return

    def _is_own(self, recorded: RecordedEvent) -> bool:
        return recorded.origin == self._log.origin and recorded.client != AGENT

    # Telling

    async def _enrolled(self, post: Post, team: Team) -> Head:
        """Be known at the post, as the one who goes on where this log says; take another name where that is
        not so. Note what was told and is not noted here yet.
        """
        head = await post.enrol(team.origin, team.machine)
        if head.seq and not await self._is_ours(head.position, head.event_id):
            await self._renew(post, team, head)
            raise Unavailable("this home was copied or restored: it shares under a new name from now on")
        if head.seq < team.seq:
            raise Refused(
                f"the server knows {head.seq} of {team.seq} facts that this home has told: it was restored"
                " from a backup",
                hint="`omegad share leave` and `omegad share join` tell it all that is shared once more",
            )
        await self._note_until(post, team, head.seq)
        return head

    async def _note_until(self, post: Post, team: Team, seq: int) -> Position:
        """Note what the post has of this home, up to a fact, and is not noted here; return up to where in the
        log all is told by that.
        """
        after, told_to = team.seq, team.told_to
        while after < seq:
            facts = await post.told(team.origin, after, min(AT_ONCE, seq - after))
            after = facts[-1].seq
            (last,) = await self._log.read_at([facts[-1].position])
            # What tells of all that a project holds may have ended in the middle
            told_to = last.position - isinstance(last.event, ShareChosen)
            await self._note(team, after, told_to, _stored(facts))
        return told_to

    async def _is_ours(self, position: Position, event_id: str) -> bool:
        if position > self._log.head:
            return False
        return any(one.event_id == event_id for one in await self._log.read_at([position]))

    async def _renew(self, post: Post, team: Team, head: Head) -> None:
        """Take another name, from the last fact on that this log and the post have in common."""
        ours, others = 0, head.seq + 1
        while others - ours > 1:
            middle = (ours + others) // 2
            (fact,) = await post.told(team.origin, middle - 1, 1)
            if await self._is_ours(fact.position, fact.event_id):
                ours = middle
            else:
                others = middle
        told_to = await self._note_until(post, team, ours)
        if ours < team.seq:  # it was noted here, and told by another
            told_to = (await post.told(team.origin, ours - 1, 1))[0].position if ours else 0
        new = RenewOrigin(before=team.origin, origin=new_origin(self._services), seq=ours, told_to=told_to)
        await self._append(partial(renew, new))

    async def _tell(self, post: Post, known: Known, head: Head) -> Head:
        """Tell all there is to tell; return what the post has then."""
        team = known.team
        assert team is not None
        told_to = max(team.told_to, self._looked_to if team.seq == head.seq else 0)
        while positions := await self._log.tagged(TAGS, told_to):
            events = _until_chosen(await self._log.read_at(positions[:AT_ONCE]))
            # After them, so that what one of them chooses is known
            known = known._replace(choices=(await self.known()).choices)
            if isinstance(events[0].event, ShareChosen):
                head = await self._tell_held(post, known, head, events[0])
                facts, memories = list[Fact](), list[str]()
            else:
                facts = await self._facts(events, known, head)
                head, memories = await self._pushed(post, team, head, facts)
            told_to = events[-1].position
            if facts or team.seq != head.seq or told_to - team.told_to > LOOKED_TO_EVERY:
                await self._note(team, head.seq, told_to, memories)
                team = msgspec.structs.replace(team, seq=head.seq, told_to=told_to)
        self._looked_to = told_to
        return head

    async def _pushed(
        self, post: Post, team: Team, head: Head, facts: Sequence[Fact]
    ) -> tuple[Head, list[str]]:
        """Push facts; return what the post has then, and the memories that are shared by them."""
        for part in _parts(facts):
            try:
                head = await post.push(team.origin, part, head)
            except Forked:
                raise Unavailable("another home told something under this one's name") from None
        return head, _stored(facts)

    async def _tell_held(self, post: Post, known: Known, head: Head, chosen: RecordedEvent) -> Head:
        """Tell of all that a project held when it was chosen and of which nothing was told, part by part."""
        team, event = known.team, chosen.event
        assert team is not None
        assert isinstance(event, ShareChosen)
        choice, after = known.choices.get(event.project), 0
        if choice is None or not self._is_own(chosen):
            return head
        await self._services.views.wait_for(chosen.position, VIEWS)
        while found := await self._services.views.read(
            partial(held, choice=choice, after=after, before=chosen.position, limit=AT_ONCE)
        ):
            after = found[-1].position
            shared = await self._log.on_writer(partial(_shared, subjects={one.memory_id for one in found}))
            told = [told for one in found if one.memory_id not in shared for told in _whole(chosen, one)]
            facts = [
                self._fact(chosen, one, team.origin, head.seq + number) for number, one in enumerate(told, 1)
            ]
            head, memories = await self._pushed(post, team, head, facts)
            if memories:
                await self._note(team, head.seq, chosen.position - 1, memories)
        return head

    async def _note(self, team: Team, seq: int, told_to: Position, memories: Sequence[str]) -> None:
        told = NoteTold(
            origin=team.origin, seq=seq, told_to=max(told_to, team.told_to), memories=tuple(memories)
        )
        await self._append(partial(note_told, told))

    async def _facts(self, events: Sequence[RecordedEvent], known: Known, head: Head) -> list[Fact]:
        """Return what the team is told of events of this log."""
        own = [one for one in events if self._is_own(one)]
        if not own:
            return []
        await self._services.views.wait_for(events[-1].position, VIEWS)
        subjects = {_subject(one.event) for one in own}
        shared = await self._log.on_writer(partial(_shared, subjects=subjects))
        said = await self._services.views.read(partial(says, memory_ids=subjects))
        team, facts = known.team, list[Fact]()
        assert team is not None
        for recorded in own:
            for told in await self._told(recorded, known, shared, said):
                facts.append(self._fact(recorded, told, team.origin, head.seq + len(facts) + 1))
        return facts

    async def _told(
        self, recorded: RecordedEvent, known: Known, shared: dict[str, bool], said: Mapping[str, Said]
    ) -> list[Told]:
        event, choices = recorded.event, known.choices
        memory_id = _subject(event)
        now = said.get(memory_id)
        if memory_id not in shared:
            is_stored = isinstance(event, MemoryStored)
            if isinstance(event, MemoryStored):
                may = may_go(event.event_type, choices.get(recorded.project or "")) and not event.on_probation
            else:
                may = (
                    isinstance(event, MemoryPromoted | MemoryRestored)
                    and now is not None
                    and now.status == "active"
                    and may_go(now.event_type, choices.get(now.project or ""))
                )
            if not may:
                return []
            shared[memory_id] = True
            if not is_stored:
                whole = await self._services.views.read(
                    partial(outgoing.whole, memory_id=memory_id, before=recorded.position)
                )
                return _whole(recorded, whole) if whole else []
        elif isinstance(event, MemoryStored) or (isinstance(event, MemoryErased) and not shared[memory_id]):
            return []  # told before; or erased here alone: for all it is erased by who stored it
        return [
            Told(one, recorded.project, recorded.client, recorded.occurred_at)
            for one in facts_of(recorded, said)
        ]

    def _fact(self, recorded: RecordedEvent, told: Told, origin: str, seq: int) -> Fact:
        body, salt = self._log.codec.encode(told.event), secrets.token_bytes(chain.SALT_BYTES)
        return Fact(
            origin=origin,
            seq=seq,
            hlc=recorded.hlc,
            event_id=recorded.event_id,
            tag=tag_of(type(told.event)),
            subject=_subject(told.event),
            occurred_at=told.occurred_at,
            tz_offset=recorded.tz_offset,
            project=told.project,
            agent=told.agent,
            position=recorded.position,
            payload_hash=chain.payload_hash(salt, body),
            salt=salt,
            body=body,
        )

    # Receiving

    async def _receive(self, post: Post, team: Team) -> None:
        """Receive all there is of others."""
        self.ahead = None
        while True:
            reached = (await self.known()).reached
            pulled = await post.pull(reached, but=team.origin, limit=AT_ONCE)
            self.homes = pulled.origins
            if pulled.damaged:
                self.ahead = ", ".join(
                    f"fact {seq} of {origin} at the server is not what was told"
                    for origin, seq in pulled.damaged.items()
                )
            facts = self._readable(in_order(pulled.facts, pulled.more))
            if not facts:
                break
            people = tuple(
                KnownOrigin(origin=one.origin, person=one.person, machine=one.machine)
                for one in pulled.origins
                if one.origin != team.origin
            )
            for part in _received_parts(facts):
                if isinstance(part[0].event, MemoryErased):
                    await self._erased(part[0].fact.subject)
                await self._append(partial(receive, ReceiveFacts(team=team.team, facts=part, origins=people)))
        await post.report(team.origin, (await self.known()).reached)
        self.erasing = await post.waiting()

    def _readable(self, facts: Sequence[Fact]) -> list[Heard]:
        """Return facts up to, for each origin, the first that a newer version told."""
        unread, found = set[str](), list[Heard]()
        for fact in facts:
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
        if await self._log.on_writer(partial(_shared, subjects={memory_id})):
            with suppress(NotFound):
                await self._erase(memory_id)

    async def _append(self, decide: Decide) -> None:
        await self._log.append(Proposal(decide=decide, client=AGENT))


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


def _parts(facts: Sequence[Fact]) -> Iterator[list[Fact]]:
    """Yield facts in parts that are pushed at once."""
    part, size = list[Fact](), 0
    for fact in facts:
        is_full = len(part) >= AT_ONCE or size + len(fact.body or b"") > BATCH_BYTES_MAX
        if part and is_full and (part[-1].event_id != fact.event_id or fact.tag == tag_of(MemoryStored)):
            yield part
            part, size = [], 0
        part.append(fact)
        size += len(fact.body or b"")
    if part:
        yield part


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


def _whole(recorded: RecordedEvent, said: Said) -> list[Told]:
    """Return what tells of a memory as it is, at the place of an event."""
    told = [Told(said.stored(), said.project, recorded.client, said.created_us)]
    if counted := said.counted():
        told.append(Told(counted, said.project, recorded.client, recorded.occurred_at))
    return told


def _may_be_told(recorded: RecordedEvent, choices: Mapping[str, Choice], shared: dict[str, bool]) -> bool:
    event = recorded.event
    if isinstance(event, MemoryStored):
        if may := may_go(event.event_type, choices.get(recorded.project or "")) and not event.on_probation:
            shared[event.memory_id] = True
        return may
    return isinstance(event, ShareChosen) or _subject(event) in shared


def _subject(event: object) -> str:
    """Return the memory that an event is about, nothing for one that is about none."""
    return str(getattr(event, "memory_id", ""))


def _until_chosen(events: Sequence[RecordedEvent]) -> Sequence[RecordedEvent]:
    """Return the first event alone where it chooses a project, else those before one that does."""
    ends = [place for place, one in enumerate(events) if isinstance(one.event, ShareChosen)]
    return events[: max(1, ends[0])] if ends else events


def _stored(facts: Sequence[Fact]) -> list[str]:
    return [fact.subject for fact in facts if fact.tag == tag_of(MemoryStored)]


def _shared(connection: Connection, subjects: set[str]) -> dict[str, bool]:
    """Return those that are shared, and whether each is this person's."""
    sharing = Sharing(connection)
    return {one: sharing.is_ours(one) for one in subjects if sharing.is_shared(one)}
