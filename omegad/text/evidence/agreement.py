"""Whether a text says what another one says: the same way round, and of the same numbers, versions, paths and names. In doubt, no."""

from omegad.text.evidence.statements import is_opposite, overrides, statements, words

CHARACTERS = 4_096
"""What is read of each text, from its beginning."""


def agrees(one: str, other: str) -> bool:
    """Say whether two texts that speak of one matter can be said to hold together; symmetric.

    Not where either takes something back, where one denies what the other one says, or where each names something that the other does not.
    """
    first, second = one[:CHARACTERS], other[:CHARACTERS]
    ours, theirs = frozenset(words(first)), frozenset(words(second))
    if is_opposite(ours, theirs) or overrides(first, ours) or overrides(second, theirs):
        return False
    named, there = _named(first), _named(second)
    return named <= there or there <= named


def _named(text: str) -> frozenset[str]:
    """Return the terms of a text that are no plain words: numbers, versions, paths, identifiers, code."""
    return frozenset(term for statement in statements(text) for term in statement if not (term.islower() and term.replace("-", "").isalpha()))
