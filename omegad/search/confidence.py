"""How sure an answer is, on a scale that means the same for every question: the probability that one of the
best results answers it.

Scores only say which candidate is the best. Whether it is any good is read from what has a scale of its own:
the cosine, the share of the question's words, by their rarity, that a candidate holds, and whether any memory
that the question is about holds them.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omegad.embedding.passages import SHORT_PASSAGES_MAX, short_passages
from omegad.search import form
from omegad.search.candidates import Candidates
from omegad.search.features import IDENTIFIERS, SHOWN, MemoryFeatures, Observed
from omegad.search.model import RankingModel, multilingual, probability
from omegad.search.question import tells_of
from omegad.storage.driver import Connection
from omegad.text.languages import Language, language_of

# A cosine that is usual for texts that have nothing to do with each other, below which differences say little
UNRELATED = 0.1
FEW = 100  # memories, among which it says little that a word is in none
JUDGED = 3  # of the best results, for whether any of them answers
COVERED = SHOWN.index("coverage")
WHOLE = 0.999  # of the question's words, but for how numbers are rounded
# How cosines are spread that have nothing to do with a question, as long as few tell: as if so many more were
# 0 in the mean, and so many more as far apart
SPREAD, MIDDLE_AS_OF, SPREAD_AS_OF = 0.15, 3, 8
# Letters of a question: what nearly all had there, and one in the middle
SHORTEST, USUAL, LONGEST = 25, 55, 110
OF_AN_ANSWER = 0.4  # the cosine of an answer in English, as it often is
WITH_ENGLISH = 0.3  # as that fit has it where it has a weight of its own
BY_CHANCE_MAX = math.sqrt(math.log(2_000))  # of as many passages as were in the fit to other languages
WORDS_LEAST = 0.05  # how near two texts are word by word, below which differences say nothing
LANGUAGE_CHARACTERS = 400  # of a text, that tell its language


class Best(NamedTuple):
    """The best results, by their rows: what each shows, their places among the candidates that have a vector,
    whether one is of the time that is named, and whether just that is asked for, so that it answers however
    near it is.
    """

    shown: Mapping[int, MemoryFeatures | None]
    places: Sequence[int]
    in_period: float
    is_whatever: bool


def features(connection: Connection, rows: Sequence[int], seen: Observed, *, lead: float) -> dict[str, float]:
    """Return what speaks for, or against, any of the best results, which are in some rows, being an answer,
    the first of which has some *lead*; without `log_cosine` where none has one.
    """
    known = seen.candidates
    in_period = not seen.then.isdisjoint(rows)
    best = Best(
        shown={row: seen.shown.get(row) for row in rows},
        places=[
            place for row in rows if (place := known.index_of(row)) is not None and known.is_embedded[place]
        ],
        in_period=float(in_period),
        is_whatever=in_period and seen.question.asks_whatever,
    )
    if best.places and seen.sought.is_multilingual:
        return _across_languages(connection, best, seen)
    return _in_english(connection, best, seen, lead)


def _in_english(connection: Connection, best: Best, seen: Observed, lead: float) -> dict[str, float]:
    sought, question = seen.sought, seen.question
    vocabulary, memories = sought.vocabulary, sought.scope.count
    many = memories / (memories + FEW)
    held = (one.features[IDENTIFIERS] for one in best.shown.values() if one is not None)
    unknown_names = vocabulary.unknown(question.proper)
    found = {
        "intercept": 1.0,
        # What is of the time that is named holds all of a question that has no words beside.
        "covered": (
            float(vocabulary.coverage([*best.shown], connection).max(initial=0.0))
            if vocabulary.rarity and not best.is_whatever
            else best.in_period
        ),
        "unknown_words": many * (vocabulary.unknown() - unknown_names),
        "unknown_names": many * unknown_names,
        "lacks_names": float(bool(question.identifiers) and not any(held)),
        "in_period": best.in_period,
        # How the greatest of so many cosines grows that have nothing to do with the question.
        "by_chance": math.sqrt(math.log(max(1, memories))),
        "few": 1 / max(1, memories),
    }
    if sought.vector is None or not best.places:
        return found
    nearness = (
        math.log(UNRELATED + OF_AN_ANSWER)
        if best.is_whatever
        else _log_cosine(seen.candidates, best.places)
    )
    return found | {"log_cosine": nearness, "lead": lead}


def _across_languages(connection: Connection, best: Best, seen: Observed) -> dict[str, float]:
    if best.is_whatever:
        return {"intercept": 1.0, "ahead": 0.0, "language": 1.0, "holds_all": 1.0, "in_period": 1.0}
    known, question, then = seen.candidates, seen.question, seen.then
    among, shown, places, memories = known.is_embedded, seen.shown, best.places, seen.sought.scope.count
    if next(iter(best.shown)) in then:  # it is asked of what is of that time, as if there were nothing else
        among = among & np.isin(known.ids, [*then])
        shown = {row: shown[row] for row in then}
        places = [place for place in places if among[place]] or places
        memories = len(then)
    nearest = max(places, key=lambda place: float(known.cosine[place]))
    # The nearest passage of a memory counts, and of so many one is near by chance.
    each = fmean(len(short_passages(one.text)) for one in shown.values())
    by_chance = math.sqrt(math.log(max(1.0, memories * each)))
    row = int(known.ids[nearest])
    text = shown[row].text[:LANGUAGE_CHARACTERS] if row in shown else None
    spoken = question.language if text is None else language_of(text)
    told = {
        "intercept": 1.0,
        "ahead": _ahead(known, nearest, among),
        "cosine": float(known.cosine[nearest]),
        "log_cosine": _log_cosine(known, places),
        "language": _alike(question.language, spoken),
        # A short question is near to less.
        "length": math.log(min(LONGEST, max(SHORTEST, question.letters)) / USUAL),
        "by_chance": min(by_chance, BY_CHANCE_MAX),
        # What is looked up by a name or a word, and stands there as it is asked for.
        "holds_all": float(any(_holds_all(one) for one in best.shown.values() if one is not None)),
        "in_period": best.in_period,
    }
    # Texts of one matter are near as a whole; what answers holds something of what is asked for as well.
    word_by_word = _word_by_word(connection, row, seen)
    return told if word_by_word is None else told | {"word_by_word": word_by_word}


def tells_nothing_of(rows: Sequence[int], seen: Observed) -> bool:
    """Say whether the best results, which are in some rows, tell nothing that was asked for: whatever is of a
    time that is named, of which nothing is, nor do they say that they speak of it.
    """
    named, shown = seen.question.period, (seen.shown[row] for row in rows if row in seen.shown)
    return (
        named is not None
        and seen.question.asks_whatever
        and not any(one.is_then or tells_of(named, one.text, one.said_us) for one in shown)
    )


def _word_by_word(connection: Connection, row: int, seen: Observed) -> float | None:
    """Return the logarithm of how near the nearest passage of a memory is to the question word by word, None
    where that cannot be told.
    """
    sought = seen.sought
    if sought.nearness is None or sought.index is None or sought.vector is None:
        return None
    vector = form.stated(sought.vector, sought.index)
    number = sought.index.nearest_passages(connection, vector, [row], SHORT_PASSAGES_MAX).get(row)
    said = connection.execute("SELECT content FROM memories WHERE id = ?", (row,)).fetchone()
    passages = () if said is None else short_passages(said[0])
    if number is None or number >= len(passages):
        return None
    near = sought.nearness(passages[number])
    return None if near is None else math.log(max(WORDS_LEAST, near))


def _log_cosine(known: Candidates, places: Sequence[int]) -> float:
    return math.log(UNRELATED + max(0.0, *(float(known.cosine[place]) for place in places)))


def floor(found: Mapping[str, float], model: RankingModel, memories: int) -> float:
    """Return the confidence below which nothing is answered, where such signs were found among so many."""
    if "ahead" in found:
        fit = multilingual()
        return fit.floor if "word_by_word" in found else fit.floor_by_passages
    return round(model.floor_of(memories), 6)


def _holds_all(one: MemoryFeatures) -> bool:
    return bool(one.features[IDENTIFIERS] >= 1 or one.features[COVERED] >= WHOLE)


def _alike(asked: Language, said: Language) -> float:
    """Return how much two languages are alike to the model: what is in a question's own is nearer, whatever
    it says, and what is in English to all others.
    """
    return 1.0 if asked.code == said.code else WITH_ENGLISH if asked.is_english or said.is_english else 0.0


def _ahead(known: Candidates, best: int, among: npt.NDArray[np.bool_]) -> float:
    """Return by how many standard deviations of the cosines of others among the candidates the best is ahead
    of them.

    Words tell nothing across languages, and how high cosines are depends on the two, and on the texts.
    """
    is_other = among.copy()
    is_other[best] = False
    others = known.cosine[is_other]
    middle = float(others.sum()) / (len(others) + MIDDLE_AS_OF)
    apart = float(((others - middle) ** 2).sum()) + SPREAD_AS_OF * SPREAD**2
    return (float(known.cosine[best]) - middle) / math.sqrt(apart / (len(others) + SPREAD_AS_OF))


def confidence(found: dict[str, float], model: RankingModel) -> float:
    """Return the probability, 0 to 1; by words alone where none of the best has a vector, or the question
    has none.
    """
    if "ahead" in found:
        fit = multilingual()
        weights = fit.confidence if "word_by_word" in found else fit.confidence_by_passages
        return probability(weights, {name: found[name] for name in weights if name in found})
    return probability(model.confidence if "log_cosine" in found else model.confidence_by_words, found)
