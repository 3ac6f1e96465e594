"""Take over what another system counted of a memory that came from there."""

from typing import Annotated

from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Event, NewEvent
from omegad.memory.events import MemoryCountsCarried, MemoryPromoted, MemoryRated, Rating
from omegad.memory.ids import MemoryId
from omegad.memory.lifecycle import POINTS
from omegad.memory.state import known
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod
from omegad.requests.verb import Verb
from omegad.runtime.times import parse_time

COUNT_MAX = 1_000_000_000
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]


class CarryOver(Command, frozen=True, kw_only=True, tag="memory.carry_over"):
    """Count for a memory what another system, that it came from, had counted of it: how often it was found,
    and how it was rated. These count as if they had been counted here.
    """

    memory_id: MemoryId
    origin: Annotated[Name, Meta(description="the system that it came from")]
    retrievals: Annotated[Count, Meta(description="how often it was found there")] = 0
    last_retrieved_at: Annotated[
        str | None, Meta(description="when it was found there last, like 2026-01-31T09:30:00Z")
    ] = None
    helpful: Annotated[Count, Meta(description="how often it was rated helpful")] = 0
    unhelpful: Annotated[Count, Meta(description="how often it was rated unhelpful")] = 0
    outdated: Annotated[Count, Meta(description="how often it was rated outdated")] = 0


def carry_over(command: CarryOver, state: DecisionState, now_us: int) -> Decision:
    """Decide what is taken over. Raises `NotFound`, and `Invalid` for a time that is none."""
    memory = known(state, command.memory_id)
    last = command.last_retrieved_at
    facts: list[Event] = []
    if command.retrievals:
        facts.append(
            MemoryCountsCarried(
                memory_id=memory.memory_id,
                origin=command.origin,
                retrievals=command.retrievals,
                last_retrieved_at=(
                    None if last is None else min(parse_time(last, "last_retrieved_at"), now_us)
                ),
            )
        )
    ratings: tuple[tuple[Rating, int], ...] = (
        ("helpful", command.helpful),
        ("unhelpful", command.unhelpful),
        ("outdated", command.outdated),
    )
    facts += [
        MemoryRated(
            memory_id=memory.memory_id,
            rating=rating,
            points=POINTS[rating] * times,
            reason=f"rated so {times} times in {command.origin}",
        )
        for rating, times in ratings
        if times
    ]
    if memory.probation and command.helpful:
        facts.append(MemoryPromoted(memory_id=memory.memory_id, evidence="use"))
    events = tuple(
        NewEvent(event=fact, project=memory.project, follows=place > 0) for place, fact in enumerate(facts)
    )
    return Decision(events=events, answer=Acknowledged())


METHODS = (
    CommandMethod(
        params=CarryOver,
        answer=Acknowledged,
        decide=carry_over,
        verb=Verb(says="{memory_id} carries over what {origin} counted of it"),
    ),
)
