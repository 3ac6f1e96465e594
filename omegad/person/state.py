"""What decisions know of the person's things: which reminders were told since they came due, and which
outcomes of lessons about skills their session has not been told yet.
"""

from collections.abc import Iterator

from omegad.log.decision import Tables
from omegad.log.event import Position, RecordedEvent
from omegad.log.mending import ClockMended
from omegad.log.projection import Statement
from omegad.memory.events import MemoryEdited
from omegad.person.events import SkillConfirmed, SkillImproved, SkillImproveFailed
from omegad.session.events import DeliveriesExpired, MemorySurfaced

NAME = "person"
VERSION = 1
EVENTS = (
    *(MemorySurfaced, MemoryEdited, SkillImproved, SkillImproveFailed, SkillConfirmed),
    *(DeliveriesExpired, ClockMended),
)
SCHEMA = """
CREATE TABLE state_told_reminders (
    memory_id TEXT PRIMARY KEY,
    position  INTEGER NOT NULL -- of the event that told it
) STRICT, WITHOUT ROWID;
CREATE TABLE state_untold_skills (
    session_id   TEXT NOT NULL,
    position     INTEGER NOT NULL,
    confirmation TEXT NOT NULL,
    PRIMARY KEY (session_id, position)
) STRICT, WITHOUT ROWID;
"""
CANONICAL = (
    "SELECT * FROM state_told_reminders ORDER BY memory_id",
    "SELECT * FROM state_untold_skills ORDER BY session_id, position",
)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemorySurfaced(how="reminder", results=results):
            for result in results:
                yield Statement(
                    "INSERT OR IGNORE INTO state_told_reminders VALUES (?, ?)",
                    (result.memory_id, recorded.position),
                )
        case MemoryEdited(memory_id=memory_id, referenced_at=due) if due is not None:
            yield Statement("DELETE FROM state_told_reminders WHERE memory_id = ?", (memory_id,))
        case ClockMended(first=first, last=last):  # what was told then may not be due yet
            yield Statement("DELETE FROM state_told_reminders WHERE position BETWEEN ? AND ?", (first, last))
        case SkillImproved(confirmation=text) | SkillImproveFailed(confirmation=text) if recorded.session_id:
            yield Statement(
                "INSERT INTO state_untold_skills VALUES (?, ?, ?)",
                (recorded.session_id, recorded.position, text),
            )
        case SkillConfirmed(outcomes=outcomes):
            for position in outcomes:
                yield Statement(
                    "DELETE FROM state_untold_skills WHERE session_id = ? AND position = ?",
                    (recorded.session_id, position),
                )
        case DeliveriesExpired(before=before):
            yield Statement("DELETE FROM state_untold_skills WHERE position < ?", (before,))


class Reminders(Tables):
    """Reads the reminders that were told."""

    def is_told(self, memory_id: str) -> bool:
        """Say whether a reminder was told since it came due."""
        return self._has("SELECT 1 FROM state_told_reminders WHERE memory_id = ?", memory_id)


class Skills(Tables):
    """Reads the outcomes that are still to be told."""

    def untold(self, session_id: str) -> dict[Position, str]:
        """Return what a session has not been told yet, by the position of each outcome."""
        sql = (
            "SELECT position, confirmation FROM state_untold_skills WHERE session_id = ? ORDER BY position"
            " LIMIT 20"
        )
        return dict(self._connection.execute(sql, (session_id,)).fetchall())
