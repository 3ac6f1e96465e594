"""Questions about how memories relate: along the edges that were drawn, and by what they mean."""

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.index import VIEWS, terms
from omegad.index.columns import selection
from omegad.index.filters import Filters, where
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.log.projection import to_json
from omegad.memory import owner
from omegad.memory.events import EdgeType
from omegad.memory.reading import COLUMNS, fields, require, status_at
from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import Query, ViewAnswer
from omegad.requests.verb import SAID_BY, AgentTool, Table, Verb
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

NODES_MAX = 500
STEP_EDGES_MAX = 2_000  # of one hop, the heaviest
PREVIEW_CHARACTERS = 200
WORD_CANDIDATES = 100
WORDS_CHARACTERS_MAX = 2_000  # of a content whose words are looked for

_STEP = """
SELECT e.id, e.source_id, e.target_id, e.edge_type, e.weight, m.node_id
FROM json_each(:frontier) AS f CROSS JOIN edges AS e ON e.{near} = f.value CROSS
  JOIN memories AS m ON m.node_id = e.{far}
WHERE e.weight >= :min_weight AND m.status != 'deleted'
  AND (:types = '[]' OR e.edge_type IN (SELECT value FROM json_each(:types)))
"""
_OUT = _STEP.format(near="source_id", far="target_id")
_IN = _STEP.format(near="target_id", far="source_id")
_ORDERED = "{step} ORDER BY 5 DESC, 2, 3, 4, 6 LIMIT :limit"
STEPS = {
    name: _ORDERED.format(step=step)
    for name, step in {"out": _OUT, "in": _IN, "both": f"{_OUT} UNION ALL {_IN}"}.items()
}
"""From the memories of a hop to those of the next, by the direction that edges are followed in; the
heaviest edges first.
"""

_NODES = f"""
SELECT m.node_id, substr(m.content, 1, {PREVIEW_CHARACTERS}), m.event_type, m.project, m.created_at, m.status,
  m.on_probation, m.expires_us, {owner.OWNER}
FROM {owner.OWNED} WHERE m.node_id IN (SELECT value FROM json_each(?))
"""
_VECTORS = (
    "SELECT embedder_id, vector FROM memory_vectors WHERE memory_id = ? AND vector IS NOT NULL ORDER BY id"
    " DESC"
)
_WORDS = """
SELECT m.id, m.content FROM (SELECT rowid, rank AS score FROM memories_fts WHERE memories_fts MATCH ?) AS f
CROSS JOIN memories AS m ON m.id = f.rowid WHERE m.id != ? AND {condition} ORDER BY f.score, m.id LIMIT ?
"""
_WORD = re.compile(r"\w+")


class TraverseMemories(Query, frozen=True, kw_only=True, tag="memory.traverse"):
    """Follow the edges of a memory, hop by hop. An edge is followed from its source, from its target, or
    from both ends.
    """

    memory_id: Annotated[str, Meta(description="the memory's id")]
    max_hops: Annotated[int, Meta(ge=1, le=5, description="how far")] = 2
    min_weight: Annotated[float, Meta(ge=0, le=1, description="along edges of at least this weight")] = 0.0
    edge_types: Annotated[
        tuple[EdgeType, ...],
        Meta(max_length=32, description="along edges of this type; of these when repeated"),
    ] = ()
    direction: Annotated[Literal["both", "out", "in"], Meta(description="which way edges are followed")] = (
        "both"
    )
    limit: Annotated[int, Meta(ge=1, le=NODES_MAX, description="how many memories at most")] = NODES_MAX


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory that was reached, with the least number of edges that lead to it and the beginning of its
    content.
    """

    memory_id: str
    hop: int
    content: str
    event_type: str
    project: str | None
    created_at: str
    status: str
    person: str | None = None
    machine: str | None = None
    agent: str | None = None
    elsewhere: bool = False


class WalkedEdge(msgspec.Struct, frozen=True, kw_only=True):
    """An edge between two of the nodes, and the hop that it was first followed at."""

    source_id: str
    target_id: str
    edge_type: str
    weight: float
    hop: int


class Graph(ViewAnswer, frozen=True):
    """What was reached, the memory asked about first; `truncated` says that there is more than the limits
    let through.
    """

    nodes: list[Node]
    edges: list[WalkedEdge]
    truncated: bool


class SimilarMemories(Filters, frozen=True, kw_only=True, tag="memory.similar"):
    """Find the memories that are most like one, of every project unless one is named."""

    memory_id: Annotated[str, Meta(description="the memory's id")]
    limit: Annotated[int, Meta(ge=1, le=100, description="how many at most")] = 10


class SimilarMemory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory, and how near it is: the cosine of the two nearest passages or, by words, the share of
    words in common.
    """

    memory_id: str
    content: str
    event_type: str
    similarity: float
    created_at: str
    tags: msgspec.Raw
    project: str | None
    session_id: str | None
    status: str
    person: str | None = None
    machine: str | None = None
    agent: str | None = None
    elsewhere: bool = False


class SimilarAnswer(ViewAnswer, frozen=True):
    """The nearest memories, nearest first; `degraded` is "keyword" where the memory asked about has no
    vectors.
    """

    results: list[SimilarMemory]
    degraded: str | None


def edge_types_between(
    connection: Connection, *, ends: tuple[str, str], edge_type: EdgeType | None
) -> tuple[EdgeType, ...]:
    """Return the types of the edges from one memory to another; where a type is asked for, at most that
    one.
    """
    found: list[tuple[EdgeType]] = connection.execute(
        "SELECT edge_type FROM edges WHERE source_id = ?1 AND target_id = ?2 AND coalesce(edge_type = ?3, 1)"
        " ORDER BY edge_type",
        (*ends, edge_type),
    ).fetchall()
    return tuple(row[0] for row in found)


def traverse(connection: Connection, query: TraverseMemories, moment: Moment) -> Graph:
    """Follow edges hop by hop, one statement each; raises `NotFound`.

    Nodes come hop by hop, those that a heavier edge leads to first. Deleted memories are neither told nor
    passed through, unless one is the memory asked about.
    """
    require(connection, query.memory_id)
    hops, edges, is_truncated = {query.memory_id: 0}, dict[int, WalkedEdge](), False
    frontier = [query.memory_id]
    values = {
        "min_weight": query.min_weight,
        "types": to_json(query.edge_types),
        "limit": STEP_EDGES_MAX + 1,
    }
    for hop in range(1, query.max_hops + 1):
        values["frontier"] = to_json(frontier)
        steps = connection.execute(STEPS[query.direction], values).fetchall() if frontier else []
        is_truncated |= len(steps) > STEP_EDGES_MAX
        frontier = []
        for edge_id, source_id, target_id, edge_type, weight, reached in steps[:STEP_EDGES_MAX]:
            if reached not in hops:
                if len(hops) == query.limit:
                    is_truncated = True
                    continue
                hops[reached] = hop
                frontier.append(reached)
            walked = WalkedEdge(
                source_id=source_id, target_id=target_id, edge_type=edge_type, weight=weight, hop=hop
            )
            edges.setdefault(edge_id, walked)
    told = {
        memory_id: Node(
            memory_id=memory_id,
            hop=hops[memory_id],
            content=content,
            event_type=event_type,
            project=project,
            created_at=created_at,
            status=status_at(status, on_probation, expires_us, moment.now_us),
            person=person,
            machine=machine,
            agent=agent,
            elsewhere=bool(elsewhere),
        )
        for memory_id, content, event_type, project, created_at, status, on_probation, expires_us, *who in (
            connection.execute(_NODES, (to_json(list(hops)),))
        )
        for person, machine, agent, elsewhere in [who]
    }
    return Graph(
        nodes=[told[memory_id] for memory_id in hops],
        edges=list(edges.values()),
        truncated=is_truncated,
        **moment.shown,
    )


def similar(connection: Connection, query: SimilarMemories, moment: Moment) -> SimilarAnswer:
    """Find the nearest active memories by the vectors stored for one, those of the model in use if there are
    any, else the latest ones.

    Without vectors they are found by words. Raises `NotFound`.
    """
    index = moment.index_as(VectorIndexes)
    row, content = require(connection, query.memory_id)
    stored: list[tuple[str, bytes]] = connection.execute(_VECTORS, (query.memory_id,)).fetchall()
    if stored:
        used = () if index is None else index.embedder_ids
        whose = next((one for one in used if one in dict(stored)), stored[0][0])
        vectors = [vector for one, vector in stored if one == whose]
        # Where the vectors are another embedder's, or there is no model, they are searched for this question
        # alone.
        searched = (index.of(whose) if index is not None else None) or VectorIndex(whose)
        near = _by_meaning(connection, query, moment.now_us, vectors, searched)
    else:
        near = _by_words(connection, query, moment.now_us, row, content)
    near.pop(row, None)
    best = sorted(near, key=lambda one: (-near[one], one))[: query.limit]
    found = connection.execute(
        f"SELECT {COLUMNS} FROM {owner.OWNED} WHERE m.id IN (SELECT value FROM json_each(?))", (str(best),)
    )
    by_row = {row[0]: fields(row) for row in found}
    names = [name for name in SimilarMemory.__struct_fields__ if name != "similarity"]
    return SimilarAnswer(
        # The index may be a moment ahead of this reader.
        results=[
            SimilarMemory(**{name: by_row[one][name] for name in names}, similarity=round(near[one], 6))
            for one in best
            if one in by_row
        ],
        degraded=None if stored else "keyword",
        **moment.shown,
    )


def _by_meaning(
    connection: Connection, query: SimilarMemories, now_us: int, vectors: list[bytes], index: VectorIndex
) -> dict[int, float]:
    """Return cosines by memory row; each passage of the memory is a question of its own, and the best
    answer counts.
    """
    among = None
    if query.are_of_rows:
        condition, values = where(query, now_us)
        among = frozenset(
            row[0] for row in connection.execute(f"SELECT m.id FROM memories AS m WHERE {condition}", values)
        )
    wanted, best = selection(query, now_us, among), dict[int, float]()
    index.sync(connection)
    for vector in vectors:
        for row, cosine in index.nearest(connection, vector, wanted, query.limit + 1):
            best[row] = max(cosine, best.get(row, -1.0))
    return best


def _by_words(
    connection: Connection, query: SimilarMemories, now_us: int, row: int, content: str
) -> dict[int, float]:
    """Return, by memory row, the share of distinct words in common (Jaccard) of those that full text finds
    the likest.
    """
    expression = terms.any_term(content[:WORDS_CHARACTERS_MAX])
    if expression is None:
        return {}
    condition, values = where(query, now_us)
    rows = connection.execute(_WORDS.format(condition=condition), (expression, row, *values, WORD_CANDIDATES))
    ours = _words(content)
    return {
        other: len(ours & theirs) / len(ours | theirs)
        for other, text in rows.fetchall()
        if (theirs := _words(text))
    }


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


METHODS = (
    QueryMethod(
        params=TraverseMemories,
        answer=Graph,
        views=("memories", "edges", owner.VIEW),
        read=traverse,
        turn=Turn.LONG,
        verb=Verb(
            by="memories.traverse",
            examples=(
                "omegad memory traverse mem-0123456789abcdef --max-hops 3 --min-weight 0.6",
                "omegad memory traverse mem-0123456789abcdef --edge-type evolves",
            ),
        ),
    ),
    QueryMethod(
        params=SimilarMemories,
        answer=SimilarAnswer,
        views=VIEWS,
        read=similar,
        verb=Verb(
            examples=("omegad memory similar mem-0123456789abcdef --limit 5",),
            table=Table(
                "results",
                (
                    ("SIMILARITY", "{similarity:.3f}"),
                    ("ID", "{memory_id}"),
                    ("TYPE", "{event_type}"),
                    ("STORED", "{created_at:moment}"),
                    ("PROJECT", "{project}"),
                    SAID_BY,
                    ("CONTENT", "{content}"),
                ),
                none="nothing similar",
                seldom=SAID_BY[:1],
                warns={
                    "degraded": "DEGRADED: compared by {degraded} alone, because the memory has no vectors"
                },
            ),
        ),
        tool=AgentTool("omega_memory similar", by="memory.alike"),
    ),
)
