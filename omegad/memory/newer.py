"""Which later memories may take the place of others, as was offered when they were stored."""

from collections.abc import Collection

from omegad.index.active import active
from omegad.log.projection import to_json
from omegad.memory.relating import OVERRIDDEN_COSINE, may_replace
from omegad.memory.types import EPISODIC_TYPES
from omegad.storage.driver import Connection

_EPISODIC = ", ".join(f"'{name}'" for name in sorted(EPISODIC_TYPES))

# No offer is kept but in the view of conflicts, which replays and the post do without: what was offered is
# told by the edge and the texts again.
_NEWER = f"""
SELECT o.id, n.id, o.content, n.content, e.weight
FROM memories AS o
  JOIN edges AS e ON e.target_id = o.node_id AND e.edge_type = 'related' AND e.weight >= {OVERRIDDEN_COSINE}
  JOIN memories AS n ON n.node_id = e.source_id
WHERE o.id IN (SELECT value FROM json_each(:rows)) AND n.id IN (SELECT value FROM json_each(:among))
  AND n.said_us >= o.said_us AND n.project IS o.project AND n.entity_id IS o.entity_id AND {active("n")}
  AND n.event_type NOT IN ({_EPISODIC}) AND o.event_type NOT IN ({_EPISODIC})
ORDER BY n.said_us, n.id
"""


def newer(
    connection: Connection, rows: Collection[int], among: Collection[int], now_us: int
) -> list[tuple[int, int]]:
    """Return, by row, each of some memories with each *among* others that may take its place, the one said
    last last.
    """
    values = {"rows": to_json([*rows]), "among": to_json([*among]), "now_us": now_us}
    return [
        (older_row, newer_row)
        for older_row, newer_row, older_text, newer_text, cosine in connection.execute(_NEWER, values)
        if may_replace(newer_text, older_text, cosine)
    ]
