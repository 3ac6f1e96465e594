"""Facts of other homes, merged into this one's log: what changes something becomes an event, as its origin
recorded it, in one append with how far that origin was heard.

The last word holds, by (hybrid logical time, id of the event), in each register of a memory: its wording,
its standing, each edge. What is stored is known by its id, counts add up, and what is erased stays so. So
what the homes of a team hold in the end does not depend on the order in which they heard of it.
"""

import msgspec

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Erased, Event, NewEvent, Stamp
from omegad.memory.events import (
    MemoryContradicted,
    MemoryErased,
    MemoryRated,
    MemoryRepeated,
    MemoryStored,
)
from omegad.memory.state import Memories
from omegad.requests.command import Acknowledged, Command
from omegad.requests.method import CommandMethod
from omegad.runtime.errors import Conflict, Refused
from omegad.sharing.events import FactsReceived, KnownOrigin, Outcome, ReceivedFact
from omegad.sharing.fact import Fact, row_hash
from omegad.sharing.state import Sharing, Stamped, register


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """A fact and its event, read; `Erased` where the team has erased it."""

    fact: Fact
    event: Event | Erased


class ReceiveFacts(Command, frozen=True, kw_only=True, tag="share.receive"):
    """Merge facts of others, in order within each origin."""

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
    return _Merging(state).decision(command)


class _Merging:
    """One batch: what was decided of its earlier facts counts for the later ones."""

    def __init__(self, state: DecisionState) -> None:
        self._sharing = state[Sharing]
        self._memories = state[Memories]
        self._choices = self._sharing.choices()
        self._reached = self._sharing.reached()
        self._written: dict[tuple[str, str], Stamped] = {}
        self._stored: set[str] = set()

    def decision(self, command: ReceiveFacts) -> Decision:
        known = self._sharing.origins()
        origins = tuple(one for one in command.origins if known.get(one.origin) != (one.person, one.machine))
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
                    stored=fact.subject if fact.subject in self._stored and outcome == "applied" else None,
                )
            )
        events.append(NewEvent(event=FactsReceived(facts=tuple(received), origins=origins)))
        return Decision(events=tuple(events), answer=Acknowledged())

    def _settled(self, fact: Fact, event: Event | Erased) -> tuple[Outcome, Event | None]:
        if isinstance(event, Erased) or self._sharing.is_erased(fact.subject):
            return "erased", None
        is_here = fact.subject in self._stored or self._memories.get(fact.subject) is not None
        match event:
            case MemoryErased():
                if is_here:
                    raise Refused(f"what is erased elsewhere is still here: {fact.subject}")
                return "erased", None
            case MemoryStored():
                return ("known", None) if is_here else ("applied", self._new(fact, event))
            case _ if not is_here:
                return "unknown", None
            case MemoryRepeated() | MemoryRated() | MemoryContradicted():
                return "applied", event
            case _:
                return self._last_word(fact, event)

    def _new(self, fact: Fact, event: MemoryStored) -> MemoryStored:
        self._stored.add(fact.subject)
        choice = self._choices.get(fact.project or "")
        return msgspec.structs.replace(event, on_probation=choice is not None and choice.on_probation)

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
        occurred_at=fact.occurred_at,
        foreign=Stamp(
            origin=fact.origin,
            event_id=fact.event_id,
            hlc=fact.hlc,
            tz_offset=fact.tz_offset,
            client=fact.agent,
        ),
    )


METHODS = (CommandMethod(params=ReceiveFacts, answer=Acknowledged, decide=receive, is_internal=True),)
