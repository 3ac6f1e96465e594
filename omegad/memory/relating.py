"""How a text that is about to be stored relates to a memory near to it: says the same, restates it and more, reverts it, or is near. Pure."""

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from omegad.index.neighbours import RELATED_COSINE
from omegad.memory.events import Likeness, Relation
from omegad.memory.types import EPISODIC_TYPES
from omegad.text.evidence.contradiction import contradiction
from omegad.text.evidence.duplicates import Text, are_same, overlap, restates

DUPLICATE_COSINE = 0.95
EVOLUTION_JACCARD = 0.55
RELATED_MAX = 3

REPLACEABLE_COSINE = 0.7
"""From here on two texts speak of one subject, so that the newer may be meant for the older one's place."""

REPLACEABLE_JACCARD, ALIKE_COSINE = 0.3, 0.45
"""The same for two that share so many of their words, as short notes do in which one value has changed."""

OVERRIDDEN_COSINE = 0.5
"""The same where the newer text speaks of replacing something or taking it back. All are chosen on the histories of public repositories."""

UNDONE_TYPE = "task_completion"
"""Of what happened, the one type that a text which speaks of taking something back may be about."""

EXCERPT_CHARACTERS = 240
TEXTS_KEPT, KEPT_CHARACTERS = 512, 2_000  # texts, and how long at most, of which what is read is at hand: what is near to one is near to others


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Where a text is to be stored."""

    event_type: str
    entity_id: str | None = None
    session_id: str | None = None


class Near(msgspec.Struct, frozen=True, kw_only=True):
    """A memory near to a text. `cosine` is None where it was found by words; `is_comparable` says that it is of the whole texts."""

    memory_id: str
    content: str
    event_type: str
    entity_id: str | None
    session_id: str | None
    cosine: float | None
    is_comparable: bool = True


class Neighbour(msgspec.Struct, frozen=True, kw_only=True):
    """A near memory and what the text makes of it; at most one of the first two is set.

    `evolution` is the word Jaccard with a memory that the text restates and adds to; `contradiction` is why the memory does not hold;
    `replaceable` is the beginning of a memory whose place the text may be meant to take.
    """

    memory_id: str
    cosine: float | None = None
    duplicate: tuple[Likeness, float] | None = None
    evolution: float | None = None
    contradiction: str | None = None
    replaceable: str | None = None


def compare(content: str, scope: Scope, found: Iterable[Near], jaccard_min: float) -> tuple[Neighbour, ...]:
    """Say what a text makes of near memories. `jaccard_min` is the share of common words from which two of the type are the same."""
    new = Text(content)
    return tuple(_compared(new, scope, near, jaccard_min) for near in found)


def relations(neighbours: Iterable[Neighbour]) -> tuple[Relation, ...]:
    """Return the edges to the nearest neighbours that are near enough, nearest first."""
    near = [(n.cosine, n.memory_id) for n in neighbours if n.cosine is not None and n.cosine >= RELATED_COSINE]
    near.sort(key=lambda pair: (-pair[0], pair[1]))
    return tuple(Relation(memory_id=memory_id, similarity=round(cosine, 6)) for cosine, memory_id in near[:RELATED_MAX])


def _compared(new: Text, scope: Scope, near: Near, jaccard_min: float) -> Neighbour:
    base = Neighbour(memory_id=near.memory_id, cosine=near.cosine)
    if near.entity_id != scope.entity_id:
        return base
    old = _read(near.content) if len(near.content) <= KEPT_CHARACTERS else Text(near.content)
    shared = overlap(new, old)
    is_of_session = scope.event_type not in EPISODIC_TYPES or near.session_id == scope.session_id
    if near.event_type == scope.event_type and is_of_session and new.is_comparable and old.is_comparable:
        is_growing = scope.event_type not in EPISODIC_TYPES and EVOLUTION_JACCARD <= shared < jaccard_min and restates(new, old)
        duplicate, evolution = _duplicate(new, old, near, shared, jaccard_min), shared if is_growing else None
        base = msgspec.structs.replace(base, duplicate=duplicate, evolution=None if duplicate else evolution)
    if scope.event_type in EPISODIC_TYPES or (near.event_type in EPISODIC_TYPES and not (near.event_type == UNDONE_TYPE and new.is_overriding)):
        return base
    replaceable = _excerpt(near.content) if _may_replace(near.cosine, shared, new) else None
    return msgspec.structs.replace(base, contradiction=contradiction(new.content, near.content), replaceable=replaceable)


_read = lru_cache(maxsize=TEXTS_KEPT)(Text)


def _duplicate(new: Text, old: Text, near: Near, shared: float, jaccard_min: float) -> tuple[Likeness, float] | None:
    is_close = near.is_comparable and near.cosine is not None and near.cosine >= DUPLICATE_COSINE
    how: tuple[Likeness, float] = ("cosine", near.cosine) if is_close and near.cosine is not None else ("jaccard", shared)
    is_likely = is_close or shared >= jaccard_min
    return how if (is_likely and are_same(new, old)) or restates(old, new) else None


def _may_replace(cosine: float | None, shared: float, new: Text) -> bool:
    if cosine is None:
        return False
    is_alike = shared >= REPLACEABLE_JACCARD and cosine >= ALIKE_COSINE
    return is_alike or cosine >= (OVERRIDDEN_COSINE if new.is_overriding else REPLACEABLE_COSINE)


def _excerpt(content: str) -> str:
    return content if len(content) <= EXCERPT_CHARACTERS else f"{content[: EXCERPT_CHARACTERS - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"
