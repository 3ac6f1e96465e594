"""Which later memories may take the place of others of their type, as was offered when they were stored: what
speaks of replacing something without being near is too unsure to tell.
"""

from collections.abc import Collection

from omegad.index.active import active
from omegad.log.projection import to_json
from omegad.memory.relating import ALIKE_COSINE, may_replace
from omegad.memory.types import EPISODIC_TYPES
from omegad.storage.driver import Connection

LOOKED_MAX = 20  # pairs, the latest first
_EPISODIC = ", ".join(f"'{name}'" for name in sorted(EPISODIC_TYPES))

_BESIDE = "AND n.node_id IN (SELECT value FROM json_each(:ids))"

# No offer to replace is kept: what was offered is told by the edge and the texts again. The order of joins is
# said, since of the memories of a project few have an edge to one.
_NEWER = f"""
SELECT o.node_id, n.node_id, o.content, n.content, e.weight
FROM memories AS o
  CROSS JOIN edges AS e ON e.target_id = o.node_id
    AND e.edge_type = 'related' AND e.weight >= {ALIKE_COSINE}
  CROSS JOIN memories AS n ON n.node_id = e.source_id
WHERE o.node_id IN (SELECT value FROM json_each(:ids)) AND n.said_us >= o.said_us
  AND n.project IS o.project AND n.entity_id IS o.entity_id AND {active("n")}
  AND n.event_type = o.event_type AND o.event_type NOT IN ({_EPISODIC}) {{beside}}
  AND NOT EXISTS (
    SELECT 1 FROM conflict_offers AS c WHERE c.verdict IS NOT NULL
      AND (c.memory_id, c.target_id) IN ((n.node_id, o.node_id), (o.node_id, n.node_id))
  )
ORDER BY n.said_us DESC, n.id DESC LIMIT {LOOKED_MAX}
"""


def newer(connection: Connection, memory_ids: Collection[str], now_us: int) -> dict[str, tuple[str, str]]:
    """Return, by memory, the id and text of the latest that may take its place, of some memories."""
    return _offered(connection, _NEWER.format(beside=""), memory_ids, now_us)


def newer_beside(connection: Connection, memory_ids: Collection[str], now_us: int) -> dict[str, str]:
    """Return, by memory, the id of the latest of some memories that may take its place."""
    found = _offered(connection, _NEWER.format(beside=_BESIDE), memory_ids, now_us)
    return {older_id: newer_id for older_id, (newer_id, _) in found.items()}


def _offered(
    connection: Connection, sql: str, memory_ids: Collection[str], now_us: int
) -> dict[str, tuple[str, str]]:
    found = dict[str, tuple[str, str]]()
    for older_id, newer_id, older_text, newer_text, cosine in connection.execute(
        sql, {"ids": to_json([*memory_ids]), "now_us": now_us}
    ):
        if older_id not in found and may_replace(newer_text, older_text, cosine):
            found[older_id] = (newer_id, newer_text)
    return found
