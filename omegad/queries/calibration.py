"""How sure an answer is, on a scale that means the same for every query: the probability that the best of it answers. Pure.

Fused scores only say which candidate is the best. Whether it is any good is read from what has a scale of its own: the cosine, the
share of the question's words, by their rarity, that a candidate holds, and whether any memory holds them.
"""

import math
from collections.abc import Sequence

import msgspec

FEW = 100  # memories, of which it says little that a word is in none
FLOOR = 0.266  # below this a large store answers nothing
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

    `unknown_words` and `unknown_names` are of the shares of the question that no memory holds; `wordless` is what a search by meaning
    alone has instead of words.
    """

    intercept: float = -2.42
    cosine: float = 6.54
    coverage: float = 2.67
    unknown_words: float = -3.3
    unknown_names: float = -8.91
    lacks_identifiers: float = -0.98
    wordless: float = 0.5


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """How many memories there are, and which shares of the question, by rarity, none of them holds: ordinary words, and names.

    A name that is unknown says more: who asks in other words than the answer's seldom changes a name. `has_words` is False for a
    search by meaning alone.
    """

    memories: int
    unknown_words: float = 0.0
    unknown_names: float = 0.0
    has_words: bool = True


def floor(memories: int) -> float:
    """Return the confidence below which a store of so many memories answers nothing."""
    return FLOOR * (0.5 + 0.5 * memories / (memories + LENIENT))


def confidence(best: Sequence[Signs], store: Store, fitted: Calibration) -> float:
    """Return the probability, 0 to 1, that one of the first candidates answers."""
    if not best:
        return 0.0
    logit = fitted.intercept + fitted.cosine * max(signs.cosine for signs in best)
    if store.has_words:
        unknown = fitted.unknown_words * store.unknown_words + fitted.unknown_names * store.unknown_names
        logit += fitted.coverage * max(signs.coverage for signs in best) + unknown * store.memories / (store.memories + FEW)
    else:
        logit += fitted.wordless
    logit += fitted.lacks_identifiers * all(signs.lacks_identifiers for signs in best)
    return 1 / (1 + math.exp(-logit))
