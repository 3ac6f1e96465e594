"""What something that was said does to the memories near to it, as of a position, so that it stays the same."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from omegad.events.thesis import Effect, Side, Touch
from omegad.evidence.agreement import agrees
from omegad.log.event import Position
from omegad.storage.driver import Connection

VIEWS = ("memories", "retrievals", "theses")

SIMILARITY_MIN = 0.80
"""Above which two memories may speak for each other, a cosine."""

_MEMORY = "SELECT content, project, entity_id, session_id FROM memories WHERE node_id = ?"
THESES_MAX = 16
"""How many theses one effect touches at most, those that the memory states first."""

_THESES = f"""
SELECT * FROM (
SELECT t.thesis_id, t.session_id, t.memory_id, NULL AS side FROM theses AS t WHERE t.memory_id = ?1 AND t.outcome IS NULL
UNION
SELECT t.thesis_id, t.session_id, t.memory_id, e.side FROM thesis_evidence AS e JOIN theses AS t USING (thesis_id, version)
WHERE e.memory_id = ?1 AND e.memory_id <> t.memory_id AND e.side <> 'mentions' AND e.retracted IS NULL AND t.outcome IS NULL
) ORDER BY side IS NOT NULL, thesis_id LIMIT {THESES_MAX}
"""
_SHOWN = """
SELECT EXISTS (
    SELECT 1 FROM retrievals AS r WHERE r.session_id = ?1 AND r.id < ?2 * 1024 AND r.memory_id IN (SELECT value FROM json_each(?3))
)
"""
_EVIDENCE = "SELECT DISTINCT e.memory_id FROM thesis_evidence AS e WHERE e.thesis_id = ? AND e.side <> 'mentions' AND e.retracted IS NULL"
_DENIALS = """
SELECT e.thesis_id, e.evidence_id FROM thesis_evidence AS e JOIN theses AS t USING (thesis_id, version)
WHERE t.memory_id = ? AND e.memory_id = ? AND e.side = 'against' AND e.retracted IS NULL AND t.outcome IS NULL ORDER BY 1, 2
"""


class Said(NamedTuple):
    """What was said: the text, the memory that holds it, in which project and of which entity, by which session, at which position."""

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


def said(connection: Connection, memory_id: str, session_id: str | None, position: Position, content: str | None = None) -> Said | None:
    """Return what a session said that a memory holds, in its own words where they are given; None where there is no such memory."""
    row = connection.execute(_MEMORY, (memory_id,)).fetchone()
    return None if row is None else Said(content or row[0], memory_id, row[1], row[2], session_id, position)


def effects(connection: Connection, new: Said, near: Iterable[tuple[str, float]]) -> tuple[Effect, ...]:
    """Return what was said does to memories that are *near* it, by id and cosine: to those of its own project or entity."""
    found = (_effect(connection, new, memory_id, similarity) for memory_id, similarity in near if similarity > SIMILARITY_MIN)
    return tuple(effect for effect in found if effect)


def _effect(connection: Connection, new: Said, memory_id: str, similarity: float) -> Effect | None:
    row = connection.execute(_MEMORY, (memory_id,)).fetchone()
    if row is None or new.origin == memory_id:  # what nobody is known to have said again
        return None
    content, project, entity_id, session_id = row
    if project != new.project and (entity_id is None or entity_id != new.entity_id):
        return None
    agreed = agrees(new.content, content)
    is_echo = _is_own(new, session_id) or _was_shown(connection, new, [memory_id])
    theses = tuple(_touch(connection, new, row, agreed=agreed) for row in connection.execute(_THESES, (memory_id,)).fetchall())
    side: Side = "for" if agreed else "mentions"
    return Effect(memory_id=memory_id, similarity=round(similarity, 6), side=side, is_echo=agreed and is_echo, theses=theses)


def _touch(connection: Connection, new: Said, thesis: tuple[str, str | None, str, str | None], *, agreed: bool) -> Touch:
    """Return what was said is to a thesis, since it is near to the memory that states it, or to one that speaks for it or against it."""
    thesis_id, session_id, memory_id, side = thesis
    if not agreed:
        return Touch(thesis_id=thesis_id, side="mentions", is_echo=False)
    told = [memory_id, *(other for (other,) in connection.execute(_EVIDENCE, (thesis_id,)))]
    is_echo = _is_own(new, session_id) or _was_shown(connection, new, told)
    return Touch(thesis_id=thesis_id, side="against" if side == "against" else "for", is_echo=is_echo)


def _is_own(new: Said, session_id: str | None) -> bool:
    return new.session_id is not None and session_id == new.session_id


def _was_shown(connection: Connection, new: Said, memory_ids: Sequence[str]) -> bool:
    if new.session_id is None:
        return False
    values = (new.session_id, new.position, msgspec.json.encode(memory_ids).decode())
    return bool(connection.execute(_SHOWN, values).fetchone()[0])


def origin(connection: Connection, memory_id: str) -> str | None:
    """Return the session that a memory is from, or the memory where none said it; None where there is no such memory."""
    row = connection.execute("SELECT coalesce(session_id, node_id) FROM memories WHERE node_id = ?", (memory_id,)).fetchone()
    return str(row[0]) if row else None


def versions(connection: Connection, found: Iterable[Effect]) -> dict[str, int]:
    """Return which version each thesis has that effects touch."""
    names = msgspec.json.encode([touch.thesis_id for effect in found for touch in effect.theses]).decode()
    sql = "SELECT thesis_id, version FROM theses WHERE thesis_id IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(sql, (names,)).fetchall())


def theses_of(connection: Connection, memory_id: str) -> tuple[str, ...]:
    """Return the open theses that a memory states."""
    sql = "SELECT thesis_id FROM theses WHERE memory_id = ? AND outcome IS NULL ORDER BY thesis_id"
    return tuple(thesis_id for (thesis_id,) in connection.execute(sql, (memory_id,)))


def denials(connection: Connection, memory_id: str, denied_id: str) -> list[tuple[str, str]]:
    """Return the evidence, by thesis and its own id, that a memory is against what another one states."""
    return [(thesis_id, evidence_id) for thesis_id, evidence_id in connection.execute(_DENIALS, (denied_id, memory_id))]
