"""What is said speaks for what is near to it, and for the theses there: evidence, unless it is an echo of
what its session had been shown.

It follows what was decided when the memory was stored, its nearest neighbours or that it was said before, and
the vectors of what theses are made of. A contradiction counts where somebody has drawn it.
"""

from collections.abc import Iterable, Iterator

import msgspec

from omegad.knowledge import ripples
from omegad.knowledge.events import (
    Effect,
    GivenBy,
    MemoryRippled,
    ThesisEvidenced,
    ThesisRevised,
    ThesisStated,
    Touch,
)
from omegad.knowledge.thesis import OpenThesis, RetractEvidence
from omegad.knowledge.thesis_state import Theses, evidence_id
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Event, NewEvent, Position, RecordedEvent
from omegad.memory.events import (
    MemoryEvolved,
    MemoryLinked,
    MemoryRelated,
    MemoryRepeated,
    MemoryStored,
    MemoryUnlinked,
)
from omegad.memory.relating import RIPPLE_COSINE
from omegad.memory.state import Memories
from omegad.memory.store import THESIS, THESIS_TYPE
from omegad.reactions.contract import Reader
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod

CONTRADICTS = "contradicts"
SAME = 1.0
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


class Ripple:
    """The reaction. While no thesis is open it reads no views for what was stored far from everything."""

    NAME = "ripple"
    VERSION = 4
    EVENTS = (MemoryStored, MemoryRelated, MemoryRepeated, MemoryEvolved, MemoryLinked, MemoryUnlinked)
    VIEWS = ripples.VIEWS

    def __init__(self) -> None:
        """Take a thesis to be open until the views have been read."""
        self._opened: Position = 0
        """Where the last thesis was opened, of those that were since."""
        self._none_open: Position = -1
        """The last event that was looked at while none was open."""

    def passes_over(self, recorded: RecordedEvent) -> bool:
        """Say whether nothing follows: an event states no thesis, none is open, and no memory is near."""
        may_be_open = self._opened > self._none_open
        match recorded.event:
            case ThesisStated() | ThesisRevised():
                self._opened = recorded.position
            case MemoryStored() as stored:
                return not (may_be_open or _states_thesis(stored) or _decided(stored))
            case MemoryRelated() as related:
                return not (may_be_open or _decided(related))
            case _:
                pass
        return False

    def react(self, recorded: RecordedEvent, reader: Reader) -> Iterator[Command]:
        """Return what follows from an event."""
        # One that is tried again is of long ago, and reads beside what goes on.
        if not ripples.are_open(reader.connection):
            self._none_open = max(self._none_open, recorded.position)
        return _following(recorded, reader)


def _following(recorded: RecordedEvent, reader: Reader) -> Iterator[Command]:
    """Open the thesis that a decision states, and record what was said does."""
    match recorded.event:
        case MemoryStored(memory_id=memory_id) as stored:
            if _states_thesis(stored):
                yield OpenThesis(memory_id=memory_id, statement=stored.content, metadata=stored.metadata)
            yield from _near(reader, memory_id, _decided(stored), is_embedded=not stored.pending)
        case MemoryRelated(memory_id=memory_id) as related:
            yield from _near(reader, memory_id, _decided(related), is_embedded=True)
        case (
            MemoryRepeated(memory_id=memory_id, content=content)
            | MemoryEvolved(memory_id=memory_id, wording=content)
        ):
            if said := ripples.said(
                reader.connection, memory_id, recorded.session_id, recorded.position, content
            ):
                yield from _rippled(reader, said, [(memory_id, SAME)])
        case MemoryLinked(memory_id=memory_id, target_id=target_id, edge_type=edge_type, weight=weight) if (
            edge_type == CONTRADICTS
        ):
            theses = tuple(
                Touch(thesis_id=one, side="against", is_echo=False)
                for one in ripples.theses_of(reader.connection, target_id)
            )
            effect = Effect(
                memory_id=target_id, similarity=weight, side="against", is_echo=False, theses=theses
            )
            if origin := ripples.origin(reader.connection, memory_id):
                versions = ripples.versions(reader.connection, (effect,))
                yield RippleMemory(
                    memory_id=memory_id, origin=origin, effects=(effect,), versions=versions, by="hand"
                )
        case MemoryUnlinked(memory_id=memory_id, target_id=target_id, edge_types=edge_types) if (
            CONTRADICTS in edge_types
        ):
            for thesis_id, evidence_id in ripples.denials(reader.connection, memory_id, target_id):
                yield RetractEvidence(
                    thesis_id=thesis_id, evidence_id=evidence_id, why="the contradiction was taken away"
                )
        case _:
            pass


def _states_thesis(stored: MemoryStored) -> bool:
    return stored.event_type == THESIS_TYPE and stored.metadata.get(THESIS) is True


def _decided(said: MemoryStored | MemoryRelated) -> dict[str, float]:
    """Return the cosines of the memories that are near enough to what was said, by id."""
    edges = (*said.related, *said.also_near)
    return {edge.memory_id: edge.similarity for edge in edges if edge.similarity > RIPPLE_COSINE}


def _near(
    reader: Reader, memory_id: str, decided: dict[str, float], *, is_embedded: bool
) -> Iterator[RippleMemory]:
    if (decided or ripples.are_open(reader.connection)) and (
        said := ripples.stored(reader.connection, memory_id)
    ):
        near = dict(ripples.near(reader.connection, said, is_embedded=is_embedded))
        yield from _rippled(reader, said, (near | decided).items())


def _rippled(reader: Reader, said: ripples.Said, near: Iterable[tuple[str, float]]) -> Iterator[RippleMemory]:
    if effects := ripples.effects(reader.connection, said, near):
        versions = ripples.versions(reader.connection, effects)
        yield RippleMemory(memory_id=said.memory_id, origin=said.origin, effects=effects, versions=versions)


METHODS = (CommandMethod(params=RippleMemory, answer=Acknowledged, decide=ripple, is_internal=True),)
