"""Which memories omegad made itself of what was said in sessions: they quote it, and stay when that goes."""

from omegad.coordination.session_end_reaction import CHECKPOINTED_BY
from omegad.log.event import Position
from omegad.memory.store import SUMMARISED_BY
from omegad.memory.upkeep.compaction import SOURCE as COMPACTED_BY
from omegad.session.capture import CAPTURED_BY
from omegad.storage.driver import Connection

QUOTING_MAX = 1_000

_QUOTING = """
SELECT node_id FROM memories WHERE id <= ? AND (source IN (?, ?, ?) OR source = ?
  AND event_type = 'session_summary') ORDER BY id LIMIT ?
"""


def quoting(connection: Connection, through: Position) -> list[str]:
    """Return those up to a position, hidden ones as well: summaries of sessions and of weeks, checkpoints,
    and what was captured.
    """
    made_by = (SUMMARISED_BY, CHECKPOINTED_BY, CAPTURED_BY, COMPACTED_BY)
    return [row[0] for row in connection.execute(_QUOTING, (through, *made_by, QUOTING_MAX)).fetchall()]
