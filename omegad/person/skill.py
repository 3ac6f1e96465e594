"""Noting what was learned about a skill in that skill's own file."""

from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.person.events import FailureReason, SkillImproved, SkillImproveFailed
from omegad.person.skill_files import improve
from omegad.person.skill_markers import LESSON_CHARACTERS
from omegad.person.skill_telling import confirmation
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.requests.verb import Verb
from omegad.text.redaction import redact


class ImproveSkill(Command, frozen=True, kw_only=True, tag="skill.improve"):
    """Append a lesson to `## Lessons Learned` of a skill's SKILL.md, once. `SKILL_IMPROVE: skill | lesson`
    in what an agent says does the same.
    """

    skill: Annotated[Name, Meta(description="the skill: a folder with a SKILL.md in the folder of skills")]
    lesson: Annotated[
        str, Meta(min_length=1, max_length=LESSON_CHARACTERS, description="what was learned, in one line")
    ]
    session_id: Annotated[
        Name | None, Meta(description="which session learned it, and is told what came of it")
    ] = None
    project: Annotated[Name | None, Meta(description="which project it was learned in")] = None


class SkillOutcome(Acknowledged, frozen=True):
    """What became of it, why if it failed, and what people are told of it."""

    outcome: Literal["improved", "failed"]
    reason: FailureReason | None
    confirmation: str


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson as it stands in the file, or why it does not, and what is said of it."""

    lesson: str
    reason: FailureReason | None
    confirmation: str


async def prepare(services: Services, command: ImproveSkill, _context: RequestContext) -> Noted:
    """Write the file, which comes to the same however often it is done: an outcome that was not recorded
    is found again.
    """
    lesson = " ".join(redact(command.lesson)[0].split())
    reason = await services.reach(
        partial(improve, services.skills.folders, command.skill, lesson), str(services.skills.folders[0])
    )
    return Noted(
        lesson=lesson,
        reason=reason,
        confirmation=confirmation(services.skills.language, command.skill, lesson, reason),
    )


def record(command: ImproveSkill, noted: Noted, _state: DecisionState, _now_us: int) -> Decision:
    """Record what became of a lesson."""
    known = {"skill": command.skill, "lesson": noted.lesson, "confirmation": noted.confirmation}
    event = (
        SkillImproved(**known) if noted.reason is None else SkillImproveFailed(**known, reason=noted.reason)
    )
    answer = SkillOutcome(
        outcome="failed" if noted.reason else "improved", reason=noted.reason, confirmation=noted.confirmation
    )
    return Decision(
        events=(NewEvent(event=event, session_id=command.session_id, project=command.project),), answer=answer
    )


METHODS = (
    CommandMethod(
        params=ImproveSkill,
        answer=SkillOutcome,
        prepare=prepare,
        decide=record,
        verb=Verb(says="{confirmation}"),
    ),
)
