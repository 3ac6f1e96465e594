"""Theses as they stand: how strongly each is believed, what speaks for and against it, and how that came
to be.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from omegad.index.active import active
from omegad.knowledge.events import Outcome, Side
from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import One, Query, ViewAnswer
from omegad.requests.verb import AgentTool, Table, Verb
from omegad.runtime.errors import NotFound
from omegad.runtime.times import rfc3339
from omegad.storage.driver import Connection

T = TypeVar("T", bound=msgspec.Struct)
Standing = Literal["open", "supported", "disputed", "weak", "stale", "resolved"]

STALE_US = 60 * 86_400_000_000
SUPPORTED_MIN, WEAK_MAX = 0.7, 0.3
ORIGINS_MIN, DISPUTED_MIN = 3, 2
EVIDENCE_MAX, HISTORY_MAX = 200, 500
HALF, NEWS_MAX, NEWS_CHARACTERS = 0.5, 3, 160

_COLUMNS = """
t.thesis_id, t.version, t.memory_id, t.statement, t.domain, t.project, t.probability, t.due_us, t.criterion,
t.outcome, t.source, t.for_count, t.against_count, t.mention_count, t.echo_count, t.for_weight,
t.against_weight, t.for_origins, t.against_origins, t.confidence, t.stated_at, t.last_evaluated_us,
t.resolved_at
"""
_EVIDENCE = """
SELECT e.evidence_id, e.memory_id, e.side, e.is_echo, e.weight, e.origin, e.given_by, e.why, e.similarity,
  e.version, e.retracted, e.at,
       coalesce(substr(m.content, 1, 240), ''), coalesce(m.status, '')
FROM thesis_evidence AS e LEFT JOIN memories AS m ON m.node_id = e.memory_id WHERE e.thesis_id = ?
  ORDER BY e.id DESC LIMIT ?
"""
_HISTORY = """
SELECT * FROM (
    SELECT id, what, version, memory_id, side, is_echo, for_count, against_count, echo_count, before,
      confidence, probability, at
    FROM thesis_history WHERE thesis_id = ? ORDER BY id DESC LIMIT ?
) ORDER BY id
"""
_NEWS = f"""
WITH changed (thesis_id, position) AS (
    SELECT h.thesis_id, max(h.id) FROM thesis_history AS h JOIN theses AS t USING (thesis_id, version)
    WHERE (h.before >= :half) <> (h.confidence >= :half) GROUP BY 1
    UNION ALL
    SELECT h.thesis_id, min(h.id) FROM thesis_history AS h JOIN theses AS t USING (thesis_id, version)
    WHERE h.for_count >= :disputed AND h.against_count >= :disputed GROUP BY 1
)
SELECT t.thesis_id FROM theses AS t JOIN memories AS m ON m.node_id = t.memory_id
WHERE t.outcome IS NULL AND {active()} AND (
    EXISTS (SELECT 1 FROM changed AS c WHERE c.thesis_id = t.thesis_id AND NOT EXISTS (
        SELECT 1 FROM retrievals AS r WHERE r.memory_id = t.memory_id AND r.how = 'briefing'
        AND r.id > c.position * 1024
    )) OR (t.due_us <= :now_us AND NOT EXISTS (
        SELECT 1 FROM retrievals AS r WHERE r.memory_id = t.memory_id AND r.how = 'briefing'
        AND r.at >= strftime('%Y-%m-%dT%H:%M:%fZ', t.due_us / 1000000.0, 'unixepoch')
    ))
) AND (:project IS NULL OR t.project IS NULL OR t.project = :project)
  ORDER BY t.last_evaluated_us DESC, t.id DESC LIMIT :limit
"""


class ListTheses(Query, frozen=True, kw_only=True, tag="thesis.list"):
    """List theses, those that evidence touched last first."""

    project: Annotated[One | None, Meta(description="of this project, or of none")] = None
    domain: Annotated[One | None, Meta(description="of this domain")] = None
    standing: Annotated[
        Standing | None,
        Meta(description="how they stand: open, supported, disputed, weak, stale or resolved"),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many at most")] = 50


class GetThesis(Query, frozen=True, kw_only=True, tag="thesis.get"):
    """Show a thesis with its evidence, and how strongly it was believed after everything that touched it."""

    thesis_id: Annotated[str, Meta(max_length=256, description="the thesis's id")]


class Thesis(msgspec.Struct, frozen=True, kw_only=True):
    """A thesis as it stands.

    `confidence` is for / (for + against + 1), by weight; `band` the mean of Beta(1 + for, 1 + against) less
    and plus its standard deviation. The counts are of pieces of evidence, `counts` says them in words for
    where a confidence is shown; `for_origins` and `against_origins` of the sessions, or memories without one,
    that these come from.
    """

    thesis_id: str
    version: int
    memory_id: str
    statement: str
    domain: str | None
    project: str | None
    standing: Standing
    confidence: float
    band: tuple[float, float]
    counts: str
    for_count: int
    against_count: int
    mentions: int
    echoes: int
    for_origins: int
    against_origins: int
    probability: float | None
    due: str | None
    is_due: bool
    criterion: str | None
    outcome: Outcome | None
    source: str | None
    stated_at: str
    last_evaluated: str
    resolved_at: str | None


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of evidence, and the beginning of the memory that it is; `retracted` is why it counts no
    longer, "" without a reason.
    """

    evidence_id: str
    memory_id: str
    side: Side
    is_echo: bool
    weight: float
    origin: str
    given_by: str
    why: str | None
    similarity: float | None
    version: int
    retracted: str | None
    at: str
    content: str
    memory_status: str


class Belief(msgspec.Struct, frozen=True, kw_only=True):
    """How strongly a thesis was believed after an event, and before it."""

    position: int
    what: str
    version: int
    memory_id: str | None
    side: Side | None
    is_echo: bool | None
    for_count: int
    against_count: int
    echoes: int
    before: float
    confidence: float
    probability: float | None
    at: str


class ThesisList(ViewAnswer, frozen=True):
    """Theses, and how many there are in all that were asked for."""

    theses: list[Thesis]
    total: int


class ThesisFound(Thesis, frozen=True, kw_only=True):
    """A thesis with its latest evidence, newest first, and its latest history, oldest first."""

    evidence: list[Evidence]
    history: list[Belief]
    position: int
    stale_by: int


def band(weight_for: float, weight_against: float) -> tuple[float, float]:
    """Return the mean of Beta(1 + for, 1 + against) less and plus its standard deviation, within 0 and 1."""
    a, b = weight_for + 1, weight_against + 1
    mean, deviation = a / (a + b), math.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
    return round(max(mean - deviation, 0.0), 4), round(min(mean + deviation, 1.0), 4)


def standing(row: dict[str, Any], now_us: int) -> Standing:
    """Say in a word how a thesis stands."""
    if row["outcome"] is not None:
        return "resolved"
    if now_us - row["last_evaluated_us"] > STALE_US:
        return "stale"
    if row["for_origins"] >= DISPUTED_MIN and row["against_origins"] >= DISPUTED_MIN:
        return "disputed"
    if row["confidence"] >= SUPPORTED_MIN and row["for_origins"] >= ORIGINS_MIN:
        return "supported"
    return (
        "weak"
        if row["confidence"] <= WEAK_MAX and row["for_origins"] + row["against_origins"] >= ORIGINS_MIN
        else "open"
    )


def theses(connection: Connection, condition: str, values: tuple[object, ...], now_us: int) -> list[Thesis]:
    """Return the theses for which a condition on `theses AS t` holds, those that evidence touched last
    first.
    """
    cursor = connection.execute(
        f"SELECT {_COLUMNS} FROM theses AS t WHERE {condition} ORDER BY t.last_evaluated_us DESC, t.id DESC",
        values,
    )
    names = [column[0] for column in cursor.description]
    return [Thesis(**_fields(dict(zip(names, row, strict=True)), now_us)) for row in cursor]


def _fields(row: dict[str, Any], now_us: int) -> dict[str, Any]:
    how, due_us = standing(row, now_us), row.pop("due_us")
    told = {
        name: row.pop(name)
        for name in ("mention_count", "echo_count", "for_weight", "against_weight", "last_evaluated_us")
    }
    return row | {
        "standing": how,
        "confidence": round(row["confidence"], 4),
        "band": band(told["for_weight"], told["against_weight"]),
        "counts": f"{row['for_count']} for, {row['against_count']} against, {told['echo_count']} echoes",
        "mentions": told["mention_count"],
        "echoes": told["echo_count"],
        "due": None if due_us is None else rfc3339(due_us),
        "is_due": due_us is not None and due_us <= now_us and row["outcome"] is None,
        "last_evaluated": rfc3339(told["last_evaluated_us"]),
    }


def list_theses(connection: Connection, query: ListTheses, moment: Moment) -> ThesisList:
    """Read the theses that pass the filters."""
    parts, values = ["1"], list[object]()
    if query.project is not None:
        parts.append("(t.project = ? OR t.project IS NULL)")
        values.append(query.project)
    if query.domain is not None:
        parts.append("t.domain = ?")
        values.append(query.domain)
    found = theses(connection, " AND ".join(parts), tuple(values), moment.now_us)
    if query.standing is not None:
        found = [one for one in found if one.standing == query.standing]
    return ThesisList(theses=found[: query.limit], total=len(found), **moment.shown)


def get_thesis(connection: Connection, query: GetThesis, moment: Moment) -> ThesisFound:
    """Read one thesis; raises `NotFound`."""
    found = theses(connection, "t.thesis_id = ?", (query.thesis_id,), moment.now_us)
    if not found:
        moment.require_current("there is no such thesis")
        raise NotFound(f"there is no thesis {query.thesis_id[:80]}", hint="thesis.list names them")
    evidence = connection.execute(_EVIDENCE, (query.thesis_id, EVIDENCE_MAX)).fetchall()
    history = connection.execute(_HISTORY, (query.thesis_id, HISTORY_MAX)).fetchall()
    return ThesisFound(
        **msgspec.structs.asdict(found[0]),
        evidence=[_read(Evidence, row) for row in evidence],
        history=[_read(Belief, row) for row in history],
        **moment.shown,
    )


def _read(kind: type[T], row: Sequence[object]) -> T:
    """Return a row, whose columns are the fields in their order."""
    return msgspec.convert(dict(zip(kind.__struct_fields__, row, strict=True)), kind, strict=False)


class News(NamedTuple):
    """A thesis that an agent has not been told of since it changed: its memory, and a line with its
    counts.
    """

    memory_id: str
    line: str


def news(connection: Connection, project: str | None, now_us: int) -> list[News]:
    """Return the theses of a project that crossed one half, came to be disputed or due, and were told to
    nobody since; three at most.
    """
    values = {"now_us": now_us, "disputed": DISPUTED_MIN, "half": HALF, "project": project, "limit": NEWS_MAX}
    found = [thesis_id for (thesis_id,) in connection.execute(_NEWS, values)]
    return [
        _news(one)
        for thesis_id in found
        for one in theses(connection, "t.thesis_id = ?", (thesis_id,), now_us)
    ]


def _news(one: Thesis) -> News:
    due = f", due since {one.due[:10]}" if one.is_due and one.due else ""
    statement = (
        one.statement
        if len(one.statement) <= NEWS_CHARACTERS
        else f"{one.statement[: NEWS_CHARACTERS - 1].rstrip()}…"
    )
    return News(
        one.memory_id,
        f"{one.standing} {one.confidence:.2f} ({one.counts}{due}) {statement} [{one.thesis_id}]",
    )


METHODS = (
    QueryMethod(
        params=ListTheses,
        answer=ThesisList,
        views=("theses",),
        read=list_theses,
        verb=Verb(
            table=Table(
                "theses",
                (
                    ("ID", "{thesis_id}"),
                    ("STANDING", "{standing}"),
                    ("CONFIDENCE", "{confidence:.2f}"),
                    ("EVIDENCE", "{counts}"),
                    ("DOMAIN", "{domain}"),
                    ("STATEMENT", "{statement}"),
                ),
                none="no theses",
            ),
            examples=("omegad thesis list --project shop --standing disputed",),
        ),
        tool=AgentTool("omega_thesis list", by="thesis.listed"),
    ),
    QueryMethod(
        params=GetThesis,
        answer=ThesisFound,
        views=("theses", "memories"),
        read=get_thesis,
        verb=Verb(examples=("omegad thesis get th-0123456789abcdef",), by="theses.get"),
        tool=AgentTool("omega_thesis get", by="thesis.shown"),
    ),
)
