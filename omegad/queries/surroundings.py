"""Which memories stand beside which in their sessions."""

from collections.abc import Callable, Sequence

import msgspec

from omegad.queries.words import Filtered
from omegad.storage.driver import Connection


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
