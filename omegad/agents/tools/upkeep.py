"""Tools about the store as a whole: keeping it in order, how it is, and what in it should be thought
about.
"""

from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from omegad.agents.tools.tool import (
    Arguments,
    Fields,
    Limit,
    Project,
    Reply,
    Session,
    Tool,
    brief,
    bullets,
    line,
    required,
    without_empty,
)
from omegad.memory.edges import UnsettledAnswer
from omegad.memory.upkeep.compaction import Compacted
from omegad.memory.upkeep.consolidation import Consolidated
from omegad.memory.upkeep.review import StaleAnswer
from omegad.requests.verb import GONE
from omegad.runtime.errors import Invalid
from omegad.session.habits import HABIT_BY
from omegad.session.sql import Rows

CLUSTERS_SHOWN = 5
JUNK_SHOWN = 50
ON_TOPIC = 0.75
"""From this share of the best score on a memory is of the topic that was asked about, and no neighbour of
it: what shares one word of two with it has half, and 0.7 where the same session said it.
"""
EARLIER: tuple[str, ...] = ("evolved_from", "superseded_by", "contradicts", "evolves", "supersedes")
"""Edges along which understanding has changed."""


class Maintain(Arguments, frozen=True, kw_only=True):
    """Put the store in order: consolidate (expiries, promotions, summaries), compact (merge
    near-identical), junk (drop what never helped).
    """

    action: str
    dry_run: Annotated[bool, Meta(description="only say what would be done")] = True
    project: Project = None


class Stats(Arguments, frozen=True, kw_only=True):
    """How the service is; today: what happened by itself and waits for the person; receipts: what was
    shown to a session, or when a memory was; sql: check what you did before you claim it; habits_confirm,
    habits_deny: of a pattern in the briefing.
    """

    action: str = "status"
    sql: Annotated[
        str | None, Meta(description="a SELECT on audit_log, conversations, facts, memories, …")
    ] = None
    memory_id: str | None = None
    session_id: str | None = None
    pattern_id: Annotated[str | None, Meta(description="habits_*: its memory id")] = None
    limit: Limit = 20


class Reflect(Arguments, frozen=True, kw_only=True):
    """What is stale (rated badly, contradicted, never found), conflicts that wait to be settled, or how
    understanding of a topic evolved: run it before architecture decisions.
    """

    action: str = "stale"
    topic: str | None = None
    limit: Limit = 10
    project: Project = None


def compacted(done: Compacted, _session: Session, given: Maintain) -> Reply:
    """Say which memories a summary stands for now, or would."""
    clusters = [
        without_empty({"originals": list(one.originals), "type": one.event_type})
        for one in done.clusters[:CLUSTERS_SHOWN]
    ]
    counts: Fields = {
        "dry_run": given.dry_run,
        "clusters": len(done.clusters),
        "superseded": done.superseded,
    }
    shown = [f"- {one['type']}: {', '.join(one['originals'])}" for one in clusters]
    text = f"{len(done.clusters)} clusters, {done.superseded} memories {_would_be(given)}summarised"
    return Reply("\n".join([text, *shown]), counts | {"first": clusters})


def consolidated(done: Consolidated, _session: Session, given: Maintain) -> Reply:
    """Say how many memories expired, were promoted and summarised, or would be."""
    counts = {
        "expired": len(done.expired),
        "promoted": len(done.promoted),
        "superseded": done.compacted.superseded,
    }
    told = ", ".join(f"{count} {_would_be(given)}{name}" for name, count in counts.items())
    flagged = list(done.flagged)
    text = f"{told}; rated badly: {', '.join(flagged) or 'none'}"
    return Reply(text, {"dry_run": given.dry_run, **counts, "flagged": flagged})


def unsettled(answer: UnsettledAnswer, _session: Session, _given: Reflect) -> Reply:
    """Show what waits to be settled."""
    found = [
        {
            "id": one.memory_id,
            "text": line(one.content),
            "may_contradict": one.target_id,
            "other": line(one.target),
        }
        for one in answer.conflicts
    ]
    told = (
        f"- {one['id']} {one['text']}\n  may contradict {one['may_contradict']}: {one['other']}"
        for one in found
    )
    return Reply("\n".join(told) or "nothing waits to be settled", {"conflicts": found})


def _would_be(given: Maintain) -> str:
    return "would be " if given.dry_run else ""


async def _junk(session: Session, given: Maintain) -> Reply:
    page = await session.ask("memory.junk", project=session.project_of(given.project), limit=JUNK_SHOWN)
    found = [brief(one, session.project, why=one.why) for one in page.memories]
    if not found or given.dry_run:
        text = f"{bullets(found)}\n{page.total} in all would be deleted" if found else "there is no junk"
        return Reply(text, {"dry_run": given.dry_run, "junk": found, "total": page.total})
    done = await session.ask("memory.prune", memory_ids=[one.memory_id for one in page.memories])
    left = page.total - len(done.deleted)
    return Reply(
        f"{len(done.deleted)} deleted, {left} left",
        {"dry_run": False, "deleted": list(done.deleted), "left": left},
    )


async def _receipts(session: Session, given: Stats) -> Reply:
    whose = given.session_id or (None if given.memory_id else session.session_id)
    if not (whose or given.memory_id):
        raise Invalid("whose receipts?", hint="call it again with a memory_id or a session_id")
    page = await session.ask("receipts.list", session_id=whose, memory_id=given.memory_id, limit=given.limit)
    shown = [
        {
            "id": one.memory_id,
            "rank": one.rank,
            "score": round(one.score, 3),
            "at": one.at,
            "session": one.session_id,
        }
        for one in page.receipts
    ]
    lines = (
        f"{one['at']} {one['id']} rank {one['rank']}, score {one['score']}, session"
        f" {one['session'] or 'unknown'}"
        for one in shown
    )
    text = "\n".join(lines)
    if page.details_gone_until:
        text += "\n" * bool(text) + GONE["details_gone_until"].format_map(msgspec.structs.asdict(page))
    return Reply(text or "nothing was shown yet", {"receipts": [without_empty(one) for one in shown]})


async def _today(session: Session, _given: Stats) -> Reply:
    """Say what happened by itself, what waits for the person, and what is not as it should be."""
    answer, status = await session.ask("upkeep.today"), await session.ask("system.status")
    troubles = [f"! {trouble}" for trouble in status.degraded]
    return Reply("\n".join([answer.text, *troubles]))


async def _judge(session: Session, given: Stats, *, method: str, judged: str) -> Reply:
    """Let a habit count in full, or hide it so that it is not proposed again."""
    required(given.action, pattern_id=given.pattern_id)
    habit = await session.ask("memory.get", memory_id=given.pattern_id)
    if habit.source != HABIT_BY:
        raise Invalid(
            f"{given.pattern_id} is no habit",
            hint="omega_welcome lists the patterns that nobody has confirmed, with their ids",
        )
    await session.ask(method, memory_id=given.pattern_id)
    return Reply(f"{judged}: {line(habit.content)}", {"pattern_id": given.pattern_id, judged: True})


# Of a room above
def service(status: Any, _session: Session, _given: Stats) -> Reply:  # noqa: ANN401
    """Say how the service is."""
    last, upkept = status.upkeep, "not yet"
    if last is not None:
        upkept = (
            f"{last.at[:16]}Z {last.promoted} promoted, {last.compacted} summaries, {last.expired} expired,"
            f" {last.stale} stale{', undone since' if last.undone else ''}"
        )
    fields: Fields = {
        "version": status.version,
        "events": status.log.head,
        "model": status.embedding.model or "none",
        "vectors": status.embedding.index_vectors,
        "lag": max((view.lag for view in status.views.values()), default=0),
        "upkeep": upkept,
        "degraded": status.degraded,
    }
    return Reply(
        "\n".join(
            f"{name}: {value or 'no' if name == 'degraded' else value}" for name, value in fields.items()
        ),
        fields,
    )


def selected(found: Rows, _session: Session, _given: Stats) -> Reply:
    """Show the rows that a SELECT finds."""
    rows = [[line(value) if isinstance(value, str) else value for value in row] for row in found.rows]
    lines = [" | ".join(map(str, row)) for row in (found.columns, *rows)]
    more = ["there are more: narrow it, or raise limit"] if found.truncated else []
    return Reply(
        "\n".join([*lines, *more]),
        {"columns": list(found.columns), "rows": rows, "truncated": found.truncated},
    )


def stale(answer: StaleAnswer, session: Session, _given: Reflect) -> Reply:
    """Show what should be looked at again."""
    found = [brief(one, session.project, why=one.why) for one in answer.memories]
    hint = "edit, delete or rate each with omega_memory" if found else None
    text = f"{bullets(found)}\n{answer.total} in all; {hint}" if found else "nothing is stale"
    return Reply(text, without_empty({"stale": found, "total": answer.total, "hint": hint}) or {"stale": []})


async def _evolution(session: Session, given: Reflect) -> Reply:
    """Show how a topic came to be understood as it is."""
    project = session.project_of(given.project)
    required("evolution", topic=given.topic)
    answer = await session.ask(
        "memory.query",
        text=given.topic,
        project=project,
        limit=given.limit,
        all=True,
        asked_in=session.session_id,
    )
    near = [one for one in answer.results if one.score >= ON_TOPIC * answer.results[0].score]
    known = {one.memory_id: one for one in near}
    for one in near:
        graph = await session.ask(
            "memory.traverse", memory_id=one.memory_id, edge_types=EARLIER, limit=given.limit
        )
        known |= {node.memory_id: node for node in graph.nodes if node.memory_id not in known}
    changed = [brief(one, session.project) for one in sorted(known.values(), key=lambda one: one.created_at)]
    return Reply(bullets(changed) or "nothing is remembered about that", {"oldest_first": changed})


TOOLS = (
    Tool("omega_maintain", Maintain, {"junk": _junk}),
    Tool(
        "omega_stats",
        Stats,
        {
            "receipts": _receipts,
            "today": _today,
            "habits_confirm": partial(_judge, method="memory.promote", judged="confirmed"),
            "habits_deny": partial(_judge, method="memory.delete", judged="denied"),
        },
        meant=lambda given: "sql" if given.sql else given.action,
    ),
    Tool("omega_reflect", Reflect, {"evolution": _evolution}, is_read_only=True),
)
