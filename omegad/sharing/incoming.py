"""Facts of other homes, merged into this one's log: what changes something becomes an event, as its origin
recorded it, in one append with how far that origin was heard.

The last word holds, by (hybrid logical time, id of the event), in each register of a memory: its wording,
its standing, each edge. What is stored is known by its id, counts add up, and what is erased stays so. So
what the homes of a team hold in the end does not depend on the order in which they heard of it.
"""

import re

import msgspec

from omegad.log.codec import tag_of
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Erased, Event, NewEvent, Stamp, Unknown
from omegad.memory.content import content_key
from omegad.memory.events import (
    MemoryContradicted,
    MemoryEdited,
    MemoryErased,
    MemoryRated,
    MemoryRepeated,
    MemoryStored,
)
from omegad.memory.state import Memories
from omegad.requests.command import Acknowledged
from omegad.runtime.clock import HLC_COUNTER_BITS
from omegad.runtime.errors import Conflict, Refused
from omegad.sharing.bounds import is_within
from omegad.sharing.events import FactsReceived, KnownOrigin, Outcome, ReceivedFact
from omegad.sharing.fact import Fact, row_hash
from omegad.sharing.outgoing import NEVER, PLAIN
from omegad.sharing.state import NEVER_WRITTEN, Sharing, Stamped, once, register

TELLS = (*PLAIN, MemoryStored, MemoryEdited, MemoryRepeated)
"""The events that facts are of. Whatever else a member sends is refused, however well it reads."""
AHEAD_US = 60_000_000
"""By how much what happened may be after the time at which it was told."""
MADE = re.compile(r"(?:mem|home)-[0-9a-f]{8,64}")
"""What a memory or an origin is called by whichever home made it: nothing is looked for in such names."""
IDS = ("memory_id", "superseded_by", "contradicted_by", "target_id")
POINTS_MAX = 1_000_000


Scope = tuple[str, str | None, str | None]
"""A memory's type, project and entity."""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """A fact and its event, read: `Erased` where the team has erased it, None where it is none that a home
    tells.
    """

    fact: Fact
    event: Event | Erased | None


def heard(fact: Fact, event: Event | Unknown | Erased) -> Heard | None:
    """Return a fact with the event that is to be merged, None where a newer version told it.

    A member may send anything that the post takes: what is about something else than it says, too large, or
    no fact is refused, and what this home works out by itself it works out.
    """
    if isinstance(event, Unknown):
        return Heard(fact=fact, event=None) if event.problem else None
    if isinstance(event, Erased):
        return Heard(fact=fact, event=event)
    return Heard(fact=fact, event=_own(fact, event) if _is_fit(fact, event) else None)


def _is_fit(fact: Fact, event: Event) -> bool:
    return (
        isinstance(event, TELLS)
        and getattr(event, "memory_id", None) == fact.subject
        and all(MADE.fullmatch(getattr(event, name, fact.subject)) for name in IDS)
        and is_within(fact, event)
        and not (isinstance(event, MemoryStored) and event.event_type in NEVER)
    )


def _own(fact: Fact, event: Event) -> Event:
    """Return an event without what each home decides for itself, and within the bounds of its fields."""
    match event:
        case MemoryStored():
            return msgspec.structs.replace(
                event,
                content_key=content_key(event.content, event.event_type, fact.project, event.entity_id),
                priority=_priority(event.priority),
                related=(),
                also_near=(),
                made_of=None,
                pending=False,
            )
        case MemoryEdited(priority=priority):
            clamped = None if priority is None else _priority(priority)
            return msgspec.structs.replace(event, priority=clamped, is_whole=True)
        case MemoryRepeated():
            return msgspec.structs.replace(event, content=None, tags=(), made_of=None)
        case MemoryRated(points=points):
            return msgspec.structs.replace(event, points=max(-POINTS_MAX, min(points, POINTS_MAX)))
        case _:
            return event


def _priority(given: int) -> int:
    return max(1, min(given, 5))


class ReceiveFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of others that are to be merged, in order within each origin, and whose those origins are."""

    team: str
    facts: tuple[Heard, ...]
    origins: tuple[KnownOrigin, ...] = ()


def receive(command: ReceiveFacts, state: DecisionState, _now_us: int) -> Decision:
    """Decide what facts come to.

    Raises `Refused` where the home is in another team by now, or what others erased is still here, and
    `Conflict` for a fact that does not follow what was heard of its origin.
    """
    team = state[Sharing].team()
    if team is None or team.team != command.team:
        raise Refused("this home does not share with that team any more")
    return _Merging(state, team.person).decision(command)


class _Merging:
    """One batch: what was decided of its earlier facts counts for the later ones."""

    def __init__(self, state: DecisionState, person: str) -> None:
        self._sharing = state[Sharing]
        self._memories = state[Memories]
        self._choices = self._sharing.choices()
        self._reached = self._sharing.reached()
        self._people = {origin: person for origin, (person, _) in self._sharing.origins().items()}
        self._person = person
        self._written: dict[tuple[str, str], Stamped] = {}
        self._stored: dict[str, Scope] = {}
        self._shared = set[str]()
        self._before = self._sharing.reached_before()

    def decision(self, command: ReceiveFacts) -> Decision:
        known = self._sharing.origins()
        origins = tuple(one for one in command.origins if known.get(one.origin) != (one.person, one.machine))
        self._people |= {one.origin: one.person for one in origins}
        events, received = list[NewEvent](), list[ReceivedFact]()
        for heard in command.facts:
            fact = heard.fact
            if fact.seq != self._reached.get(fact.origin, 0) + 1:
                raise Conflict(f"fact {fact.seq} of {fact.origin} does not follow what was heard of it")
            self._reached[fact.origin] = fact.seq
            outcome, event = self._settled(fact, heard.event)
            if event is not None:
                events.append(_placed(fact, event))
            received.append(
                ReceivedFact(
                    origin=fact.origin,
                    seq=fact.seq,
                    row_hash=row_hash(fact).hex(),
                    outcome=outcome,
                    stored=self._shares(fact, heard.event, outcome),
                )
            )
        events.append(NewEvent(event=FactsReceived(facts=tuple(received), origins=origins)))
        return Decision(events=tuple(events), answer=Acknowledged())

    def _settled(self, fact: Fact, event: Event | Erased | None) -> tuple[Outcome, Event | None]:
        if event is None:
            return "refused", None
        if isinstance(event, Erased) or self._sharing.is_erased(fact.subject):
            return "erased", None
        scope, is_shared = self._scope(fact), self._is_shared(fact)
        if isinstance(event, MemoryErased):
            if scope and is_shared:
                raise Refused(f"what is erased elsewhere is still here: {fact.subject}")
            return "erased", None
        if isinstance(event, MemoryStored):
            return ("known", None) if scope else ("applied", self._new(fact, event))
        if register(event) is None and fact.seq <= self._before.get(fact.origin, 0):
            return "known", None  # it was counted before this home left the team, which it has joined again
        # What is this home's own and was never shared is nobody else's to change
        return self._changed(fact, event, scope) if scope and is_shared else ("unknown", None)

    def _is_shared(self, fact: Fact) -> bool:
        return fact.subject in self._shared or self._sharing.is_shared(fact.subject)

    def _shares(self, fact: Fact, event: Event | Erased | None, outcome: Outcome) -> str | None:
        """Return the memory that is shared by a fact which was settled: one that is new here, that was shared
        with this team before, or that is here and that a home of the same person tells of. That others tell
        of one that this home never shared shares nothing.
        """
        is_told = isinstance(event, MemoryStored) or (
            isinstance(event, Erased) and event.tag == tag_of(MemoryStored)
        )
        if not is_told or self._is_shared(fact):
            return None
        is_own = outcome == "known" and self._people.get(fact.origin) == self._person
        if fact.subject not in self._stored and not is_own and not self._sharing.was_shared(fact.subject):
            return None
        self._shared.add(fact.subject)
        return fact.subject

    def _changed(self, fact: Fact, event: Event, scope: Scope) -> tuple[Outcome, Event | None]:
        match event:
            case MemoryContradicted():
                return "applied", event
            case MemoryRepeated() | MemoryRated():
                return self._once(fact, event)
            case MemoryEdited(content=content):
                keyed = msgspec.structs.replace(event, content_key=content_key(content, *scope))
                return self._last_word(fact, keyed)
            case _:
                return self._last_word(fact, event)

    def _scope(self, fact: Fact) -> Scope | None:
        """Return the type, project and entity of the memory that a fact is about, None where it is not
        here.
        """
        if fact.subject in self._stored:
            return self._stored[fact.subject]
        known = self._memories.get(fact.subject)
        return (known.event_type, known.project, known.entity_id) if known else None

    def _new(self, fact: Fact, event: MemoryStored) -> MemoryStored:
        self._stored[fact.subject] = event.event_type, fact.project, event.entity_id
        choice = self._choices.get(fact.project or "")
        return msgspec.structs.replace(event, on_probation=choice is not None and choice.on_probation)

    def _once(self, fact: Fact, event: Event) -> tuple[Outcome, Event | None]:
        key = fact.subject, once(fact.event_id)
        if key in self._written or self._sharing.written(*key) != NEVER_WRITTEN:
            return "known", None
        self._written[key] = fact.hlc, fact.event_id
        return "applied", event

    def _last_word(self, fact: Fact, event: Event) -> tuple[Outcome, Event | None]:
        name = register(event)
        if name is None:
            return "unknown", None
        key, stamp = (fact.subject, name), (fact.hlc, fact.event_id)
        if stamp <= (self._written.get(key) or self._sharing.written(*key)):
            return "older", None
        self._written[key] = stamp
        return "applied", event


def _placed(fact: Fact, event: Event) -> NewEvent:
    return NewEvent(
        event=event,
        project=fact.project,
        occurred_at=min(fact.occurred_at, (fact.hlc >> HLC_COUNTER_BITS) * 1_000 + AHEAD_US),
        foreign=Stamp(
            origin=fact.origin,
            event_id=fact.event_id,
            hlc=fact.hlc,
            tz_offset=fact.tz_offset,
            client=fact.agent,
        ),
    )
