"""What becomes of the memories that a text denies: flagged, and superseded where the text says outright that they no longer hold."""

from collections.abc import Iterator, Sequence

import msgspec

from omegad.commands.relating import Neighbour
from omegad.events.fact import Fact
from omegad.events.memory import MemoryContradicted, MemorySuperseded
from omegad.log.guards import Guards, MemoryGuard

SAID_AGAIN = "what it denied was said again"
DENIALS_MAX = 8  # in a row, of which each denied the one before


class Denier(msgspec.Struct, frozen=True, kw_only=True):
    """The memory that denies others: whether unasked, when it was said, and when it ends, in microseconds since 1970; None for never."""

    memory_id: str
    said_at: int
    is_automatic: bool = False
    ends_at: int | None = None

    def may_replace(self, other: MemoryGuard) -> bool:
        """Say whether it may take another's place: what was captured unasked not what a person told, what ends not what outlives it."""
        outlives = self.ends_at is None or (other.expires_at is not None and other.expires_at <= self.ends_at)
        return outlives and (other.probation or not self.is_automatic)


def denials(guards: Guards, said: MemoryGuard, denier: Denier, neighbours: Sequence[Neighbour], now_us: int) -> list[Fact]:
    """Return what saying again what a memory says does to others: to those that its text denies, and to the one that had denied it."""
    facts = list(denied(guards, denier, neighbours))
    return [*facts, *_reaffirmed(guards, said.memory_id, said.denied_by, facts, now_us)]


def denials_of_new(guards: Guards, denier: Denier, content_key: str, neighbours: Sequence[Neighbour], now_us: int) -> list[Fact]:
    """Return what a new memory does to others; one that says again what had been replaced takes the place of what had replaced it.

    It does so where that says nothing else; what says more than that is flagged, so that the rest of it is still found.
    """
    facts = list(denied(guards, denier, neighbours))
    replaced = guards.replaced(content_key)
    if replaced is None:
        return facts
    again = list(_reaffirmed(guards, denier.memory_id, replaced.denied_by, facts, now_us))
    single = {neighbour.memory_id for neighbour in neighbours if neighbour.is_one_statement}
    over = [
        MemorySuperseded(memory_id=fact.memory_id, superseded_by=denier.memory_id, reason=SAID_AGAIN)
        for fact in again
        if fact.memory_id in single and (other := guards.memory(fact.memory_id)) and denier.may_replace(other)
    ]
    return [*facts, *again, *over]


def denied(guards: Guards, denier: Denier, neighbours: Sequence[Neighbour]) -> Iterator[Fact]:
    """Yield what the text of a memory alone does to its neighbours; nothing to what was said after it."""
    for neighbour in neighbours:
        found, other = neighbour.contradiction, guards.memory(neighbour.memory_id)
        if found is None or other is None or other.memory_id == denier.memory_id or other.said_at > denier.said_at:
            continue
        strength = round(found.strength, 6)
        yield MemoryContradicted(memory_id=other.memory_id, contradicted_by=denier.memory_id, strength=strength, reason=found.reason)
        if found.is_explicit and denier.may_replace(other):
            yield MemorySuperseded(memory_id=other.memory_id, superseded_by=denier.memory_id, reason=found.reason)


def _reaffirmed(guards: Guards, memory_id: str, denied_by: str | None, facts: Sequence[Fact], now_us: int) -> Iterator[MemoryContradicted]:
    """Yield that what denied a memory is denied by it in turn or, where that is denied itself by now, what denies that."""
    denier = None
    for _ in range(DENIALS_MAX):
        denier = guards.memory(denied_by) if denied_by else None
        if denier is None or denier.is_active(now_us):
            break
        denied_by = denier.denied_by
    if denier is None or denier.memory_id == memory_id or not denier.is_active(now_us):
        return
    if not any(isinstance(fact, MemoryContradicted) and fact.memory_id == denier.memory_id for fact in facts):
        yield MemoryContradicted(memory_id=denier.memory_id, contradicted_by=memory_id, strength=1.0, reason=SAID_AGAIN)
