"""What full text is asked of the terms of a question: who holds them, and what BM25 makes of that.

It is asked in SQL, or answered from its words where they are in memory; the answers are the same.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.index import terms
from omegad.index.active import overdue
from omegad.index.filters import Filtered
from omegad.index.postings import ROW_SHIFT, WEIGHTS, Holding, Integers, Postings, counted, distinct
from omegad.index.resident_words import ResidentWords, Tokenizer
from omegad.storage.driver import Connection
from omegad.storage.readers import check

# LIMIT has a plus wherever a search limits: SQLite looks at the value of a bare parameter there, and prepares
# the statement anew for the next.
_SCORED = (
    f"SELECT memories_fts.rowid, -bm25(memories_fts, {', '.join(map(str, WEIGHTS))}) AS score FROM"
    " memories_fts"
)
_MATCHES = f"{_SCORED} WHERE memories_fts MATCH ?"

# The plus keeps the planner from running MATCH once for each of the rows; full text drives, and the rows are
# a set beside it.
AMONG_ROWS = f"{_MATCHES} AND +rowid IN (SELECT value FROM json_each(?))"
AMONG_FILTERED = (
    f"{_MATCHES} AND +rowid IN (SELECT m.id FROM memories AS m WHERE {{condition}}) ORDER BY score DESC,"
    " rowid LIMIT +?"
)
# The same where few match: each is looked up as a memory, and the memories need not be gone through.
FEW_AMONG_FILTERED = f"""
{_SCORED} CROSS JOIN memories AS m ON m.id = memories_fts.rowid WHERE memories_fts MATCH ? AND {{condition}}
  ORDER BY score DESC, m.id LIMIT +?
"""
# What is hidden has left full text, so that of everything only what is overdue is to be left out.
AMONG_CURRENT = f"""
{_MATCHES} AND +rowid NOT IN (SELECT id FROM memories WHERE {overdue("?")})
  ORDER BY score DESC, rowid LIMIT +?
"""
_HOLDS = "SELECT 1 FROM memories_fts WHERE memories_fts MATCH ? AND rowid = ?"
# As one text: the driver lets other threads in, and so waits for them, at each row that it reads.
_LATEST = (
    "SELECT json_group_array(rowid) FROM (SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? ORDER BY"
    " rowid DESC LIMIT +?)"
)
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM memories_fts WHERE memories_fts MATCH ? LIMIT +?)"


class FullText:
    """Full text as one connection sees it. A term is an expression of `terms`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def count(self, term: str, most: int) -> int:
        """Return how many memories hold a term, and at most so many."""
        check()
        count: int = self._connection.execute(_COUNT, (term, most)).fetchone()[0]
        return count

    def latest(self, term: str, most: int) -> npt.NDArray[np.int64]:
        """Return which memories hold a term, the latest first and at most so many."""
        check()
        (rows,) = self._connection.execute(_LATEST, (term, most)).fetchone()
        return np.array(msgspec.json.decode(rows), np.int64)

    def holds(self, term: str, rows: Integers) -> npt.NDArray[np.bool_]:
        """Say of each of some memories, in ascending order, whether it holds a term."""
        found = (self._connection.execute(_HOLDS, (term, row)).fetchone() for row in rows.tolist())
        return np.array([one is not None for one in found], np.bool_)

    def scores(self, wanted: Sequence[str], rows: Sequence[int]) -> dict[int, float]:
        """Return the BM25 scores, by row, of those of *rows* that hold any of the terms."""
        if not rows:
            return {}
        return dict(self._connection.execute(AMONG_ROWS, (_any_of(wanted), str(list(rows)))).fetchall())

    def best(
        self, wanted: Sequence[str], among: Filtered, limit: int, first: int, *, are_few: bool = False
    ) -> dict[int, float]:
        """Return the scores of those that hold any of the terms and pass a filter, the best and at most so
        many; as many as are to be *first* stand in order. *are_few* tells that few hold any.
        """
        del first  # all are in order
        sql = FEW_AMONG_FILTERED if are_few else AMONG_FILTERED
        asked = AMONG_CURRENT if among.is_everything else sql.format(condition=among.condition)
        return dict(self._connection.execute(asked, (_any_of(wanted), *among.values, limit)).fetchall())


class ResidentFullText(FullText):
    """The same from its words in memory. What begins with something is asked in SQL all the same."""

    def __init__(
        self,
        connection: Connection,
        postings: Postings,
        tokenizer: Tokenizer,
        passing: Callable[[Integers], npt.NDArray[np.bool_]],
    ) -> None:
        """Take the words of the state that *connection* sees, and what says of rows whether they pass the
        filter.
        """
        super().__init__(connection)
        self._postings = postings
        self._tokenizer = tokenizer
        self._passing = passing
        self._held: dict[str, list[Holding]] = {}

    def count(self, term: str, most: int) -> int:
        """Return how many memories hold a term, and at most so many."""
        return super().count(term, most) if terms.is_beginning(term) else len(self._latest(term, most))

    def latest(self, term: str, most: int) -> npt.NDArray[np.int64]:
        """Return which memories hold a term, the latest first and at most so many."""
        return super().latest(term, most) if terms.is_beginning(term) else self._latest(term, most)

    def holds(self, term: str, rows: Integers) -> npt.NDArray[np.bool_]:
        """Say of each of some memories, in ascending order, whether it holds a term."""
        if terms.is_beginning(term):
            return super().holds(term, rows)
        return np.asarray(counted(self._holdings(term), rows).any(axis=0))

    def scores(self, wanted: Sequence[str], rows: Sequence[int]) -> dict[int, float]:
        """Return the BM25 scores, by row, of those of *rows* that hold any of the terms."""
        if any(map(terms.is_beginning, wanted)):
            return super().scores(wanted, rows)
        asked = np.sort(np.array(rows, np.int64))
        scores = self._postings.scores(self._of(wanted), asked)
        is_held = scores > 0
        return dict(zip(asked[is_held].tolist(), scores[is_held].tolist(), strict=True))

    def best(
        self, wanted: Sequence[str], among: Filtered, limit: int, first: int, *, are_few: bool = False
    ) -> dict[int, float]:
        """Return the scores of those that hold any of the terms and pass the filter, the best and at most so
        many; as many as are to be *first* stand in order.
        """
        if any(map(terms.is_beginning, wanted)):
            return super().best(wanted, among, limit, first, are_few=are_few)
        held = self._of(wanted)
        found = [places for one in held for places in one.parts]
        if not found:
            return {}
        rows = distinct(np.concatenate(found) >> ROW_SHIFT)
        check()
        rows = rows[self._passing(rows)]
        scores = self._postings.scores(held, rows)
        best = _best_first(rows, scores, limit, first)
        return dict(zip(rows[best].tolist(), scores[best].tolist(), strict=True))

    def _latest(self, term: str, most: int) -> Integers:
        (first, *others) = [one.latest(most) for one in self._holdings(term)]
        return distinct(np.concatenate([first, *others]))[::-1][:most] if others else first

    def _of(self, wanted: Sequence[str]) -> list[Holding]:
        return [one for term in wanted for one in self._holdings(term)]

    def _holdings(self, term: str) -> list[Holding]:
        """Return who holds each of the phrases that a term is found by."""
        if (found := self._held.get(term)) is None:
            check()
            phrases = map(self._tokenizer.tokens, terms.texts_of(term))
            found = self._held[term] = [self._postings.holding(phrase) for phrase in phrases]
        return found


def opened(
    connection: Connection,
    words: ResidentWords | None,
    passing: Callable[[Integers], npt.NDArray[np.bool_]],
) -> FullText:
    """Return full text as a connection sees it, in memory if it is; *passing* says of rows whether they pass
    the filter of the question.
    """
    if words is not None and (postings := words.of(connection)) is not None:
        assert words.tokenizer is not None
        return ResidentFullText(connection, postings, words.tokenizer, passing)
    return FullText(connection)


def _best_first(
    rows: Integers, scores: npt.NDArray[np.float64], limit: int, first: int
) -> npt.NDArray[np.intp]:
    """Return the places of the best of some scores, at most so many: the *first* in order, equals by row."""
    is_cut = len(rows) > limit
    first = limit if is_cut else first
    if len(rows) <= first:
        return np.lexsort((rows, -scores))
    is_first = scores >= np.partition(scores, -first)[-first]
    best = is_first.nonzero()[0]
    best = best[np.lexsort((rows[best], -scores[best]))]
    return best[:limit] if is_cut else np.append(best, (~is_first).nonzero()[0])


def _any_of(wanted: Sequence[str]) -> str:
    return " OR ".join(wanted)
