"""What became of lessons about skills that agents asked to have noted."""

from typing import Literal

from omegad.log.event import Event, FreeText, Position

FailureReason = Literal["not_found", "name_refused", "unreadable", "unwritable"]


class SkillImproved(Event, frozen=True, kw_only=True, tag="skill.improved@1"):
    """A lesson was added to a skill's file, or is there already. `confirmation` is what the agent is told of it, in its person's language."""

    skill: FreeText
    lesson: FreeText
    confirmation: FreeText


class SkillImproveFailed(Event, frozen=True, kw_only=True, tag="skill.improve_failed@1"):
    """A lesson could not be added to a skill's file."""

    skill: FreeText
    lesson: FreeText
    reason: FailureReason
    confirmation: FreeText


class SkillConfirmed(Event, frozen=True, kw_only=True, tag="skill.confirmed@1"):
    """An agent was told what became of its lessons: of the events at these positions."""

    outcomes: tuple[Position, ...]
