"""Review: one inbox of what wants a person, each with what can be done about it."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from omegad.edge.web.page.asked import Asking, Query
from omegad.runtime.json_types import Json

OF_EACH = 40
SAME_FROM = 0.9
"""Memories at least so near to each other may be meant to take each other's place."""
APART = 0.5
"""The weight that an edge has once somebody says that both ends hold."""
# Those that wait for a person, and pairs that say nearly the same: one SELECT, since each has a process.
WAITING = f"""
SELECT 0 AS pair, node_id, substr(content, 1, 400) AS content, event_type, project, created_at, source,
  NULL AS older, NULL AS said, NULL AS weight, -id AS place
FROM memories WHERE on_probation = 1 AND status = 'active' AND expires_us IS NULL
UNION ALL
SELECT 1, n.node_id, substr(n.content, 1, 400), n.event_type, n.project, n.created_at, n.source,
  o.node_id, substr(o.content, 1, 400), e.weight, -e.weight
FROM edges AS e JOIN memories AS n ON n.node_id = e.source_id JOIN memories AS o ON o.node_id = e.target_id
WHERE e.edge_type = 'related' AND e.weight >= {SAME_FROM} AND n.status = 'active' AND o.status = 'active'
  AND n.project IS o.project AND n.event_type = o.event_type AND n.source IS NOT 'compaction'
  AND n.contradicted_by IS NOT o.node_id AND o.contradicted_by IS NOT n.node_id
ORDER BY pair DESC, place
"""
TITLES = {
    "conflict": "Do these go together?",
    "contradiction": "Which of these holds?",
    "may_replace": "Does the newer replace the older?",
    "thesis": "How did it come out?",
    "rests_on": "Rests on what has changed",
    "habit": "Is it so?",
    "stale": "Look at it again",
    "probation": "Worth keeping?",
    "junk": "Captured, never helped",
    "asked_in_vain": "Asked in vain",
    "gap": "A gap",
    "reminder": "Due",
}
BY_SOURCE = {"auto_habit": "habit"}
OF_ALL = ("probation", "habit", "may_replace")
"""What is asked for of all projects together."""
_MEMORY = re.compile(r"\bmem-[0-9a-f]{8,32}\b")


class Deed(NamedTuple):
    """What can be done about an item: its key and word, what it asks of the daemon, and whether that waits a
    moment first, since nothing takes it back.
    """

    key: str
    word: str
    query: Query
    waits: bool = False


class Item(NamedTuple):
    """Something that wants a person: of which kind, the memories or words it is about, why, and what can be
    done.
    """

    kind: str
    texts: Sequence[tuple[str | None, str]]
    why: str
    about: str
    deeds: Sequence[Deed]
    command: str = ""


def keep(memory_id: str) -> Deed:
    """Return that a memory ends its probation."""
    return Deed("y", "keep", Query("memory.promote", {"memory_id": memory_id}))


def drop(memory_id: str) -> Deed:
    """Return that a memory is hidden."""
    return Deed("d", "drop", Query("memory.delete", {"memory_id": memory_id, "reason": "dropped in review"}))


def merge(old: str, new: str) -> Deed:
    """Return that a memory gives way to a newer one."""
    params = {"memory_id": old, "superseded_by": new, "reason": "merged in review"}
    return Deed("m", "merge into the newer", Query("memory.supersede", params))


async def page(ask: Asking) -> Mapping[str, object]:
    """Show the inbox: all of it as `review/all`, else without what the lint finds, which is last, and takes
    longer than the rest where there is much.
    """
    project, only, is_whole = ask.text("project"), ask.text("kind"), ask.text("id") == "all"
    open_pairs, stale, junk, waiting, *linted = await asyncio.gather(
        ask("memory.unsettled", project=project, limit=OF_EACH),
        ask("memory.stale", project=project, limit=OF_EACH),
        ask("memory.junk", project=project, limit=OF_EACH),
        ask("audit.sql", sql=" ".join(WAITING.split()), limit=4 * OF_EACH),
        *([ask("lint.report", project=project, limit=OF_EACH)] if is_whole else []),
    )
    told = [dict(zip(waiting["columns"], row, strict=True)) for row in waiting["rows"]]
    found = [
        *conflicts(open_pairs["conflicts"]),
        *replaceable([one for one in told if one["pair"]][:OF_EACH]),
        *(of_memory("stale", one) for one in stale["memories"]),
        *(of_memory("junk", one) for one in junk["memories"]),
        *(of_memory(BY_SOURCE.get(one["source"], "probation"), one) for one in told if not one["pair"]),
        *(one for report in linted for one in findings(report["findings"])),
    ]
    items = list(once(found, project))
    texts = await known(ask, items)
    return {
        "items": [one for one in items if only in (None, one.kind)],
        "texts": texts,
        "counts": Counter(one.kind for one in items),
        "total": len(items),
        "stale": stale["total"],
        "junk": junk["total"],
        "titles": TITLES,
        "only": only,
        "whole": "review/all",
        "is_whole": is_whole,
    }


def once(items: Sequence[Item], project: str | None) -> Iterator[Item]:
    """Yield what is about the same memories once, as what is told first, and of the project that is asked
    about.
    """
    seen = set[frozenset[str | None]]()
    for one in items:
        about = frozenset(memory_id for memory_id, _ in one.texts if memory_id)
        if not about or about not in seen:
            seen.add(about)
            if project is None or project in one.about or one.kind not in OF_ALL:
                yield one


async def known(ask: Asking, items: Sequence[Item]) -> Mapping[str, str]:
    """Return what the memories say whose ids alone are known."""
    ids = sorted({memory_id for one in items for memory_id, text in one.texts if memory_id and not text})
    quoted = ", ".join(f"'{one}'" for one in ids if _MEMORY.fullmatch(one))
    if not quoted:
        return {}
    sql = f"SELECT node_id, substr(content, 1, 400) FROM memories WHERE node_id IN ({quoted})"
    return dict((await ask("audit.sql", sql=sql, limit=1_000))["rows"])


def conflicts(pairs: Sequence[Json]) -> Iterator[Item]:
    """Yield the pairs that nobody has settled."""
    for one in pairs:
        new, old = one["memory_id"], one["target_id"]

        def settle(key: str, word: str, verdict: str, new: str = new, old: str = old) -> Deed:
            params = {"memory_id": new, "target_id": old, "verdict": verdict}
            return Deed(key, word, Query("memory.settle", params), waits=verdict != "supersedes")

        yield Item(
            "conflict",
            ((new, one["content"]), (old, one["target"])),
            f"alike by {one['similarity']:.2f}, and the texts do not tell whether one denies the other",
            f"{one['at'][:10]} · {one['project'] or 'no project'}",
            (
                settle("y", "both hold", "compatible"),
                settle("m", "newer replaces", "supersedes"),
                settle("x", "they contradict", "contradicts"),
                drop(new),
            ),
        )


def replaceable(pairs: Sequence[Json]) -> Iterator[Item]:
    """Yield the pairs that say nearly the same."""
    for one in pairs:
        ends = {"memory_id": one["node_id"], "target_id": one["older"], "edge_type": "related"}
        yield Item(
            "may_replace",
            ((one["node_id"], one["content"]), (one["older"], one["said"])),
            f"they say nearly the same: {one['weight']:.2f}",
            f"{one['created_at'][:10]} · {one['project'] or 'no project'} · {one['event_type']}",
            (
                Deed("y", "both hold", Query("memory.link", ends | {"weight": APART})),
                merge(one["older"], one["node_id"]),
                drop(one["node_id"]),
            ),
        )


def findings(found: Sequence[Json]) -> Iterator[Item]:
    """Yield what the lint found."""
    for one in found:
        memories = [each for each in one["ids"] if each.startswith("mem-")]
        dismiss = Deed(
            "y", "needs nothing", Query("lint.dismiss", {"rule": one["rule"], "ids": one["ids"]}), waits=True
        )
        deeds = [dismiss]
        if one["rule"] == "contradiction" and len(memories) == 2:  # noqa: PLR2004  a pair
            deeds += [merge(memories[1], memories[0]), drop(memories[0])]
        elif one["rule"] in ("orphan", "stale_decision") and memories:
            deeds.append(drop(memories[0]))
        is_shown = one["rule"] in ("contradiction", "rests_on", "orphan", "stale_decision")
        about = one["ids"][0] if one["rule"] == "thesis" else None
        texts = [(each, "") for each in memories[:4]] if is_shown else [(about, one["text"])]
        why = _MEMORY.sub("…", one["text"]) if is_shown and one["rule"] != "contradiction" else ""
        yield Item(one["rule"], tuple(texts), why, "lint", tuple(deeds), one["settle"])


def of_memory(kind: str, one: Json) -> Item:
    """Return one that is about a single memory."""
    memory_id = one.get("memory_id") or one["node_id"]
    helpful = Query("memory.rate", {"memory_id": memory_id, "rating": "helpful", "reason": "kept in review"})
    return Item(
        kind,
        ((memory_id, one["content"]),),
        one.get("why")
        or (f"captured by {one['source']}" if one["source"] else "on probation until it proves itself"),
        f"{one['created_at'][:10]} · {one['project'] or 'no project'} · {one['event_type']}",
        (Deed("y", "keep", helpful) if kind == "stale" else keep(memory_id), drop(memory_id)),
    )
