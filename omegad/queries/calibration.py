"""How sure an answer is, on a scale that means the same for every query: the probability that the best of it answers. Pure.

Fused scores only say which candidate is the best. Whether it is any good is read from what has a scale of its own: the cosine, the
share of the question's words, by their rarity, that a candidate holds, and whether any memory holds them.
"""

import math
from collections.abc import Sequence

import msgspec

FEW = 100  # memories, of which it says little that a word is in none
FLOOR = 0.286  # below this a large store answers nothing
LENIENT = 50  # memories, among which half way from half the floor to the whole is asked: what little there is may be meant


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """What one candidate tells about being an answer.

    `coverage` is the share of the question's words, by their rarity, that it holds; `lacks_identifiers` says that the question names a
    thing exactly, and the candidate does not.
    """

    cosine: float
    coverage: float
    lacks_identifiers: bool


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """A logistic regression, fitted to questions that can and cannot be answered from the same memories, both weighing the same.

    `unknown` is of the share of the question's words that no memory holds; `wordless` what a search by meaning alone has instead of words.
    """

    intercept: float = -2.48
    cosine: float = 6.82
    coverage: float = 2.58
    unknown: float = -3.9
    lacks_identifiers: float = -2.22
    wordless: float = 0.5


class Store(msgspec.Struct, frozen=True):
    """How many memories there are, and the share of the question's words, by their rarity, that none of them holds; None without words."""

    memories: int
    unknown: float | None


def floor(memories: int) -> float:
    """Return the confidence below which a store of so many memories answers nothing."""
    return FLOOR * (0.5 + 0.5 * memories / (memories + LENIENT))


def confidence(best: Sequence[Signs], store: Store, fitted: Calibration) -> float:
    """Return the probability, 0 to 1, that one of the first candidates answers."""
    if not best:
        return 0.0
    logit = fitted.intercept + fitted.cosine * max(signs.cosine for signs in best)
    if store.unknown is None:
        logit += fitted.wordless
    else:
        known_well = store.memories / (store.memories + FEW)
        logit += fitted.coverage * max(signs.coverage for signs in best) + fitted.unknown * store.unknown * known_well
    logit += fitted.lacks_identifiers * all(signs.lacks_identifiers for signs in best)
    return 1 / (1 + math.exp(-logit))
