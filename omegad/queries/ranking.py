"""From what is known of each candidate to its score. Pure: no SQL, no clock.

Both scores are known for every candidate, whichever index found it: to give a one-sided candidate half a score ranks worse than
full text alone. Each is scaled by the best of the query, because BM25 has no scale of its own, and a cosine's depends on the model.
"""

from collections.abc import Iterable

import msgspec

RANKING_VERSION = 1


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """How much each score counts."""

    vector: float = 0.55
    text: float = 0.45


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that may answer. `cosine` is that of its nearest passage, None without vectors; `bm25` is 0 where no term is in it."""

    id: int
    cosine: float | None
    bm25: float


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with its score, 0 to 1, and what each stage contributed; the contributions add up to the score."""

    id: int
    score: float
    vector: float
    text: float


def rank(candidates: Iterable[Candidate], weights: Weights) -> list[Ranked]:
    """Return the candidates, best first; equals in order of their ids."""
    known = list(candidates)
    best_cosine = max((c.cosine for c in known if c.cosine is not None), default=0.0)
    best_bm25 = max((c.bm25 for c in known), default=0.0)
    total = (weights.vector if best_cosine > 0 else 0.0) + (weights.text if best_bm25 > 0 else 0.0)
    if total == 0:
        return []
    vector, text = weights.vector / total, weights.text / total
    parts = [(vector * _share(c.cosine or 0.0, best_cosine), text * _share(c.bm25, best_bm25), c.id) for c in known]
    ranked = [Ranked(id=row, score=round(by_vector + by_text, 9), vector=by_vector, text=by_text) for by_vector, by_text, row in parts]
    return sorted((one for one in ranked if one.score > 0), key=lambda one: (-one.score, one.id))


def _share(value: float, best: float) -> float:
    return max(0.0, value) / best if best > 0 else 0.0
