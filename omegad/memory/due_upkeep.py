"""What there is to put in order: memories whose time is over, with evidence for them, rated badly, or
alike.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from omegad.index.active import active, overdue
from omegad.log.projection import to_json
from omegad.memory.clusters import Member
from omegad.storage.driver import Connection

VIEWS = ("memories", "retrievals")

USED_RANK_MAX = 3
USED_SESSIONS_MIN = 3
"""In how many sessions a memory has to be among the best of an answer to count as used."""

_DUE = f"SELECT node_id FROM memories WHERE {overdue('?')} ORDER BY expires_us, id LIMIT ?"
_FLAGGED = (
    f"SELECT m.node_id FROM memories AS m WHERE m.rating <= :rating AND {active()} ORDER BY m.id LIMIT :limit"
)

# A query that names no session counts as one for its day; one within the memory's own session says nothing
# about its use elsewhere.
_PROVEN = f"""
SELECT m.node_id FROM memories AS m WHERE m.on_probation = 1 AND {active()} AND (m.rating > 0 OR (
    SELECT count(DISTINCT coalesce(r.session_id, substr(r.at, 1, 10))) FROM retrievals AS r
    WHERE r.memory_id = m.node_id AND r.how = 'query' AND r.rank <= :rank
      AND (r.session_id IS NULL OR r.session_id IS NOT m.session_id)
) >= :sessions) ORDER BY m.id LIMIT :limit
"""

# What a summary stands for already and is found all the same was restored: it stays.
_COMPACTABLE = f"""
SELECT m.node_id, m.content, m.event_type, m.project, m.entity_id, m.session_id, m.tags, m.auto_tags,
  m.priority, m.confidence, m.referenced_us
FROM memories AS m
WHERE m.event_type IN (SELECT value FROM json_each(:event_types)) AND {active()}
  AND (:project IS NULL OR m.project = :project)
AND m.rating <= 0 AND m.priority < 5 AND m.contradicted_by IS NULL AND length(m.content) <= :characters
AND m.node_id NOT IN (SELECT j.value FROM memories AS s, json_each(s.metadata, '$.compacted') AS j
  WHERE s.source = :source AND j.value IS NOT NULL)
ORDER BY m.id DESC LIMIT :limit
"""


class Compacting(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories to look for: of these types, in this project where one is named, at most so long;
    *source* is that of summaries.
    """

    event_types: tuple[str, ...]
    project: str | None
    characters_max: int
    source: str


def due(connection: Connection, now_us: int, limit: int) -> tuple[str, ...]:
    """Return memories whose time to live is over and whose expiry is not recorded, the longest over first."""
    return tuple(row[0] for row in connection.execute(_DUE, (now_us, limit)))


def flagged(connection: Connection, rating_max: int, now_us: int, limit: int) -> tuple[str, ...]:
    """Return memories whose ratings sum up to *rating_max* or less, oldest first."""
    return _ids(connection, _FLAGGED, {"rating": rating_max, "now_us": now_us, "limit": limit})


def proven(connection: Connection, now_us: int, limit: int) -> tuple[str, ...]:
    """Return memories on probation that were rated helpful, or used: among the best three of answers in
    three sessions. Oldest first.
    """
    values = {"now_us": now_us, "rank": USED_RANK_MAX, "sessions": USED_SESSIONS_MIN, "limit": limit}
    return _ids(connection, _PROVEN, values)


def compactable(connection: Connection, wanted: Compacting, now_us: int, limit: int) -> list[Member]:
    """Return the latest *limit* memories that may be compacted, oldest first; none that was restored from
    a compaction.
    """
    values = {
        "event_types": to_json(wanted.event_types),
        "project": wanted.project,
        "characters": wanted.characters_max,
        "source": wanted.source,
        "now_us": now_us,
        "limit": limit,
    }
    return [_member(row) for row in reversed(connection.execute(_COMPACTABLE, values).fetchall())]


def _member(row: tuple[Any, ...]) -> Member:
    known: dict[str, Any] = dict(zip(Member.__struct_fields__, row, strict=True))
    lists = {name: msgspec.json.decode(known[name], type=tuple[str, ...]) for name in ("tags", "auto_tags")}
    return Member(**{**known, **lists})


def _ids(connection: Connection, sql: str, values: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(row[0] for row in connection.execute(sql, values))
