"""Habits: what is done at the same occasion in several sessions of a project becomes a preference on
probation, which its person confirms or denies.

Two kinds are looked for: the command that is run next after files were edited, and the one that is run last
before a commit.
"""

from collections import Counter
from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.memory.store import StoreMemory
from omegad.reactions.contract import Reader
from omegad.session import habits
from omegad.session.events import SessionEnded

NAME = "habits"
VERSION = 1
EVENTS = (SessionEnded,)
VIEWS = habits.VIEWS

SESSIONS_MIN = 3
FOUND_MAX = 3  # at the end of one session


def react(recorded: RecordedEvent, reader: Reader) -> Iterator[StoreMemory]:
    """Propose what has become a habit; what was proposed before is not again, whatever became of that."""
    project, position = recorded.project, recorded.position
    if project is None:
        return
    seen = Counter(
        habit for session in habits.sessions(reader.connection, project, position) for habit in session
    )
    known = habits.known(reader.connection, project, position, habits.HABIT_BY)
    often = [
        habit for habit, count in seen.most_common() if count >= SESSIONS_MIN and habit.entity_id not in known
    ]
    for habit in often[:FOUND_MAX]:
        yield StoreMemory(
            content=f"Habit: {habit.occasion}, `{habit.command}` is run",
            event_type="user_preference",
            project=project,
            entity_id=habit.entity_id,
            source=habits.HABIT_BY,
            metadata={"source": habits.HABIT_BY, "sessions": seen[habit]},
        )
