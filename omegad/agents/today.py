"""What the loops did lately, each with its reason, and what waits for a person, each with the command that
settles it: one screen.
"""

from collections.abc import Iterator
from itertools import chain, groupby
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.agents.hook_arrivals import HookArrivals, Stopped
from omegad.coordination import research
from omegad.index.active import active
from omegad.knowledge import lint
from omegad.log.projection import to_json
from omegad.memory import edges
from omegad.memory.edges import ListUnsettled
from omegad.memory.reading import known_types
from omegad.memory.store import SUMMARISED_BY
from omegad.memory.types import MemoryTypes
from omegad.memory.upkeep import compaction
from omegad.person import reminder
from omegad.requests.method import Moment, QueryMethod, RequestContext, Services
from omegad.requests.query import Query, ViewAnswer
from omegad.requests.verb import Verb
from omegad.runtime.times import rfc3339
from omegad.session.habits import HABIT_BY
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn
from omegad.text.quoting import one_line, quoted

VIEWS = (*lint.VIEWS, "upkeeps", "coord_tasks", "reminders")

DAY_US = 86_400_000_000
SHOWN_MAX, WAITING_MAX, FINDINGS_MAX, OFFERED_MAX = 3, 7, 3, 2
TEXT_CHARACTERS, OTHER_CHARACTERS, CONTENT_CHARACTERS = 90, 60, 400
FINDING_CHARACTERS = 180
HISTORY_MAX = 5_000

TITLES = {
    "learned": "learned",
    "promoted": "promoted",
    "compacted": "compacted",
    "contradicted": "noticed in conflict",
    "superseded": "replaced",
    "thesis": "theses that moved",
    "demoted": "promotions taken back",
}
COUNTED = {
    "summarised": "sessions summarised",
    "expired": "expired",
    "stale": "to be looked at again, by omegad memory stale,",
    "habit": "habits noticed",
}
"""What is only counted, in one line."""
WHY = {"use": "rated helpful", "corroboration": "said again by another session"}

_DONE = f"""
WITH done (kind, id, memory_id, other_id, why) AS (
    SELECT c.kind, c.id, c.memory_id, c.other_id, c.reason FROM memory_changes AS c
      JOIN memories AS m ON m.node_id = c.memory_id
    WHERE c.at_us >= :since_us AND coalesce(c.reason, '') NOT IN ('explicit', :compacted)
      AND (c.kind != 'superseded' OR m.event_type NOT IN (SELECT value FROM json_each(:unlinted)))
      AND (c.kind != 'promoted' OR NOT EXISTS (SELECT 1 FROM memory_changes AS d
        WHERE d.memory_id = c.memory_id AND d.kind = 'demoted' AND d.id > c.id))
      AND (c.kind != 'contradicted' OR NOT EXISTS (SELECT 1 FROM memory_changes AS d
        WHERE (d.memory_id, d.other_id) IN (VALUES (c.memory_id, c.other_id), (c.other_id, c.memory_id))
          AND d.kind = c.kind AND d.id < c.id))
    UNION ALL
    SELECT 'compacted', u.id, j.value ->> 'memory_id', NULL, j.value ->> 'reason'
      FROM upkeeps AS u, json_each(u.compacted) AS j WHERE u.at_us >= :since_us AND u.undone_at IS NULL
    UNION ALL
    SELECT 'stale', u.id, j.value ->> 'memory_id', NULL, NULL
      FROM upkeeps AS u, json_each(u.stale) AS j WHERE u.at_us >= :since_us
    UNION ALL
    SELECT CASE m.source WHEN :summarised_by THEN 'summarised' WHEN :habit_by THEN 'habit' ELSE 'learned' END,
           m.id, m.node_id, NULL, m.event_type || iif(m.on_probation, ', on probation', '')
      FROM memories AS m WHERE m.created_us >= :since_us AND {active()} AND m.source IS NOT :compaction
      AND (m.source = :summarised_by OR m.event_type NOT IN (SELECT value FROM json_each(:unlinted)))
), ranked AS (
    SELECT d.*, count(*) OVER (PARTITION BY kind) AS in_all, row_number() OVER (
        PARTITION BY kind ORDER BY coalesce(m.on_probation, 0), coalesce(m.priority, 0) DESC, d.id DESC
      ) AS place, m.content FROM done AS d LEFT JOIN memories AS m ON m.node_id = d.memory_id
)
SELECT r.kind, r.in_all, r.memory_id, coalesce(substr(r.content, 1, {CONTENT_CHARACTERS}), ''),
       coalesce(r.why, ''), coalesce(substr(o.content, 1, {CONTENT_CHARACTERS}), '')
FROM ranked AS r LEFT JOIN memories AS o ON o.node_id = r.other_id WHERE r.place <= {SHOWN_MAX}
ORDER BY r.kind, r.place
"""
_MOVED = f"""
SELECT h.thesis_id, t.memory_id, t.statement, h.what, h.side, h.before, h.confidence,
       coalesce(substr(m.content, 1, {CONTENT_CHARACTERS}), '')
FROM thesis_history AS h JOIN theses AS t USING (thesis_id) LEFT JOIN memories AS m ON m.node_id = h.memory_id
WHERE h.at >= :since AND h.what != 'stated' ORDER BY h.thesis_id, h.id LIMIT {HISTORY_MAX}
"""
_HABITS = f"""
SELECT m.node_id, m.content, count(*) OVER () FROM memories AS m
WHERE m.source = :habit_by AND m.on_probation AND {active()} ORDER BY m.id DESC LIMIT 1
"""
_CONTENT = f"SELECT substr(content, 1, {CONTENT_CHARACTERS}) FROM memories WHERE node_id = ?"
_OPEN_TASKS = "SELECT count(*) FROM coord_tasks WHERE status = 'open'"
_UPKEEP = """
SELECT at_us, undone_at,
  json_array_length(expired) + json_array_length(promoted) + json_array_length(compacted)
FROM upkeeps ORDER BY id DESC LIMIT 1
"""


class Today(Query, frozen=True, kw_only=True, tag="upkeep.today"):
    """Show what happened by itself since yesterday: what was learned, promoted, compacted, noticed in
    conflict, which theses moved and why; and what waits for a person, with the command for it.
    """

    days: Annotated[int, Meta(ge=1, le=31, description="how many days to look back")] = 1


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a memory, or a thesis, and why it is shown."""

    memory_id: str
    text: str
    why: str


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """How often a kind of thing happened, and the first of them."""

    kind: str
    count: int
    shown: tuple[Shown, ...]


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for a person, and the command that settles it."""

    text: str
    command: str


class TodayAnswer(ViewAnswer, frozen=True):
    """What happened since a moment, what waits, how much of that is not listed, and all of it as one
    screen of text.
    """

    text: str
    since: str
    happened: tuple[Happened, ...]
    waiting: tuple[Waiting, ...]
    more: int


async def prepare(
    services: Services, query: Today, context: RequestContext
) -> tuple[MemoryTypes, list[Stopped]]:
    """Return the known types, and the hosts whose hooks stopped arriving; of the past nobody can say."""
    stopped = await services[HookArrivals].stopped(services) if query.as_of is None else []
    return await known_types(services, query, context), stopped


def read(
    connection: Connection, query: Today, known: tuple[MemoryTypes, list[Stopped]], moment: Moment
) -> TodayAnswer:
    """Read what happened and what waits."""
    since_us = moment.now_us - query.days * DAY_US
    values = {
        "since_us": since_us,
        "now_us": moment.now_us,
        "compacted": compaction.REASON,
        "compaction": compaction.SOURCE,
        "summarised_by": SUMMARISED_BY,
        "habit_by": HABIT_BY,
        "unlinted": to_json(lint.UNLINTED),
    }
    found = {
        kind: Happened(kind=kind, count=rows[0][1], shown=tuple(_shown(*row[2:]) for row in rows))
        for kind, group in groupby(connection.execute(_DONE, values), key=lambda row: row[0])
        if (rows := list(group))
    }
    moved = list(_moved(connection, rfc3339(since_us)))
    if moved:
        found["thesis"] = Happened(kind="thesis", count=len(moved), shown=tuple(moved[:SHOWN_MAX]))
    happened = tuple(found[kind] for kind in chain(TITLES, COUNTED) if kind in found)
    types, stopped = known
    waiting = [Waiting(text=one.line, command="omegad doctor") for one in stopped]
    waiting += _waiting(connection, types, moment)
    answer = TodayAnswer(
        text="",
        since=rfc3339(since_us),
        happened=happened,
        waiting=tuple(waiting[:WAITING_MAX]),
        more=max(len(waiting) - WAITING_MAX, 0),
        **moment.shown,
    )
    return msgspec.structs.replace(answer, text=_text(answer, connection.execute(_UPKEEP).fetchone()))


def _shown(memory_id: str, content: str, why: str, other: str) -> Shown:
    said = WHY.get(why, why) + (f": {quoted(other, OTHER_CHARACTERS)}" if other else "")
    return Shown(memory_id=memory_id, text=quoted(content, TEXT_CHARACTERS), why=said)


def _moved(connection: Connection, since: str) -> Iterator[Shown]:
    """Yield the theses whose confidence is not what it was, or that were resolved."""
    rows = connection.execute(_MOVED, {"since": since})
    for _, group in groupby(rows, key=lambda row: row[0]):
        history = list(group)
        _, memory_id, statement, what, _, _, after, last = history[-1]
        before = history[0][5]
        if round(before, 2) == round(after, 2) and what != "resolved":
            continue
        sides = [side for *_, side, _, _, _ in history]
        new = ", ".join(f"{sides.count(side)} {side}" for side in ("for", "against") if side in sides)
        why = what if what != "evidenced" else f"{new}, last {quoted(last, OTHER_CHARACTERS)}"
        yield Shown(
            memory_id=memory_id,
            text=quoted(statement, TEXT_CHARACTERS),
            why=f"{before:.2f} → {after:.2f}: {why}",
        )


def _waiting(connection: Connection, types: MemoryTypes, moment: Moment) -> Iterator[Waiting]:
    """Yield what only a person settles, the most pressing first."""
    for due in reminder.due(connection, None, moment.now_us, SHOWN_MAX, is_told=True):
        yield Waiting(
            text=f"due since {due.due[:10]}: {quoted(due.content, TEXT_CHARACTERS)}",
            command=f"omegad reminder dismiss {due.memory_id}",
        )
    report = lint.examine(connection, moment.now_us, types)
    gaps = [one for one in report.findings if one.rule == "gap"]
    researched = research.known(connection, gaps)
    gaps = [one for one in gaps if research.description(one) not in researched]
    findings = [one for one in report.findings if one.rule != "gap"]
    for one in findings[:FINDINGS_MAX]:
        text = one.text
        for memory_id in one.ids[:2]:  # in whose place the beginnings of these memories are read
            if row := connection.execute(_CONTENT, (memory_id,)).fetchone():
                text = text.replace(memory_id, quoted(row[0], OTHER_CHARACTERS))
        yield Waiting(text=one_line(text, FINDING_CHARACTERS), command=one.settle)
    for offer in edges.unsettled(connection, ListUnsettled(limit=OFFERED_MAX), moment).conflicts:
        new, old = (quoted(text, OTHER_CHARACTERS) for text in (offer.content, offer.target))
        yield Waiting(
            text=f"does {new} go with {old}?",
            command=edges.settling(offer.memory_id, offer.target_id),
        )
    values = {"habit_by": HABIT_BY, "now_us": moment.now_us}
    for memory_id, content, in_all in connection.execute(_HABITS, values):
        more = f" (and {in_all - 1} more)" if in_all > 1 else ""
        yield Waiting(
            text=f"is it so? {quoted(content, TEXT_CHARACTERS)}{more}",
            command=f"omegad memory promote {memory_id}, or omegad delete {memory_id}",
        )
    (tasks,) = connection.execute(_OPEN_TASKS).fetchone()
    if tasks:
        yield Waiting(text=f"{tasks} {_plural('task', tasks)} open", command="omegad tasks")
    if gaps:
        text = f"{len(gaps)} {_plural('gap', len(gaps))}, first: {gaps[0].text}"
        yield Waiting(text=text, command="omegad lint --tasks")
    if (left := len(findings) - FINDINGS_MAX) > 0:
        yield Waiting(text=f"{left} more {_plural('finding', left)}", command="omegad lint --limit 100")


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _text(answer: TodayAnswer, upkeep: tuple[int, int | None, int] | None) -> str:
    """Write it for people."""
    since = f"since {answer.since[:16].replace('T', ' ')} UTC"
    if not answer.happened:
        lines = [f"nothing happened {since}" + ("" if answer.waiting else ", and nothing waits for you")]
    else:
        lines = [since]
        for one in answer.happened:
            if one.kind in TITLES:
                lines.append(f"{TITLES[one.kind]}: {one.count}")
                lines += [f"  {shown.text}{f' ({shown.why})' if shown.why else ''}" for shown in one.shown]
        if also := [f"{COUNTED[one.kind]} {one.count}" for one in answer.happened if one.kind in COUNTED]:
            lines.append(f"also: {', '.join(also)}")
    if answer.waiting:
        lines.append("waits for you:")
        lines += [f"  {one.text}\n    {one.command}" for one in answer.waiting]
    if answer.more:
        lines.append(f"  and {answer.more} more: omegad lint")
    if upkeep is not None and answer.happened:
        at = rfc3339(upkeep[0])[:16].replace("T", " ")
        how = "omegad upkeep undo takes it back" if upkeep[2] else "nothing to take back"
        lines.append(f"last upkeep: {at} UTC; {how if upkeep[1] is None else 'was undone'}")
    return "\n".join(lines)


METHODS = (
    QueryMethod(
        params=Today,
        answer=TodayAnswer,
        views=VIEWS,
        prepare=prepare,
        read=read,
        turn=Turn.LONG,
        verb=Verb(
            "today", by="upkeep.today", examples=("omegad today", "omegad today --days 3"), is_first=True
        ),
    ),
)
