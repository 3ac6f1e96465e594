"""What was said has effects on what is near to it: it speaks for it, mentions it, or echoes it."""

import msgspec

from omegad.knowledge.events import Effect, GivenBy, MemoryRippled, ThesisEvidenced, Touch
from omegad.knowledge.thesis_state import Theses, evidence_id
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Event, NewEvent
from omegad.memory.state import Memories
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod

WEIGHTS: dict[GivenBy, float] = {"rule": 0.5, "hand": 1.0}
"""What counts as evidence counts half where a rule saw it."""


class RippleMemory(Command, frozen=True, kw_only=True, tag="memory.ripple"):
    """Record the effects of what an origin said, a session or a memory that none said, and a memory holds."""

    memory_id: Name
    origin: Name
    effects: tuple[Effect, ...]
    versions: dict[str, int]
    """Which version of each thesis was compared: what is revised since says something else."""

    by: GivenBy = "rule"


def ripple(command: RippleMemory, state: DecisionState, now_us: int) -> Decision:
    """Decide the effects, and the evidence that they are for open theses. An origin counts once for each:
    what it says more is an echo.
    """
    del now_us
    memory = state[Memories].get(command.memory_id)
    if memory is None or not command.effects:
        return Decision(answer=Acknowledged())
    evidence = list[Event]()
    told = list[Effect]()
    touched = set[str]()
    sided = {
        touch.thesis_id for effect in command.effects for touch in effect.theses if touch.side != "mentions"
    }
    for effect in command.effects:
        given = [
            one
            for touch in effect.theses
            if touch.thesis_id not in touched
            and (touch.side != "mentions" or touch.thesis_id not in sided)
            and (one := _evidence(command, effect, touch, state))
        ]
        touched.update(one.thesis_id for one in given)
        evidence += given
        theses = tuple(
            Touch(thesis_id=one.thesis_id, side=one.side, is_echo=one.is_echo, kind=one.why) for one in given
        )
        told.append(msgspec.structs.replace(effect, theses=theses))
    happened = MemoryRippled(memory_id=command.memory_id, origin=command.origin, effects=tuple(told))
    session_id = (
        memory.session_id if command.origin in (memory.session_id, memory.memory_id) else command.origin
    )
    new = (
        NewEvent(event=event, session_id=session_id, project=memory.project, follows=place > 0)
        for place, event in enumerate((happened, *evidence))
    )
    return Decision(events=tuple(new), answer=Acknowledged())


def _evidence(
    command: RippleMemory, effect: Effect, touch: Touch, state: DecisionState
) -> ThesisEvidenced | None:
    thesis = state[Theses].get(touch.thesis_id)
    if (
        thesis is None
        or thesis.outcome is not None
        or thesis.version != command.versions.get(thesis.thesis_id)
    ):
        return None
    given_id = evidence_id(thesis.thesis_id, thesis.version, command.memory_id, command.origin)
    if command.by == "rule" and state[Theses].has_evidence(thesis.thesis_id, given_id):
        return None
    says_something = touch.side != "mentions"
    is_echo = touch.is_echo or (
        says_something
        and command.by == "rule"
        and state[Theses].has_counted(thesis.thesis_id, thesis.version, command.origin)
    )
    return ThesisEvidenced(
        thesis_id=thesis.thesis_id,
        version=thesis.version,
        evidence_id=given_id,
        memory_id=command.memory_id,
        side=touch.side,
        is_echo=is_echo,
        weight=WEIGHTS[command.by] if says_something and not is_echo else 0.0,
        origin=command.origin,
        by=command.by,
        why=touch.kind,
        similarity=effect.similarity,
    )


METHODS = (CommandMethod(params=RippleMemory, answer=Acknowledged, decide=ripple, is_internal=True),)
