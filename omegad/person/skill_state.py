"""What decisions know of lessons about skills: which outcomes their session has not been told yet."""

from collections.abc import Iterator

from omegad.log.event import Position, RecordedEvent
from omegad.log.projection import Statement
from omegad.person.skill_events import SkillConfirmed, SkillImproved, SkillImproveFailed
from omegad.session.delivery_events import DeliveriesExpired
from omegad.storage.driver import Connection

NAME = "skills"
VERSION = 2
EVENTS = (SkillImproved, SkillImproveFailed, SkillConfirmed, DeliveriesExpired)
SCHEMA = """
CREATE TABLE state_untold_skills (
    session_id   TEXT NOT NULL,
    position     INTEGER NOT NULL,
    confirmation TEXT NOT NULL,
    PRIMARY KEY (session_id, position)
) STRICT, WITHOUT ROWID;
"""
CANONICAL = ("SELECT * FROM state_untold_skills ORDER BY session_id, position",)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case SkillImproved(confirmation=text) | SkillImproveFailed(confirmation=text) if recorded.session_id:
            yield Statement("INSERT INTO state_untold_skills VALUES (?, ?, ?)", (recorded.session_id, recorded.position, text))
        case SkillConfirmed(outcomes=outcomes):
            for position in outcomes:
                yield Statement("DELETE FROM state_untold_skills WHERE session_id = ? AND position = ?", (recorded.session_id, position))
        case DeliveriesExpired(before=before):
            yield Statement("DELETE FROM state_untold_skills WHERE position < ?", (before,))
        case _:
            pass


class Skills:
    """Reads the table."""

    def __init__(self, connection: Connection) -> None:
        """Read through *connection*, whatever transaction is open there."""
        self._connection = connection

    def untold(self, session_id: str) -> dict[Position, str]:
        """Return what a session has not been told yet, by the position of each outcome."""
        sql = "SELECT position, confirmation FROM state_untold_skills WHERE session_id = ? ORDER BY position LIMIT 20"
        return dict(self._connection.execute(sql, (session_id,)).fetchall())
