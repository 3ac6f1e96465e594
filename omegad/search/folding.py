"""Which results say the same in other words, so that one of them can stand for all. Pure.

Wordings that differ in a number, a name or a sign are never taken for the same. Of which one denies or
replaces the other, or may, as was asked when it was stored, are not even where a third says the same as both.
"""

import re
from collections.abc import Sequence

import msgspec

from omegad.index.terms import stemmed
from omegad.memory.relating import may_override
from omegad.search.model import Array
from omegad.text.evidence.numbers import in_digits
from omegad.text.evidence.stance import are_variants, contradiction

SAME_COSINE = 0.8
"""From here on two texts say the same: chosen on statements of one fact in five wordings, and on pairs of
others that are about one thing.
"""

SHORT = 600  # characters at most, of what has one thing to say

_VALUE = re.compile(r"\w*\d[\w.]*|(?<=\w\s)[A-Z]\w+")
_PIECE = re.compile(r"\w+(?:[.-]\w+)*|[^\w\s]+")


class Saying(msgspec.Struct, frozen=True):
    """What a result says, how well it is proved, and when it was said, in microseconds since 1970; as a turn
    of a conversation, or as a statement; its id, and that of what denies it.
    """

    content: str
    proof: float
    said_us: int
    is_spoken: bool = False
    memory_id: str = ""
    denied_by: str | None = None


def groups(sayings: Sequence[Saying], cosines: Array) -> list[list[int]]:
    """Return the places of some results, in their order, those that say the same together: in front the best
    proved one, and of these the newest.
    """
    found: list[list[int]] = []
    for place, one in enumerate(sayings):
        joined, rest = [place], list[list[int]]()
        for group in found:
            is_same = any(
                cosines[place, other] >= SAME_COSINE and _is_same(one, sayings[other]) for other in group
            )
            if is_same and not any(_are_apart(sayings[a], sayings[b]) for a in joined for b in group):
                joined += group
            else:
                rest.append(group)
        found = [*rest, joined]
    return [
        sorted(group, key=lambda place: (-sayings[place].proof, -sayings[place].said_us, place))
        for group in sorted(found, key=min)
    ]


def _is_same(one: Saying, other: Saying) -> bool:
    if one.is_spoken or other.is_spoken or max(len(one.content), len(other.content)) > SHORT:
        return False
    first, second = (" ".join(in_digits(_PIECE.findall(said.content))) for said in (one, other))
    return _holds_values(first, second) and _holds_values(second, first)


def _are_apart(one: Saying, other: Saying) -> bool:
    older, newer = sorted((one, other), key=lambda saying: saying.said_us)
    return (
        one.denied_by == other.memory_id
        or other.denied_by == one.memory_id
        or are_variants(newer.content, older.content)
        or contradiction(newer.content, older.content) is not None
        or may_override(newer.content, older.content)
    )


def _holds_values(text: str, other: str) -> bool:
    """Say whether a text has all the numbers and names of another."""
    named = (value.rstrip(".") for value in _VALUE.findall(other))
    return {word for value in named for word in stemmed(value)} <= set(stemmed(text))
