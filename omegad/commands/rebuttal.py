"""What becomes of the memories that a text denies: flagged, and superseded where the text says outright that they no longer hold."""

from collections.abc import Iterator, Sequence

from omegad.commands.relating import Neighbour
from omegad.events.fact import Fact
from omegad.events.memory import MemoryContradicted, MemorySuperseded
from omegad.log.guards import Guards, MemoryGuard

SAID_AGAIN = "what it denied was said again"


def denials(guards: Guards, said: MemoryGuard, neighbours: Sequence[Neighbour], now_us: int) -> list[Fact]:
    """Return what saying again what a memory says does to others: to those that its text denies, and to the one that had denied it."""
    facts = list(denied(said.memory_id, neighbours))
    return [*facts, *_reaffirmed(guards, said.memory_id, said.denied_by, facts, now_us)]


def denials_of_new(guards: Guards, memory_id: str, content_key: str, neighbours: Sequence[Neighbour], now_us: int) -> list[Fact]:
    """Return what a new memory does to others; one that says again what had been replaced takes the place of what had replaced it."""
    facts = list(denied(memory_id, neighbours))
    replaced = guards.replaced(content_key)
    if replaced is None:
        return facts
    again = list(_reaffirmed(guards, memory_id, replaced.denied_by, facts, now_us))
    over = [MemorySuperseded(memory_id=fact.memory_id, superseded_by=memory_id, reason=SAID_AGAIN) for fact in again]
    return [*facts, *again, *over]


def denied(memory_id: str, neighbours: Sequence[Neighbour]) -> Iterator[Fact]:
    """Yield what the text of a memory alone does to its neighbours."""
    for neighbour in neighbours:
        found = neighbour.contradiction
        if found and neighbour.memory_id != memory_id:
            strength = round(found.strength, 6)
            yield MemoryContradicted(memory_id=neighbour.memory_id, contradicted_by=memory_id, strength=strength, reason=found.reason)
            if found.is_explicit:
                yield MemorySuperseded(memory_id=neighbour.memory_id, superseded_by=memory_id, reason=found.reason)


def _reaffirmed(guards: Guards, memory_id: str, denied_by: str | None, facts: Sequence[Fact], now_us: int) -> Iterator[MemoryContradicted]:
    denier = guards.memory(denied_by) if denied_by else None
    if denier is None or denier.memory_id == memory_id or not denier.is_active(now_us):
        return
    if not any(isinstance(fact, MemoryContradicted) and fact.memory_id == denier.memory_id for fact in facts):
        yield MemoryContradicted(memory_id=denier.memory_id, contradicted_by=memory_id, strength=1.0, reason=SAID_AGAIN)
