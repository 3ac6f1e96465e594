"""What is told of a memory found: what it says, which part of it answers, how likely that is, and why."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from omegad.embedding.passages import short_passages
from omegad.memory.edges import unsettled_against
from omegad.memory.newer import newer
from omegad.memory.owner import OWNED
from omegad.memory.reading import COLUMNS, fields
from omegad.memory.strength import USES, strengths
from omegad.memory.types import MemoryTypes
from omegad.search import ranking
from omegad.search.clauses import LONG, clause
from omegad.search.features import Observed
from omegad.search.ranking import Ranked
from omegad.storage.driver import Connection
from omegad.storage.readers import check
from omegad.text.languages import language_of

PASSAGES_READ = 120  # of a long content, as many as are in what is read of it
CONFLICT_CHARACTERS = 160
"""How much is shown of a memory that another one is in conflict with."""

_CONFLICT = """
SELECT coalesce(e.metadata ->> '$.reason', 'contradicts'), substr(m.content, 1, ?1)
FROM memories AS m
LEFT JOIN edges AS e ON e.source_id = m.node_id AND e.target_id = ?3 AND e.edge_type = 'contradicts'
WHERE m.node_id = ?2 AND m.status = 'active'
"""

_LATER = """
SELECT m.said_us >= o.said_us FROM memories AS m, memories AS o WHERE m.node_id = ? AND o.node_id = ?
"""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a result has its score: what each stage contributed (the sum is the score), and what some of them
    were made from. `strength` is the one that `memory.get` shows.
    """

    stages: dict[str, float]
    cosine: float
    bm25: float
    strength: float


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
    doubted_by: str | None = None
    """A later memory that may contradict it or, of the first, take its place, until somebody settles that."""
    conflict: str | None = None
    """How `contradicted_by` begins, after the rule by which that denies it, unless that is found no more; or
    `doubted_by`, unless that is a result itself.
    """

    passage: str | None = None
    """Of a long content the part that holds most of the question's words, where any does."""

    person: str | None = None
    machine: str | None = None
    agent: str | None = None
    elsewhere: bool = False
    same: tuple[str, ...] = ()
    """The ids of other results that say the same, for which this one stands."""

    explanation: Explanation | None = None


def explanations(
    connection: Connection,
    best: Sequence[Ranked],
    scale: float,
    seen: Observed,
    *,
    types: MemoryTypes,
    now_us: int,
) -> dict[int, Explanation]:
    """Return, by row, what the stages of results come to, and what they were made from at a moment."""
    sql = f"SELECT m.id, {USES} FROM memories AS m WHERE m.id IN (SELECT value FROM json_each(?))"
    rows = connection.execute(sql, (str([one.id for one in best]),)).fetchall()
    present = strengths([row[1:] for row in rows], types, now_us).tolist()
    of_row = {row[0]: round(strength, 6) for row, strength in zip(rows, present, strict=True)}
    whole = (ranking.with_stage(one, "floor", max(0.0, -one.score)) for one in best)
    return {
        one.id: Explanation(
            stages={name: value * scale for name, value in one.stages.items() if value},
            **seen.candidates.scores(one.id),
            strength=of_row[one.id],
        )
        for one in whole
    }


def read(
    connection: Connection,
    best: Sequence[Ranked],
    scale: float,
    seen: Observed,
    *,
    explained: Mapping[int, Explanation],
    same: Mapping[int, tuple[int, ...]],
) -> list[Result]:
    """Read what is answered of the best; the first has the confidence for its score, the others in
    proportion.
    """
    sql = f"SELECT {COLUMNS} FROM {OWNED} WHERE m.id IN (SELECT value FROM json_each(?))"
    folded = [row for others in same.values() for row in others]
    rows = connection.execute(sql, (str([*(one.id for one in best), *folded]),))
    memories = {row[0]: fields(row) for row in rows}
    long = {one.id: memories[one.id]["content"] for one in best if len(memories[one.id]["content"]) > LONG}
    near = _nearest_parts(connection, long, seen)
    results = []
    for one in best:
        memory = memories[one.id]
        shown = {name: memory[name] for name in Result.__struct_fields__ if name in memory}
        same_ids = tuple(memories[row]["memory_id"] for row in same.get(one.id, ()))
        denied, by = _denied(connection, [memory, *(memories[row] for row in same.get(one.id, ()))])
        if by:
            shown["contradicted_by"] = by
            found = connection.execute(_CONFLICT, (CONFLICT_CHARACTERS, by, denied)).fetchone()
            shown["conflict"] = found and f"{found[0]}: {' '.join(found[1].split())}"
        results.append(
            Result(
                **shown,
                score=max(0.0, one.score * scale),
                passage=clause(
                    shown["content"], seen.question.stems, seen.question.language, near.get(one.id)
                ),
                same=same_ids,
                explanation=explained.get(one.id),
            )
        )
    return results


def with_doubts(connection: Connection, found: Sequence[Result], now_us: int) -> list[Result]:
    """Return results, each that a later memory may contradict, or of which it may contradict another wording,
    with that; and the first with a later one that may take its place and is no result.
    """
    ids = [one.memory_id for one in found]
    asked = [*ids, *(other for one in found for other in one.same)]
    doubts = unsettled_against(connection, asked, now_us, CONFLICT_CHARACTERS)
    for older, (by, text) in newer(connection, ids[:1], now_us).items():
        if by not in asked:
            doubts.setdefault(older, (by, text[:CONFLICT_CHARACTERS]))
    if not doubts:
        return list(found)
    results = []
    for one in found:
        of = [doubts[one.memory_id]] if one.memory_id in doubts else []
        of += [
            doubts[other]
            for other in one.same
            if other in doubts
            and doubts[other][0] not in {one.memory_id, *one.same}
            and _is_later(connection, doubts[other][0], one.memory_id)
        ]
        if of and not one.contradicted_by:
            by, text = of[0]
            conflict = None if by in ids else " ".join(text.split()) or None
            results.append(msgspec.structs.replace(one, doubted_by=by, conflict=conflict))
        else:
            results.append(one)
    return results


def _denied(connection: Connection, wordings: Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    """Return which of some wordings is denied, and by what: the first, which stands for all, or another by
    what was said later than the first.
    """
    first, *others = wordings
    ids = {one["memory_id"] for one in wordings}
    if by := first["contradicted_by"]:
        return first["memory_id"], by
    for one in others:
        by = one["contradicted_by"]
        if by and by not in ids and _is_later(connection, by, first["memory_id"]):
            return one["memory_id"], by
    return first["memory_id"], None


def _is_later(connection: Connection, memory_id: str, other_id: str) -> bool:
    """Say whether a memory was said last after another was."""
    found = connection.execute(_LATER, (memory_id, other_id)).fetchone()
    return bool(found and found[0])


def _nearest_parts(
    connection: Connection, contents: Mapping[int, str], seen: Observed
) -> dict[int, tuple[int, int]]:
    """Return, by row, where in a content the passage begins and ends that is nearest to the question, where
    meaning tells more than words do: unless both are English.
    """
    sought = seen.sought
    if sought.index is None or sought.vector is None:
        return {}
    rows = [
        row
        for row, content in contents.items()
        if sought.is_multilingual or not language_of(content).is_english
    ]
    found = dict[int, tuple[int, int]]()
    nearest = sought.index.nearest_passages(connection, sought.vector, rows, PASSAGES_READ)
    for row, number in nearest.items():
        check()
        parts = short_passages(contents[row])
        start = sum(map(len, parts[:number]))
        found[row] = (start, start + sum(map(len, parts[number : number + 1])))
    return found
