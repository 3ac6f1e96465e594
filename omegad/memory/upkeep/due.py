"""What there is to put in order: memories whose time is over, with evidence for them, rated badly, or
alike.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from omegad.index.active import active, overdue
from omegad.log.projection import to_json
from omegad.memory.events import Upkept
from omegad.memory.store import SUMMARISED_BY
from omegad.memory.types import EPISODIC_TYPES
from omegad.memory.upkeep import stale
from omegad.memory.upkeep.clusters import Member
from omegad.storage.driver import Connection

VIEWS = ("memories", "retrievals", "upkeeps")

USED_RANK_MAX = 3
USED_SESSIONS_MIN = 3
"""In how many sessions a memory has to be among the best of an answer to count as used."""

_DUE = f"SELECT node_id FROM memories WHERE {overdue('?')} ORDER BY expires_us, id LIMIT ?"
_FLAGGED = (
    f"SELECT m.node_id FROM memories AS m WHERE m.rating <= :rating AND {active()} ORDER BY m.id LIMIT :limit"
)

# What an undone upkeep had promoted waits for a person. A query that names no session counts as one for its
# day; one within the memory's own session says nothing about its use elsewhere.
_PROVEN = f"""
SELECT node_id, rating, sessions FROM (
    SELECT m.id, m.node_id, m.rating, (
        SELECT count(DISTINCT coalesce(r.session_id, substr(r.at, 1, 10))) FROM retrievals AS r
        WHERE r.memory_id = m.node_id AND r.how = 'query' AND r.rank <= :rank
          AND (r.session_id IS NULL OR r.session_id IS NOT m.session_id)
    ) AS sessions
    FROM memories AS m WHERE m.on_probation = 1 AND {active()}
      AND m.event_type NOT IN (SELECT value FROM json_each(:episodic)) AND m.node_id NOT IN (
        SELECT j.value ->> 'memory_id' FROM upkeeps AS u, json_each(u.promoted) AS j
        WHERE u.undone_at IS NOT NULL)
) WHERE rating > 0 OR sessions >= :sessions ORDER BY id LIMIT :limit
"""

_MARKED = "SELECT j.value ->> 'memory_id' FROM upkeeps AS u, json_each(u.stale) AS j"
STALE_OF_EACH = 10
"""How much of a project is marked at a time as to be looked at again."""

# What a summary stands for already and is found all the same was restored: it stays.
_COMPACTABLE = f"""
SELECT m.node_id, m.content, m.event_type, m.project, m.entity_id, m.session_id, m.tags, m.auto_tags,
  m.priority, m.confidence, m.referenced_us, iif(m.source = :summarised_by, m.created_us, NULL)
FROM memories AS m
WHERE m.event_type IN (SELECT value FROM json_each(:event_types)) AND {active()}
  AND (:project IS NULL OR m.project = :project)
AND m.rating <= 0 AND m.priority < 5 AND m.contradicted_by IS NULL AND length(m.content) <= :characters
AND NOT (coalesce(m.source, '') = :source AND m.metadata ->> 'week' IS NOT NULL)
AND m.node_id NOT IN (SELECT j.value FROM memories AS s, json_each(s.metadata, '$.compacted') AS j
  WHERE s.source = :source AND j.value IS NOT NULL)
ORDER BY m.id DESC LIMIT :limit
"""


_DONE = """
SELECT id, expired, promoted, compacted FROM upkeeps
WHERE undone_at IS NULL AND (id = :position OR (:position IS NULL
  AND json_array_length(expired) + json_array_length(promoted) + json_array_length(compacted) > 0))
ORDER BY id DESC LIMIT 1
"""
_ORIGINALS = (
    "SELECT j.value FROM memories AS s, json_each(s.metadata, '$.compacted') AS j WHERE s.node_id = ?"
)


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What an upkeep did: where it stands in the log, which memories expired and were promoted, and by
    summary those that it stands for.
    """

    position: int
    expired: tuple[str, ...]
    promoted: tuple[str, ...]
    originals: dict[str, tuple[str, ...]]


class Compacting(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories to look for: of these types, in this project where one is named, at most so long;
    *source* is that of summaries.
    """

    event_types: tuple[str, ...]
    project: str | None
    characters_max: int
    source: str


def week_of(at_us: int) -> str:
    """Return the week of a moment in microseconds since 1970, as 2026-W47, by UTC."""
    year, week, _ = datetime.fromtimestamp(at_us / 1e6, UTC).isocalendar()
    return f"{year:04}-W{week:02}"


def due(connection: Connection, now_us: int, limit: int) -> tuple[str, ...]:
    """Return memories whose time to live is over and whose expiry is not recorded, the longest over first."""
    return tuple(row[0] for row in connection.execute(_DUE, (now_us, limit)))


def flagged(connection: Connection, rating_max: int, now_us: int, limit: int) -> tuple[str, ...]:
    """Return memories whose ratings sum up to *rating_max* or less, oldest first."""
    return _ids(connection, _FLAGGED, {"rating": rating_max, "now_us": now_us, "limit": limit})


def proven(connection: Connection, now_us: int, limit: int) -> tuple[tuple[str, str], ...]:
    """Return memories on probation that were rated helpful, or used: among the best three of answers in
    three sessions, and no mere account of what happened; each with what it proved itself by, in words.
    Oldest first.
    """
    values = {
        "now_us": now_us,
        "rank": USED_RANK_MAX,
        "sessions": USED_SESSIONS_MIN,
        "limit": limit,
        "episodic": to_json(sorted(EPISODIC_TYPES)),
    }
    return tuple(
        (
            memory_id,
            "rated helpful" if rating > 0 else f"among the best answers in {sessions} other sessions",
        )
        for memory_id, rating, sessions in connection.execute(_PROVEN, values)
    )


def newly_stale(connection: Connection, now_us: int) -> tuple[tuple[str, str], ...]:
    """Return what should be looked at again and was not marked as that before, each with why."""
    marked = {memory_id for (memory_id,) in connection.execute(_MARKED)}
    found = stale.worst(connection, now_us, each=STALE_OF_EACH, besides="")
    return tuple((memory_id, why) for memory_id, why in found.items() if memory_id not in marked)


def compactable(connection: Connection, wanted: Compacting, now_us: int, limit: int) -> list[Member]:
    """Return the latest *limit* memories that may be compacted, oldest first; none that was restored from
    a compaction.
    """
    values = {
        "event_types": to_json(wanted.event_types),
        "project": wanted.project,
        "characters": wanted.characters_max,
        "source": wanted.source,
        "summarised_by": SUMMARISED_BY,
        "now_us": now_us,
        "limit": limit,
    }
    return [_member(row) for row in reversed(connection.execute(_COMPACTABLE, values).fetchall())]


def _member(row: tuple[Any, ...]) -> Member:
    known: dict[str, Any] = dict(zip(Member.__struct_fields__, row, strict=True))
    known["week"] = known["week"] and week_of(known["week"])
    lists = {name: msgspec.json.decode(known[name], type=tuple[str, ...]) for name in ("tags", "auto_tags")}
    return Member(**{**known, **lists})


def _ids(connection: Connection, sql: str, values: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(row[0] for row in connection.execute(sql, values))


def to_undo(connection: Connection, position: int | None) -> Done | None:
    """Return what the upkeep at a position did, or the latest that was not undone; None where there is
    none.
    """
    row = connection.execute(_DONE, {"position": position}).fetchone()
    if row is None:
        return None
    lists = [msgspec.json.decode(one, type=tuple[Upkept, ...]) for one in row[1:]]
    expired, promoted, compacted = (tuple(one.memory_id for one in kept) for kept in lists)
    originals = {
        memory_id: tuple(one for (one,) in connection.execute(_ORIGINALS, (memory_id,)))
        for memory_id in compacted
    }
    return Done(position=row[0], expired=expired, promoted=promoted, originals=originals)
