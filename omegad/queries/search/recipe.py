"""The recipe of a search: what is asked, step by step what is done about it, and what is answered."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from omegad.queries.filters import Filters, One
from omegad.queries.memory import COLUMNS, fields
from omegad.queries.search import calibration, judging, ranking, words
from omegad.queries.search.details import Asked, asked, details, statements
from omegad.queries.search.gathering import Asking, Sources, gathered
from omegad.queries.search.judging import Judged
from omegad.queries.search.question import understood
from omegad.queries.search.ranking import Candidates, Details, Ranked, Weights
from omegad.queries.search.renewal import COMPARED, Compared, renewed, sameness
from omegad.queries.search.surroundings import linked, selected
from omegad.storage.driver import Connection

VIEWS = ("memories", "vectors", "fulltext", "sessions")
REFINED = 30  # of the best matches, or as many as are asked for; all of them where the question names a time
LINKED = 5  # of the best results, whose edges are followed where that is asked for
COUNTED_MAX = 1_000  # memories that are counted where there are fewer vectors; of more it says much the same that a word is rare
DENIALS_MAX = 5  # in a chain, the last of which stands for all

_COUNT = "SELECT count(*) FROM (SELECT 1 FROM memories WHERE id > 0 LIMIT ?)"

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
    likely the best one was. `unembedded` counts the candidates that had no vector yet, and were compared by their words alone. `position` is
    that of the views that answered, `stale_by` how many acknowledged events they did not show yet.
    """

    results: list[Result]
    abstained: bool
    confidence: float
    degraded: str | None
    unembedded: int
    query_id: str
    position: int
    stale_by: int
    took_ms: float


class Matches(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a search, how likely the best of them answers, and how many candidates had no vector to be compared by."""

    results: list[Result]
    confidence: float
    unembedded: int = 0


class _Search(msgspec.Struct, frozen=True, kw_only=True):
    """One search: where it reads, what it looks for, and what of that was found."""

    connection: Connection
    sources: Sources
    asking: Asking
    asked: Asked
    found: Candidates

    def details(self, rows: Sequence[int]) -> dict[int, Details]:
        """Read what is known of some memory rows."""
        return details(self.connection, rows, self.asked, self.sources.types, self.asking.now_us)


def search(connection: Connection, query: QueryMemory, sources: Sources, now_us: int) -> Matches:
    """Return the best memories for *query*; without vectors by words alone. All reads are of one moment of the views."""
    question = asked(understood(query.text, now_us), query.text)
    asking = _asking(connection, query, question, sources, now_us)
    found = gathered(connection, asking, sources)
    this = _Search(connection=connection, sources=sources, asking=asking, asked=question, found=found)
    unembedded = 0 if sources.vector is None else int(np.count_nonzero(~found.is_embedded))
    count = max(REFINED, query.limit) if asking.period is None else len(found.ids)
    best = ranking.matched(found, Weights(), count, must_match=asking.period is None) if len(found.ids) else []
    known = this.details([one.id for one in best])
    # The mirror may be a moment ahead of this reader.
    best = ranking.refined([one for one in best if one.id in known], known, Weights())
    if query.mode != "phrase":
        best, known = _with_successors(this, best, known)
    if question.question.tense == "now":
        best = _renewed(this, best, known)
    if not best:
        return Matches(results=[], confidence=0.0, unembedded=unembedded)
    if query.widen:
        best = ranking.widened(best, linked(connection, [one.id for one in best[:LINKED]], asking.filtered), Weights())
    confidence = judging.confidence(connection, best, Judged(asking=asking, asked=question, found=found, known=known), sources)
    # Who asks for words alone is told of whatever has one of them.
    is_answer = query.mode in {"keyword", "phrase"} or confidence >= calibration.floor(len(sources.mirror) if sources.mirror else 0)
    results = _results(connection, best[: query.limit], confidence, found if query.explain else None) if is_answer else []
    return Matches(results=results, confidence=round(confidence, 6), unembedded=unembedded)


def position(connection: Connection, names: tuple[str, ...] = VIEWS) -> int:
    """Return the position that the views named show at the connection's moment."""
    rows: dict[str, int] = dict(connection.execute("SELECT name, position FROM checkpoints").fetchall())
    return min(rows[name] for name in names)


def _asking(connection: Connection, query: QueryMemory, question: Asked, sources: Sources, now_us: int) -> Asking:
    """Return what is looked for; in full text nothing where meaning alone is wanted and can be had."""
    named, wanted, counts = question.question.period, None, dict[str, int]()
    if query.mode == "phrase":
        wanted = words.of_phrase(query.text)
    elif query.mode != "semantic" or sources.vector is None:
        wanted = words.of_question(query.text, named.undated if named and sources.vector is not None else ())
    if wanted:
        wanted, counts = words.completed(connection, wanted, words.counts(connection, wanted), question.question.exact)
    return Asking(
        filters=query,
        now_us=now_us,
        words=wanted,
        counts=counts,
        holders=words.holders(connection, counts),
        memories=_memories(connection, sources),
        period=named,
        wanted=query.limit,
        is_phrase=query.mode == "phrase",
    )


def _memories(connection: Connection, sources: Sources) -> int:
    """Return how many memories there are: as many as vectors, or, where these are few, as are counted up to a bound."""
    vectors = 0 if sources.mirror is None else len(sources.mirror)
    return vectors if vectors >= COUNTED_MAX else max(vectors, connection.execute(_COUNT, (COUNTED_MAX,)).fetchone()[0])


def _with_successors(this: _Search, best: list[Ranked], known: dict[int, Details]) -> tuple[list[Ranked], dict[int, Details]]:
    """Let the memories that deny some of those found, and that the query asks for too, take their places."""
    for _ in range(DENIALS_MAX):
        denying = sorted({one.denied_by for one in known.values() if one.denied_by is not None} - set(known))
        found = selected(this.connection, this.asking.filtered, denying) if denying else set[int]()
        if not found:
            break
        known = known | this.details(sorted(found))
    if not any(one.denied_by for one in known.values()):
        return best, known
    return ranking.succeeded(best, known, _relevance(this, list(known))), known


def _relevance(this: _Search, rows: Sequence[int]) -> dict[int, float]:
    """Return how well each of some rows matches by itself, candidate or not."""
    unknown = [row for row in rows if row not in this.found]
    scores = words.of_rows(this.connection, this.asking.words, unknown) if this.asking.words else {}
    cosines: dict[int, float] = {}
    if this.sources.vector is not None and this.sources.mirror is not None:
        cosines = this.sources.mirror.cosines_of(this.connection, this.sources.vector, unknown)
    outside = {row: this.found.relevance(cosines.get(row, 0.0), scores.get(row, 0.0)) for row in unknown}
    return outside | {row: this.found.relevance_of(row) for row in rows if row not in outside}


def _renewed(this: _Search, best: list[Ranked], known: dict[int, Details]) -> list[Ranked]:
    """Let the newest of those that speak of the same matter stand first, where vectors tell which do."""
    if this.sources.vector is None or this.sources.mirror is None:
        return best
    first = [one.id for one in best[:COMPARED]]
    vectors = this.sources.mirror.vectors_of(this.connection, first)
    compared = Compared(
        relevance=np.array([this.found.relevance_of(row) for row in first]),
        likeness=vectors @ vectors.T,
        sameness=sameness(statements(this.connection, first, known)),
    )
    return renewed(best, known, compared, Weights())


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
        explanation = Explanation(stages=stages, cosine=explained.cosine_of(ranked.id) or 0.0, bm25=explained.bm25_of(ranked.id))
    return Result(**{name: memory[name] for name in names}, score=max(0.0, score), explanation=explanation)
