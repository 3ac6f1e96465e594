"""What in the knowledge should be looked at: a pure function of the views and the time, which proposes and
never acts.

Each rule is a SELECT of what is wrong and why; what was dismissed three times is left out of it.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.index.active import active
from omegad.knowledge import calibration, theses
from omegad.knowledge.events import FindingDismissed
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.log.projection import to_json
from omegad.memory import edges, owner
from omegad.memory.reading import known_types
from omegad.memory.strength import USES, strengths
from omegad.memory.types import EPISODIC_TYPES, MemoryTypes
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, Moment, QueryMethod
from omegad.requests.query import One, Query
from omegad.requests.verb import Option, Verb
from omegad.runtime.times import rfc3339
from omegad.session import habits
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

Rule = Literal[
    "contradiction",
    "rests_on",
    "thesis",
    "asked_in_vain",
    "calibration",
    "gap",
    "stale_decision",
    "orphan",
    "strength",
]

VIEWS = (
    *("memories", "edges", "conflicts", "retrievals", "theses", "feedback", "conversations", "dismissals"),
    owner.VIEW,
)

DAY_US = 86_400_000_000
ORPHAN_US, STALE_US, RECENT_US, WEEK_US = 30 * DAY_US, 60 * DAY_US, 30 * DAY_US, 7 * DAY_US
FINDINGS_MAX = 5
IDS_MAX = 10
DISMISSALS_MAX = 3
NAME_CHARACTERS_MAX = 256
VAIN_MIN = 2
KNOWN_MIN = 3
WEAK_BELOW, WEAK_SHARE = 0.1, 0.5
"""More than this share of memories so weak is a finding."""

SOURCE = "auto_lint"
UNLINTED = (*sorted(EPISODIC_TYPES), "advisor_insight", "reminder")
"""Types whose memories do not fade."""

Rows = list[tuple[object, ...]]


def _undismissed(rule: Rule, subject: str) -> str:
    return (
        f"{subject} NOT IN (SELECT subject FROM finding_dismissals WHERE rule = '{rule}' AND times >="
        " :dismissals)"
    )


_OF_PROJECT = "(:project IS NULL OR {}.project = :project)"
_KNOWN = (
    f"{active()} AND m.event_type NOT IN (SELECT value FROM json_each(:unlinted)) AND"
    f" {_OF_PROJECT.format('m')}"
)
# What others said they put in order themselves.
_OWN = f"{_KNOWN} AND NOT {owner.is_elsewhere('m.node_id')}"
_ORPHANS = f"""
SELECT m.node_id FROM memories AS m WHERE {_OWN} AND m.said_us < :now_us - {ORPHAN_US}
  AND m.access_count = 0 AND m.rating = 0
AND NOT EXISTS (SELECT 1 FROM edges WHERE source_id = m.node_id)
  AND NOT EXISTS (SELECT 1 FROM edges WHERE target_id = m.node_id)
AND NOT EXISTS (SELECT 1 FROM retrievals WHERE memory_id = m.node_id)
  AND {_undismissed("orphan", "m.node_id")} ORDER BY m.id
"""
_STALE = f"""
SELECT m.node_id FROM memories AS m
WHERE {_OWN} AND m.event_type IN ('decision', 'lesson_learned') AND m.said_us < :now_us - {STALE_US}
AND NOT EXISTS (SELECT 1 FROM theses AS t WHERE t.memory_id = m.node_id)
AND (m.access_count > 0 OR EXISTS (SELECT 1 FROM retrievals WHERE memory_id = m.node_id))
AND coalesce(m.last_accessed, '') <= :stale_at
AND NOT EXISTS (SELECT 1 FROM retrievals WHERE memory_id = m.node_id AND at > :stale_at)
AND {_undismissed("stale_decision", "m.node_id")} ORDER BY m.id
"""
_WHY = """
CASE WHEN b.status <> 'active' THEN b.status WHEN b.expires_us <= :now_us THEN 'expired'
     WHEN b.contradicted_by IS NOT NULL THEN 'contradicted' ELSE 'edited' END
"""
_HAS_CHANGED = f"(NOT ({active('b')}) OR b.contradicted_by IS NOT NULL OR b.edited_at > {{since}})"
# Whoever edits what rests on something that has changed has looked at it.
_HAS_FOLLOWED = """
(m.edited_at IS NOT NULL AND m.changed_position > max(b.changed_position, e.id / 1024)
  AND (b.expires_us IS NULL OR b.expires_us > m.said_us)
    AND NOT EXISTS (
        SELECT 1 FROM edges AS d WHERE d.target_id = b.node_id AND d.source_id = b.contradicted_by
        AND d.edge_type = 'contradicts'
        AND d.id / 1024 > m.changed_position
    ))
"""
_RESTS_ON = f"""
SELECT m.node_id, b.node_id, {_WHY}, '', '' FROM memories AS m
JOIN edges AS e ON e.source_id = m.node_id AND e.edge_type IN ('evolves', 'evolved_from')
  JOIN memories AS b ON b.node_id = e.target_id
WHERE {_OWN} AND m.event_type = 'decision' AND b.superseded_by IS NOT m.node_id
AND {_HAS_CHANGED.format(since="e.created_at")} AND NOT {_HAS_FOLLOWED}
  AND {_undismissed("rests_on", "m.node_id")}
UNION
SELECT t.memory_id, b.node_id, {_WHY}, t.thesis_id, e.evidence_id FROM theses AS t
JOIN thesis_evidence AS e USING (thesis_id, version) JOIN memories AS b ON b.node_id = e.memory_id
WHERE t.outcome IS NULL AND e.retracted IS NULL AND e.weight > 0 AND b.node_id <> t.memory_id
  AND {_OF_PROJECT.format("t")}
AND {_HAS_CHANGED.format(since="e.at")} AND {_undismissed("rests_on", "t.memory_id")}
ORDER BY 1, 2
"""
_UNSAID = f"""
SELECT t.thesis_id, {_WHY} FROM theses AS t JOIN memories AS b ON b.node_id = t.memory_id
WHERE t.outcome IS NULL AND NOT ({active("b")}) AND {_OF_PROJECT.format("t")}
"""
_CONTRADICTIONS = f"""
SELECT e.source_id, e.target_id FROM edges AS e JOIN memories AS m ON m.node_id = e.source_id
  JOIN memories AS b ON b.node_id = e.target_id
WHERE e.edge_type = 'contradicts' AND {active()} AND {active("b")}
  AND NOT EXISTS (SELECT 1 FROM conflict_offers AS o WHERE o.verdict IS NOT NULL
    AND (o.memory_id, o.target_id) IN ((m.node_id, b.node_id), (b.node_id, m.node_id)))
  AND NOT ({owner.is_elsewhere("m.node_id")} AND {owner.is_elsewhere("b.node_id")})
  AND {_OF_PROJECT.format("m")} AND {_undismissed("contradiction", "m.node_id")} ORDER BY e.id
"""
# A question is known by what a dismissal can name of it.
_ASKED = (
    f"SELECT id, substr(lower(trim(text)), 1, {NAME_CHARACTERS_MAX}) AS asked, abstained, mode, at, project"
    " FROM retrieval_queries WHERE text <> ''"  # which it is once the details went
)
_VAIN = f"""
WITH vain AS (
    SELECT * FROM ({_ASKED} AND abstained = 1)
    WHERE mode IN ('hybrid', 'semantic', 'keyword', 'phrase') AND at > :recent_at
      AND (:project IS NULL OR project = :project)
    AND (project IS NULL OR project IN (SELECT project
      FROM memories)) AND EXISTS (SELECT 1 FROM memories) -- where nothing was ever kept, nothing is missing
), answered AS (
    SELECT asked, max(id) AS latest FROM ({_ASKED} AND abstained = 0)
      WHERE asked IN (SELECT asked FROM vain) GROUP BY 1
)
-- A tool that finds nothing in its project asks all of them at once: that is one question.
SELECT v.asked, max(count(v.project), count(*) - count(v.project)) AS times, max(v.id)
FROM vain AS v LEFT JOIN answered AS a USING (asked)
WHERE v.id > coalesce(a.latest, 0) AND {_undismissed("asked_in_vain", "v.asked")}
GROUP BY 1 HAVING times >= {VAIN_MIN} ORDER BY 2 DESC, 3
"""
_SPARSE = f"""
SELECT m.entity_id, count(*) FROM memories AS m WHERE {_KNOWN} AND m.entity_id IS NOT NULL
  AND substr(m.entity_id, 1, {len(habits.ABOUT)}) <> '{habits.ABOUT}' -- of a habit there is no more to know
  AND {_undismissed("gap", "m.entity_id")}
GROUP BY 1 HAVING count(*) < {KNOWN_MIN} ORDER BY 1
"""
_UNDECIDED = f"""
SELECT s.project FROM agent_sessions AS s WHERE s.project IS NOT NULL AND s.last_us > :now_us - {RECENT_US}
  AND s.tool_calls > 0
AND {_OF_PROJECT.format("s")} AND {_undismissed("gap", "s.project")}
GROUP BY 1 HAVING min(s.started_at) < :week_at AND NOT EXISTS (
    SELECT 1 FROM memories AS m WHERE m.project = s.project AND m.event_type = 'decision'
      AND m.said_us > :now_us - {RECENT_US}
) ORDER BY 1
"""
_USES = f"SELECT {USES} FROM memories AS m WHERE {_KNOWN}"


class Lint(Query, frozen=True, kw_only=True, tag="lint.report"):
    """Show what in the knowledge should be looked at: contradictions, what rests on what has changed,
    questions asked in vain, gaps, what fades.
    """

    project: Annotated[One | None, Meta(description="of this project alone")] = None
    limit: Annotated[int, Meta(ge=1, le=100, description="how many findings at most")] = FINDINGS_MAX


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to look at: what a rule found of which memories, theses, entities or questions, how many
    there are, and what settles it.
    """

    rule: Rule
    ids: tuple[str, ...]
    count: int
    text: str
    settle: str


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The knowledge in numbers. `weak` counts memories whose strength, as `memory.get` shows it, is below
    0.1.
    """

    memories: int
    weak: int
    orphans: int
    contradictions: int
    theses: int
    asked_in_vain: int


class LintReport(msgspec.Struct, frozen=True, kw_only=True):
    """The first findings, the most pressing first, and how many there are in all."""

    findings: list[Finding]
    total: int
    figures: Figures
    position: int = 0
    stale_by: int = 0


def lint(connection: Connection, query: Lint, types: MemoryTypes, moment: Moment) -> LintReport:
    """Read what every rule finds."""
    report = examine(connection, moment.now_us, types, query.project)
    return msgspec.structs.replace(report, findings=report.findings[: query.limit], **moment.shown)


def examine(
    connection: Connection, now_us: int, types: MemoryTypes, project: str | None = None
) -> LintReport:
    """Return all that there is to find at a moment, in microseconds since 1970."""
    values: dict[str, object] = {
        "now_us": now_us,
        "project": project,
        "unlinted": to_json(UNLINTED),
        "dismissals": DISMISSALS_MAX,
        "stale_at": rfc3339(max(now_us - STALE_US, 0)),
        "recent_at": rfc3339(max(now_us - RECENT_US, 0)),
        "week_at": rfc3339(max(now_us - WEEK_US, 0)),
    }

    def rows(sql: str) -> Rows:
        return connection.execute(sql, values).fetchall()

    pairs = [(str(newer), str(older)) for newer, older in rows(_CONTRADICTIONS)]
    clusters = list(components(pairs))
    vain, orphans, stale = rows(_VAIN), rows(_ORPHANS), rows(_STALE)
    present = strengths(connection.execute(_USES, values).fetchall(), types, now_us)
    memories, weak = len(present), int((present < WEAK_BELOW).sum())
    unsaid = {str(thesis_id): str(why) for thesis_id, why in rows(_UNSAID)}
    held = theses.theses(
        connection, "t.outcome IS NULL AND (? IS NULL OR t.project = ?)", (project, project), now_us
    )
    findings = [
        *_doubtful(pairs, clusters, rows(_RESTS_ON)),
        *(
            _thesis(one, unsaid.get(one.thesis_id))
            for one in held
            if (one.is_due or one.standing == "stale" or one.thesis_id in unsaid)
            and not _is_dismissed(connection, "thesis", one.thesis_id)
        ),
        *(
            _found(
                "asked_in_vain",
                (asked,),
                count,
                f'"{str(asked)[:120]}" was asked {count} times in vain',
                'omegad store "the answer"',
            )
            for asked, count, _ in vain
        ),
        *_calibration(connection, project),
        *_gaps(rows(_SPARSE), rows(_UNDECIDED)),
        *_many(
            "stale_decision",
            stale,
            "{count} decisions and lessons were shown to nobody for 60 days",
            "omegad memory edit or omegad delete {first}",
        ),
        *_many(
            "orphan",
            orphans,
            "{count} memories are related to nothing and were never found",
            "omegad delete {first}",
        ),
    ]
    if memories and weak / memories > WEAK_SHARE and not _is_dismissed(connection, "strength", "all"):
        text = f"{weak} of {memories} memories have faded: knowledge decays faster than it is used"
        findings.append(_found("strength", ("all",), weak, text, "omegad memory consolidate"))
    figures = Figures(
        memories=memories,
        weak=weak,
        orphans=len(orphans),
        contradictions=len(clusters),
        theses=len(held),
        asked_in_vain=len(vain),
    )
    return LintReport(findings=findings, total=len(findings), figures=figures)


def components(edges: Iterable[tuple[str, str]]) -> Iterator[tuple[str, ...]]:
    """Yield the connected components of a graph, each in the order in which its nodes come."""
    group: dict[str, list[str]] = {}
    for one, other in edges:
        ours, theirs = group.setdefault(one, [one]), group.setdefault(other, [other])
        if ours is not theirs:
            ours.extend(theirs)
            group.update(dict.fromkeys(theirs, ours))
    seen = set[int]()
    for members in group.values():
        if id(members) not in seen:
            seen.add(id(members))
            yield tuple(members)


def _doubtful(
    pairs: Sequence[tuple[str, str]], clusters: Iterable[tuple[str, ...]], resting: Rows
) -> Iterator[Finding]:
    for cluster in clusters:
        text = f"which of these holds, or do all: {', '.join(cluster[:IDS_MAX])}?"
        settle = next(edges.settling(*pair) for pair in pairs if pair[0] in cluster)
        yield _found("contradiction", cluster, len(cluster), text, settle)
    for memory, basis, why, thesis, evidence in resting:
        text = f"{memory} rests on {basis}, which is {why}"
        settle = f"omegad memory unlink {memory} {basis}"
        if thesis:
            settle = f"omegad thesis retract {thesis} {evidence}"
        yield _found("rests_on", (memory, basis), 1, text, settle)


def _thesis(one: theses.Thesis, unsaid: str | None) -> Finding:
    how = f"is said by a memory that is {unsaid}"
    if unsaid is None:
        how = f"was due on {one.due[:10]}" if one.is_due and one.due else "had no evidence for 60 days"
    text = f'thesis "{one.statement[:120]}" {how}: {one.confidence:.2f} ({one.counts})'
    settle = f"omegad thesis resolve {one.thesis_id} yes|no|n/a SOURCE"
    return _found("thesis", (one.thesis_id, one.memory_id), 1, text, settle)


def _calibration(connection: Connection, project: str | None) -> Iterator[Finding]:
    of_project = f" --project {shlex.quote(project)}" if project else ""
    for score in calibration.by_domain(calibration.scored(connection, "theses", project)):
        domain = score.domain or "no domain"
        if (
            score.is_enough
            and score.brier > score.brier_of_base_rate
            and not _is_dismissed(connection, "calibration", domain)
        ):
            worse = f"Brier {score.brier:.3f}, not {score.brier_of_base_rate:.3f}"
            text = f"predictions about {domain} are worse than always saying the base rate: {worse}"
            yield _found("calibration", (domain,), score.n, text, f"omegad thesis calibration{of_project}")


def _gaps(sparse: Rows, undecided: Rows) -> Iterator[Finding]:
    for entity, count in sparse:
        things = "thing is" if count == 1 else "things are"
        text = f"of {entity} only {count} {things} known"
        yield _found("gap", (entity,), count, text, f"omegad store --entity-id {shlex.quote(str(entity))} …")
    for (project,) in undecided:
        text = f"{project} is worked on, and no decision was kept for 30 days"
        settle = f"omegad store --project {shlex.quote(str(project))} --event-type decision …"
        yield _found("gap", (project,), 0, text, settle)


def _many(rule: Rule, rows: Rows, text: str, settle: str) -> Iterator[Finding]:
    if ids := tuple(str(row[0]) for row in rows):
        about = f"{text.format(count=len(ids))}: {', '.join(ids[:IDS_MAX])}"
        yield _found(rule, ids, len(ids), about, settle.format(first=ids[0]))


def _found(rule: Rule, ids: tuple[object, ...], count: object, text: str, settle: str) -> Finding:
    named = tuple(map(str, ids[:IDS_MAX]))
    return Finding(rule=rule, ids=named, count=int(str(count)), text=text, settle=settle)


def _is_dismissed(connection: Connection, rule: Rule, subject: str) -> bool:
    sql = "SELECT 1 FROM finding_dismissals WHERE rule = ? AND subject = ? AND times >= ?"
    return connection.execute(sql, (rule, subject, DISMISSALS_MAX)).fetchone() is not None


def last_report(connection: Connection, now_us: int, project: str | None = None) -> list[tuple[str, str]]:
    """Return the reports that stand, of a project or of all, newest first: memory id and metadata."""
    sql = (
        "SELECT node_id, metadata FROM memories AS m WHERE source = :source AND event_type ="
        f" 'advisor_insight' AND metadata ->> '$.project' IS :project AND {active()} ORDER BY id DESC"
    )
    values = {"source": SOURCE, "now_us": now_us, "project": project}
    return [(memory_id, metadata) for memory_id, metadata in connection.execute(sql, values)]


class DismissFinding(Command, frozen=True, kw_only=True, tag="lint.dismiss"):
    """Say that a finding needs nothing done. What was dismissed three times is not shown again."""

    rule: Annotated[Rule, Meta(description="the rule that found it")]
    ids: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=32, description="what it was found of")]


def dismiss(command: DismissFinding, state: DecisionState, now_us: int) -> Decision:
    """Decide a dismissal."""
    del state, now_us
    return Decision(
        events=(NewEvent(event=FindingDismissed(rule=command.rule, ids=command.ids)),), answer=Acknowledged()
    )


METHODS = (
    QueryMethod(
        params=Lint,
        answer=LintReport,
        views=VIEWS,
        prepare=known_types,
        read=lint,
        shows_queries=True,
        turn=Turn.LONG,
        verb=Verb(
            "lint",
            by="theses.lint",
            options=(
                Option("save", "keep the report as a memory, as the daily one is", "flag"),
                Option("tasks", "put down a research task for each gap, once", "flag"),
            ),
            examples=("omegad lint", "omegad lint --project shop --limit 20", "omegad lint --save --tasks"),
        ),
    ),
    CommandMethod(
        params=DismissFinding,
        answer=Acknowledged,
        decide=dismiss,
        verb=Verb(
            "dismiss",
            says="dismissed; what was dismissed three times is not shown again",
            given=("rule", "ids"),
            examples=("omegad dismiss orphan mem-0123456789abcdef",),
        ),
    ),
)
