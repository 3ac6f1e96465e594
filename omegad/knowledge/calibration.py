"""Whether what was said with confidence came out so: of theses, of what memories were stored with, and of the
answers of searches.

Every probability is the one that was held before the outcome, as the log has it.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.requests import details
from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import One, Query, ViewAnswer
from omegad.requests.verb import Verb
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

ENOUGH = 30
"""Of fewer outcomes nothing can be told."""

BINS = 10

Of = Literal["theses", "memories", "answers"]

_SCORED: dict[Of, str] = {
    "theses": (
        """
        SELECT coalesce(domain, ''), probability, outcome = 'yes' FROM theses
        WHERE outcome IN ('yes', 'no') AND probability IS NOT NULL AND (?1 IS NULL OR project = ?1)
        ORDER BY 1, id
    """
    ),
    "memories": (
        """
        SELECT coalesce(source, ''), confidence, rating > 0 AND status <> 'superseded' FROM memories
        WHERE confidence IS NOT NULL AND (rating <> 0 OR status = 'superseded' OR contradicted_by IS NOT NULL)
        AND (?1 IS NULL OR project = ?1) ORDER BY 1, id
    """
    ),
    "answers": (
        """
        SELECT coalesce(q.project, ''), min(max(r.score, 0.0), 1.0), f.points > 0
        FROM retrievals AS r JOIN retrieval_queries AS q ON q.query_id = r.query_id
        JOIN memory_feedback AS f ON f.id = (SELECT min(g.id) FROM memory_feedback AS g
        WHERE g.memory_id = r.memory_id AND g.id > q.id)
        WHERE r.rank = 1 AND r.how = 'query' AND (?1 IS NULL OR q.project = ?1) ORDER BY 1, r.id
    """
    ),
}
_VIEWS = ("theses", "memories", "retrievals", "feedback", details.VIEW)


class Calibration(Query, frozen=True, kw_only=True, tag="thesis.calibration"):
    """Show whether what was held probable came true: the Brier score, beside that of always saying the
    base rate, and the curve.
    """

    of: Annotated[
        Of,
        Meta(
            description=(
                "predictions of theses; the confidence that memories were stored with; or the score of"
                " answers"
            )
        ),
    ] = "theses"
    domain: Annotated[
        One | None, Meta(description="of this domain of theses, source of memories, or project of answers")
    ] = None
    project: Annotated[One | None, Meta(description="of this project alone")] = None


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """What was said with a probability within a tenth, from `low` on: how many, the mean of what was said,
    and the share that came true.
    """

    low: float
    n: int
    said: float
    came_true: float


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """How well one domain was judged. `brier` is the mean of (p - outcome)²: 0 is best, 0.25 what always
    saying one half gets.

    `base_rate` is the share that came true, `brier_of_base_rate` what always saying that would have got.
    `is_enough` says whether there are `ENOUGH` outcomes to tell anything.
    """

    domain: str
    n: int
    brier: float
    base_rate: float
    brier_of_base_rate: float
    is_enough: bool
    curve: list[Bin]


class CalibrationAnswer(ViewAnswer, frozen=True):
    """The score of everything, None where nothing has come out yet, and of each domain. Answers from before
    `details_gone_until` are not scored, since their details went; None where all are kept.
    """

    overall: Score | None
    domains: list[Score]
    details_gone_until: str | None


Pair = tuple[float, int]
Row = tuple[str, float, int]


def score(domain: str, pairs: Sequence[Pair]) -> Score:
    """Score pairs of a probability, 0 to 1, and an outcome, 0 or 1 (Brier 1950). There is at least one."""
    n = len(pairs)
    base_rate = sum(outcome for _, outcome in pairs) / n
    return Score(
        domain=domain,
        n=n,
        brier=round(sum((p - outcome) ** 2 for p, outcome in pairs) / n, 6),
        base_rate=round(base_rate, 6),
        brier_of_base_rate=round(base_rate * (1 - base_rate), 6),
        is_enough=n >= ENOUGH,
        curve=list(_curve(pairs)),
    )


def _curve(pairs: Sequence[Pair]) -> Iterable[Bin]:
    def tenth(pair: Pair) -> int:
        return min(int(pair[0] * BINS), BINS - 1)

    for place, group in groupby(sorted(pairs, key=tenth), key=tenth):
        said = list(group)
        mean, came_true = (sum(values) / len(said) for values in zip(*said, strict=True))
        yield Bin(low=place / BINS, n=len(said), said=round(mean, 4), came_true=round(came_true, 4))


def scored(connection: Connection, of: Of, project: str | None) -> list[Row]:
    """Return what was said and how it came out, of a project or of all: domain, probability and outcome,
    domain by domain.
    """
    return connection.execute(_SCORED[of], (project,)).fetchall()


def by_domain(rows: Iterable[Row]) -> list[Score]:
    """Score each domain."""
    return [
        score(domain, [(p, outcome) for _, p, outcome in group])
        for domain, group in groupby(rows, key=lambda row: str(row[0]))
    ]


def calibration(connection: Connection, query: Calibration, moment: Moment) -> CalibrationAnswer:
    """Read what was said and how it came out, and score it."""
    rows = [row for row in scored(connection, query.of, query.project) if query.domain in (None, row[0])]
    domains = by_domain(rows)
    overall = score("", [(p, outcome) for _, p, outcome in rows]) if rows else None
    gone = details.gone_until(connection, "queries") if query.of == "answers" else None
    return CalibrationAnswer(overall=overall, domains=domains, details_gone_until=gone, **moment.shown)


METHODS = (
    QueryMethod(
        params=Calibration,
        answer=CalibrationAnswer,
        views=_VIEWS,
        read=calibration,
        turn=Turn.LONG,
        verb=Verb(by="theses.calibration", examples=("omegad thesis calibration --of answers",)),
    ),
)
