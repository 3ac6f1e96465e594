"""Remember what omegad itself put together: what it is made of is remembered with it, so that it goes when
that is erased.
"""

from typing import Annotated

from msgspec import Meta

from omegad.memory import store
from omegad.memory.events import MadeOf
from omegad.memory.store import Stored, StoreMemory
from omegad.requests.method import CommandMethod

SUMMARISED_BY = "auto_summary"
"""The source of what sessions are summarised by, which a summary of their week takes the place of."""


class DeriveMemory(StoreMemory, frozen=True, kw_only=True, tag="memory.derive"):
    """Remember a text that was put together of what others said."""

    made_of: Annotated[
        MadeOf, Meta(description="the memories, and the positions of the events, that it is made of")
    ]

    def sources(self) -> MadeOf:
        """Return what it is made of."""
        return self.made_of


METHODS = (
    CommandMethod(
        params=DeriveMemory, answer=Stored, prepare=store.prepare, decide=store.store, is_internal=True
    ),
)
