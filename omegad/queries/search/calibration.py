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

    `cosine` is None where it, or the question, has no vector. `coverage` is the share of the question's words, by their rarity, that it
    holds; `identifiers` that of the things that the question names exactly, None where it names none; `is_in_period` says that it is of
    the time that the question names.
    """

    cosine: float | None
    coverage: float
    identifiers: float | None = None
    is_in_period: bool = False


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """A logistic regression, fitted to questions that can and cannot be answered from the same memories, both weighing the same.

    `unknown_words` and `unknown_names` are of the shares of the question that no memory holds; `wordless` is what a search by meaning
    alone has instead of words, and `words_alone` and `coverage_alone` are what one by words alone has instead of the cosine.
    """

    intercept: float = -2.5
    cosine: float = 6.8
    coverage: float = 2.9
    unknown_words: float = -3.6
    unknown_names: float = -7.5
    lacks_identifiers: float = -2.0
    holds_identifiers: float = 0.6
    in_period: float = 2.5
    wordless: float = 0.5
    words_alone: float = -1.0
    coverage_alone: float = 4.5


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
    logit = fitted.in_period * any(signs.is_in_period for signs in best) + max(_by_meaning(best, store, fitted), _by_words(best, store, fitted))
    held = [signs.identifiers for signs in best if signs.identifiers is not None]
    logit += fitted.lacks_identifiers * (bool(held) and not any(held))
    if store.has_words:
        unknown = store.memories / (store.memories + FEW)
        logit += (fitted.unknown_words * store.unknown_words + fitted.unknown_names * store.unknown_names) * unknown
        logit += fitted.holds_identifiers * (1.0 in held and store.unknown_words == store.unknown_names == 0.0)
    return 1 / (1 + math.exp(-logit))


def _by_meaning(best: Sequence[Signs], store: Store, fitted: Calibration) -> float:
    """Return the logit of those that have a cosine."""
    near = [signs.cosine for signs in best if signs.cosine is not None]
    if not near:
        return -math.inf
    return (
        fitted.intercept
        + fitted.cosine * max(near)
        + (fitted.coverage * max(signs.coverage for signs in best) if store.has_words else fitted.wordless)
    )


def _by_words(best: Sequence[Signs], store: Store, fitted: Calibration) -> float:
    """Return the logit of those that have none. A question of nothing but a time has no words that one could hold."""
    coverage = [signs.coverage for signs in best if signs.cosine is None]
    if not coverage:
        return -math.inf
    return fitted.words_alone + (fitted.coverage_alone * max(coverage) if store.has_words else 0.0)
