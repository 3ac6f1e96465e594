"""What was learned about a skill is noted in that skill's own file: by a command, or by
`SKILL_IMPROVE: skill | lesson` on a line of its own in what an agent says.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib import resources
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Excerpt, NewEvent, RecordedEvent
from omegad.person.events import FailureReason, SkillImproved, SkillImproveFailed
from omegad.person.skill_files import improve
from omegad.reactions.contract import Reader
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.requests.verb import Verb
from omegad.session.events import TurnEnded
from omegad.text.redaction import redact

NAME = "skill_lessons"
VERSION = 1
EVENTS = (TurnEnded,)
VIEWS = ()

SIGN = "SKILL_IMPROVE:"
MARKERS_MAX = 10  # of one message
SKILL_CHARACTERS, LESSON_CHARACTERS = 256, 2_000
PLACEHOLDERS = frozenset("<>{}`")
"""Characters of names that stand for a name, as in documentation."""

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_MARKER = re.compile(r" {0,3}SKILL_IMPROVE:([^|]*)\|(.*)")


class Marker(NamedTuple):
    """What is to be noted of which skill."""

    skill: str
    lesson: str


def markers(message: Excerpt) -> list[Marker]:
    """Return the markers of a message, each once, at most `MARKERS_MAX`; none of code blocks and quotations.

    Of a long message its beginning and end are known; a line that the cut goes through says nothing.
    """
    if SIGN not in message.head and SIGN not in message.tail:
        return []
    head, tail = message.head.splitlines(), message.tail.splitlines()
    found = list(_found(head[:-1] if tail else head, is_code=False))
    # A message ends outside of its code blocks, so its end begins within one where it has an odd number of
    # fences.
    found += _found(tail[1:], is_code=sum(_FENCE.match(line) is not None for line in tail[1:]) % 2 == 1)
    return list(dict.fromkeys(found))[:MARKERS_MAX]


def _found(lines: list[str], *, is_code: bool) -> Iterator[Marker]:
    fence = "" if is_code else None  # what opened the block, "" where that is not known
    for line in lines:
        if marks := _FENCE.match(line):
            if fence is None:
                fence = marks.group(1)
            elif marks.group(1).startswith(fence):
                fence = None
        elif fence is None and (marked := _MARKER.match(line)):
            skill, lesson = (" ".join(part.split()) for part in marked.groups())
            if skill and lesson and not PLACEHOLDERS & {*skill}:
                yield Marker(skill[:SKILL_CHARACTERS], lesson[:LESSON_CHARACTERS])


def language_of(setting: str, environ: Mapping[str, str]) -> str:
    """Return the language to use: the one that is set, that of the locale where it is "auto", English
    where there are no words for that.
    """
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    wanted = locale[:2].lower() if setting == "auto" else setting
    return wanted if wanted in _sentences() else "en"


def confirmation(language: str, skill: str, lesson: str, reason: FailureReason | None) -> str:
    """Return one line: what was learned, or why it was not."""
    words = _sentences()[language]
    if reason is None:
        return words["improved"].format(skill=skill, lesson=lesson)
    return words["failed"].format(skill=skill, reason=words[reason])


@cache
def _sentences() -> dict[str, dict[str, str]]:
    return tomllib.loads(
        resources.files("omegad.person").joinpath("skill_sentences.toml").read_text(encoding="utf-8")
    )


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


async def prepare(
    services: Services, command: ImproveSkill, _context: RequestContext
) -> SkillImproved | SkillImproveFailed:
    """Write the file, which comes to the same however often it is done: an outcome that was not recorded
    is found again.
    """
    lesson = " ".join(redact(command.lesson)[0].split())
    reason = await services.reach(
        partial(improve, services.skills.folders, command.skill, lesson), str(services.skills.folders[0])
    )
    said = confirmation(services.skills.language, command.skill, lesson, reason)
    known = {"skill": command.skill, "lesson": lesson, "confirmation": said}
    return SkillImproved(**known) if reason is None else SkillImproveFailed(**known, reason=reason)


def record(
    command: ImproveSkill, became: SkillImproved | SkillImproveFailed, _state: DecisionState, _now_us: int
) -> Decision:
    """Record what became of a lesson."""
    reason = became.reason if isinstance(became, SkillImproveFailed) else None
    answer = SkillOutcome(
        outcome="failed" if reason else "improved", reason=reason, confirmation=became.confirmation
    )
    new = NewEvent(event=became, session_id=command.session_id, project=command.project)
    return Decision(events=(new,), answer=answer)


def react(recorded: RecordedEvent, _reader: Reader) -> Iterator[ImproveSkill]:
    """Note each lesson that a turn's last message asks for."""
    assert isinstance(recorded.event, TurnEnded)
    for marker in markers(recorded.event.message) if recorded.event.message else ():
        yield ImproveSkill(
            skill=marker.skill, lesson=marker.lesson, session_id=recorded.session_id, project=recorded.project
        )


METHODS = (
    CommandMethod(
        params=ImproveSkill,
        answer=SkillOutcome,
        prepare=prepare,
        decide=record,
        verb=Verb(
            examples=("omegad skill improve deploying 'drain the queue before the canary'",),
            says="{confirmation}",
        ),
    ),
)
