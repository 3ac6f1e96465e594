"""How sure an answer is, on a scale that means the same for every question: the probability that one of the
best results answers it.

Scores only say which candidate is the best. Whether it is any good is read from what has a scale of its own:
the cosine, the share of the question's words, by their rarity, that a candidate holds, and whether any memory
that the question is about holds them.
"""

import math
from collections.abc import Mapping

from omegad.search.candidates import Candidates, SearchRequest
from omegad.search.features import IDENTIFIERS, SHOWN, MemoryFeatures
from omegad.search.model import RankingModel, probability
from omegad.search.question import Question
from omegad.storage.driver import Connection

# A cosine that is usual for texts that have nothing to do with each other, below which differences say little
UNRELATED = 0.1
FEW = 100  # memories, among which it says little that a word is in none
JUDGED = 3  # of the best results, for whether any of them answers
PERIOD = SHOWN.index("period")


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
        "lacks_names": float(bool(question.identifiers) and not any(held)),
        "in_period": in_period,
        # How the greatest of so many cosines grows that have nothing to do with the question.
        "by_chance": math.sqrt(math.log(max(1, memories))),
        "few": 1 / max(1, memories),
    }
    if sought.vector is None or not places:
        return found
    cosine = max(float(known.cosine[place]) for place in places)
    return found | {"log_cosine": math.log(UNRELATED + max(0.0, cosine)), "lead": lead}


def is_by_meaning(found: Mapping[str, float]) -> bool:
    """Say whether the signs are of meaning as well as of words."""
    return "log_cosine" in found


def confidence(found: dict[str, float], model: RankingModel) -> float:
    """Return the probability, 0 to 1; by words alone where none of the best has a vector, or the question
    has none.
    """
    return probability(model.confidence if is_by_meaning(found) else model.confidence_by_words, found)
