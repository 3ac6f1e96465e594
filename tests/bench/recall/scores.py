"""What a ranking is worth, as pure functions. A result holds one text or more (what was said twice is one
memory); *gold* are the keys, or sessions, that answer.
"""

from collections.abc import Mapping, Sequence
from math import log2

Found = Sequence[frozenset[str]]
"""The keys of the texts that each result holds, best first."""


def recall(places: int, found: Found, gold: frozenset[str]) -> float:
    """Return the share of what answers that is among the first results."""
    return len(gold & _first(places, found)) / len(gold)


def recall_any(places: int, found: Found, gold: frozenset[str]) -> float:
    """Return 1 where something that answers is among the first results."""
    return float(bool(gold & _first(places, found)))


def recall_all(places: int, found: Found, gold: frozenset[str]) -> float:
    """Return 1 where all that answers is among the first results."""
    return float(gold <= _first(places, found))


def reciprocal_rank(found: Found, gold: frozenset[str]) -> float:
    """Return 1 / the place of the first result that answers, 0 where none does."""
    return next((1 / place for place, keys in enumerate(found, 1) if keys & gold), 0.0)


def ndcg(places: int, found: Found, gold: frozenset[str]) -> float:
    """Return NDCG as LongMemEval and RealMem compute it: the second place is discounted no more than the
    first.
    """
    gains = [float(bool(keys & gold)) for keys in found[:places]]
    return _gained(gains) / _gained([1.0] * min(places, len(gold)))


def by_session(found: Found, sessions: Mapping[str, str]) -> Found:
    """Return the sessions of the results, each where it stands first."""
    places: dict[frozenset[str], None] = {}
    seen: set[str] = set()
    for keys in found:
        if new := frozenset(sessions[key] for key in keys) - seen:
            places[new] = None
            seen |= new
    return list(places)


def _first(places: int, found: Found) -> frozenset[str]:
    return frozenset[str]().union(*found[:places])


def _gained(gains: Sequence[float]) -> float:
    return sum(gain / (log2(place) if place > 1 else 1.0) for place, gain in enumerate(gains, 1))
