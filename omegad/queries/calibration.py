"""How sure an answer is, on a scale that means the same for every query: the probability that the best of it answers. Pure.

Fused scores only say which candidate is the best. Whether it is any good is read from what has a scale of its own: the cosine, the
share of the question's words, by their rarity, that a candidate holds, and whether any memory holds them.
"""

import math
from collections.abc import Sequence

import msgspec

FLOOR = 0.24  # below this nothing is answered


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

    intercept: float = -2.31
    cosine: float = 6.67
    coverage: float = 2.45
    unknown: float = -3.37
    lacks_identifiers: float = -2.16
    wordless: float = 0.5


def confidence(best: Sequence[Signs], unknown: float, fitted: Calibration, *, has_words: bool) -> float:
    """Return the probability, 0 to 1, that one of the first candidates answers."""
    if not best:
        return 0.0
    logit = fitted.intercept + fitted.cosine * max(signs.cosine for signs in best)
    if has_words:
        logit += fitted.coverage * max(signs.coverage for signs in best) + fitted.unknown * unknown
    else:
        logit += fitted.wordless
    logit += fitted.lacks_identifiers * all(signs.lacks_identifiers for signs in best)
    return 1 / (1 + math.exp(-logit))
