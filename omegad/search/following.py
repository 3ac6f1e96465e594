"""Whether a newer memory speaks of the same thing as an older one that a question names, or denies it."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from omegad.index.terms import bare_version
from omegad.search.question import Question, like
from omegad.storage.driver import Connection

_DENIED = """
WITH RECURSIVE denied (newer, older) AS (
  SELECT n.id, m.id FROM memories AS m JOIN memories AS n ON n.node_id = m.contradicted_by
  WHERE m.id IN (SELECT value FROM json_each(?))
  UNION
  SELECT n.id, m.id FROM denied AS d JOIN memories AS m ON m.id = d.newer
    JOIN memories AS n ON n.node_id = m.contradicted_by
)
SELECT newer, older FROM denied
"""


REPLACED_MAX = 8
"""Of one memory; what took the place of more sums them up, and is found by what it says itself."""
FOLLOWED_MAX = 4_096  # of all
_FORMER = """
  CROSS JOIN edges AS e ON e.target_id = n.node_id AND e.edge_type = 'superseded_by'
  CROSS JOIN memories AS m ON m.node_id = e.source_id AND m.status = 'superseded'
    AND m.project IS n.project AND m.entity_id IS n.entity_id
    AND (m.expires_us IS NULL OR m.expires_us > :now_us)
"""
_REPLACED = f"""
WITH RECURSIVE replaced (row, node_id, project, entity_id, old) AS (
  SELECT n.id, m.node_id, m.project, m.entity_id, m.id FROM memories AS n {_FORMER}
  WHERE n.id IN (SELECT value FROM json_each(:rows))
  UNION
  SELECT n.row, m.node_id, m.project, m.entity_id, m.id FROM replaced AS n {_FORMER}
  LIMIT {FOLLOWED_MAX}
)
SELECT row, old FROM (SELECT row, old, COUNT(*) OVER (PARTITION BY row) AS many FROM replaced)
WHERE many <= {REPLACED_MAX}
"""


def replaced(connection: Connection, rows: Sequence[int], now_us: int) -> list[tuple[int, int]]:
    """Return the row of each of some memories that took another's place, with that one's, and with those
    whose place that had taken; of its own project and person, and not of what is over, nor of more than
    `REPLACED_MAX`.
    """
    return connection.execute(_REPLACED, {"rows": str(list(rows)), "now_us": now_us}).fetchall()


def denied(connection: Connection, rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return the row of what denies one of some memories, or what denies that, with that one's."""
    return connection.execute(_DENIED, (str(list(rows)),)).fetchall()


def denying(rows: Collection[int], denials: Sequence[tuple[int, int]]) -> set[int]:
    """Return what else denies one of some rows, or what denies that."""
    found = set(rows)
    while new := {newer for newer, older in denials if older in found} - found:
        found |= new
    return found.difference(rows)


def as_matrix(pairs: Iterable[tuple[int, int]], rows: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return which of some rows are a pair with which others."""
    places = {row: place for place, row in enumerate(rows)}
    found: npt.NDArray[np.bool_] = np.zeros((len(rows), len(rows)), np.bool_)
    for one, other in pairs:
        if one in places and other in places:
            found[places[one], places[other]] = True
    return found


def may_lack(texts: Sequence[str], lacks: npt.NDArray[np.bool_], question: Question) -> npt.NDArray[np.bool_]:
    """Return where each of some texts may speak of the matter of each other one although it *lacks* what the
    question names exactly: where it names nothing of that kind that the other does not.

    What lacks the number that is asked for speaks of another matter.
    """
    may: npt.NDArray[np.bool_] = np.zeros((len(texts), len(texts)), np.bool_)
    if names_number(question) or not lacks.any() or lacks.all():
        return may
    told = [like(question.identifiers, text) for text in texts]
    for place in np.flatnonzero(lacks).tolist():
        may[place] = [told[place] <= other for other in told]
    return may


def names_number(question: Question) -> bool:
    """Say whether a question names a number or a version: what has another one speaks of another matter."""
    return any(name.isdigit() or bare_version(name) for name in question.identifiers)
