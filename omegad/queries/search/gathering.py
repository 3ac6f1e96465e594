"""Collect the memories that may answer a question, with both scores of each: from the words, from the vectors, and from beside those.

A memory that has no vector yet is found by its words alone, and is as good a candidate as one that has.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
import numpy as np

from omegad.memory_types import MemoryTypes
from omegad.queries.filters import Filters, where
from omegad.queries.search import words
from omegad.queries.search.columns import Selection, selection
from omegad.queries.search.mirror import Mirror
from omegad.queries.search.periods import Period
from omegad.queries.search.ranking import Candidates
from omegad.queries.search.surroundings import Surroundings, selected, surroundings
from omegad.queries.search.words import Best, Filtered, Words
from omegad.storage.driver import Connection

CANDIDATES = 80  # of each index, or as many as are asked for
WIDENED = 30  # of each index, whose neighbours in their sessions are looked at
OF_PERIOD_MAX = 2_000  # memories of that time, the latest, of which the best matches become candidates as well
COVERING = 0.4  # what the share of rare words that a memory holds counts beside its BM25 score
UNSEEN = 0.8  # what the words of a memory without a vector let expect of its cosine, as a share of the best

OF_PERIOD = """
SELECT m.id FROM memories AS m WHERE coalesce(m.referenced_us, m.created_us) >= ? AND coalesce(m.referenced_us, m.created_us) < ? AND {condition}
ORDER BY coalesce(m.referenced_us, m.created_us) DESC, m.id DESC LIMIT ?
"""


class Sources(msgspec.Struct, frozen=True):
    """What is searched beside the words: the vectors of the question and of the memories, None without a model; and the known types."""

    vector: bytes | None
    mirror: Mirror | None
    types: MemoryTypes


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for, among which memories, at which moment.

    `words` is what full text is asked, `counts` how many of all `memories` hold each of its
    terms, `holders` which hold the rare ones; `period` is the time that is named. `wanted`
    results are asked for, by their words in a row alone where it is a phrase.
    """

    filters: Filters
    now_us: int
    words: Words | None
    counts: dict[str, int]
    holders: dict[str, frozenset[int]]
    memories: int
    period: Period | None
    wanted: int
    is_phrase: bool

    @property
    def filtered(self) -> Filtered:
        """The condition of the filters."""
        return Filtered(*where(self.filters, self.now_us))


def gathered(connection: Connection, asking: Asking, sources: Sources) -> Candidates:
    """Collect what either index finds, what stands beside that in its session, and both scores of all of it."""
    filtered, count = asking.filtered, max(CANDIDATES, asking.wanted)
    of_period = _of_period(connection, asking.period, filtered)
    best = _by_words(connection, asking, of_period, count)
    cosine: dict[int, float] = {}
    among = partial(selected, connection, filtered)
    if sources.vector is not None and sources.mirror is not None:
        chosen = selection(asking.filters, asking.now_us, _tagged(connection, asking.filters, filtered))
        cosine = _by_meaning(connection, sources.vector, sources.mirror, chosen=chosen, of_period=of_period, count=count)
        among = partial(_among, connection, sources.mirror, chosen, filtered)
    around = surroundings(connection, [*list(cosine)[:WIDENED], *best.rows[:WIDENED]], among)
    rows = sorted(best.rows) if asking.is_phrase else sorted({*cosine, *best.rows, *around.rows})
    bm25 = best.scores | (words.of_rows(connection, asking.words, [row for row in rows if row not in best.scores]) if asking.words else {})
    if sources.vector is not None and sources.mirror is not None:
        cosine |= sources.mirror.cosines_of(connection, sources.vector, [row for row in rows if row not in cosine])
    covered = words.rare_coverage(words.rarities(asking.counts, asking.memories), asking.holders, rows)
    return _candidates(rows, cosine, bm25, covered, around)


def _by_words(connection: Connection, asking: Asking, of_period: list[int], count: int) -> Best:
    """Return the best by their words of all that the filters leave, and of those of the time that is named."""
    if asking.words is None:
        return Best([], {})
    if not asking.filters.named():
        best = words.best_of_all(connection, asking.words, asking.counts, count, asking.now_us)
    else:
        best = words.best_of_filtered(connection, asking.words, asking.counts, count, asking.filtered)
    return best.joined(words.best_of_rows(connection, asking.words, of_period, count)) if of_period else best


def _by_meaning(connection: Connection, vector: bytes, mirror: Mirror, *, chosen: Selection, of_period: list[int], count: int) -> dict[int, float]:
    """Return the cosines of the nearest, nearest first, after those of the time that is named."""
    cosine = dict(mirror.nearest(connection, vector, chosen, count))
    if not of_period:
        return cosine
    then = msgspec.structs.replace(chosen, among=frozenset(of_period))
    return dict(mirror.nearest(connection, vector, then, count)) | cosine


def _among(connection: Connection, mirror: Mirror, chosen: Selection, filtered: Filtered, rows: Sequence[int]) -> set[int]:
    """Return those of *rows* that the filters leave, whether or not they have vectors."""
    found = mirror.among(chosen, rows)
    unknown = mirror.without([row for row in rows if row not in found])
    return found | selected(connection, filtered, unknown) if unknown else found


def _candidates(
    rows: Sequence[int], cosine: Mapping[int, float], bm25: Mapping[int, float], covered: Sequence[float], around: Surroundings
) -> Candidates:
    place = {row: i for i, row in enumerate(rows)}
    cosines = np.array([cosine.get(row, 0.0) for row in rows])
    plain = np.array([bm25.get(row, 0.0) for row in rows])
    scores = (1 - COVERING) * plain + COVERING * plain.max(initial=0.0) * np.array(covered)
    embedded = np.array([row in cosine for row in rows], np.bool_)
    cosines = np.where(embedded, cosines, UNSEEN * cosines.max(initial=0.0) * scores / (scores.max(initial=0.0) or 1.0))
    near_cosine, near_words = np.zeros(len(rows)), np.zeros(len(rows))
    pairs = np.array([(place[row], place[other]) for row, other in around.pairs if row in place and other in place], np.intp).reshape(-1, 2)
    np.maximum.at(near_cosine, pairs[:, 0], cosines[pairs[:, 1]])
    np.add.at(near_words, pairs[:, 0], scores[pairs[:, 1]])
    numbers: dict[str | int, int] = {}
    session = [numbers.setdefault(around.session.get(row, row), len(numbers)) for row in rows]
    return Candidates(
        ids=np.array(rows, np.int64),
        cosine=cosines,
        is_embedded=embedded,
        bm25=plain,
        words=scores,
        near_cosine=near_cosine,
        near_words=near_words,
        session=np.array(session, np.intp),
    )


def _of_period(connection: Connection, named: Period | None, filtered: Filtered) -> list[int]:
    """Return the latest of the memories of the time that is named, of those that the query is about."""
    if named is None:
        return []
    sql = OF_PERIOD.format(condition=filtered.condition)
    return [row[0] for row in connection.execute(sql, (named.start_us, named.end_us, *filtered.values, OF_PERIOD_MAX))]


def _tagged(connection: Connection, filters: Filters, filtered: Filtered) -> frozenset[int] | None:
    """Return the memory rows that pass the filters where these name tags, which the mirror does not hold; else None."""
    if not filters.tags:
        return None
    return frozenset(row[0] for row in connection.execute(f"SELECT m.id FROM memories AS m WHERE {filtered.condition}", filtered.values))
