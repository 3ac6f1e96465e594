"""Find memories by their words: candidates by the terms that tell most, then the BM25 score of all terms for each of them.

A term that thousands of memories have costs as many scores and changes the order little; so among all memories, where rarer terms
find enough, it does not choose candidates. It counts in their scores all the same.
"""

import msgspec

from omegad.queries import terms
from omegad.storage.driver import Connection

MATCHES_MAX = 1_000  # for the terms that choose, all together, unless fewer are found than are wanted

_MATCHES = "SELECT rowid, -bm25(memories_fts, 1.0, 0.5) AS score FROM memories_fts WHERE memories_fts MATCH ?"

# The plus keeps the planner from running MATCH once for each of the rows; full text drives, and the rows are a set beside it.
AMONG_ROWS = f"{_MATCHES} AND +rowid IN (SELECT value FROM json_each(?))"
AMONG_FILTERED = f"{_MATCHES} AND +rowid IN (SELECT m.id FROM memories AS m WHERE {{condition}}) ORDER BY score DESC, rowid LIMIT ?"
AMONG_ALL = f"{_MATCHES} ORDER BY score DESC, rowid LIMIT ?"
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM memories_fts WHERE memories_fts MATCH ? LIMIT ?)"


class Words(msgspec.Struct, frozen=True):
    """What full text is asked: the expression of every term, and the terms that it is made of (one, for a phrase)."""

    expression: str
    terms: tuple[str, ...]


def of_phrase(text: str) -> Words | None:
    """Return what finds *text* as it stands; None where it has no word."""
    phrase = terms.phrase(text)
    return Words(phrase, (phrase,)) if phrase else None


def of_question(text: str) -> Words | None:
    """Return what finds any telling term of *text*; None where it has no word."""
    telling = terms.telling(text)
    return Words(" OR ".join(telling), telling) if telling else None


def best_of_all(connection: Connection, words: Words, condition: str, values: tuple[object, ...], limit: int) -> dict[int, float]:
    """Return BM25 scores (greater is better) by memory row: the best of all memories. *condition* says which have not expired."""
    choosing = " OR ".join(_rarest(connection, words.terms, limit))
    best: dict[int, float] = dict(connection.execute(AMONG_ALL, (choosing, limit)).fetchall())
    # What is not active has left full text already, so that nearly always only the few best are to be asked whether they have expired.
    sql = f"SELECT m.id FROM memories AS m WHERE m.id IN (SELECT value FROM json_each(?)) AND {condition}"
    kept = [row[0] for row in connection.execute(sql, (str(list(best)), *values))]
    if len(kept) < len(best) == limit:
        return best_of_filtered(connection, words, condition, values, limit)
    return {row: best[row] for row in kept} if choosing == words.expression else of_rows(connection, words, kept)


def best_of_filtered(connection: Connection, words: Words, condition: str, values: tuple[object, ...], limit: int) -> dict[int, float]:
    """Return BM25 scores by memory row: the best of the memories that *condition* selects."""
    return dict(connection.execute(AMONG_FILTERED.format(condition=condition), (words.expression, *values, limit)).fetchall())


def of_rows(connection: Connection, words: Words, rows: list[int]) -> dict[int, float]:
    """Return the BM25 scores of those of *rows* that have any of the words."""
    return dict(connection.execute(AMONG_ROWS, (words.expression, str(rows))).fetchall()) if rows else {}


def _rarest(connection: Connection, quoted: tuple[str, ...], wanted: int) -> list[str]:
    """Return, in the order of the question, the rarest terms that together find enough, and as many more as cost little."""
    counts = sorted((connection.execute(_COUNT, (term, MATCHES_MAX + 1)).fetchone()[0], place) for place, term in enumerate(quoted))
    chosen, total = list[int](), 0
    for matches, place in counts:
        if total >= wanted and total + matches > MATCHES_MAX:
            break
        chosen.append(place)
        total += matches
    return [quoted[place] for place in sorted(chosen)]
