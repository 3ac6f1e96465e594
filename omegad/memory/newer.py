"""Which later memories may take the place of others, as was offered when they were stored."""

from collections.abc import Collection

from omegad.index.active import active
from omegad.log.projection import to_json
from omegad.memory.relating import OVERRIDDEN_COSINE, may_replace
from omegad.memory.types import EPISODIC_TYPES
from omegad.storage.driver import Connection

_EPISODIC = ", ".join(f"'{name}'" for name in sorted(EPISODIC_TYPES))

# An edge is kept to the three nearest, and no offer: what was offered is told by the texts again.
_NEWER = f"""
WITH asked (id, node_id) AS (
  SELECT id, node_id FROM memories WHERE id IN (SELECT value FROM json_each(:rows))
),
pairs (older, newer, cosine) AS (
  SELECT a.id, e.source_id, e.weight FROM asked AS a
    JOIN edges AS e ON e.target_id = a.node_id AND e.edge_type = 'related' AND e.weight >= {OVERRIDDEN_COSINE}
  UNION ALL
  SELECT a.id, o.memory_id, 1.0 FROM asked AS a JOIN conflict_offers AS o ON o.target_id = a.node_id
    WHERE o.verdict IS NULL
)
SELECT o.id, n.id, o.content, n.content, max(p.cosine)
FROM pairs AS p JOIN memories AS n ON n.node_id = p.newer JOIN memories AS o ON o.id = p.older
WHERE n.id IN (SELECT value FROM json_each(:among)) AND n.said_us >= o.said_us
  AND n.project IS o.project AND n.entity_id IS o.entity_id AND {active("n")}
  AND n.event_type NOT IN ({_EPISODIC}) AND o.event_type NOT IN ({_EPISODIC})
  AND NOT EXISTS (
    SELECT 1 FROM conflict_offers AS c WHERE c.verdict IS NOT NULL
      AND (c.memory_id, c.target_id) IN ((n.node_id, o.node_id), (o.node_id, n.node_id))
  )
GROUP BY o.id, n.id ORDER BY n.said_us, n.id
"""


def newer(
    connection: Connection, rows: Collection[int], among: Collection[int], now_us: int
) -> list[tuple[int, int]]:
    """Return, by row, each of some memories with each *among* others that may take its place, the one said
    last last, unless somebody has settled that.
    """
    values = {"rows": to_json([*rows]), "among": to_json([*among]), "now_us": now_us}
    return [
        (older_row, newer_row)
        for older_row, newer_row, older_text, newer_text, cosine in connection.execute(_NEWER, values)
        if may_replace(newer_text, older_text, cosine)
    ]
