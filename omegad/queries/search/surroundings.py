"""Which memories stand beside which: in their sessions, and along edges."""

from collections.abc import Callable, Sequence

import msgspec

from omegad.queries.search.words import Filtered
from omegad.storage.driver import Connection

LINKS_MAX = 200  # the heaviest

_LINKED = """
SELECT m.id, n.id, e.weight FROM memories AS m CROSS JOIN edges AS e ON e.source_id = m.node_id CROSS JOIN memories AS n ON n.node_id = e.target_id
WHERE m.id IN (SELECT value FROM json_each(?1)) AND e.edge_type != 'superseded_by'
UNION ALL
SELECT m.id, n.id, e.weight FROM memories AS m CROSS JOIN edges AS e ON e.target_id = m.node_id CROSS JOIN memories AS n ON n.node_id = e.source_id
WHERE m.id IN (SELECT value FROM json_each(?1)) AND e.edge_type != 'superseded_by' ORDER BY 3 DESC, 1, 2 LIMIT ?2
"""


class Surroundings(msgspec.Struct, frozen=True):
    """The session of each memory row, and pairs of rows that stand beside each other there, each pair both ways round."""

    session: dict[int, str]
    pairs: set[tuple[int, int]]

    @property
    def rows(self) -> set[int]:
        """Every row that stands beside another."""
        return {row for row, _ in self.pairs}


Among = Callable[[Sequence[int]], set[int]]
"""Returns those of some memory rows that a query is about."""


def surroundings(connection: Connection, rows: Sequence[int], among: Among) -> Surroundings:
    """Look up the neighbours of *rows* in their sessions, of those that the query is about."""
    sql = "SELECT id, session_id, previous_id, next_id FROM session_memories WHERE id IN (SELECT value FROM json_each(?))"
    found: list[tuple[int, str, int | None, int | None]] = connection.execute(sql, (str(list(rows)),)).fetchall()
    beside = [(row, other) for row, _, *others in found for other in others if other is not None]
    neighbours = {other for _, other in beside}.difference(rows)
    allowed = among(sorted(neighbours)).union(rows) if neighbours else set(rows)
    session = {row: name for row, name, *_ in found}
    session |= {other: session[row] for row, other in beside if other in allowed}
    kept = [(row, other) for row, other in beside if other in allowed]
    return Surroundings(session, {*kept, *((other, row) for row, other in kept)})


def selected(connection: Connection, filtered: Filtered, rows: Sequence[int]) -> set[int]:
    """Return those of *rows* that *filtered* selects."""
    sql = f"SELECT m.id FROM memories AS m WHERE m.id IN (SELECT value FROM json_each(?)) AND {filtered.condition}"
    return {row[0] for row in connection.execute(sql, (str(list(rows)), *filtered.values))}


def linked(connection: Connection, rows: Sequence[int], filtered: Filtered) -> list[tuple[int, int, float]]:
    """Return (row, other row, weight) for the edges of *rows*, either way, to memories that *filtered* selects; heaviest first."""
    found: list[tuple[int, int, float]] = connection.execute(_LINKED, (str(list(rows)), LINKS_MAX)).fetchall()
    allowed = selected(connection, filtered, sorted({other for _, other, _ in found})) if found else set[int]()
    return [link for link in found if link[1] in allowed]
