"""Find memories by meaning and by words: candidates from both indexes, both scores for each of them, one order.

This file is the recipe; the formula is in `ranking`, full text in `words` and its language in `terms`, nearest neighbours in `mirror`.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from omegad.queries import ranking, words
from omegad.queries.columns import selection
from omegad.queries.filters import Filters, where
from omegad.queries.memory import COLUMNS, fields
from omegad.queries.mirror import Mirror
from omegad.queries.ranking import Candidate, Ranked, Weights
from omegad.queries.words import Words
from omegad.storage.driver import Connection

VIEWS = ("memories", "vectors", "fulltext")
CANDIDATES = 100  # of each index

Mode = Literal["hybrid", "semantic", "keyword", "phrase"]


class QueryMemory(Filters, frozen=True, kw_only=True, tag="memory.query"):
    """Find memories: by meaning and words (`hybrid`), meaning, any of the words, or the words in a row (`phrase`)."""

    text: Annotated[str, Meta(min_length=1, max_length=8_192)]
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    mode: Mode = "hybrid"
    min_position: Annotated[int, Meta(ge=0)] | None = None
    explain: bool = False


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a result has its score: what each stage contributed (the sum is the score), and what it was made from."""

    vector: float
    text: float
    cosine: float | None
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
    explanation: Explanation | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `position` is that of the views that answered, `stale_by` how many acknowledged events they did not show yet."""

    results: list[Result]
    abstained: bool
    degraded: str | None
    query_id: str
    position: int
    stale_by: int
    took_ms: float


def search(connection: Connection, query: QueryMemory, vector: bytes | None, mirror: Mirror | None, now_us: int) -> list[Result]:
    """Return the best memories for *query*; without *vector* by words alone. All reads are of one moment of the views."""
    condition, values = where(query, now_us)
    asked = _asked(query, has_vector=vector is not None)
    by_words = words.best_of_filtered if query.named() else words.best_of_all
    bm25 = by_words(connection, asked, condition, values, CANDIDATES) if asked else {}
    cosine: dict[int, float] = {}
    if vector is not None and mirror is not None:
        wanted = selection(query, now_us, _tagged(connection, query, condition, values))
        cosine = dict(mirror.nearest(connection, vector, wanted, CANDIDATES))
        bm25 |= words.of_rows(connection, asked, [row for row in cosine if row not in bm25]) if asked else {}
        cosine |= mirror.cosines_of(connection, vector, [row for row in bm25 if row not in cosine])
    rows = sorted({*cosine, *bm25})
    candidates = {row: Candidate(id=row, cosine=cosine.get(row), bm25=bm25.get(row, 0.0)) for row in rows}
    best = ranking.rank(candidates.values(), Weights())[: query.limit]
    return _results(connection, best, candidates, is_explained=query.explain)


def position(connection: Connection, names: tuple[str, ...] = VIEWS) -> int:
    """Return the position that the views named show at the connection's moment."""
    rows: dict[str, int] = dict(connection.execute("SELECT name, position FROM checkpoints").fetchall())
    return min(rows[name] for name in names)


def _asked(query: QueryMemory, *, has_vector: bool) -> Words | None:
    """Return what full text is asked: nothing where meaning alone is wanted and can be had."""
    if query.mode == "semantic" and has_vector:
        return None
    return words.of_phrase(query.text) if query.mode == "phrase" else words.of_question(query.text)


def _tagged(connection: Connection, query: QueryMemory, condition: str, values: tuple[object, ...]) -> frozenset[int] | None:
    """Return the memory rows that pass the filters where these name tags, which the mirror does not hold; else None."""
    if not query.tags:
        return None
    return frozenset(row[0] for row in connection.execute(f"SELECT m.id FROM memories AS m WHERE {condition}", values))


def _results(connection: Connection, best: list[Ranked], candidates: dict[int, Candidate], *, is_explained: bool) -> list[Result]:
    ids = str([one.id for one in best])
    found = connection.execute(f"SELECT {COLUMNS} FROM memories AS m WHERE m.id IN (SELECT value FROM json_each(?))", (ids,))
    by_id = {row[0]: fields(row) for row in found}
    # The mirror may be a moment ahead of this reader.
    return [_result(by_id[one.id], one, candidates[one.id] if is_explained else None) for one in best if one.id in by_id]


def _result(memory: dict[str, Any], ranked: Ranked, explained: Candidate | None) -> Result:
    names = ("memory_id", "content", "event_type", "created_at", "tags", "project", "status", "session_id", "referenced_date")
    explanation = None
    if explained is not None:
        explanation = Explanation(vector=ranked.vector, text=ranked.text, cosine=explained.cosine, bm25=explained.bm25)
    return Result(**{name: memory[name] for name in names}, score=ranked.score, explanation=explanation)
