"""What tests of decisions share: guards that know what they are told, and what a decision came to."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Event, Position
from omegad.memory.state import MemoryState
from tests.builders import START_US

NOW_US = START_US
PAST_US, FUTURE_US = NOW_US - 1, NOW_US + 1
HERE = "here"


class FakeGuards:
    """A decision state that knows of memories what it is told, and where the log ends if it is."""

    def __init__(
        self,
        *known: MemoryState,
        embedded: tuple[str, ...] = (),
        conflicts: dict[tuple[str, str], str] | None = None,
        head: Position | None = None,
    ) -> None:
        self.head = head
        self._conflicts = conflicts or {}
        self._known = {guard.memory_id: guard for guard in known}
        self._embedded = embedded

    def __getitem__(self, _reader: type) -> "FakeGuards":
        return self

    def get(self, memory_id: str) -> MemoryState | None:
        return self._known.get(memory_id)

    def is_elsewhere(self, memory: MemoryState) -> bool:
        return memory.home != HERE

    def holder(self, content_key: str, now_us: int) -> MemoryState | None:
        return next(
            (
                guard
                for guard in self._known.values()
                if guard.content_key == content_key and guard.is_active(now_us)
            ),
            None,
        )

    def look_up(self, _memory_ids: Sequence[str]) -> None:
        """Know them already."""

    def conflicts(self, one: str, others: Sequence[str]) -> dict[str, str]:
        return {other: self._conflicts[one, other] for other in others if (one, other) in self._conflicts}

    def is_embedded(self, memory_id: str, _embedder_id: str) -> bool:
        return memory_id in self._embedded


def guards(*known: MemoryState, embedded: tuple[str, ...] = ()) -> DecisionState:
    return cast("DecisionState", FakeGuards(*known, embedded=embedded))


def guard(memory_id: str, *, at: int = 1, **changes: Any) -> MemoryState:
    """Return what the log knows of an ordinary memory that was stored at a position."""
    fields: dict[str, Any] = {
        "content_key": "",
        "stored_at": at,
        "changed_at": at,
        "state": "active",
        "pending": False,
        "event_type": "memory",
        "project": None,
        "entity_id": None,
        "session_id": None,
        "denied_by": None,
        "probation": False,
        "rating": 0,
        "ttl_seconds": None,
        "expires_at": None,
        "said_at": PAST_US,
        "home": HERE,
    }
    return MemoryState(memory_id=memory_id, **fields | changes)


def facts(decision: Decision) -> list[Event]:
    return [new.event for new in decision.events]


def answer(decision: Decision) -> dict[str, Any]:
    return cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(decision.answer)))
