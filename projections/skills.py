"""Lessons about skills that agents asked to have noted, and what became of them."""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement
from omegad.person.events import SkillConfirmed, SkillImproved, SkillImproveFailed
from omegad.runtime.times import rfc3339

NAME = "skills"
VERSION = 1
EVENTS = (SkillImproved, SkillImproveFailed, SkillConfirmed)

SCHEMA = """
CREATE TABLE skill_lessons (
    id         INTEGER PRIMARY KEY, -- position of the outcome
    skill      TEXT NOT NULL,
    lesson     TEXT NOT NULL,
    status     TEXT NOT NULL,       -- improved, or why not: not_found, name_refused, unreadable, unwritable
    session_id TEXT,
    project    TEXT,
    created_at TEXT NOT NULL,
    told_at    TEXT                 -- when its session was told
) STRICT;
"""

CANONICAL = ("SELECT * FROM skill_lessons ORDER BY id",)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    at = rfc3339(recorded.occurred_at)
    match recorded.event:
        case SkillImproved() | SkillImproveFailed() as outcome:
            status = "improved" if isinstance(outcome, SkillImproved) else outcome.reason
            values = (
                recorded.position,
                outcome.skill,
                outcome.lesson,
                status,
                recorded.session_id,
                recorded.project,
                at,
            )
            yield Statement("INSERT INTO skill_lessons VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", values)
        case SkillConfirmed(outcomes=outcomes):
            for position in outcomes:
                yield Statement("UPDATE skill_lessons SET told_at = ? WHERE id = ?", (at, position))
