"""What agents say that they learned of a skill is noted in the skill's file."""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.person.skill import ImproveSkill
from omegad.person.skill_markers import markers
from omegad.reactions.contract import Reader
from omegad.session.events import TurnEnded

NAME = "skill_lessons"
VERSION = 1
EVENTS = (TurnEnded,)
VIEWS = ()


def react(recorded: RecordedEvent, _reader: Reader) -> Iterator[ImproveSkill]:
    """Note each lesson that a turn's last message asks for."""
    assert isinstance(recorded.event, TurnEnded)
    for marker in markers(recorded.event.message) if recorded.event.message else ():
        yield ImproveSkill(
            skill=marker.skill, lesson=marker.lesson, session_id=recorded.session_id, project=recorded.project
        )
