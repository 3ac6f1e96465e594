"""How sure an answer is, on a scale that means the same for every question: the probability that one of the
best results answers it.

Scores only say which candidate is the best. Whether it is any good is read from what has a scale of its own:
the cosine, the share of the question's words, by their rarity, that a candidate holds, and whether any memory
that the question is about holds them.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from omegad.search.candidates import Candidates, SearchRequest
from omegad.search.features import IDENTIFIERS, SHOWN, MemoryFeatures
from omegad.search.model import RankingModel, multilingual, probability
from omegad.search.question import Question
from omegad.storage.driver import Connection

# A cosine that is usual for texts that have nothing to do with each other, below which differences say little
UNRELATED = 0.1
FEW = 100  # memories, among which it says little that a word is in none
JUDGED = 3  # of the best results, for whether any of them answers
PERIOD = SHOWN.index("period")
AHEAD_LEAST = 0.1  # of a cosine, below which differences say little
AS_MANY = 10  # candidates at right angles are taken to stand beside those there are, so that few say little


def features(
    connection: Connection,
    best: Mapping[int, MemoryFeatures | None],
    sought: SearchRequest,
    question: Question,
    known: Candidates,
    *,
    lead: float,
) -> dict[str, float]:
    """Return what speaks for, or against, any of the best results, by their rows, being an answer, the first
    of which has some *lead*; without `log_cosine` where none has one.
    """
    places = [
        place for row in best if (place := known.index_of(row)) is not None and known.is_embedded[place]
    ]
    vocabulary = sought.vocabulary
    in_period = float(any(one is not None and one.features[PERIOD] > 0 for one in best.values()))
    held = [float(one.features[IDENTIFIERS]) for one in best.values() if one is not None]
    memories = sought.scope.count
    many = memories / (memories + FEW)
    by_chance = math.sqrt(math.log(max(1, memories)))
    lacks_names = float(bool(question.identifiers) and not any(held))
    if sought.vector and sought.index and places and sought.index.is_multilingual(sought.vector):
        return {
            "intercept": 1.0,
            "log_cosine": _log_cosine(known, places),
            "log_ahead": _log_ahead(known, places),
            "lead": lead,
            "lacks_names": lacks_names,
            "in_period": in_period,
            "by_chance": by_chance,
        }
    found = {
        "intercept": 1.0,
        # What is of the time that is named holds all of a question that has no words beside.
        "covered": (
            max((vocabulary.coverage(row, connection) for row in best), default=0.0)
            if vocabulary.rarity
            else in_period
        ),
        "unknown_words": (
            many * (vocabulary.unknown() - (unknown_names := vocabulary.unknown(question.proper)))
        ),
        "unknown_names": many * unknown_names,
        "lacks_names": lacks_names,
        "in_period": in_period,
        # How the greatest of so many cosines grows that have nothing to do with the question.
        "by_chance": by_chance,
        "few": 1 / max(1, memories),
    }
    if sought.vector is None or not places:
        return found
    return found | {"log_cosine": _log_cosine(known, places), "lead": lead}


def _log_cosine(known: Candidates, places: Sequence[int]) -> float:
    return math.log(UNRELATED + max(0.0, *(float(known.cosine[place]) for place in places)))


def floor(found: Mapping[str, float], model: RankingModel, memories: int) -> float:
    """Return the confidence below which nothing is answered, where such signs were found among so many."""
    if "log_ahead" in found:
        return multilingual().floor
    return round(model.floor_of(memories), 6) if "log_cosine" in found else model.floor


def _log_ahead(known: Candidates, places: Sequence[int]) -> float:
    """Return the logarithm of how far the best is ahead of the middle of the candidates.

    Words tell nothing across languages, and how high cosines are depends on the two: within one language
    they are higher, whether the texts answer or not.
    """
    cosines = known.cosine[known.is_embedded]
    middle = float(np.median(cosines)) * len(cosines) / (len(cosines) + AS_MANY)
    best = max(float(known.cosine[place]) for place in places)
    return math.log(AHEAD_LEAST + max(0.0, best - middle))


def confidence(found: dict[str, float], model: RankingModel) -> float:
    """Return the probability, 0 to 1; by words alone where none of the best has a vector, or the question
    has none.
    """
    if "log_ahead" in found:
        return probability(multilingual().confidence, found)
    return probability(model.confidence if "log_cosine" in found else model.confidence_by_words, found)
