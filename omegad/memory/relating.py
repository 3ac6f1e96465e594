"""How a text that is about to be stored relates to a memory near to it: says the same, restates it and
more, reverts it, or is near. Pure.
"""

from collections.abc import Iterable, Sequence

import msgspec

from omegad.index.neighbours import RELATED_COSINE, Near
from omegad.log.decision import DecisionState
from omegad.log.event import NewEvent
from omegad.memory.events import ConflictOffered, Likeness, MemoryContradicted, MemorySuperseded, Relation
from omegad.memory.state import Memories, MemoryState
from omegad.memory.types import EPISODIC_TYPES
from omegad.runtime.kept import Kept
from omegad.text.authorship import authorship
from omegad.text.evidence.duplicates import ComparedText, are_same, overlap, restates
from omegad.text.evidence.stance import are_variants, contradiction, given_up, is_restated, read_title

DUPLICATE_COSINE = 0.95
GROWING_TERMS_MIN, GROWING_JACCARD_MIN = 3, 0.3
"""What says less, as thanks, is nothing that could grow; nor what is a small part of the newer text, as a
greeting.
"""

RELATED_MAX, RIPPLED_MAX = 3, 5
"""To how many of the nearest an edge is drawn, and how many what is said may speak for."""

RIPPLE_COSINE = 0.80
"""Above which two memories may speak for each other."""

REPLACEABLE_COSINE = 0.7
"""From here on two texts speak of one subject, so that the newer may be meant for the older one's place."""

REPLACEABLE_JACCARD, ALIKE_COSINE = 0.3, 0.45
"""The same for two that share so many of their words, as short notes do in which one value has changed."""

OVERRIDDEN_COSINE = 0.4
"""The same where the newer text speaks of replacing something or taking it back. All are chosen on the
histories of public repositories.
"""

VARIANT_JACCARD = 0.4
"""From here on it is asked of two texts that differ in a word or two whether one holds in the other's place;
and always of one that speaks of replacing something or taking it back.
"""

UNDONE_TYPE = "task_completion"
"""Of what happened, the one type that a text which speaks of taking something back may be about."""

EXCERPT_CHARACTERS = 240
READ_BYTES = 4_000_000  # of what is read of texts that is at hand: what is near to one is near to others
ENTRY_BYTES, BYTES_OF_CHARACTER = 500, 18  # of a text whose words are read, of some its statements: measured


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Where a text is to be stored."""

    event_type: str
    entity_id: str | None = None
    session_id: str | None = None


class Neighbour(msgspec.Struct, frozen=True, kw_only=True):
    """A near memory and what the text makes of it; at most one of the first two is set.

    `evolution` is the word Jaccard with a memory that the text restates and adds to; `contradiction` is why
    the memory does not hold; `replaceable` is the beginning of a memory whose place the text may be meant to
    take; `is_doubtful` says that it is near enough to ask whether it is denied, and texts do not tell.
    """

    memory_id: str
    cosine: float | None = None
    duplicate: tuple[Likeness, float] | None = None
    evolution: float | None = None
    contradiction: str | None = None
    replaceable: str | None = None
    is_doubtful: bool = False


def compare(content: str, scope: Scope, found: Iterable[Near], jaccard_min: float) -> tuple[Neighbour, ...]:
    """Say what a text makes of near memories. `jaccard_min` is the share of common words from which two of
    the type are the same.
    """
    new = _READ[content]
    return tuple(_compared(new, scope, near, jaccard_min) for near in found)


def read_ahead(content: str) -> None:
    """Read of a text, before it is known what is near to it, what nearly every comparison asks for."""
    new = _READ[content]
    _ = new.words, new.is_overriding
    read_title(content)


def relations(neighbours: Iterable[Neighbour]) -> tuple[tuple[Relation, ...], tuple[Relation, ...]]:
    """Return the edges to the nearest neighbours that are near enough, nearest first; and those after them
    that the text may speak for as well.
    """
    near = [
        (n.cosine, n.memory_id) for n in neighbours if n.cosine is not None and n.cosine >= RELATED_COSINE
    ]
    near.sort(key=lambda pair: (-pair[0], pair[1]))
    found = tuple(Relation(memory_id=memory_id, similarity=round(cosine, 6)) for cosine, memory_id in near)
    also_near = (one for one in found[RELATED_MAX:RIPPLED_MAX] if one.similarity > RIPPLE_COSINE)
    return found[:RELATED_MAX], tuple(also_near)


def may_replace(newer: str, older: str, cosine: float) -> bool:
    """Say whether a text is so near to an older one that it may be meant for its place, whatever it speaks
    of.
    """
    return _is_about(_READ[newer], _READ[older], cosine)


def may_override(newer: str, older: str) -> bool:
    """Say whether a text speaks of replacing something or taking it back, and may mean an older one by that:
    unless it says the same.
    """
    return _READ[newer].is_overriding and not is_restated(newer, older)


def _is_about(new: ComparedText, old: ComparedText, cosine: float) -> bool:
    return cosine >= REPLACEABLE_COSINE or (
        cosine >= ALIKE_COSINE and overlap(new, old) >= REPLACEABLE_JACCARD
    )


def _is_replaceable(new: ComparedText, old: ComparedText, cosine: float) -> bool:
    return _is_about(new, old, cosine) or (cosine >= OVERRIDDEN_COSINE and new.is_overriding)


def _are_turns(new: ComparedText, old: ComparedText) -> bool:
    """Say whether two people speak in turn: who answers somebody takes nothing back that was said."""
    speakers = [authorship(said.content).author for said in (new, old)]
    return None not in speakers and speakers[0] != speakers[1]


def _compared(new: ComparedText, scope: Scope, near: Near, jaccard_min: float) -> Neighbour:
    base = Neighbour(memory_id=near.memory_id, cosine=near.cosine)
    if near.entity_id != scope.entity_id:
        return base
    old = _READ[near.content]
    shared = overlap(new, old)
    is_of_session = scope.event_type not in EPISODIC_TYPES or near.session_id == scope.session_id
    if near.event_type == scope.event_type and is_of_session and new.is_comparable and old.is_comparable:
        is_growing = (
            scope.event_type not in EPISODIC_TYPES
            and shared >= GROWING_JACCARD_MIN
            and restates(new, old)
            and old.terms >= GROWING_TERMS_MIN
        )
        cosine = near.cosine if near.is_comparable else None
        how: tuple[Likeness, float] = (
            ("jaccard", shared) if cosine is None or cosine < DUPLICATE_COSINE else ("cosine", cosine)
        )
        is_likely = how[0] == "cosine" or shared >= jaccard_min
        duplicate = how if (is_likely and are_same(new, old)) or restates(old, new) else None
        evolution = shared if is_growing and duplicate is None else None
        base = msgspec.structs.replace(base, duplicate=duplicate, evolution=evolution)
    if scope.event_type in EPISODIC_TYPES or (
        near.event_type in EPISODIC_TYPES and not (near.event_type == UNDONE_TYPE and new.is_overriding)
    ):
        return base
    is_near = near.cosine is None or near.cosine >= RELATED_COSINE
    judged = contradiction if is_near else given_up  # what names it is sure however far meanings are
    denied = judged(new.content, near.content)
    replaceable = None
    if near.cosine is not None and _is_replaceable(new, old, near.cosine):
        excerpt = f"{near.content[: EXCERPT_CHARACTERS - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"
        replaceable = near.content if len(near.content) <= EXCERPT_CHARACTERS else excerpt
    is_variant = (
        replaceable is not None and shared >= VARIANT_JACCARD and are_variants(new.content, near.content)
    )
    return msgspec.structs.replace(
        base,
        contradiction=denied,
        replaceable=replaceable,
        is_doubtful=replaceable is not None
        and denied is None
        and not (near.session_id == scope.session_id is not None and _are_turns(new, old))
        and (new.is_overriding or is_variant)
        and not is_restated(new.content, near.content),
    )


_READ = Kept(ComparedText, READ_BYTES, lambda content, _: BYTES_OF_CHARACTER * len(content) + ENTRY_BYTES)


REPLACEABLE_MAX = 3


class Replaceable(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that the stored one may deny, or whose place it may be meant to take: the beginning of what
    it says, and how near it is.
    """

    memory_id: str
    content: str
    cosine: float


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """The events that follow a store, the ids of the memories that they deny and supersede, what more could
    be replaced, the one memory of which it is asked whether it is denied, and which evidence it names that
    there is none of.
    """

    events: tuple[NewEvent, ...] = ()
    contradicts: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    may_replace: tuple[Replaceable, ...] = ()
    may_contradict: tuple[Replaceable, ...] = ()
    unfound: tuple[str, ...] = ()


def effects(
    memory_id: str,
    said_at: int,
    neighbours: Sequence[Neighbour],
    named: Iterable[MemoryState],
    state: DecisionState,
    *,
    is_asked: bool,
) -> Effects:
    """Return what a memory that was said at a moment, in microseconds since 1970, does to its neighbours and
    to those *named*. Whoever said it *is asked* of one memory at most, and of no pair twice.

    It supersedes those named, but never itself. What was said after it, it does not deny, and is not offered
    for replacement; nor is what somebody said it goes with.
    """
    replaced = {other.memory_id: other for other in named if other.memory_id != memory_id}
    before = [
        n
        for n in neighbours
        if n.memory_id != memory_id
        and (n.contradiction or n.replaceable is not None)
        and (other := state[Memories].get(n.memory_id))
        and other.said_at <= said_at
    ]
    conflicts = state[Memories].conflicts(memory_id, [n.memory_id for n in before])
    before = [n for n in before if conflicts.get(n.memory_id) != "compatible"]
    denied = [denial(memory_id, n.memory_id, n.contradiction) for n in before if n.contradiction]
    events = [NewEvent(event=fact) for fact in denied]
    for other in replaced.values():
        fact = MemorySuperseded(memory_id=other.memory_id, superseded_by=memory_id, reason="asked for")
        events.append(NewEvent(event=fact, project=other.project))
    left = [n for n in before if n.memory_id not in replaced]
    asked = _offered([n for n in left if is_asked and n.is_doubtful and n.memory_id not in conflicts])[:1]
    events += [
        NewEvent(event=ConflictOffered(memory_id=memory_id, target_id=one.memory_id, similarity=one.cosine))
        for one in asked
    ]
    return Effects(
        events=tuple(events),
        contradicts=tuple(fact.memory_id for fact in denied),
        superseded=tuple(replaced),
        may_replace=tuple(_offered(left)),
        may_contradict=tuple(asked),
    )


def denial(memory_id: str, denied_id: str, reason: str) -> MemoryContradicted:
    """Return that one memory denies another."""
    return MemoryContradicted(memory_id=denied_id, contradicted_by=memory_id, strength=1.0, reason=reason)


def _offered(neighbours: Iterable[Neighbour]) -> list[Replaceable]:
    near = [
        Replaceable(memory_id=n.memory_id, content=n.replaceable, cosine=round(n.cosine, 6))
        for n in neighbours
        if n.replaceable is not None and n.cosine is not None
    ]
    near.sort(key=lambda one: (-one.cosine, one.memory_id))
    return near[:REPLACEABLE_MAX]
