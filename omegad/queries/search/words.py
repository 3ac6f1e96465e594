"""Find memories by their words: candidates by the terms that tell most, then the BM25 score of all terms for each of them.

A term that thousands of memories have costs as many scores and changes the order little; so among all memories, where rarer terms
find enough, it does not choose candidates. It counts in their scores all the same.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain

import msgspec

from omegad.queries.search import terms
from omegad.storage.driver import Connection

MATCHES_MAX = 1_000  # for the terms that choose, all together, unless fewer are found than are wanted
RARE = 250  # memories at most hold a rare term
WORTH_ANOTHER = 0.2  # of those wanted; where the rarest terms find fewer, one more term would not find enough

_SCORED = "SELECT memories_fts.rowid, -bm25(memories_fts, 1.0, 0.5, 0.5, 0.5) AS score FROM memories_fts"
_MATCHES = f"{_SCORED} WHERE memories_fts MATCH ?"

# The plus keeps the planner from running MATCH once for each of the rows; full text drives, and the rows are a set beside it.
AMONG_ROWS = f"{_MATCHES} AND +rowid IN (SELECT value FROM json_each(?))"
AMONG_CURRENT = f"""
{_MATCHES} AND +rowid NOT IN (SELECT id FROM memories WHERE expires_us <= ? AND status = 'active') ORDER BY score DESC, rowid LIMIT ?
"""
AMONG_FILTERED = f"{_MATCHES} AND +rowid IN (SELECT m.id FROM memories AS m WHERE {{condition}}) ORDER BY score DESC, rowid LIMIT ?"
# The same where few match: each is looked up as a memory, and the memories need not be gone through.
FEW_AMONG_FILTERED = f"""
{_SCORED} CROSS JOIN memories AS m ON m.id = memories_fts.rowid WHERE memories_fts MATCH ? AND {{condition}} ORDER BY score DESC, m.id LIMIT ?
"""
_HOLDS = "SELECT 1 FROM memories_fts WHERE memories_fts MATCH ? AND rowid = ?"
_ROWS = "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?"
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM memories_fts WHERE memories_fts MATCH ? LIMIT ?)"


class Words(msgspec.Struct, frozen=True):
    """What full text is asked: the expression of every term, and the terms that it is made of (one, for a phrase)."""

    expression: str
    terms: tuple[str, ...]


class Filtered(msgspec.Struct, frozen=True):
    """Which memories are looked among: a condition on `memories AS m`, and its values."""

    condition: str
    values: tuple[object, ...]


class Best(msgspec.Struct, frozen=True):
    """Memory rows, best first, and the BM25 scores (greater is better) of those whose scores are known by then."""

    rows: list[int]
    scores: dict[int, float]

    def joined(self, other: "Best") -> "Best":
        """Return these, and then those of another search that are not among them."""
        return Best(list(dict.fromkeys((*self.rows, *other.rows))), other.scores | self.scores)


def of_phrase(text: str) -> Words | None:
    """Return what finds *text* as it stands; None where it has no word."""
    phrase = terms.phrase(text)
    return Words(phrase, (phrase,)) if phrase else None


def of_question(text: str, without: Collection[str] = ()) -> Words | None:
    """Return what finds any telling term of *text* but those *without*, in lower case; None where it has no other word."""
    telling = tuple(term for term in terms.telling(text) if terms.text_of(term) not in without)
    return Words(" OR ".join(telling), telling) if telling else None


def counts(connection: Connection, words: Words) -> dict[str, int]:
    """Return how many memories hold each term, and 1,001 of what more than a thousand hold."""
    return {term: _count(connection, term) for term in words.terms}


def completed(connection: Connection, words: Words, counts: dict[str, int], among: Collection[str]) -> tuple[Words, dict[str, int]]:
    """Return the words and counts with each term that nobody holds, and that is *among* some, as the beginning of what somebody holds.

    What is asked for by the beginning of its name (`evt_1PQ`) is so found; a term that begins nothing stays as it is.
    """
    begun = {term: beginning for term, count in counts.items() if not count and terms.text_of(term) in among and (beginning := terms.beginning(term))}
    known = {term: count for term, beginning in begun.items() if (count := _count(connection, beginning))}
    if not known:
        return words, counts
    chosen = tuple(begun[term] if term in known else term for term in words.terms)
    return Words(" OR ".join(chosen), chosen), {(begun[term] if term in known else term): known.get(term, count) for term, count in counts.items()}


def holders(connection: Connection, counts: Mapping[str, int]) -> dict[str, frozenset[int]]:
    """Return the memories that hold each of the rare terms."""
    rare = (term for term, count in counts.items() if count <= RARE)
    return {term: frozenset(chain.from_iterable(connection.execute(_ROWS, (term,)).fetchall()) if counts[term] else ()) for term in rare}


def best_of_all(connection: Connection, words: Words, counts: Mapping[str, int], limit: int, now_us: int) -> Best:
    """Return the best of all memories but those that are overdue; what is not active has left full text."""
    return _widening(connection, words, counts, limit, Filtered("", (now_us,)))


def best_of_filtered(connection: Connection, words: Words, counts: Mapping[str, int], limit: int, filtered: Filtered) -> Best:
    """Return the best of the memories that *filtered* selects."""
    return _widening(connection, words, counts, limit, filtered)


def best_of_rows(connection: Connection, words: Words, rows: Sequence[int], limit: int) -> Best:
    """Return the best of some memory rows."""
    scores = of_rows(connection, words, list(rows))
    best = sorted(scores, key=lambda row: (-scores[row], row))[:limit]
    return Best(best, {row: scores[row] for row in best})


def of_rows(connection: Connection, words: Words, rows: list[int]) -> dict[int, float]:
    """Return the BM25 scores of those of *rows* that have any of the words."""
    return dict(connection.execute(AMONG_ROWS, (words.expression, str(rows))).fetchall()) if rows else {}


def rarities(counts: Mapping[str, int], memories: int) -> dict[str, float]:
    """Return the inverse document frequency of each term among so many memories; negative for a term that none of them holds.

    ln(1 + (N - n + 0.5) / (n + 0.5)): that of Robertson & Zaragoza, "The Probabilistic Relevance Framework" (2009), formula 3.3, with the
    1 that keeps it positive for a term that most of the memories hold, as Lucene has it.
    """
    found: dict[str, float] = {}
    for term, count in counts.items():
        rarity = math.log(1 + (max(memories, count) - count + 0.5) / (count + 0.5))
        found[term] = rarity if count else -rarity
    return found


def coverage(connection: Connection, rarities: Mapping[str, float], holders: Mapping[str, frozenset[int]], row: int) -> float:
    """Return the share of the terms, by their rarity, that a memory row holds: 0 to 1."""
    total = sum(map(abs, rarities.values()))
    held = 0.0
    for term, rarity in rarities.items():
        if row in holders[term] if term in holders else connection.execute(_HOLDS, (term, row)).fetchone():
            held += rarity
    return held / total if total else 0.0


def rare_coverage(rarities: Mapping[str, float], holders: Mapping[str, frozenset[int]], rows: Sequence[int]) -> list[float]:
    """Return the share of the terms that some memory holds, by their rarity, that each row holds of those that are rare: 0 to 1.

    Unlike BM25 it does not sink with the length of a memory, which holds a rare word as well for saying much besides.
    """
    total = sum(rarity for rarity in rarities.values() if rarity > 0) or 1.0
    held = dict.fromkeys(rows, 0.0)
    for term, holding in holders.items():
        for row in holding.intersection(rows):
            held[row] += rarities[term] / total
    return list(held.values())


def unknown(rarities: Mapping[str, float], among: Callable[[str], bool]) -> float:
    """Return the share of the terms, by their rarity, that no memory holds, of those whose text is *among* some: 0 to 1."""
    total = sum(map(abs, rarities.values()))
    return -sum(rarity for term, rarity in rarities.items() if rarity < 0 and among(terms.text_of(term))) / total if total else 0.0


def _count(connection: Connection, term: str) -> int:
    count: int = connection.execute(_COUNT, (term, MATCHES_MAX + 1)).fetchone()[0]
    return count


def _widening(connection: Connection, words: Words, counts: Mapping[str, int], limit: int, among: Filtered) -> Best:
    """Return the best by the rarest terms; by one more where these find too few of what passes the condition, and then by all.

    Without a condition, what is overdue does not pass.
    """
    few, all_of_them = (sql.format(condition=among.condition) if among.condition else AMONG_CURRENT for sql in (FEW_AMONG_FILTERED, AMONG_FILTERED))
    chosen = _rarest(counts, limit)
    rest = sorted((term for term in counts if term not in chosen), key=lambda term: counts[term])
    best: dict[int, float] | None = None
    for choosing in (chosen, [*chosen, *rest[:1]]):
        if not rest or (best is not None and len(best) < limit * WORTH_ANOTHER):
            break
        best = dict(connection.execute(few, (" OR ".join(choosing), *among.values, limit)).fetchall())
        if len(best) >= limit:
            return Best(list(best), {})
    best = dict(connection.execute(all_of_them, (words.expression, *among.values, limit)).fetchall())
    return Best(list(best), best)


def _rarest(counts: Mapping[str, int], wanted: int) -> list[str]:
    """Return, in the order of the question, the rarest terms that together find enough, and as many more as cost little."""
    chosen, total = set[str](), 0
    for term in sorted(counts, key=lambda term: counts[term]):
        if total >= wanted and total + counts[term] > MATCHES_MAX:
            break
        chosen.add(term)
        total += counts[term]
    return [term for term in counts if term in chosen]
