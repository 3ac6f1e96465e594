"""Which of several memories tells how things are: the newest of those that speak of the same matter. Pure: no SQL, no clock.

Two things make an older memory outdated: a newer one that answers the question nearly as well, and a newer one that states the same
thing in short, though it may be worded less like the question ("the API listens on 8080", and then "the API's port was moved to 8431").
"""

import re
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.lexemes import bigrams, split_names, unspaced_runs
from omegad.queries.search.ranking import DAY_US, EPSILON, Details, Ranked, Weights, ordered, with_stage
from omegad.queries.search.terms import STOP_WORDS

Array = npt.NDArray[np.float64]

COMPARED = 20  # of the best, each with each
COMPARABLE = 0.75  # share of the older one's own relevance that the newer one must have
OUTDATED_DAYS = 60  # after which a memory is half outdated by a newer one
RESTATED_DAYS = 30  # the same for a short statement
SHORT = 400  # characters; a longer text says more than one thing

# What each of these is, from not at all to entirely.
SAME_MATTER = (0.3, 0.6)  # the cosine of two memories about the same matter
SAME_SUBJECT = (0.4, 0.55)  # that of two statements, whose wording is compared as well
SAME_WORDS = (0.1, 0.3)  # the share of words, by their rarity, that two statements of one thing have in common
IN_QUESTION = (0.3, 0.5)  # the share of the older statement's relevance that the newer one has
LONG = (200, SHORT)  # characters

_WORD = re.compile(r"[^\W_]+")
_ENDING = re.compile(r"(?<=\w{3})(?:ings?|ed|e?s|e)\Z")


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The first candidates as they are to each other, in their order.

    `relevance` is how well each matches by itself, `likeness` the cosine of each with each, and `sameness` the share of words, by their
    rarity, that two short statements have in common: 0 for whatever is no statement.
    """

    relevance: Array
    likeness: Array
    sameness: Array


def sameness(statements: Sequence[str | None]) -> Array:
    """Return the share of words, by their rarity, that each statement has in common with each other; 0 for None, and with itself.

    It is the share of the shorter one: sum of idf over the common words / the smaller sum over all of either. The rarity is that of
    `words.rarities`, among these statements.
    """
    held = [frozenset[str]() if text is None else _words(text) for text in statements]
    vocabulary = {word: place for place, word in enumerate(sorted(frozenset().union(*held)))}
    holds = np.zeros((len(held), len(vocabulary)))
    for row, words in enumerate(held):
        holds[row, [vocabulary[word] for word in words]] = 1.0
    counts = holds.sum(axis=0)
    weighed = holds * np.log(1 + (len(held) - counts + 0.5) / (counts + 0.5))
    whole = weighed.sum(axis=1)
    least = np.minimum(whole[:, None], whole[None, :])
    same: Array = np.divide(weighed @ holds.T, least, out=np.zeros_like(least), where=least > 0)
    np.fill_diagonal(same, 0.0)
    return same


def renewed(ranked: Sequence[Ranked], details: Mapping[int, Details], compared: Compared, weights: Weights) -> list[Ranked]:
    """Let the newest of those that speak of the same matter stand above the older ones, for a question about how things are.

    *compared* is of the first `COMPARED`. An older one loses by how alike, how much older, and how comparable the two are, and more where
    the newer one announces a change; but never more than it takes to stand just below it, so that nothing falls out of the answer. What
    nothing newer speaks of loses nothing, however old it is.
    """
    first = list(ranked[:COMPARED])
    if not first:
        return []
    scale = first[0].score
    known = [details[one.id] for one in first]
    scores = np.array([one.score for one in first])
    dated = np.array([one.dated_us for one in known], dtype=np.float64) / DAY_US
    loss = scale * (_overtaken(known, compared, dated, weights) + _restated(known, compared, dated, weights))
    named = np.array([one.identifiers for one in known])
    loss[named[None, :] < named[:, None]] = 0.0
    after = scores.copy()
    for i in np.argsort(-dated, kind="stable"):
        newer = np.flatnonzero(loss[i] > 0)
        if len(newer):
            below = np.minimum(scores[i], after[newer] - EPSILON * scale)
            after[i] = min(after[i], float(np.maximum(scores[i] - loss[i, newer], below).min()))
    found = [with_stage(one, "newer", float(score) - one.score) for one, score in zip(first, after, strict=True)]
    return ordered([*found, *ranked[COMPARED:]])


def _overtaken(known: Sequence[Details], compared: Compared, dated: Array, weights: Weights) -> Array:
    """Return what each (row) loses to each (column) that is newer, alike, and answers the question nearly as well."""
    announced = np.array([one.announces_change for one in known], dtype=np.float64)
    loss = _part(compared.likeness, SAME_MATTER) * _age(dated, OUTDATED_DAYS) * -(weights.outdated + weights.announced * announced[None, :])
    loss[compared.relevance[None, :] < COMPARABLE * compared.relevance[:, None]] = 0.0
    return loss


def _restated(known: Sequence[Details], compared: Compared, dated: Array, weights: Weights) -> Array:
    """Return what each (row) loses to each (column) that is newer and, both being short, states the same thing."""
    relevance = np.maximum(compared.relevance, EPSILON)
    same = _part(compared.sameness, SAME_WORDS) * _part(compared.likeness, SAME_SUBJECT)
    asked = _part(relevance[None, :] / relevance[:, None], IN_QUESTION)
    short = 1.0 - _part(np.array([one.characters for one in known], dtype=np.float64), LONG)
    loss: Array = -weights.restated * same * asked * _age(dated, RESTATED_DAYS) * np.minimum(short[:, None], short[None, :])
    return loss


def _age(dated: Array, half_days: float) -> Array:
    """Return how much older each (row) is than each (column), 0 to 1; 0.5 for so many days."""
    days = np.maximum(0.0, dated[None, :] - dated[:, None])
    older: Array = days / (days + half_days)
    return older


def _part(values: Array, between: tuple[float, float]) -> Array:
    low, high = between
    part: Array = np.clip((values - low) / (high - low), 0.0, 1.0)
    return part


def _words(text: str) -> frozenset[str]:
    """Return the words of a text without what inflects them in English, the parts of its names, and its unspaced characters two by two."""
    found = {_ENDING.sub("", word) for word in _WORD.findall(split_names(text).lower()) if word not in STOP_WORDS}
    return frozenset(found.union(*(bigrams(run) for run in unspaced_runs(text))))
