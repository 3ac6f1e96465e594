"""Put together the memories that may answer, with both scores of each: from the words, from the vectors, and
from beside those.

A memory that has no vector yet is found by its words alone, and is as good a candidate as one that has.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.index import words
from omegad.index.filters import Filters, where_ever
from omegad.index.scope import Scope
from omegad.index.vector_indexes import VectorIndexes, Vectors
from omegad.index.words import Best, Vocabulary, Words
from omegad.search import following, form
from omegad.storage.driver import Connection
from omegad.text.periods import Period

CANDIDATES = 80  # of each index, or as many as are asked for
WIDENED = 30  # of each index, whose neighbours in their sessions are looked at
# Memories of the time that is named, the latest, of which the best matches become candidates as well
OF_PERIOD_MAX = 2_000
TOLD_WITHIN_US = 86_400_000_000  # after the time that is named: what happened one day is told the next
UNSEEN = 0.8  # what the words of a memory without a vector let expect of its cosine, as a share of the best
LINKS_MAX = 200  # the heaviest edges

OF_PERIOD = """
SELECT m.id FROM memories AS m WHERE coalesce(m.referenced_us, m.created_us) >= ?
  AND coalesce(m.referenced_us, m.created_us) < ? AND {condition}
ORDER BY coalesce(m.referenced_us, m.created_us) DESC, m.id DESC LIMIT +?
"""
_BESIDE = (
    "SELECT id, session_id, previous_id, next_id FROM session_memories WHERE id IN (SELECT value FROM"
    " json_each(?))"
)
_LINKED = """
SELECT m.id, n.id, e.weight FROM memories AS m CROSS JOIN edges AS e ON e.source_id = m.node_id CROSS
  JOIN memories AS n ON n.node_id = e.target_id
WHERE m.id IN (SELECT value FROM json_each(?1)) AND e.edge_type != 'superseded_by'
UNION ALL
SELECT m.id, n.id, e.weight FROM memories AS m CROSS JOIN edges AS e ON e.target_id = m.node_id CROSS
  JOIN memories AS n ON n.node_id = e.source_id
WHERE m.id IN (SELECT value FROM json_each(?1)) AND e.edge_type != 'superseded_by' ORDER BY 3 DESC, 1, 2
  LIMIT +?2
"""


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for, and among what.

    `vector` is the question's, of each model, None as long as it is not there, and `index` holds those of
    the memories, both None without a model; `words` is what full text is asked, None where that is nothing,
    and `vocabulary` what the memories know of it. `wanted` results are asked for, by their words in a row
    alone where it is a phrase. `nearness` tells how near the question is to a passage word by word, where
    that can be told.
    """

    scope: Scope
    vector: Vectors | None
    index: VectorIndexes | None
    words: Words | None
    vocabulary: Vocabulary
    period: Period | None
    wanted: int
    is_phrase: bool
    nearness: Callable[[str], float | None] | None = None

    @property
    def is_multilingual(self) -> bool:
        """Whether meaning is compared by the model for all languages first."""
        return bool(self.vector and self.index and self.index.is_multilingual(self.vector))


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """The memories that may answer: arrays of one length, in ascending order of `ids`.

    `cosine` is that of the nearest passage; of what is not embedded what its words let expect, and 0 without
    vectors. `bm25` is 0 where no term is in it; `rare` is the share of the question's rare words that it
    holds. `near_bm25` is the sum of the scores of the memories right before and after it in its session;
    `before` is where the former stands in the arrays, -1 where it is no candidate. `session` numbers the
    sessions; what is in none has a number of its own. `denials` are pairs of rows: what denies a candidate,
    and that one; `replaced` a candidate, and what it took the place of.
    """

    ids: npt.NDArray[np.int64]
    cosine: npt.NDArray[np.float64]
    is_embedded: npt.NDArray[np.bool_]
    bm25: npt.NDArray[np.float64]
    rare: npt.NDArray[np.float64]
    near_bm25: npt.NDArray[np.float64]
    before: npt.NDArray[np.intp]
    session: npt.NDArray[np.intp]
    denials: Sequence[tuple[int, int]] = ()
    replaced: Sequence[tuple[int, int]] = ()

    def index_of(self, row: int) -> int | None:
        """Return where a row stands in the arrays; None for one that is no candidate."""
        place = int(np.searchsorted(self.ids, row))
        return place if place < len(self.ids) and self.ids[place] == row else None

    def scores(self, row: int) -> dict[str, float]:
        """Return the cosine and the BM25 score of a row, 0 for what it has not."""
        place = self.index_of(row)
        if place is None:
            return {"cosine": 0.0, "bm25": 0.0}
        return {
            "cosine": float(self.cosine[place] * self.is_embedded[place]),
            "bm25": float(self.bm25[place]),
        }


class Named(NamedTuple):
    """What needs no vector to be found: the memories of the time that is named, and the best by their
    words.
    """

    of_period: list[int]
    best: Best


def by_words(connection: Connection, sought: SearchRequest) -> Named:
    """Find the best by their words of all that the filters leave, and of those of the time that is named."""
    among = sought.scope.filtered
    of_period = list[int]()
    if sought.period is not None:
        sql = OF_PERIOD.format(condition=among.condition)
        end_us = sought.period.end_us + TOLD_WITHIN_US
        asked = (sought.period.start_us, end_us, *among.values, OF_PERIOD_MAX)
        of_period = [row[0] for row in connection.execute(sql, asked)]
    if sought.words is None:
        return Named(of_period, Best([], {}))
    count = max(CANDIDATES, sought.wanted)
    fulltext = sought.scope.fulltext
    best = words.best(fulltext, sought.words, sought.vocabulary.counts, count, among)
    if of_period:
        best = best.joined(words.best_of_rows(fulltext, sought.words, of_period, count))
    return Named(of_period, best)


def span(period: Period, *, is_whatever: bool) -> tuple[int, int]:
    """Return from and until when what is of a time was said: until right after it, but where *whatever* is of
    it is asked for.
    """
    return period.start_us, period.end_us + (0 if is_whatever else TOLD_WITHIN_US)


def has_any_of(connection: Connection, filters: Filters, now_us: int, said: tuple[int, int]) -> bool:
    """Say whether any memory that passes the filters was *said* from and until then: also one that was
    replaced since.
    """
    condition, values = where_ever(filters, now_us)
    asked = (*said, *values, 1)
    return connection.execute(OF_PERIOD.format(condition=condition), asked).fetchone() is not None


def gathered(connection: Connection, sought: SearchRequest, named: Named) -> Candidates:
    """Collect what either index finds, what stands beside that in its session, what denies any of these, and
    both scores of all of it.
    """
    count, (of_period, best) = max(CANDIDATES, sought.wanted), named
    cosine: dict[int, float] = {}
    vector = sought.vector
    if vector is not None and sought.index is not None:
        if sought.is_multilingual:
            vector = form.stated(vector, sought.index)
        cosine = dict(sought.index.nearest(connection, vector, sought.scope.selection, count))
        if of_period:
            then = msgspec.structs.replace(sought.scope.selection, among=frozenset(of_period))
            cosine = dict(sought.index.nearest(connection, vector, then, count)) | cosine
    session, pairs = _neighbours(connection, [*list(cosine)[:WIDENED], *best.rows[:WIDENED]], sought.scope)
    rows = (
        sorted(best.rows)
        if sought.is_phrase
        else sorted({*cosine, *best.rows, *(row for pair in pairs for row in pair)})
    )
    denials = following.denied(connection, rows)
    if denials and vector is not None and not sought.is_phrase:
        rows = sorted(sought.scope.among({newer for newer, _ in denials}).union(rows))
    replaced = following.replaced(connection, rows, sought.scope.now_us)
    bm25 = best.scores
    if sought.words and not best.is_complete:
        left = [row for row in rows if row not in bm25]
        bm25 = bm25 | sought.scope.fulltext.scores(sought.words.terms, left)
    if vector is not None and sought.index is not None:
        cosine |= sought.index.cosines_of(connection, vector, [row for row in rows if row not in cosine])
        # What took another's place is as near as that was, though it says it in other words.
        former = sought.index.cosines_of(connection, vector, sorted({old for _, old in replaced}))
        for row, old in replaced:
            if old in former:
                cosine[row] = max(cosine.get(row, former[old]), former[old])
    known = put_together(rows, cosine, bm25, sought.vocabulary.rare_coverage(rows), (session, pairs))
    return msgspec.structs.replace(known, denials=denials, replaced=replaced)


def linked(connection: Connection, rows: Sequence[int], scope: Scope) -> list[tuple[int, int, float]]:
    """Return (row, other row, weight) for the edges of *rows*, either way, to memories in *scope*;
    heaviest first.
    """
    found: list[tuple[int, int, float]] = connection.execute(_LINKED, (str(list(rows)), LINKS_MAX)).fetchall()
    allowed = scope.among({other for _, other, _ in found})
    return [link for link in found if link[1] in allowed]


def _neighbours(
    connection: Connection, rows: Sequence[int], scope: Scope
) -> tuple[dict[int, str], set[tuple[int, int]]]:
    """Return the session of each row, and the pairs that stand beside each other there, both ways round;
    of those in scope.
    """
    found: list[tuple[int, str, int | None, int | None]] = connection.execute(
        _BESIDE, (str(list(rows)),)
    ).fetchall()
    beside = [(row, other) for row, _, *others in found for other in others if other is not None]
    allowed = scope.among({other for _, other in beside}.difference(rows)).union(rows)
    kept = [(row, other) for row, other in beside if other in allowed]
    session = {row: name for row, name, *_ in found}
    return {other: session[row] for row, other in kept} | session, {
        *kept,
        *((other, row) for row, other in kept),
    }


def put_together(
    rows: Sequence[int],
    cosine: Mapping[int, float],
    bm25: Mapping[int, float],
    rare: npt.NDArray[np.float64],
    beside: tuple[Mapping[int, str], set[tuple[int, int]]],
) -> Candidates:
    """Return memory rows, in ascending order, as candidates: with their scores by row, the share of the rare
    words of each, and which is in which session and beside which others.
    """
    ids, scores = np.array(rows, np.int64), np.array([bm25.get(row, 0.0) for row in rows])
    cosines, embedded = np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
    compared = ids.searchsorted(list(cosine))
    cosines[compared], embedded[compared] = list(cosine.values()), True
    cosines = np.where(
        embedded, cosines, UNSEEN * cosines.max(initial=0.0) * scores / (scores.max(initial=0.0) or 1.0)
    )
    session, found = beside
    near_bm25, before = dict.fromkeys(rows, 0.0), dict.fromkeys(rows, -1)
    places = {row: place for place, row in enumerate(rows)}
    for row, other in found:
        if other in bm25 and row in near_bm25 and other in near_bm25:
            near_bm25[row] += bm25[other]
            if other < row:
                before[row] = places[other]
    numbers: dict[str | int, int] = {}
    return Candidates(
        ids=ids,
        cosine=cosines,
        is_embedded=embedded,
        bm25=scores,
        rare=rare,
        near_bm25=np.array(list(near_bm25.values())),
        before=np.array(list(before.values()), np.intp),
        session=np.array([numbers.setdefault(session.get(row, row), len(numbers)) for row in rows], np.intp),
    )
