"""What something that was said does to the memories near to it, as of a position, so that it stays the
same.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from omegad.index.neighbours import RELATED_COSINE
from omegad.knowledge.events import Effect, Side, Touch
from omegad.log.event import Position
from omegad.log.projection import to_json
from omegad.memory.relating import RIPPLE_COSINE
from omegad.runtime.errors import Unavailable
from omegad.storage.driver import Connection
from omegad.text.evidence.stance import Stance, stance

VIEWS = ("memories", "retrievals", "theses", "vectors")

DENIED_MIN = RELATED_COSINE
"""Above which a rule may find that one is against the other."""

_MEMORY = "SELECT content, project, entity_id, session_id FROM memories WHERE node_id = ?"
_STORED = "SELECT content, node_id, project, entity_id, session_id, id FROM memories WHERE node_id = ?"
NEAR_MAX = 64
"""How many memories something that is said has effects on at most, the nearest."""
THESES_MAX = 16
"""How many theses one effect touches at most, those that the memory states first."""

_THESES = f"""
SELECT * FROM (
SELECT t.thesis_id, t.session_id, t.memory_id, NULL AS side, NULL AS statement FROM theses AS t
  WHERE t.memory_id = ?1 AND t.outcome IS NULL
UNION
SELECT t.thesis_id, t.session_id, t.memory_id, e.side, b.content FROM thesis_evidence AS e
  JOIN theses AS t USING (thesis_id, version)
JOIN memories AS b ON b.node_id = t.memory_id
WHERE e.memory_id = ?1 AND e.memory_id <> t.memory_id AND e.side <> 'mentions' AND e.retracted IS NULL
  AND t.outcome IS NULL
AND (b.project IS ?2 OR (b.entity_id IS NOT NULL AND b.entity_id = ?3))
) ORDER BY side IS NOT NULL, thesis_id LIMIT {THESES_MAX}
"""
_SIDES: dict[str, Side] = {"for": "for", "against": "against", "unclear": "mentions"}
_SHOWN = """
SELECT EXISTS (
    SELECT 1 FROM retrievals AS r WHERE r.session_id = ?1 AND r.id < ?2 * 1024
      AND r.memory_id IN (SELECT value FROM json_each(?3))
)
"""

# Of the memories that state a thesis or speak in one, those in reach; one passage of what is said, any
# passage of theirs.
_NEAR = f"""
SELECT v.memory_id, max(1.0 - vec_distance_cosine(v.vector, n.vector)) AS similarity
FROM (
    SELECT memory_id FROM theses WHERE outcome IS NULL AND id < :position
    UNION
    SELECT e.memory_id FROM thesis_evidence AS e JOIN theses AS t USING (thesis_id, version)
    WHERE t.outcome IS NULL AND e.side <> 'mentions' AND e.retracted IS NULL AND e.id < :position
) AS o
CROSS JOIN memories AS m ON m.node_id = o.memory_id AND m.status = 'active'
    AND (m.project IS :project OR (m.entity_id IS NOT NULL AND m.entity_id = :entity_id))
CROSS JOIN memory_vectors AS n ON n.memory_id = :memory_id AND n.chunk = 0 AND n.vector IS NOT NULL
CROSS JOIN memory_vectors AS v ON v.memory_id = o.memory_id AND v.embedder_id = n.embedder_id
  AND v.vector IS NOT NULL
WHERE o.memory_id <> :memory_id GROUP BY 1 HAVING similarity > {DENIED_MIN} ORDER BY similarity DESC, 1
  LIMIT {NEAR_MAX}
"""


class Said(NamedTuple):
    """What was said: the text, the memory that holds it, in which project and of which entity, by which
    session, at which position.
    """

    content: str
    memory_id: str
    project: str | None
    entity_id: str | None
    session_id: str | None
    position: Position

    @property
    def origin(self) -> str:
        """The session that said it, or the memory where none did."""
        return self.session_id or self.memory_id


def said(
    connection: Connection,
    memory_id: str,
    session_id: str | None,
    position: Position,
    content: str | None = None,
) -> Said | None:
    """Return what a session said that a memory holds, in its own words where they are given; None where
    there is no such memory.
    """
    row = connection.execute(_MEMORY, (memory_id,)).fetchone()
    return None if row is None else Said(content or row[0], memory_id, row[1], row[2], session_id, position)


def stored(connection: Connection, memory_id: str) -> Said | None:
    """Return what a memory was stored with, by whom and at which position; None where there is no such
    memory.
    """
    row = connection.execute(_STORED, (memory_id,)).fetchone()
    return None if row is None else Said(*row)


def are_open(connection: Connection) -> bool:
    """Say whether there are theses that something may speak for."""
    return connection.execute("SELECT 1 FROM theses WHERE outcome IS NULL LIMIT 1").fetchone() is not None


def near(connection: Connection, new: Said, *, is_embedded: bool) -> list[tuple[str, float]]:
    """Return the memories that state theses, or speak in them, and are near to what was said, by id and
    cosine.

    Raises `Unavailable` where the views do not show the vectors yet of what *is_embedded*, which the event
    after its own says.
    """
    if not are_open(connection):
        return []
    has_vector = "SELECT 1 FROM memory_vectors WHERE memory_id = ? LIMIT 1"
    if is_embedded and connection.execute(has_vector, (new.memory_id,)).fetchone() is None:
        at = connection.execute("SELECT position FROM checkpoints WHERE name = 'vectors'").fetchone()
        if at is not None and at[0] <= new.position:
            raise Unavailable("the views do not show the vectors of what was said yet")
    values = {
        "memory_id": new.memory_id,
        "position": new.position,
        "project": new.project,
        "entity_id": new.entity_id,
    }
    return connection.execute(_NEAR, values).fetchall()


def effects(connection: Connection, new: Said, near: Iterable[tuple[str, float]]) -> tuple[Effect, ...]:
    """Return what was said does to memories that are *near* it, by id and cosine: to those of its own
    project or entity.
    """
    found = list[Effect]()
    for memory_id, similarity in near:
        row = connection.execute(_MEMORY, (memory_id,)).fetchone()
        if row is None or new.origin == memory_id:  # what nobody is known to have said again
            continue
        content, project, entity_id, session_id = row
        if project != new.project and (entity_id is None or entity_id != new.entity_id):
            continue
        seen = stance(new.content, content)
        rounded = round(similarity, 6)
        if rounded > RIPPLE_COSINE or seen.side == "against":
            is_echo = _is_own(new, session_id) or _was_shown(connection, new, [memory_id])
            rows = connection.execute(_THESES, (memory_id, new.project, new.entity_id)).fetchall()
            found.append(
                Effect(
                    memory_id=memory_id,
                    similarity=rounded,
                    side=_SIDES[seen.side],
                    is_echo=seen.side != "unclear" and is_echo,
                    kind=seen.kind,
                    theses=tuple(_touch(connection, new, one, seen) for one in rows),
                )
            )
    return tuple(found)


def _touch(
    connection: Connection,
    new: Said,
    thesis: tuple[str, str | None, str, str | None, str | None],
    seen: Stance,
) -> Touch:
    """Return what was said is to a thesis, since it is near to the memory that states it, or to one that
    speaks for it or against it. What restates a piece of evidence says what that says, unless it clashes with
    the thesis itself; what denies a piece of evidence proves nothing of the thesis.
    """
    thesis_id, session_id, memory_id, given, statement = thesis
    side, kind = seen
    if given is not None and statement is not None:
        of_thesis = stance(new.content, statement)
        if of_thesis.side != "unclear":
            side, kind = of_thesis
        elif side == "for" and given == "against":
            side = "against"
        elif side == "against":
            side = "unclear"
    if side == "unclear":
        return Touch(thesis_id=thesis_id, side="mentions", is_echo=False)
    evidence = """
    SELECT DISTINCT e.memory_id FROM thesis_evidence AS e
    WHERE e.thesis_id = ? AND e.side <> 'mentions' AND e.retracted IS NULL
    """
    told = [memory_id, *(other for (other,) in connection.execute(evidence, (thesis_id,)))]
    is_echo = _is_own(new, session_id) or _was_shown(connection, new, told)
    return Touch(thesis_id=thesis_id, side=side, is_echo=is_echo, kind=kind)


def _is_own(new: Said, session_id: str | None) -> bool:
    return new.session_id is not None and session_id == new.session_id


def _was_shown(connection: Connection, new: Said, memory_ids: Sequence[str]) -> bool:
    if new.session_id is None:
        return False
    values = (new.session_id, new.position, to_json(memory_ids))
    return bool(connection.execute(_SHOWN, values).fetchone()[0])


def origin(connection: Connection, memory_id: str) -> str | None:
    """Return the session that a memory is from, or the memory where none said it; None where there is no
    such memory.
    """
    row = connection.execute(
        "SELECT coalesce(session_id, node_id) FROM memories WHERE node_id = ?", (memory_id,)
    ).fetchone()
    return str(row[0]) if row else None


def versions(connection: Connection, found: Iterable[Effect]) -> dict[str, int]:
    """Return which version each thesis has that effects touch."""
    names = to_json([touch.thesis_id for effect in found for touch in effect.theses])
    sql = "SELECT thesis_id, version FROM theses WHERE thesis_id IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(sql, (names,)).fetchall())


def theses_of(connection: Connection, memory_id: str) -> tuple[str, ...]:
    """Return the open theses that a memory states."""
    sql = "SELECT thesis_id FROM theses WHERE memory_id = ? AND outcome IS NULL ORDER BY thesis_id"
    return tuple(thesis_id for (thesis_id,) in connection.execute(sql, (memory_id,)))


def denials(connection: Connection, memory_id: str, denied_id: str) -> list[tuple[str, str]]:
    """Return the evidence, by thesis and its own id, that a memory is against what another one states."""
    sql = """
    SELECT e.thesis_id, e.evidence_id FROM thesis_evidence AS e JOIN theses AS t USING (thesis_id, version)
    WHERE t.memory_id = ? AND e.memory_id = ? AND e.side = 'against' AND e.retracted IS NULL
      AND t.outcome IS NULL ORDER BY 1, 2
    """
    return connection.execute(sql, (denied_id, memory_id)).fetchall()
