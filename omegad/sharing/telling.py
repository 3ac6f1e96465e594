"""What the team is told, and how far: facts made of this home's events are pushed to the post, and noted."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import structlog

from omegad.log import chain
from omegad.log.codec import tag_of
from omegad.log.decision import Proposal
from omegad.log.event import Event, Position, RecordedEvent
from omegad.memory import owner
from omegad.memory.events import MemoryErased, MemoryPromoted, MemoryRestored, MemoryStored
from omegad.requests.method import Services
from omegad.runtime.errors import Unavailable
from omegad.sharing import outgoing
from omegad.sharing.events import ShareChosen
from omegad.sharing.fact import Fact
from omegad.sharing.outgoing import AGENT, Said, facts_of, held, may_go, says
from omegad.sharing.post.errors import AheadOfClock, Forked, StoredByAnother
from omegad.sharing.post.post import Head, Post
from omegad.sharing.state import Choice, Known, Team, known, new_origin, owned
from omegad.sharing.told import NoteTold, RenewOrigin, note_told, renew

AT_ONCE = 500  # facts, and events looked at
BATCH_BYTES_MAX = 4 << 20
WAITING_COUNTED = 20_000
LOOKED_TO_EVERY = 5_000  # positions without anything to tell, after which that is noted

TAGS = tuple(tag_of(kind) for kind in outgoing.TOLD)
VIEWS = ("memories", "feedback", owner.VIEW)
BEGIN = (MemoryPromoted, MemoryRestored)
"""With these a memory may come to be shared that is stored already."""
BEFORE = "before "
EVENT_ID_CHARACTERS = 100

_log = structlog.get_logger(__name__)


class Told(NamedTuple):
    """What is told, of which project, by which agent, and when that happened, in microseconds since 1970."""

    event: Event
    project: str | None
    agent: str | None
    occurred_at: int
    event_id: str | None = None
    """Where it is not that of the event."""


class Telling:
    """Tells the team what there is to tell of this home."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._log = services.log
        self._looked_to = dict[str, Position]()  # by origin; one at most
        self._is_admin = False

    async def waiting(self, at: Known) -> tuple[int, int | None]:
        """Return how many events wait to be told of, and when the first was recorded, in microseconds since
        1970; of more than `WAITING_COUNTED` the rest is taken for such.
        """
        if at.team is None:
            return 0, None
        positions = await self._log.tagged(
            TAGS, max(at.team.told_to, self._looked_to.get(at.team.origin, 0)), self._log.origin
        )
        count, since_us, left = 0, None, positions[:WAITING_COUNTED]
        while left:
            events = await self._log.read_at(left[:AT_ONCE])
            left = left[len(events) :]
            own = [one for one in events if self.is_own(one)]
            subjects = {_subject(one.event) for one in own}
            shared = await self._log.on_writer(partial(owned, memory_ids=subjects))
            for one in own:
                if _may_be_told(one, at.choices, shared):
                    count += 1
                    since_us = since_us or one.recorded_at
        return count + max(0, len(positions) - WAITING_COUNTED), since_us

    def is_own(self, recorded: RecordedEvent) -> bool:
        """Say whether an event is one that this home tells of, if anybody."""
        return recorded.origin == self._log.origin and recorded.client != AGENT

    async def enrolled(self, post: Post, team: Team) -> Head:
        """Be known at the post, as the one who goes on where this log says; take another name where that is
        not so. Note what was told and is not noted here yet.
        """
        self._is_admin = (await post.check()).is_admin
        head = await post.enrol(team.origin, team.machine)
        if head.seq and not await self._is_ours(head.position, head.event_id):
            await self._renew(post, team, head)
            raise Unavailable("this home was copied or restored: it shares under a new name from now on")
        if head.seq < team.seq:
            await self._do_renew(team, told_to=head.position, is_lost=True)
            raise Unavailable(
                f"the server knew {head.seq} of {team.seq} facts that this home had told: it was restored"
                " from a backup, and what it lacks is told again, under a new name"
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
        found = await self._log.read_at([position])
        if event_id.startswith(BEFORE):
            return any(isinstance(one.event, (ShareChosen, *BEGIN)) for one in found)
        return any(one.event_id == event_id for one in found)

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
        await self._do_renew(team, seq=ours, told_to=told_to)

    async def _do_renew(self, team: Team, *, told_to: Position, seq: int = 0, is_lost: bool = False) -> None:
        new = RenewOrigin(
            before=team.origin,
            origin=new_origin(self._services),
            seq=seq,
            told_to=told_to,
            is_lost=is_lost,
        )
        self._looked_to = {}
        await self._log.append(Proposal(decide=partial(renew, new), client=AGENT))

    async def tell(self, post: Post, at: Known, head: Head) -> Head:
        """Tell all there is to tell; return what the post has then."""
        team = at.team
        assert team is not None
        looked_to = self._looked_to.get(team.origin, 0) if team.seq == head.seq else 0
        told_to = max(team.told_to, looked_to)
        while positions := await self._log.tagged(TAGS, told_to, self._log.origin):
            events = _until_chosen(await self._log.read_at(positions[:AT_ONCE]))
            # After them, so that what one of them chooses is known
            at = at._replace(choices=(await self._log.on_writer(known)).choices)
            if isinstance(events[0].event, ShareChosen):
                head = await self._tell_held(post, at, head, events[0])
                facts, memories = list[Fact](), list[str]()
            else:
                facts = await self._facts(events, at, head)
                head, memories = await self._pushed(post, team, head, facts)
            told_to = events[-1].position
            if facts or team.seq != head.seq or told_to - team.told_to > LOOKED_TO_EVERY:
                await self._note(team, head.seq, told_to, memories)
                team = msgspec.structs.replace(team, seq=head.seq, told_to=told_to)
        self._looked_to = {team.origin: told_to}
        return head

    async def _pushed(
        self, post: Post, team: Team, head: Head, facts: Sequence[Fact]
    ) -> tuple[Head, list[str]]:
        """Push facts; return what the post has then, and the memories that are shared by them."""
        left = list(_parts(facts))
        while left:
            part, *left = left
            numbered = [
                msgspec.structs.replace(one, seq=head.seq + number) for number, one in enumerate(part, 1)
            ]
            try:
                head = await post.push(team.origin, numbered, head)
            except Forked:
                raise Unavailable("another home told something under this one's name") from None
            except AheadOfClock:
                if len(part) == 1:
                    raise
                left = [
                    part[: len(part) // 2],
                    part[len(part) // 2 :],
                    *left,
                ]  # what came before need not wait
            except StoredByAnother as error:
                # It is erased here alone then, and must keep nobody from hearing of the rest
                if len(part) == 1:
                    _log.warning("sharing.erased_here_alone", memory_id=part[0].subject, said=str(error))
                left = [[one] for one in part if len(part) > 1] + left
        return head, _stored(facts)

    async def _tell_held(self, post: Post, at: Known, head: Head, chosen: RecordedEvent) -> Head:
        """Tell of all that a project held when it was chosen and of which nothing was told, part by part."""
        team, event = at.team, chosen.event
        assert team is not None
        assert isinstance(event, ShareChosen)
        choice, after = at.choices.get(event.project), 0
        if choice is None or not self.is_own(chosen):
            return head
        await self._services.views.wait_for(chosen.position, VIEWS)
        while found := await self._services.views.read(
            partial(held, choice=choice, after=after, before=chosen.position, limit=AT_ONCE)
        ):
            after = found[-1].position
            shared = await self._log.on_writer(partial(owned, memory_ids={one.memory_id for one in found}))
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
        await self._log.append(Proposal(decide=partial(note_told, told), client=AGENT))

    async def _facts(self, events: Sequence[RecordedEvent], at: Known, head: Head) -> list[Fact]:
        """Return what the team is told of events of this log."""
        own = [one for one in events if self.is_own(one)]
        if not own:
            return []
        await self._services.views.wait_for(events[-1].position, VIEWS)
        subjects = {_subject(one.event) for one in own}
        shared = await self._log.on_writer(partial(owned, memory_ids=subjects))
        said = await self._services.views.read(partial(says, memory_ids=subjects))
        team, facts = at.team, list[Fact]()
        assert team is not None
        for recorded in own:
            for told in await self._told(recorded, at, shared, said):
                facts.append(self._fact(recorded, told, team.origin, head.seq + len(facts) + 1))
        return facts

    async def _told(
        self, recorded: RecordedEvent, at: Known, shared: dict[str, bool], said: Mapping[str, Said]
    ) -> list[Told]:
        event, choices = recorded.event, at.choices
        memory_id = _subject(event)
        now = said.get(memory_id)
        if memory_id not in shared:
            is_stored = isinstance(event, MemoryStored)
            if isinstance(event, MemoryStored):
                may = _goes(recorded, event, choices)
            else:
                may = (
                    isinstance(event, BEGIN)
                    and now is not None
                    and now.status == "active"
                    and not now.is_elsewhere
                    and may_go(now.event_type, choices.get(now.project or ""), recorded.position)
                )
            if not may:
                return []
            shared[memory_id] = True
            if not is_stored:
                whole = await self._services.views.read(
                    partial(outgoing.whole, memory_id=memory_id, before=recorded.position)
                )
                return _whole(recorded, whole) if whole else []
        elif isinstance(event, MemoryStored):
            return []  # told before
        elif isinstance(event, MemoryErased) and not (shared[memory_id] or self._is_admin):
            return []  # erased here alone: for all it is erased by who stored it, or by an administrator
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
            event_id=told.event_id or recorded.event_id,
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


def _whole(recorded: RecordedEvent, said: Said) -> list[Told]:
    """Return what tells of a memory as it is, at the place of an event."""
    told = [Told(said.stored(), said.project, recorded.client, said.created_us)]
    if counted := said.counted():
        # Known by the memory, so that it adds up once, however often a project is chosen
        event_id = f"{BEFORE}{said.memory_id}"[:EVENT_ID_CHARACTERS]
        told.append(Told(counted, said.project, recorded.client, recorded.occurred_at, event_id))
    return told


def _may_be_told(recorded: RecordedEvent, choices: Mapping[str, Choice], shared: dict[str, bool]) -> bool:
    event = recorded.event
    if isinstance(event, MemoryStored):
        if may := _goes(recorded, event, choices):
            shared[event.memory_id] = True
        return may
    return isinstance(event, ShareChosen) or _subject(event) in shared


def _goes(recorded: RecordedEvent, stored: MemoryStored, choices: Mapping[str, Choice]) -> bool:
    choice = choices.get(recorded.project or "")
    return may_go(stored.event_type, choice, recorded.position) and not stored.on_probation


def _subject(event: object) -> str:
    """Return the memory that an event is about, nothing for one that is about none."""
    return str(getattr(event, "memory_id", ""))


def _until_chosen(events: Sequence[RecordedEvent]) -> Sequence[RecordedEvent]:
    """Return the first event alone where it chooses a project, else those before one that does."""
    ends = [place for place, one in enumerate(events) if isinstance(one.event, ShareChosen)]
    return events[: max(1, ends[0])] if ends else events


def _stored(facts: Sequence[Fact]) -> list[str]:
    return [fact.subject for fact in facts if fact.tag == tag_of(MemoryStored)]
