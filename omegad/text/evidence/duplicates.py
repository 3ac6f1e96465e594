"""When two texts say the same, and when one restates all of the other and adds to it.

A near duplicate is only ever called one when the texts say the same things in the same order, to the number,
name and sign, because acknowledged memories that were taken for duplicates by likeness alone are memories
lost. In doubt, texts say different things.
"""

from collections import Counter
from functools import cached_property

from omegad.text.evidence.endings import endings
from omegad.text.evidence.statements import (
    COMPARED_CHARACTERS,
    first_line,
    jaccard,
    openings,
    overrides,
    statements,
    turns,
    words,
)

PREFACE = ":"
LOST_WORDS_MAX = 4
"""Fillers and inflected words that a text has and its restatement has not; with more it is none, whatever
they are.
"""


class ComparedText:
    """A text, and what is read of it once, when it is asked for."""

    def __init__(self, content: str) -> None:
        """Read nothing yet."""
        self.content = content

    @property
    def is_comparable(self) -> bool:
        """Whether the text is short enough to be compared."""
        return len(self.content) <= COMPARED_CHARACTERS

    @cached_property
    def words(self) -> frozenset[str]:
        """The distinct words of what is compared of it."""
        return frozenset(words(self.content[:COMPARED_CHARACTERS]))

    @cached_property
    def statements(self) -> list[tuple[str, ...]]:
        """What it says, piece by piece."""
        return statements(self.content)

    @property
    def terms(self) -> int:
        """How many terms it says that in."""
        return sum(map(len, self.statements))

    @cached_property
    def openings(self) -> list[frozenset[tuple[str, ...]]]:
        """How each of its statements begins."""
        return openings(self.content)

    @cached_property
    def is_overriding(self) -> bool:
        """Whether it speaks of taking something back, or of putting something in its place."""
        is_said = overrides(self.content[:COMPARED_CHARACTERS], self.words)
        return is_said or bool(endings(first_line(self.content)))


def overlap(one: ComparedText, other: ComparedText) -> float:
    """Return the word Jaccard of two texts, 0 to 1."""
    return jaccard(one.words, other.words)


def are_same(one: ComparedText, other: ComparedText) -> bool:
    """Say whether two texts say the same in the same order, but for fillers, inflection and layout;
    symmetric.
    """
    return one.statements == other.statements and bool(one.statements)


def restates(whole: ComparedText, part: ComparedText) -> bool:
    """Say whether one text says all that another does, in its order, and more, and turns nothing of it.

    More is another statement, or what follows in one where a clause may end; what follows without that may
    narrow what is said. Never where either speaks of taking something back, or what is added denies, limits
    or opposes anything: that may be about the rest.
    """
    if len(part.words - whole.words) > LOST_WORDS_MAX or whole.is_overriding or part.is_overriding:
        return False
    if not part.statements or len(whole.statements) < len(part.statements) or are_same(whole, part):
        return False
    if any(
        line.rstrip().endswith(PREFACE) for line in whole.content.splitlines()
    ):  # and what follows it may not stand alone
        return False
    rest = iter(whole.openings)
    added = Counter(words(whole.content)) - Counter(words(part.content))
    return all(any(statement in one for one in rest) for statement in part.statements) and not turns(
        frozenset(added), part.words
    )
