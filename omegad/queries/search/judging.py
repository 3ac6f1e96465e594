"""Read from the views what tells whether any of the best results answers, and judge by it."""

from collections.abc import Mapping, Sequence

import msgspec

from omegad.queries.search import calibration, terms, words
from omegad.queries.search.calibration import Calibration, Signs, Store
from omegad.queries.search.details import Asked
from omegad.queries.search.gathering import Asking, Sources
from omegad.queries.search.ranking import Candidates, Details, Ranked
from omegad.storage.driver import Connection

JUDGED = 3  # of the best results, for whether any of them answers
SURE = 0.6  # that one answers, beyond which the next are not asked


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked for and found: the question, what was asked of the views for it, and the candidates with what is known of them."""

    asking: Asking
    asked: Asked
    found: Candidates
    known: Mapping[int, Details]


def confidence(connection: Connection, best: Sequence[Ranked], judged: Judged, sources: Sources) -> float:
    """Return how likely one of the best results answers; where it has no vector, or the question has none, by its words alone."""
    store, rarities = _store(judged)
    signs: list[Signs] = []
    sure = 0.0
    for one in best[:JUDGED]:
        details = judged.known.get(one.id, Details())
        signs.append(
            Signs(
                cosine=None if sources.vector is None else judged.found.cosine_of(one.id),
                coverage=words.coverage(connection, rarities, judged.asking.holders, one.id),
                identifiers=details.identifiers if judged.asked.identifiers else None,
                is_in_period=details.is_in_period,
            )
        )
        sure = calibration.confidence(signs, store, Calibration())
        if sure >= SURE:
            break
    return sure


def _store(judged: Judged) -> tuple[Store, dict[str, float]]:
    """Return how much of the question no memory holds, and the rarity of each of its terms that tells anything."""
    memories = judged.asking.memories
    question = judged.asked.question
    told = {
        term: count
        for term, count in judged.asking.counts.items()
        if (question.period is None or not question.period.is_named_by(terms.text_of(term)))
        and (count or terms.text_of(term) not in question.dispensable)
    }
    rarities = words.rarities(told, memories)
    store = Store(
        memories=memories,
        unknown_words=words.unknown(rarities, lambda text: text not in question.proper),
        unknown_names=words.unknown(rarities, question.proper.__contains__),
        has_words=bool(rarities),
    )
    return store, rarities
