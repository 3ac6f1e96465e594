"""Which results say the same in other words, so that one of them can stand for all. Pure.

Wordings that differ in a number, a name or a sign, or of which one denies the other, are never taken for the
same: in doubt both are shown.
"""

import re
from collections.abc import Sequence

import msgspec

from omegad.index.terms import stemmed
from omegad.search.model import Array
from omegad.text.evidence.numbers import SPELLED
from omegad.text.evidence.stance import are_variants, contradiction

SAME_COSINE = 0.8
"""From here on two texts say the same: chosen on statements of one fact in five wordings, and on pairs of
others that are about one thing.
"""

SHORT = 600  # characters at most, of what has one thing to say

_VALUE = re.compile(r"\w*\d[\w.]*|(?<=\w\s)[A-Z]\w+")
_SPELLED = re.compile(r"[^\W\d]+(?:-[^\W\d]+)*")


class Saying(msgspec.Struct, frozen=True):
    """What a result says, how well it is proved, and when it was said, in microseconds since 1970; as a turn
    of a conversation, or as a statement.
    """

    content: str
    proof: float
    said_us: int
    is_spoken: bool = False


def groups(sayings: Sequence[Saying], cosines: Array) -> list[list[int]]:
    """Return the places of some results, in their order, those that say the same together: in front the best
    proved one, and of these the newest.
    """
    found: list[list[int]] = []
    for place, one in enumerate(sayings):
        same = [
            group
            for group in found
            if any(cosines[place, other] >= SAME_COSINE and _is_same(one, sayings[other]) for other in group)
        ]
        if not same:
            found.append([place])
            continue
        same[0].extend([*(other for group in same[1:] for other in group), place])
        found = [group for group in found if group not in same[1:]]
    return [
        sorted(group, key=lambda place: (-sayings[place].proof, -sayings[place].said_us, place))
        for group in found
    ]


def _is_same(one: Saying, other: Saying) -> bool:
    older, newer = sorted((one, other), key=lambda saying: saying.said_us)
    if one.is_spoken or other.is_spoken or max(len(one.content), len(other.content)) > SHORT:
        return False
    first, second = _in_digits(one.content), _in_digits(other.content)
    return (
        _holds_values(first, second)
        and _holds_values(second, first)
        and not are_variants(newer.content, older.content)
        and contradiction(newer.content, older.content) is None
    )


def _in_digits(text: str) -> str:
    return _SPELLED.sub(lambda word: str(SPELLED.get(word[0].lower(), word[0])), text)


def _holds_values(text: str, other: str) -> bool:
    """Say whether a text has all the numbers and names of another."""
    named = (value.rstrip(".") for value in _VALUE.findall(other))
    return {word for value in named for word in stemmed(value)} <= set(stemmed(text))
