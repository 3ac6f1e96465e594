"""What people and agents say that is worth remembering, found in prompts and in what ends a turn, and stored
on probation.

A session that repeats what it was shown says nothing new: that is neither stored nor counts in favour of what
it repeats.
"""

import re
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Erased, Event, Excerpt, RecordedEvent, Unknown
from omegad.memory import store
from omegad.memory.store import PreparedStore, Stored, StoreMemory
from omegad.reactions.contract import Reader
from omegad.requests.command import Name
from omegad.requests.method import CommandMethod
from omegad.session import story as session
from omegad.session.events import PromptSubmitted, TurnEnded
from omegad.text.ingestion.statements import Role, Statement, statements

CAPTURED_BY = "auto_capture"
CAPTURED_MAX = 3
"""How much is taken from one message at most, beside what is announced: what is most probable."""
ANNOUNCED_MAX = 12
"""How much of what is announced is taken from one message: more is pasted."""
ECHOED = 0.7
"""The share of a sentence's words in one memory from which it repeats that memory."""
_WORD = re.compile(r"\w{3,}")


class CaptureMemory(StoreMemory, frozen=True, kw_only=True, tag="memory.capture"):
    """Remember what was said in a session, on probation; what repeats a memory that the session was
    `shown` is left at that.
    """

    shown: Annotated[
        tuple[Name, ...], Meta(description="the memories that the session was shown before")
    ] = ()

    def known_before(self) -> frozenset[str]:
        """Return the memories that the session was shown before it said so."""
        return frozenset(self.shown)


def capture(command: CaptureMemory, prepared: PreparedStore, state: DecisionState, now_us: int) -> Decision:
    """Decide as a store does, and let nothing come of it where a memory that was shown holds the content.
    Raises as a store does.
    """
    decision = store.store(command, prepared, state, now_us)
    assert isinstance(decision.answer, Stored)
    return Decision(answer=decision.answer) if decision.answer.memory_id in command.shown else decision


class Capture:
    """The reaction; one that is off goes on with the log, and leaves what is said meanwhile alone for
    good.
    """

    NAME = "capture"
    VERSION = 1
    VIEWS = session.VIEWS

    def __init__(self, *, is_on: bool) -> None:
        """Say whether anything is captured."""
        self.EVENTS: tuple[type[Event], ...] = (PromptSubmitted, TurnEnded) if is_on else ()

    def react(self, recorded: RecordedEvent, reader: Reader) -> Iterator[CaptureMemory]:
        """Store what a message states and its session was not shown, the most probable first."""
        said_by, stated = _stated(recorded.event)
        if not stated:
            return
        known = session.shown(reader.connection, recorded.session_id or "", recorded.position)
        contents = [_words(content) for content in session.contents(reader.connection, known)]
        new = []
        for one in stated:
            words = _words(one.text)
            if all(len(words & content) < ECHOED * len(words) for content in contents):
                new.append(one)
        told = [one for one in new if one.is_announced][:ANNOUNCED_MAX]
        judged = [one for one in new if not one.is_announced]
        for statement in (*told, *sorted(judged, key=lambda one: -one.probability)[:CAPTURED_MAX]):
            yield CaptureMemory(
                content=statement.text,
                event_type=statement.event_type,
                session_id=recorded.session_id,
                project=recorded.project,
                source=CAPTURED_BY,
                metadata={
                    "source": CAPTURED_BY,
                    "said_by": said_by,
                    "position": recorded.position,
                    "probability": statement.probability,
                },
                shown=tuple(known),
            )


def _stated(event: Event | Unknown | Erased) -> tuple[Role, list[Statement]]:
    """Return who speaks, and what they state. A prompt that is too long to be kept whole is pasted rather
    than said.
    """
    match event:
        case PromptSubmitted(prompt=Excerpt(head=text, tail="")):
            return "user", list(statements(text, "user"))
        case TurnEnded(message=Excerpt(head=text, tail=tail)):
            return "assistant", list(statements(text.rpartition("\n")[0] if tail else text, "assistant"))
        case _:
            return "user", []


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


METHODS = (
    CommandMethod(
        params=CaptureMemory, answer=Stored, prepare=store.prepare, decide=capture, is_internal=True
    ),
)
