"""Remember what was said in a session unasked, unless it repeats what the session was shown."""

from typing import Annotated

from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.memory import store
from omegad.memory.store import PreparedStore, Stored, StoreMemory
from omegad.requests.command import Name
from omegad.requests.method import CommandMethod


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


METHODS = (
    CommandMethod(
        params=CaptureMemory, answer=Stored, prepare=store.prepare, decide=capture, is_internal=True
    ),
)
