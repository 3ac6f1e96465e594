"""How a text that is about to be stored relates to a memory near to it: says the same, adds to it, denies it, or is just near. Pure."""

from collections.abc import Iterable

import msgspec

from omegad.events.memory import Likeness, Relation
from omegad.evidence.contradiction import Contradiction, contradiction
from omegad.evidence.likeness import addition, differ_in_detail, holds, jaccard, restates, says_the_same
from omegad.evidence.wording import sentences
from omegad.memory_types import EPISODIC_TYPES

DUPLICATE_COSINE = 0.95
EVOLUTION_JACCARD = 0.55
DENIED_COSINE = 0.3  # below which two texts speak of different matters
RELATED_COSINE = 0.45
RELATED_MAX = 3
COMPARED_CHARACTERS = 16_384  # a longer text repeats another only to the letter


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

    `evolution` is the memory's content with what the text adds, and the word Jaccard of the two before. `is_one_statement` says that the
    memory says a single thing.
    """

    memory_id: str
    cosine: float | None = None
    duplicate: tuple[Likeness, float] | None = None
    evolution: tuple[str, float] | None = None
    contradiction: Contradiction | None = None
    is_one_statement: bool = False


def compare(content: str, scope: Scope, near: Near, jaccard_min: float) -> Neighbour:
    """Say what *content* makes of a near memory. `jaccard_min` is the share of common words from which two of the type are the same."""
    event_type = scope.event_type
    base = Neighbour(memory_id=near.memory_id, cosine=near.cosine)
    if near.entity_id != scope.entity_id or max(len(content), len(near.content)) > COMPARED_CHARACTERS:
        return base
    if near.event_type == event_type and (event_type not in EPISODIC_TYPES or near.session_id == scope.session_id):
        overlap = jaccard(content, near.content)
        if likeness := _likeness(content, near, overlap, jaccard_min):
            return msgspec.structs.replace(base, duplicate=likeness)
        if event_type not in EPISODIC_TYPES and EVOLUTION_JACCARD <= overlap < jaccard_min and restates(content, near.content):
            grown = f"{near.content}\n{addition(content, near.content)}"
            return msgspec.structs.replace(base, evolution=(grown, overlap))
    is_apart = near.cosine is not None and near.cosine < DENIED_COSINE
    if is_apart or event_type in EPISODIC_TYPES or near.event_type in EPISODIC_TYPES:
        return base
    is_one = len(sentences(near.content[:COMPARED_CHARACTERS])) == 1
    return msgspec.structs.replace(base, contradiction=contradiction(content, near.content, near.cosine), is_one_statement=is_one)


def _likeness(content: str, near: Near, overlap: float, jaccard_min: float) -> tuple[Likeness, float] | None:
    """Return how a text repeats a near memory: all it says is said there; None where a word of its own would be lost."""
    is_close = near.is_comparable and near.cosine is not None and near.cosine >= DUPLICATE_COSINE
    how: tuple[Likeness, float] = ("cosine", near.cosine) if is_close and near.cosine is not None else ("jaccard", overlap)
    # A memory that has grown differs in many words from what it grew from, and holds it all the same.
    is_part = len(sentences(content)) < len(sentences(near.content))
    if (is_close or is_part) and holds(near.content, content):
        return how
    is_likely = is_close or overlap >= jaccard_min
    return how if is_likely and not differ_in_detail(content, near.content) and says_the_same(content, near.content) else None


def relations(neighbours: Iterable[Neighbour]) -> tuple[Relation, ...]:
    """Return the edges to the nearest neighbours that are near enough, nearest first."""
    near = [(n.cosine, n.memory_id) for n in neighbours if n.cosine is not None and n.cosine >= RELATED_COSINE]
    near.sort(key=lambda pair: (-pair[0], pair[1]))
    return tuple(Relation(memory_id=memory_id, similarity=round(cosine, 6)) for cosine, memory_id in near[:RELATED_MAX])
