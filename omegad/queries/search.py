"""Find memories by meaning and by words: candidates from both indexes, both scores for each of them, one order.

This file is the recipe. The formula is in `ranking` and `calibration`, what a question tells in `question`, what a candidate tells in
`details`; full text is in `words` and its language in `terms`, nearest neighbours in `mirror`, sessions in `surroundings`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from omegad.memory_types import MemoryTypes
from omegad.queries import calibration, ranking, terms, words
from omegad.queries.calibration import Calibration, Signs, Store
from omegad.queries.columns import selection
from omegad.queries.details import asked, details
from omegad.queries.details import lacking as lacks_identifiers
from omegad.queries.filters import Filters, One, is_any_overdue, where
from omegad.queries.memory import COLUMNS, fields
from omegad.queries.mirror import Mirror
from omegad.queries.periods import Period
from omegad.queries.question import understood
from omegad.queries.ranking import COMPARED, Candidates, Details, Ranked, Weights
from omegad.queries.surroundings import Surroundings, linked, selected, surroundings
from omegad.queries.words import Best, Filtered, Words
from omegad.storage.driver import Connection

VIEWS = ("memories", "vectors", "fulltext", "sessions")
CANDIDATES = 80  # of each index, or as many as are asked for
WIDENED = 30  # of each index, whose neighbours in their sessions are looked at
REFINED = 40  # of the best matches, or as many as are asked for; all of them where the question names a time
OF_PERIOD_MAX = 2_000  # memories of that time, the latest, of which the best matches become candidates as well
LINKED = 5  # of the best results, whose edges are followed where that is asked for
DENIALS_MAX = 5  # in a chain, the last of which stands for all
JUDGED = 3  # of the best results, for whether any of them answers
SURE = 0.6  # that one answers, beyond which the next are not asked

OF_PERIOD = """
SELECT m.id FROM memories AS m WHERE coalesce(m.referenced_us, m.created_us) >= ? AND coalesce(m.referenced_us, m.created_us) < ? AND {condition}
ORDER BY coalesce(m.referenced_us, m.created_us) DESC, m.id DESC LIMIT ?
"""

Mode = Literal["hybrid", "semantic", "keyword", "phrase"]


class QueryMemory(Filters, frozen=True, kw_only=True, tag="memory.query"):
    """Find memories: by meaning and words (`hybrid`), meaning, any of the words, or the words in a row (`phrase`).

    `widen` also answers with what the edges of the best lead to; it must pass the filters as everything does. `asked_in` is the session
    that asks, for receipts and what use proves; `session_id` is a filter like the others.
    """

    text: Annotated[str, Meta(min_length=1, max_length=8_192)]
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    mode: Mode = "hybrid"
    min_position: Annotated[int, Meta(ge=0)] | None = None
    asked_in: One | None = None
    explain: bool = False
    widen: bool = False


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a result has its score: what each stage contributed (the sum is the score), and what the first of them were made from."""

    stages: dict[str, float]
    cosine: float
    bm25: float


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One memory found."""

    memory_id: str
    content: str
    event_type: str
    score: float
    created_at: str
    tags: msgspec.Raw
    project: str | None
    status: str
    session_id: str | None
    referenced_date: str | None
    contradicted_by: str | None = None
    explanation: Explanation | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What was found.

    `confidence` is the probability that the first result answers, and its score; below a floor there are no results, and it says how
    likely the best one was. `position` is that of the views that answered, `stale_by` how many acknowledged events they did not show yet.
    """

    results: list[Result]
    abstained: bool
    confidence: float
    degraded: str | None
    query_id: str
    position: int
    stale_by: int
    took_ms: float


class Matches(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a search, and how likely the best of them answers."""

    results: list[Result]
    confidence: float


class Sources(msgspec.Struct, frozen=True):
    """What is searched beside the words: the vectors of the question and of the memories, None without a model; and the known types."""

    vector: bytes | None
    mirror: Mirror | None
    types: MemoryTypes


LookUp = partial[dict[int, Details]]


class _Asking(msgspec.Struct, frozen=True):
    """What full text is asked, how many memories hold each of its terms, which of them are names, in lower case; the time that is named."""

    words: Words | None
    counts: dict[str, int]
    proper: frozenset[str]
    period: Period | None


def search(connection: Connection, query: QueryMemory, sources: Sources, now_us: int) -> Matches:
    """Return the best memories for *query*; without vectors by words alone. All reads are of one moment of the views."""
    question = asked(understood(query.text, now_us), query.text)
    named = question.question.period
    wanted = _wanted(query, named, has_vector=sources.vector is not None)
    asking = _Asking(wanted, words.counts(connection, wanted) if wanted else {}, question.question.proper, named)
    found = _gathered(connection, query, asking, sources, now_us)
    count = max(REFINED, query.limit) if named is None else len(found.ids)
    best = ranking.matched(found, Weights(), count, must_match=named is None) if len(found.ids) else []
    known = details(connection, [one.id for one in best], question, sources.types, now_us)
    # The mirror may be a moment ahead of this reader.
    best = ranking.refined([one for one in best if one.id in known], known, Weights())
    if query.mode != "phrase":
        best, known = _with_successors(connection, query, best, known, partial(details, asked=question, types=sources.types, now_us=now_us))
    if question.question.tense == "now" and sources.mirror is not None and sources.vector is not None:
        first = [one.id for one in best[:COMPARED]]
        vectors = sources.mirror.vectors_of(connection, first)
        relevance = np.array([found.relevance_of(row) for row in first])
        best = ranking.renewed(best, known, relevance, vectors @ vectors.T, Weights())
    if not best:
        return Matches(results=[], confidence=0.0)
    if query.widen:
        best = ranking.widened(best, linked(connection, [one.id for one in best[:LINKED]], Filtered(*where(query, now_us))), Weights())
    lacking = [lacks_identifiers(known, one.id, question) for one in best[:JUDGED]]
    confidence = _confidence(connection, best[:JUDGED], asking, sources, found, lacking=lacking)
    results = _results(connection, best[: query.limit], confidence, found if query.explain else None)
    is_answer = confidence >= calibration.floor(len(sources.mirror) if sources.mirror else 0)
    return Matches(results=results if is_answer else [], confidence=round(confidence, 6))


def position(connection: Connection, names: tuple[str, ...] = VIEWS) -> int:
    """Return the position that the views named show at the connection's moment."""
    rows: dict[str, int] = dict(connection.execute("SELECT name, position FROM checkpoints").fetchall())
    return min(rows[name] for name in names)


def _gathered(connection: Connection, query: QueryMemory, asking: _Asking, sources: Sources, now_us: int) -> Candidates:
    """Collect what either index finds, what stands beside that in its session, and both scores of all of it."""
    filtered, wanted = Filtered(*where(query, now_us)), asking.words
    vector, mirror = sources.vector, sources.mirror
    count = max(CANDIDATES, query.limit)
    best = Best([], {})
    if wanted and (query.named() or is_any_overdue(connection, now_us)):
        best = words.best_of_filtered(connection, wanted, filtered, count)
    elif wanted:
        best = words.best_of_all(connection, wanted, asking.counts, count)
    of_period = _of_period(connection, asking.period, filtered)
    if wanted and of_period:
        best = best.joined(words.best_of_rows(connection, wanted, of_period, count))
    cosine: dict[int, float] = {}
    if vector is not None and mirror is not None:
        chosen = selection(query, now_us, _tagged(connection, query, filtered))
        cosine = dict(mirror.nearest(connection, vector, chosen, count))
        if of_period:
            then = msgspec.structs.replace(chosen, among=frozenset(of_period))
            cosine = dict(mirror.nearest(connection, vector, then, count)) | cosine
        around = surroundings(connection, [*list(cosine)[:WIDENED], *best.rows[:WIDENED]], partial(mirror.among, chosen))
    else:
        around = surroundings(connection, best.rows[:WIDENED], partial(selected, connection, filtered))
    rows = sorted(best.rows) if query.mode == "phrase" else sorted({*cosine, *best.rows, *around.rows})
    bm25 = best.scores | (words.of_rows(connection, wanted, [row for row in rows if row not in best.scores]) if wanted else {})
    if vector is not None and mirror is not None:
        cosine |= mirror.cosines_of(connection, vector, [row for row in rows if row not in cosine])
    return _candidates(rows, cosine, bm25, around)


def _candidates(rows: Sequence[int], cosine: Mapping[int, float], bm25: Mapping[int, float], around: Surroundings) -> Candidates:
    place = {row: i for i, row in enumerate(rows)}
    cosines = np.array([cosine.get(row, 0.0) for row in rows])
    scores = np.array([bm25.get(row, 0.0) for row in rows])
    near_cosine, near_bm25 = np.zeros(len(rows)), np.zeros(len(rows))
    pairs = np.array([(place[row], place[other]) for row, other in around.pairs if row in place and other in place], np.intp).reshape(-1, 2)
    np.maximum.at(near_cosine, pairs[:, 0], cosines[pairs[:, 1]])
    np.add.at(near_bm25, pairs[:, 0], scores[pairs[:, 1]])
    numbers: dict[str | int, int] = {}
    session = [numbers.setdefault(around.session.get(row, row), len(numbers)) for row in rows]
    return Candidates(
        ids=np.array(rows, np.int64),
        cosine=cosines,
        bm25=scores,
        near_cosine=near_cosine,
        near_bm25=near_bm25,
        session=np.array(session, np.intp),
    )


def _wanted(query: QueryMemory, named: Period | None, *, has_vector: bool) -> Words | None:
    """Return what full text is asked: nothing where meaning alone is wanted and can be had."""
    if query.mode == "semantic" and has_vector:
        return None
    if query.mode == "phrase":
        return words.of_phrase(query.text)
    return words.of_question(query.text, named.undated if named and has_vector else ())


def _of_period(connection: Connection, named: Period | None, filtered: Filtered) -> list[int]:
    """Return the latest of the memories of the time that is named, of those that the query is about."""
    if named is None:
        return []
    sql = OF_PERIOD.format(condition=filtered.condition)
    return [row[0] for row in connection.execute(sql, (named.start_us, named.end_us, *filtered.values, OF_PERIOD_MAX))]


def _tagged(connection: Connection, query: QueryMemory, filtered: Filtered) -> frozenset[int] | None:
    """Return the memory rows that pass the filters where these name tags, which the mirror does not hold; else None."""
    if not query.tags:
        return None
    return frozenset(row[0] for row in connection.execute(f"SELECT m.id FROM memories AS m WHERE {filtered.condition}", filtered.values))


def _confidence(
    connection: Connection, best: Sequence[Ranked], asking: _Asking, sources: Sources, found: Candidates, *, lacking: Sequence[bool]
) -> float:
    """Return how likely one of the best results answers. Without vectors, what has any of the words is taken to."""
    if sources.mirror is None or sources.vector is None:
        return 1.0
    told = {term: count for term, count in asking.counts.items() if asking.period is None or not asking.period.is_named_by(terms.text_of(term))}
    rarities = words.rarities(told, len(sources.mirror))
    store = Store(
        memories=len(sources.mirror),
        unknown_words=words.unknown(rarities, lambda text: text not in asking.proper),
        unknown_names=words.unknown(rarities, asking.proper.__contains__),
        has_words=bool(rarities),
    )
    signs: list[Signs] = []
    confidence = 0.0
    for one, lacks in zip(best, lacking, strict=True):
        coverage = words.coverage(connection, rarities, one.id)
        signs.append(Signs(cosine=found.cosine_of(one.id), coverage=coverage, lacks_identifiers=lacks))
        confidence = calibration.confidence(signs, store, Calibration())
        if confidence >= SURE:
            break
    return confidence


def _with_successors(
    connection: Connection, query: QueryMemory, best: list[Ranked], known: dict[int, Details], look_up: LookUp
) -> tuple[list[Ranked], dict[int, Details]]:
    """Let the memories that deny some of those found, and that the query asks for too, take their places."""
    filtered = Filtered(*where(query, look_up.keywords["now_us"]))
    for _ in range(DENIALS_MAX):
        denying = sorted({one.denied_by for one in known.values() if one.denied_by is not None} - set(known))
        found = selected(connection, filtered, denying) if denying else set[int]()
        if not found:
            break
        known = known | look_up(connection, sorted(found))
    return (ranking.succeeded(best, known) if any(one.denied_by for one in known.values()) else best), known


def _results(connection: Connection, best: Sequence[Ranked], confidence: float, explained: Candidates | None) -> list[Result]:
    """Read what is answered of the best; the first has the confidence for its score, the others in proportion."""
    ids = str([one.id for one in best])
    found = connection.execute(f"SELECT {COLUMNS} FROM memories AS m WHERE m.id IN (SELECT value FROM json_each(?))", (ids,))
    memories = {row[0]: fields(row) for row in found}
    scale = confidence / best[0].score if best[0].score > 0 else 0.0
    return [_result(memories[one.id], one, scale, explained) for one in best]


def _result(memory: dict[str, Any], ranked: Ranked, scale: float, explained: Candidates | None) -> Result:
    names = ("memory_id", "content", "event_type", "created_at", "tags", "project", "status", "session_id", "referenced_date", "contradicted_by")
    explanation, score = None, ranked.score * scale
    if explained is not None:
        stages = {name: value * scale for name, value in ranked.stages.items()} | ({"floor": -score} if score < 0 else {})
        explanation = Explanation(stages=stages, cosine=explained.cosine_of(ranked.id), bm25=explained.bm25_of(ranked.id))
    return Result(**{name: memory[name] for name in names}, score=max(0.0, score), explanation=explanation)
